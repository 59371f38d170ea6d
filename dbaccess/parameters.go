package dbaccess

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"glasshouse/sandbox"
)

// Object identifiers from PostgreSQL's pg_type.dat. They never change.
const (
	oidBool, oidInt8, oidInt4, oidFloat8, oidNumeric, oidJSONB = 16, 20, 23, 701, 1700, 3802
	oidBools, oidInt4s, oidInt8s, oidFloat8s, oidNumerics      = 1000, 1007, 1016, 1022, 1231
)

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
		var text strings.Builder
		var oid uint32
		if err := appendArray(&text, name, v, &oid, 0); err != nil {
			return nil, 0, err
		}
		return []byte(text.String()), oid, nil
	}
	return nil, 0, sandbox.Refusef("invalid-parameter",
		"the parameter :%s has a value that PostgreSQL cannot represent (%T)", name, v)
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

// appendArray appends a list as an array literal. Its elements decide the array's type.
func appendArray(out *strings.Builder, name string, list []any, oid *uint32, depth int) error {
	if depth > 6 {
		return sandbox.Refusef("invalid-parameter", "the parameter :%s nests deeper than PostgreSQL's arrays", name)
	}
	out.WriteByte('{')
	for i, v := range list {
		if i > 0 {
			out.WriteByte(',')
		}
		switch v := v.(type) {
		case []any:
			if err := appendArray(out, name, v, oid, depth+1); err != nil {
				return err
			}
		case nil:
			out.WriteString("NULL")
		default:
			text, kind, err := encodeParameter(name, v)
			if err != nil {
				return err
			}
			widenArrayType(oid, map[uint32]uint32{oidBool: oidBools, oidInt4: oidInt4s, oidInt8: oidInt8s, oidFloat8: oidFloat8s, oidNumeric: oidNumerics}[kind])
			out.WriteByte('"')
			out.WriteString(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(string(text)))
			out.WriteByte('"')
		}
	}
	out.WriteByte('}')
	return nil
}

func widenArrayType(have *uint32, next uint32) {
	order := map[uint32]int{oidInt4s: 1, oidInt8s: 2, oidNumerics: 3, oidFloat8s: 4}
	if *have == 0 || order[next] > order[*have] && order[*have] > 0 {
		*have = next
	}
}
