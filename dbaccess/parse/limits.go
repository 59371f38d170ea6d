package parse

import (
	"fmt"
	"strings"
	"unicode/utf8"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"
)

// The limits keep the recursive parser far from a stack overflow, and its time short. The parser
// crashes on a chain of 24 000 operators or 3 000 casts.
const (
	maxStatement = 1 << 20 // bytes
	maxTokens    = 400_000 // a list of 50 000 items has 100 000
	maxNesting   = 400     // open parentheses, brackets and CASEs
	maxChain     = 2000    // operators, casts and keywords between two commas
	maxKeywords  = 20_000
	maxComments  = 1000 // occurrences of "/*": nested comments take the lexer quadratic time
)

// A Fault says why a statement is not parsed. Position is a byte offset, from 1, in the text in which
// the fault was found; 0 means unknown.
type Fault struct {
	Reason   string // "too-large", "syntax-error", "missing-parameter", "no-sample" or one of package stages
	Message  string
	Position int
	Name     string // parameter without a value
}

func (f *Fault) Error() string { return f.Message }

func newFault(reason, format string, args ...any) *Fault {
	return &Fault{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// CheckText refuses text that is too long or no valid UTF-8, before it reaches the lexer.
func CheckText(sql string) *Fault {
	if len(sql) > maxStatement {
		return newFault("too-large", "the statement has %d bytes; the limit is %d: pass data as parameters", len(sql),
			maxStatement)
	}
	if !utf8.ValidString(sql) {
		return newFault("syntax-error", "the statement is not valid UTF-8")
	}
	for i := range len(sql) {
		if sql[i] == 0 {
			return newFault("syntax-error", "the statement contains a NUL byte")
		}
	}
	if strings.Count(sql, "/*") > maxComments {
		return newFault("too-large", "the statement has more than %d comments", maxComments)
	}
	return nil
}

// scanTokens lexes the statement and refuses a statement over the limits, before it reaches the parser.
func scanTokens(sql string) ([]Token, *Fault) {
	if f := CheckText(sql); f != nil {
		return nil, f
	}
	scanned, err := parser.ScanToProtobuf(sql)
	if err != nil {
		return nil, syntaxFault(err)
	}
	tokens, err := decodeTokens(scanned)
	if err != nil {
		return nil, syntaxFault(err)
	}
	if len(tokens) > maxTokens {
		return nil, newFault("too-large", "the statement has %d tokens; the limit is %d: pass data as parameters",
			len(tokens), maxTokens)
	}
	depth, chain, keywords := 0, 0, 0
	for _, t := range tokens {
		switch t.Kind {
		case pg_query.Token_ASCII_40, pg_query.Token_ASCII_91, pg_query.Token_CASE:
			depth++
			chain++
		case pg_query.Token_ASCII_41, pg_query.Token_ASCII_93, pg_query.Token_END_P:
			depth = max(depth-1, 0)
		case pg_query.Token_ASCII_44, pg_query.Token_ASCII_59:
			chain = 0
		case pg_query.Token_IDENT,
			pg_query.Token_ICONST,
			pg_query.Token_FCONST,
			pg_query.Token_SCONST,
			pg_query.Token_PARAM:
		default:
			chain++
			if t.isKeyword {
				keywords++
			}
		}
		if depth > maxNesting || chain > maxChain || keywords > maxKeywords {
			return nil, newFault("too-large",
				"the statement nests deeper than %d or chains more than %d operators: use a list, a CTE or parameters",
				maxNesting, maxChain)
		}
	}
	return tokens, nil
}
