package dbaccess

import (
	"fmt"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/sandbox"
)

// Bounds that keep the C parser, which recurses and cannot be caught when it
// runs out of stack, far from its limits. They were chosen from its crashes: a
// chain of 24 000 operators or 3 000 casts is needed for one.
const (
	maxStatement = 1 << 20 // bytes
	maxNesting   = 400     // open parentheses, brackets and CASEs
	maxChain     = 2000    // operators and casts between two commas or keywords
	maxKeywords  = 20_000
)

// scan lexes the statement and refuses what must not reach the parser.
func scan(sql string) (*pg_query.ScanResult, error) {
	if len(sql) > maxStatement {
		return nil, refuse("too-large", "the statement has %d bytes, at most %d are taken: pass data as parameters", len(sql), maxStatement)
	}
	if strings.IndexByte(sql, 0) >= 0 {
		return nil, refuse("syntax-error", "the statement holds a NUL byte")
	}
	result, err := pg_query.Scan(sql)
	if err != nil {
		return nil, refuse("syntax-error", "syntax error: %s", err)
	}
	depth, chain, keywords := 0, 0, 0
	for _, t := range result.Tokens {
		switch t.Token {
		case pg_query.Token_ASCII_40, pg_query.Token_ASCII_91, pg_query.Token_CASE:
			depth++
			chain++
		case pg_query.Token_ASCII_41, pg_query.Token_ASCII_93, pg_query.Token_END_P:
			depth = max(depth-1, 0)
		case pg_query.Token_ASCII_44, pg_query.Token_ASCII_59:
			chain = 0
		case pg_query.Token_IDENT, pg_query.Token_ICONST, pg_query.Token_FCONST, pg_query.Token_SCONST, pg_query.Token_PARAM:
		default:
			chain++
			if t.KeywordKind != pg_query.KeywordKind_NO_KEYWORD {
				keywords++
			}
		}
		if depth > maxNesting || chain > maxChain || keywords > maxKeywords {
			return nil, refuse("too-large", "the statement nests deeper than %d or chains more than %d operators: use a list, a CTE or parameters", maxNesting, maxChain)
		}
	}
	return result, nil
}

func refuse(reason, format string, args ...any) *sandbox.Refusal {
	return &sandbox.Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
