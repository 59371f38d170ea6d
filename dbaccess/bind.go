package dbaccess

import (
	"encoding/json"
	"math/big"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/sandbox"
)

// bound is a statement whose :name parameters became $1, $2, ...
type bound struct {
	sql    string
	given  string // as the caller wrote it
	shifts []shift
	values [][]byte // text format; nil is NULL
	oids   []uint32 // 0 lets the server infer
}

// shift says that from byte at of the new text on, positions are delta less.
type shift struct{ at, delta int }

// bind finds :name by the lexer, so casts, strings, comments, dollar quotes and
// array slices are never mistaken for one.
func bind(sql string, params map[string]any) (*bound, error) {
	tokens, err := scan(sql)
	if err != nil {
		return nil, err
	}
	b := &bound{given: sql}
	var out strings.Builder
	numbers := map[string]int{}
	copied := 0
	var brackets []bool // of each open bracket: is it a subscript with something before the colon?
	for i, t := range tokens.Tokens {
		switch t.Token {
		case pg_query.Token_PARAM:
			return nil, refuse("syntax-error", "parameters are named: write :name and pass {\"name\": value}, not %s", sql[t.Start:t.End])
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
		if t.Token != pg_query.Token_ASCII_58 || i+1 == len(tokens.Tokens) {
			continue
		}
		next := tokens.Tokens[i+1]
		name := sql[next.Start:next.End]
		if next.Start != t.End || !isName(name) || inSlice && i > 0 && !opens(tokens.Tokens[i-1].Token) {
			continue
		}
		value, ok := params[name]
		if !ok {
			if len(brackets) > 0 {
				continue // arr[:n] is a slice where no n is given
			}
			r := refuse("missing-parameter", "the parameter :%s has no value", name)
			r.Nearest = nearest(name, keys(params))
			r.Hint = "pass it as {\"" + name + "\": ...}"
			r.Position, r.Line = place(sql, int(t.Start))
			return nil, r
		}
		n := numbers[name]
		if n == 0 {
			text, oid, err := encode(name, value)
			if err != nil {
				return nil, err
			}
			b.values, b.oids = append(b.values, text), append(b.oids, oid)
			n = len(b.values)
			numbers[name] = n
		}
		out.WriteString(sql[copied:t.Start])
		out.WriteString("$" + strconv.Itoa(n))
		copied = int(next.End)
		b.shifts = append(b.shifts, shift{at: out.Len(), delta: out.Len() - copied})
	}
	for _, name := range sorted(params) {
		if numbers[name] == 0 {
			r := refuse("unused-parameter", "the parameter %q is given, but the statement has no :%s", name, name)
			r.Hint = "take it out, or use it"
			return nil, r
		}
	}
	out.WriteString(sql[copied:])
	b.sql = out.String()
	return b, nil
}

// opens says that an expression may begin after this token.
func opens(t pg_query.Token) bool {
	switch t {
	case pg_query.Token_ASCII_91, pg_query.Token_ASCII_44, pg_query.Token_ASCII_40, pg_query.Token_ASCII_58, pg_query.Token_ASCII_43, pg_query.Token_ASCII_45, pg_query.Token_ASCII_42, pg_query.Token_ASCII_47:
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

func keys(m map[string]any) map[string]bool {
	out := map[string]bool{}
	for k := range m {
		out[k] = true
	}
	return out
}

func sorted(m map[string]any) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// locate maps a position (from 1, in bytes of b.sql) to characters and line of
// the caller's own text.
func (b *bound) locate(position int) (int, int) {
	at := position - 1
	for i := len(b.shifts) - 1; i >= 0; i-- {
		if at >= b.shifts[i].at {
			at -= b.shifts[i].delta
			break
		}
	}
	return place(b.given, at)
}

// place is the position in characters and the line, both from 1, of a byte.
func place(text string, at int) (position, line int) {
	at = min(max(at, 0), len(text))
	return utf8.RuneCountInString(text[:at]) + 1, strings.Count(text[:at], "\n") + 1
}

// Object identifiers of pg_type.dat; they never change.
const (
	oidBool, oidInt8, oidInt4, oidFloat8, oidNumeric, oidJSONB      = 16, 20, 23, 701, 1700, 3802
	oidBools, oidInt4s, oidInt8s, oidFloat8s, oidNumerics, oidTexts = 1000, 1007, 1016, 1022, 1231, 1009
)

// encode gives a value in text format and its type; a string's is the server's
// to infer, as psycopg does it.
func encode(name string, v any) ([]byte, uint32, error) {
	switch v := v.(type) {
	case nil:
		return nil, 0, nil
	case bool:
		return []byte(strconv.FormatBool(v)), oidBool, nil
	case json.Number:
		return []byte(v), numberType(string(v)), nil
	case string:
		if strings.IndexByte(v, 0) >= 0 {
			return nil, 0, refuse("invalid-parameter", "the parameter :%s holds a NUL character, which PostgreSQL's text cannot", name)
		}
		return []byte(v), 0, nil
	case map[string]any:
		text, err := json.Marshal(v)
		return text, oidJSONB, err
	case []any:
		var text strings.Builder
		var oid uint32
		if err := array(&text, name, v, &oid, 0); err != nil {
			return nil, 0, err
		}
		return []byte(text.String()), oid, nil
	}
	return nil, 0, refuse("invalid-parameter", "the parameter :%s is a %T, which has no PostgreSQL value", name, v)
}

func numberType(digits string) uint32 {
	if strings.ContainsAny(digits, ".eE") {
		return oidFloat8
	}
	if n, ok := new(big.Int).SetString(digits, 10); ok && n.IsInt64() {
		if n.Int64() == int64(int32(n.Int64())) {
			return oidInt4
		}
		return oidInt8
	}
	return oidNumeric
}

// array writes a list as PostgreSQL's array literal; numbers decide its type.
func array(out *strings.Builder, name string, list []any, oid *uint32, depth int) error {
	if depth > 6 {
		return refuse("invalid-parameter", "the parameter :%s nests deeper than PostgreSQL's arrays", name)
	}
	out.WriteByte('{')
	for i, v := range list {
		if i > 0 {
			out.WriteByte(',')
		}
		switch v := v.(type) {
		case []any:
			if err := array(out, name, v, oid, depth+1); err != nil {
				return err
			}
		case nil:
			out.WriteString("NULL")
		default:
			text, kind, err := encode(name, v)
			if err != nil {
				return err
			}
			widen(oid, map[uint32]uint32{oidBool: oidBools, oidInt4: oidInt4s, oidInt8: oidInt8s, oidFloat8: oidFloat8s, oidNumeric: oidNumerics}[kind])
			out.WriteByte('"')
			out.WriteString(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(string(text)))
			out.WriteByte('"')
		}
	}
	out.WriteByte('}')
	return nil
}

func widen(have *uint32, next uint32) {
	order := map[uint32]int{oidInt4s: 1, oidInt8s: 2, oidNumerics: 3, oidFloat8s: 4}
	if *have == 0 || order[next] > order[*have] && order[*have] > 0 {
		*have = next
	}
}

var _ error = (*sandbox.Refusal)(nil)
