package parse

import (
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// Shift says that from byte At of the new text on, offsets are Delta larger than in the old text.
type Shift struct{ At, Delta int }

// numberParameters replaces :name by $1, $2, ... The lexer finds the names, so casts, strings,
// comments, dollar quotes and array slices are never mistaken for one. It returns the names in the
// order of their numbers.
func numberParameters(
	sql string, tokens []Token, given map[string]bool, any bool,
) (text string, names []string, shifts []Shift, bad *Fault) {
	var out strings.Builder
	numbers := map[string]int{}
	copied := 0
	var brackets []bool // for each open bracket: whether something precedes the colon of a slice
	for i, t := range tokens {
		switch t.Kind {
		case pg_query.Token_PARAM:
			bad = newFault("syntax-error", "parameters are named: write :name and pass {\"name\": value}, not %s",
				sql[t.Start:t.End])
			bad.Position = t.Start + 1
			return
		case pg_query.Token_ASCII_91:
			brackets = append(brackets, false)
			continue
		case pg_query.Token_ASCII_93:
			if len(brackets) > 0 {
				brackets = brackets[:len(brackets)-1]
			}
		case pg_query.Token_ASCII_44:
			if len(brackets) > 0 {
				brackets[len(brackets)-1] = false
				continue
			}
		}
		inSlice := len(brackets) > 0 && brackets[len(brackets)-1]
		if len(brackets) > 0 {
			brackets[len(brackets)-1] = true
		}
		if t.Kind != pg_query.Token_ASCII_58 || i+1 == len(tokens) {
			continue
		}
		next := tokens[i+1]
		name := sql[next.Start:next.End]
		if next.Start != t.End || !isName(name) || inSlice && i > 0 && !mayStartExpression(tokens[i-1].Kind) {
			continue
		}
		if !given[name] && len(brackets) > 0 {
			continue // arr[:n] is a slice if no parameter n is given
		}
		if !given[name] && !any {
			bad = newFault("missing-parameter", "the parameter :%s has no value", name)
			bad.Name, bad.Position = name, t.Start+1
			return
		}
		n := numbers[name]
		if n == 0 {
			names = append(names, name)
			n = len(names)
			numbers[name] = n
		}
		out.WriteString(sql[copied:t.Start])
		out.WriteString("$" + strconv.Itoa(n))
		copied = next.End
		shifts = append(shifts, Shift{At: out.Len(), Delta: out.Len() - copied})
	}
	if copied == 0 {
		return sql, names, nil, nil
	}
	out.WriteString(sql[copied:])
	return out.String(), names, shifts, nil
}

// mayStartExpression reports whether an expression may begin after this token.
func mayStartExpression(t pg_query.Token) bool {
	switch t {
	case pg_query.Token_ASCII_91,
		pg_query.Token_ASCII_44,
		pg_query.Token_ASCII_40,
		pg_query.Token_ASCII_58,
		pg_query.Token_ASCII_43,
		pg_query.Token_ASCII_45,
		pg_query.Token_ASCII_42,
		pg_query.Token_ASCII_47:
		return true
	}
	return false
}

func isName(s string) bool {
	for i, c := range s {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
