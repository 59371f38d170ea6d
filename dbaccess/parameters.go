package dbaccess

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/dbaccess/check"
	"glasshouse/sandbox"
)

// Object identifiers from PostgreSQL's pg_type.dat. They never change.
const (
	oidBool, oidInt8, oidInt4, oidText, oidFloat8, oidNumeric, oidJSONB = 16, 20, 23, 25, 701, 1700, 3802
	oidBools, oidInt4s, oidTexts, oidInt8s, oidFloat8s, oidNumerics     = 1000, 1007, 1009, 1016, 1022, 1231
)

// boundParameters are the parameters of a statement in PostgreSQL's text format.
type boundParameters struct {
	texts [][]byte // nil means NULL
	oids  []uint32 // 0: the server infers the type
	lists []bool   // the value is a list
}

// bindParameters encodes the values of a statement's parameters. The error is a *sandbox.Refusal.
func bindParameters(stmt *check.Statement, params map[string]any) (*boundParameters, error) {
	bound := &boundParameters{}
	for i, name := range stmt.ParameterNames {
		value := params[name]
		typed, _ := value.(sandbox.TypedParameter)
		list, isList := value.([]any)
		if !isList {
			list, isList = typed.Value.([]any)
		}
		var text []byte
		var oid uint32
		var err error
		if isList && stmt.JSONParameters[i] {
			text, err = json.Marshal(list)
			oid = oidJSONB
		} else {
			text, oid, err = encodeParameter(name, value)
		}
		if err != nil {
			return nil, err
		}
		bound.add(text, oid, isList)
	}
	return bound, nil
}

func (p *boundParameters) add(text []byte, oid uint32, isList bool) {
	p.texts, p.oids, p.lists = append(p.texts, text), append(p.oids, oid), append(p.lists, isList)
}

// untyped is the server's error for a parameter whose type it cannot infer, or infers in two ways.
var untyped = regexp.MustCompile(
	`^(could not determine data type of|inconsistent types deduced for) parameter \$(\d+)$`)

// typeParameter returns the statement and its parameters with a type where the server, as err says, could not infer it.
// If err has no position, the parameter is text everywhere. Otherwise the parameter gets a number of its own there,
// which is text unless the server can infer another type from this place alone. typed is nil if err is another error.
//
// In (:c IS NULL OR day > :c) the server takes the first :c for a value of no type, and the second for a date.
func typeParameter(
	stmt *check.Statement, bound *boundParameters, err error,
) (statement *check.Statement, typed *boundParameters) {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return nil, nil
	}
	found := untyped.FindStringSubmatch(pg.Message)
	if found == nil {
		return nil, nil
	}
	number, _ := strconv.Atoi(found[2])
	if number < 1 || number > len(bound.oids) || bound.oids[number-1] != 0 {
		return nil, nil // the caller or the value has decided
	}
	isList := bound.lists[number-1]
	oid := uint32(oidText)
	if isList {
		oid = oidTexts
	}
	typed = &boundParameters{slices.Clone(bound.texts), slices.Clone(bound.oids), slices.Clone(bound.lists)}
	if pg.Position == 0 {
		typed.oids[number-1] = oid
		return stmt, typed
	}
	if strings.HasPrefix(found[1], "inconsistent") {
		oid = 0
	}
	if statement, ok = stmt.WithOwnNumber(int(pg.Position), number); !ok {
		return nil, nil
	}
	typed.add(bound.texts[number-1], oid, isList)
	return statement, typed
}

// parameterTypes are the types that a caller may declare for a parameter: scalar and array OID.
var parameterTypes = map[string][2]uint32{
	"bytea": {
		17,
		1001,
	}, "float8": {701, 1022}, "numeric": {1700, 1231}, "date": {1082, 1182}, "time": {1083, 1183}, "timetz": {1266, 1270}, "timestamp": {1114, 1115}, "timestamptz": {1184, 1185},
	"interval": {
		1186,
		1187,
	}, "uuid": {2950, 2951}, "inet": {869, 1041}, "cidr": {650, 651}, "int4range": {3904, 3905}, "int8range": {3926, 3927}, "numrange": {3906, 3907}, "daterange": {3912, 3913},
	"tsrange": {3908, 3909}, "tstzrange": {3910, 3911},
}

