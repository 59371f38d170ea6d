package dbaccess

import (
	"encoding/hex"
	"strconv"
	"strings"

	"glasshouse/dbaccess/check"
	"glasshouse/sandbox"
)

// decoder converts PostgreSQL's text to a value that sandbox.ColumnValues.Others may hold.
type decoder func(text string) any

// kindByTypeName maps type names to kinds of sandbox.Column; all others are text.
var kindByTypeName = map[string]string{
	"bool": "bool", "int2": "int", "int4": "int", "int8": "int", "oid": "int", "float4": "float", "float8": "float", "numeric": "decimal", "text": "string", "varchar": "string", "bpchar": "string", "name": "string",
	"bytea": "bytes", "date": "date", "time": "time", "timetz": "timetz", "timestamp": "timestamp", "timestamptz": "timestamptz", "interval": "timedelta", "uuid": "uuid", "json": "json", "jsonb": "json", "inet": "inet", "cidr": "cidr", "record": "record",
}

var decoderByKind = map[string]decoder{
	"":     func(s string) any { return s },
	"bool": func(s string) any { return s == "t" },
	"int": func(s string) any {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return s
		}
		return n
	},
	"float": func(s string) any {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return s
		}
		return f
	},
	"bytes": func(s string) any {
		b, err := hex.DecodeString(strings.TrimPrefix(s, `\x`))
		if err != nil {
			return s
		}
		return b
	},
	"timestamp":   decodeTime,
	"timestamptz": decodeTime,
	"timedelta":   decodeInterval,
}

var storageByKind = map[string]valueStorage{
	"int":         storeInts,
	"float":       storeFloats,
	"bool":        storeBools,
	"timestamp":   storeTime,
	"timestamptz": storeTime,
	"bytes":       storeOthers,
	"timedelta":   storeOthers,
}

// describeColumn describes an output column by the type OID that the server reports, and says how
// its values are stored.
func describeColumn(cat *check.Catalog, name string, oid uint32) (sandbox.Column, columnReader) {
	out := sandbox.Column{Name: name, Type: "unknown", Kind: "text"}
	t := cat.TypesByOID[oid]
	if t == nil {
		return out, columnReader{}
	}
	out.Type = t.Name
	vector := t.Name == "int2vector" || t.Name == "oidvector" // their text format is not an array literal
	if t.Element != 0 && (t.Kind == 'b' || t.Kind == 'p') && !vector {
		if element := cat.TypesByOID[t.Element]; element != nil {
			t = element
			out.Type, out.Array = t.Name+"[]", true
		}
	}
	if kind, ok := kindByTypeName[t.Name]; ok && t.Schema == "pg_catalog" {
		out.Kind = kind
	} else if (t.Kind == 'r' || t.Kind == 'm') && t.Schema == "pg_catalog" {
		out.Kind, out.Of = map[byte]string{'r': "range", 'm': "multirange"}[t.Kind], kindByTypeName[cat.TypesByOID[t.Element].Name]
	}
	one, ok := decoderByKind[out.Kind]
	if !ok {
		one = decoderByKind[""]
	}
	if !out.Array {
		return out, columnReader{storage: storageByKind[out.Kind], decode: one}
	}
	separator := byte(',')
	if t.Name == "box" {
		separator = ';'
	}
	return out, columnReader{storage: storeOthers, decode: func(s string) any { return decodeArray(s, separator, one) }}
}

func decodeTime(s string) any { return string(appendTime(nil, []byte(s))) }

// decodeInterval decodes an ISO 8601 interval to months, days and microseconds.
func decodeInterval(s string) any {
	var months, days, micros int64
	date, clock, _ := strings.Cut(strings.TrimPrefix(s, "P"), "T")
	forEachIntervalPart(date, func(v string, unit byte) {
		n, _ := strconv.ParseInt(v, 10, 64)
		switch unit {
		case 'Y':
			months += 12 * n
		case 'M':
			months += n
		case 'W':
			days += 7 * n
		case 'D':
			days += n
		}
	})
	forEachIntervalPart(clock, func(v string, unit byte) {
		whole, fraction, _ := strings.Cut(v, ".")
		n, _ := strconv.ParseInt(whole, 10, 64)
		part, _ := strconv.ParseInt((fraction + "000000")[:6], 10, 64)
		if strings.HasPrefix(v, "-") {
			part = -part
		}
		micros += (n*1_000_000 + part) * map[byte]int64{'H': 3600, 'M': 60, 'S': 1}[unit]
	})
	return []any{months, days, micros}
}

func forEachIntervalPart(s string, take func(v string, unit byte)) {
	from := 0
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'Z' {
			take(s[from:i], s[i])
			from = i + 1
		}
	}
}

// decodeArray decodes an array literal of any number of dimensions. It drops explicit bounds such as
// [0:1]=, because a list cannot have them.
func decodeArray(s string, separator byte, one decoder) any {
	if strings.HasPrefix(s, "[") {
		_, s, _ = strings.Cut(s, "=")
	}
	list, _ := parseArray(s, separator, one)
	return list
}

func parseArray(s string, separator byte, one decoder) ([]any, string) {
	list := []any{}
	s = strings.TrimPrefix(s, "{")
	for s != "" && s[0] != '}' {
		switch s[0] {
		case separator:
			s = s[1:]
		case '{':
			var inner []any
			inner, s = parseArray(s, separator, one)
			list = append(list, inner)
		case '"':
			var text strings.Builder
			i := 1
			for ; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' && i+1 < len(s) {
					i++
				}
				text.WriteByte(s[i])
			}
			list = append(list, one(text.String()))
			s = s[min(i+1, len(s)):]
		default:
			end := strings.IndexAny(s, string(separator)+"}")
			if end < 0 {
				end = len(s)
			}
			if s[:end] == "NULL" {
				list = append(list, nil)
			} else {
				list = append(list, one(s[:end]))
			}
			s = s[end:]
		}
	}
	return list, strings.TrimPrefix(s, "}")
}
