package parse

import (
	"errors"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"
)

// Request is a statement and the names of the parameters that have a value.
type Request struct {
	SQL          string
	Names        []string
	AllowAnyName bool // every name is taken to have one
}

// Result is what a child makes of a Request. Where Fault is not nil the rest is
// empty, or holds what was done before it.
type Result struct {
	SQL            string   // with $n for :name
	Names          []string // by number: Names[0] is $1
	Shifts         []Shift  // from the text that was given to SQL
	Tree           string   // a pg_query.ParseResult in JSON
	Fault          *Fault
	InNumberedText bool // Fault.Position is in SQL, not in the text that was given
}

// ParseInProcess parses in this very process: a child's work, and what the fuzzer tests.
func ParseInProcess(q Request) (out Result) {
	tokens, bad := scanTokens(q.SQL)
	if bad != nil {
		out.Fault = bad
		return out
	}
	given := make(map[string]bool, len(q.Names))
	for _, n := range q.Names {
		given[n] = true
	}
	if out.SQL, out.Names, out.Shifts, out.Fault = numberParameters(q.SQL, tokens, given, q.AllowAnyName); out.Fault != nil {
		return out
	}
	var err error
	if out.Tree, err = parser.ParseToJSON(out.SQL); err != nil {
		out.Fault, out.InNumberedText = syntaxFault(err), true
		return out
	}
	return out
}

// Fingerprint is that of a statement that was parsed before.
func Fingerprint(bound string) string {
	out, _ := pg_query.Fingerprint(bound)
	return out
}

func syntaxFault(err error) *Fault {
	f := newFault("syntax-error", "%s", err.Error())
	var at *parser.Error
	if errors.As(err, &at) {
		f.Position = at.Cursorpos
	}
	return f
}