// encodeParameter returns a value in text format and its type's OID. For a string the OID is 0: the
// server infers the type, as with psycopg.
func encodeParameter(name string, v any) ([]byte, uint32, error) {
	switch v := v.(type) {
	case nil:
		return nil, 0, nil
	case bool:
		return []byte(strconv.FormatBool(v)), oidBool, nil
	case json.Number:
		return []byte(v), numberType(string(v)), nil
	case string:
		if strings.IndexByte(v, 0) >= 0 {
			return nil, 0, sandbox.Refusef("invalid-parameter", "the parameter :%s contains a NUL character, which PostgreSQL text cannot store", name)
		}
		return []byte(v), 0, nil
	case sandbox.TypedParameter:
		text, _, err := encodeParameter(name, v.Value)
		oids, ok := parameterTypes[v.Type]
		if !ok {
			return nil, 0, sandbox.Refusef("invalid-parameter", "the parameter :%s has the unknown type %q", name, v.Type)
		}
		if _, list := v.Value.([]any); list {
			return text, oids[1], err
		}
		return text, oids[0], err
	case map[string]any:
		text, err := json.Marshal(v)
		return text, oidJSONB, err
	case []any:
		return appendArray(nil, name, v, 0)
	}
	return nil, 0, sandbox.Refusef("invalid-parameter",
		"the parameter :%s has a value that PostgreSQL cannot represent (%T)", name, v)
}

// numberType returns the OID of the smallest type that has a number.
func numberType(digits string) uint32 {
	if strings.ContainsAny(digits, ".eE") {
		return oidFloat8
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case err != nil: // it is out of range
		return oidNumeric
	case n == int64(int32(n)):
		return oidInt4
	}
	return oidInt8
}

// appendArray appends a list as an array literal, and returns the OID of the array's type, which its elements decide.
// A list may have hundreds of thousands of elements, so appendArray makes nothing for an element besides its text.
func appendArray(out []byte, name string, list []any, depth int) (_ []byte, oid uint32, err error) {
	if depth > 6 {
		return nil, 0, sandbox.Refusef("invalid-parameter",
			"the parameter :%s nests deeper than PostgreSQL's arrays", name)
	}
	out = append(out, '{')
	for i, v := range list {
		if i > 0 {
			out = append(out, ',')
		}
		var kind uint32
		switch v := v.(type) {
		case []any:
			if out, kind, err = appendArray(out, name, v, depth+1); err != nil {
				return nil, 0, err
			}
		case nil:
			out = append(out, "NULL"...)
			continue
		default:
			text, scalar, err := encodeParameter(name, v)
			if err != nil {
				return nil, 0, err
			}
			out, kind = appendQuoted(out, text), arrayType(scalar)
		}
		oid = widerArrayType(oid, kind)
	}
	return append(out, '}'), oid, nil
}

// appendQuoted appends a text as an element of an array literal.
func appendQuoted(out, text []byte) []byte {
	out = append(out, '"')
	for _, c := range text {
		if c == '"' || c == '\\' {
			out = append(out, '\\')
		}
		out = append(out, c)
	}
	return append(out, '"')
}

// arrayType returns the OID of the array of a scalar type that encodeParameter infers, or 0.
func arrayType(scalar uint32) uint32 {
	switch scalar {
	case oidBool:
		return oidBools
	case oidInt4:
		return oidInt4s
	case oidInt8:
		return oidInt8s
	case oidFloat8:
		return oidFloat8s
	case oidNumeric:
		return oidNumerics
	}
	return 0
}

// widerArrayType returns the type of an array whose elements so far have the type have, and the next one the type next.
func widerArrayType(have, next uint32) uint32 {
	if have == 0 || numberRank(have) > 0 && numberRank(next) > numberRank(have) {
		return next
	}
	return have
}

// numberRank orders the types of arrays of numbers by the numbers that they have; 0: another type.
func numberRank(array uint32) int {
	switch array {
	case oidInt4s:
		return 1
	case oidInt8s:
		return 2
	case oidNumerics:
		return 3
	case oidFloat8s:
		return 4
	}
	return 0
}
