package dbaccess

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"strings"

	"glasshouse/dbaccess/check"
	"glasshouse/sandbox"
)

// decoder converts PostgreSQL's text to a value that sandbox.ColumnValues.Others may hold.
type decoder func(text []byte) any

// kindByTypeName maps type names to kinds of sandbox.Column; all others are text.
var kindByTypeName = map[string]string{
	"bool": "bool", "int2": "int", "int4": "int", "int8": "int", "oid": "int", "float4": "float", "float8": "float", "numeric": "decimal", "text": "string", "varchar": "string", "bpchar": "string", "name": "string",
	"bytea": "bytes", "date": "date", "time": "time", "timetz": "timetz", "timestamp": "timestamp", "timestamptz": "timestamptz", "interval": "timedelta", "uuid": "uuid", "json": "json", "jsonb": "json", "inet": "inet", "cidr": "cidr", "record": "record",
}

var decoderByKind = map[string]decoder{
	"":     func(s []byte) any { return string(s) },
	"bool": func(s []byte) any { return string(s) == "t" },
	"int": func(s []byte) any {
		n, err := strconv.ParseInt(string(s), 10, 64)
		if err != nil {
			return string(s)
		}
		return n
	},
	"float": func(s []byte) any {
		f, err := strconv.ParseFloat(string(s), 64)
		if err != nil {
			return string(s)
		}
		return f
	},
	"bytes": func(s []byte) any {
		digits := bytes.TrimPrefix(s, []byte(`\x`))
		b := make([]byte, hex.DecodedLen(len(digits)))
		if _, err := hex.Decode(b, digits); err != nil {
			return string(s)
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
	return out, columnReader{storage: storeText, array: &sandbox.ArrayFormat{Separator: separator, Element: one}}
}

func decodeTime(s []byte) any { return string(appendTime(nil, s)) }

// decodeInterval decodes an ISO 8601 interval to months, days and microseconds.
func decodeInterval(s []byte) any {
	var months, days, micros int64
	date, clock, _ := strings.Cut(strings.TrimPrefix(string(s), "P"), "T")
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
