package parse

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// Shift says that from byte At of the new text on, offsets are Delta larger than in the old text.
type Shift struct{ At, Delta int }

// numberedText is a statement with $1, $2, ... in place of :name.
type numberedText struct {
	sql    string
	names  []string // by number
	json   []bool   // by number: the parameter is cast to json or jsonb
	shifts []Shift  // from the text with names
}

// numberParameters replaces :name by $1, $2, ... The lexer finds the names, so casts, strings,
// comments, dollar quotes and array slices are never mistaken for one. A parameter has a number of its own where it is
// cast to JSON, because a list is an array elsewhere.
func numberParameters(
	sql string, tokens []Token, given map[string]bool, any bool,
) (made numberedText, bad *Fault) {
	type meaning struct {
		name   string
		isJSON bool
	}
	var out strings.Builder
	numbers := map[meaning]int{}
	copied := 0
	var open []opening
	if slices.ContainsFunc(tokens, Token.isComment) {
		tokens = slices.DeleteFunc(slices.Clone(tokens), Token.isComment)
	}
	for i, t := range tokens {
		switch t.Kind {
		case pg_query.Token_PARAM:
			bad = newFault("syntax-error", "parameters are named: write :name and pass {\"name\": value}, not %s",
				sql[t.Start:t.End])
			bad.Position = t.Start + 1
			return
		case pg_query.Token_ASCII_40, pg_query.Token_ASCII_91:
			isSubscript := t.Kind == pg_query.Token_ASCII_91 && !beginsArray(tokens[:i], open)
			open = append(open, opening{isSubscript: isSubscript})
			continue
		case pg_query.Token_ASCII_41, pg_query.Token_ASCII_93:
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		case pg_query.Token_ASCII_44:
			if len(open) > 0 {
				open[len(open)-1].hasContent = false
				continue
			}
		}
		inSubscript := len(open) > 0 && open[len(open)-1].isSubscript
		inSlice := inSubscript && open[len(open)-1].hasContent
		if len(open) > 0 {
			open[len(open)-1].hasContent = true
		}
		if t.Kind != pg_query.Token_ASCII_58 || i+1 == len(tokens) {
			continue
		}
		next := tokens[i+1]
		name := sql[next.Start:next.End]
		if next.Start != t.End || !isName(name) || inSlice && i > 0 && !mayStartExpression(tokens[i-1].Kind) {
			continue
		}
		if !given[name] && inSubscript {
			continue // arr[:n] is a slice if no parameter n is given
		}
		if !given[name] && !any {
			bad = newFault("missing-parameter", "the parameter :%s has no value", name)
			bad.Name, bad.Position = name, t.Start+1
			return
		}
		means := meaning{name, isCastToJSON(sql, tokens, i)}
		n := numbers[means]
		if n == 0 {
			made.names, made.json = append(made.names, name), append(made.json, means.isJSON)
			n = len(made.names)
			numbers[means] = n
		}
		out.WriteString(sql[copied:t.Start])
		out.WriteString("$" + strconv.Itoa(n))
		copied = next.End
		made.shifts = append(made.shifts, Shift{At: out.Len(), Delta: out.Len() - copied})
	}
	if made.sql = sql; copied > 0 {
		out.WriteString(sql[copied:])
		made.sql = out.String()
	}
	return made, nil
}

// isCastToJSON reports whether the parameter at a colon is cast to json or jsonb: :x::jsonb or CAST(:x AS jsonb).
func isCastToJSON(sql string, tokens []Token, colon int) bool {
	after := tokens[colon+2:]
	if len(after) < 2 || len(after) > 2 && after[2].Kind == pg_query.Token_ASCII_91 { // an array of JSON
		return false
	}
	isCast := after[0].Kind == pg_query.Token_TYPECAST ||
		after[0].Kind == pg_query.Token_AS && colon > 1 && tokens[colon-2].Kind == pg_query.Token_CAST
	kind := strings.ToLower(sql[after[1].Start:after[1].End])
	return isCast && (kind == "json" || kind == "jsonb")
}

// opening is an open bracket or parenthesis.
type opening struct {
	isSubscript bool // of arr[1:n], where a colon may be that of a slice
	hasContent  bool // something precedes the colon of a slice
}

// beginsArray reports whether a bracket after these tokens is that of ARRAY[...], or of an array in one.
func beginsArray(before []Token, open []opening) bool {
	if len(before) == 0 {
		return false
	}
	switch before[len(before)-1].Kind {
	case pg_query.Token_ARRAY:
		return true
	case pg_query.Token_ASCII_91, pg_query.Token_ASCII_44:
		return len(open) > 0 && !open[len(open)-1].isSubscript
	}
	return false
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

// isName reports whether a text is an identifier without quotes and dollars. PostgreSQL takes every character beyond
// ASCII for a letter.
func isName(s string) bool {
	for i, c := range s {
		isLetter := c == '_' || c >= utf8.RuneSelf || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !isLetter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// numberInMessage is where a message of PostgreSQL refers to a parameter by its number.
var numberInMessage = regexp.MustCompile(`(parameter |at or near ")\$(\d+)`)

// NameParameters replaces the number of a parameter in a message of PostgreSQL by :name. names are in the order of
// their numbers.
func NameParameters(message string, names []string) string {
	return numberInMessage.ReplaceAllStringFunc(message, func(found string) string {
		before, digits, _ := strings.Cut(found, "$")
		if n, err := strconv.Atoi(digits); err == nil && n > 0 && n <= len(names) {
			return before + ":" + names[n-1]
		}
		return found
	})
}
