package parse

import (
	"errors"
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"
)

// Request is a statement with the names of the parameters that have a value.
type Request struct {
	SQL          string
	Names        []string
	AllowAnyName bool       // treat every name as given
	Derive       Derivation // make other statements from it, and no tree
	Tables       []Table    // of Stages, Why and WhyNot: that the statement may read
	Samples      bool       // of Stages: with statements for some rows of each stage
	Columns      []string   // of WhyNot: whose values are given
	Nulls        []string   // of Columns: whose value is NULL
}

// Result is the answer of a child. If Fault is not nil, the other fields may be empty.
type Result struct {
	SQL            string   // with $n in place of :name
	Names          []string // by number: Names[0] is $1; a parameter may have several numbers
	JSON           []bool   // by number: the parameter is cast to json or jsonb
	Shifts         []Shift  // from the given text to SQL
	Tree           string   // a pg_query.ParseResult as JSON
	Fingerprint    string   // the same for statements that differ in constants only
	Explained      int      // offset in SQL of the query that EXPLAIN explains; 0: no EXPLAIN
	Derived        string   // of a request to derive: the other statement, with :name; Names are its parameters
	Target         string   // of a request for a Preview or for Changes: the table that it changes
	Write          Write    // of a request to derive: what the statement does
	Stages         *StagePlan
	Why            *WhyPlan
	WhyNot         *WhyNotPlan
	Fault          *Fault
	InNumberedText bool // Fault.Position refers to SQL, not to the given text
}

// ParseInProcess parses in the current process. Children and the fuzzer call it.
func ParseInProcess(q Request) (out Result) {
	tokens, bad := scanTokens(q.SQL)
	if bad != nil {
		out.Fault = bad
		return out
	}
	if q.Derive == Preview || q.Derive == Changes { // the statement has $n
		out.Derived, out.Target, out.Fault = derivePreview(q.SQL, q.Derive)
		out.Write = describeWrite(q.SQL)
		return out
	}
	given := make(map[string]bool, len(q.Names))
	for _, n := range q.Names {
		given[n] = true
	}
	numbered, bad := numberParameters(q.SQL, tokens, given, q.AllowAnyName)
	out.SQL, out.Names, out.JSON, out.Shifts = numbered.sql, numbered.names, numbered.json, numbered.shifts
	if bad != nil {
		out.Fault = bad
		return out
	}
	if q.Derive == Stages {
		out.Stages, out.Fault = deriveStages(out.SQL, out.Names, q.Tables, q.Samples)
		out.InNumberedText = true
		return out
	}
	if q.Derive == Why || q.Derive == WhyNot {
		if q.Derive == Why {
			out.Why, out.Fault = deriveWhy(out.SQL, out.Names, q.Tables)
		} else {
			out.WhyNot, out.Fault = deriveWhyNot(out.SQL, out.Names, &q)
		}
		out.InNumberedText = true
		return out
	}
	if q.Derive != 0 {
		out.Write = describeWrite(out.SQL)
		out.Derived, out.Names, out.Fault = derive(out.SQL, out.Names, q.Derive)
		out.InNumberedText = true
		return out
	}
	var err error
	if out.Tree, err = parser.ParseToJSON(out.SQL); err != nil {
		out.Fault, out.InNumberedText = syntaxFault(err), true
		out.Fault.Message = NameParameters(out.Fault.Message, out.Names)
		return out
	}
	out.Explained = explainedOffset(tokens)
	out.Fingerprint, _ = pg_query.Fingerprint(out.SQL) // a text that parses has one
	return out
}

// explainedOffset returns the offset of the query after EXPLAIN and its options. No parameter stands before it, so it
// is that of the numbered text, too. 0: no EXPLAIN.
func explainedOffset(tokens []Token) int {
	first := slices.IndexFunc(tokens, func(t Token) bool { return !t.isComment() })
	if first < 0 || tokens[first].Kind != pg_query.Token_EXPLAIN {
		return 0
	}
	tokens = slices.DeleteFunc(slices.Clone(tokens[first+1:]), Token.isComment)
	if len(tokens) > 1 && tokens[0].Kind == pg_query.Token_ASCII_40 {
		switch tokens[1].Kind {
		case pg_query.Token_SELECT, pg_query.Token_VALUES, pg_query.Token_WITH, pg_query.Token_TABLE,
			pg_query.Token_ASCII_40: // no name of an option
			return tokens[0].Start
		}
		closed := func(t Token) bool { return t.Kind == pg_query.Token_ASCII_41 } // options have no parentheses in them
		tokens = tokens[slices.IndexFunc(tokens, closed)+1:]
	}
	for _, t := range tokens {
		switch t.Kind {
		case pg_query.Token_ANALYZE, pg_query.Token_ANALYSE, pg_query.Token_VERBOSE:
		default:
			return t.Start
		}
	}
	return 0
}

// GrammarVersion is the version of PostgreSQL whose grammar the parser has. A newer server can read more.
const GrammarVersion = 16

func syntaxFault(err error) *Fault {
	f := newFault("syntax-error", "%s", err.Error())
	if at, ok := errors.AsType[*parser.Error](err); ok {
		f.Position = at.Cursorpos
	}
	return f
}
