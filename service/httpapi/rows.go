package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"glasshouse/sandbox"
)

// results is a JSON list of objects, a row each: decimals as numbers with all their
// digits, JSON columns as they are, columns of one name kept apart as name, name_2;
// what JSON cannot hold as {"type", "repr"}.
type results struct {
	b     []byte
	names [][]byte
}

// take is a sandbox.Take.
func (l *results) take(rows sandbox.RowBatch) error {
	if l.names == nil {
		l.begin(rows.Columns)
	}
	for r := range rows.Count {
		if len(l.b) > 1 {
			l.b = append(l.b, ',')
		}
		l.b = append(l.b, '{')
		for i, name := range l.names {
			if i > 0 {
				l.b = append(l.b, ',')
			}
			l.b = append(append(l.b, name...), ':')
			l.b = appendValue(l.b, rows.Data[i].At(r), rows.Columns[i].Kind)
		}
		l.b = append(l.b, '}')
	}
	return nil
}

func (l *results) begin(columns []sandbox.Column) {
	l.b, l.names = []byte{'['}, make([][]byte, len(columns))
	seen := map[string]bool{}
	for i, c := range columns {
		name := c.Name
		for n := 2; seen[name]; n++ {
			name = fmt.Sprintf("%s_%d", c.Name, n)
		}
		seen[name] = true
		l.names[i], _ = json.Marshal(name)
	}
}

// json is the whole list; every statement that is answered has columns.
func (l *results) json() json.RawMessage { return append(l.b, ']') }

func appendValue(b []byte, v any, kind string) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return appendOpaque(b, "float", strconv.FormatFloat(v, 'g', -1, 64))
		}
		return strconv.AppendFloat(b, v, 'g', -1, 64)
	case []byte:
		return appendOpaque(b, "bytes", "base64:"+base64.StdEncoding.EncodeToString(v))
	case []any:
		if kind == "timedelta" && len(v) == 3 {
			if _, whole := v[0].(int64); whole {
				return append(b, fmt.Sprintf(`{"months":%d,"days":%d,"microseconds":%d}`, v[0], v[1], v[2])...)
			}
		}
		b = append(b, '[')
		for i, x := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, x, kind)
		}
		return append(b, ']')
	case string:
		if kind == "json" || kind == "decimal" {
			if json.Valid([]byte(v)) {
				return append(b, v...)
			}
			return appendOpaque(b, kind, v)
		}
		return appendText(b, v)
	}
	return appendOpaque(b, fmt.Sprintf("%T", v), fmt.Sprint(v))
}

func appendText(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string never fails
	return append(b, text...)
}

func appendOpaque(b []byte, kind, repr string) []byte {
	b = appendText(append(b, `{"type":`...), kind)
	b = appendText(append(b, `,"repr":`...), repr)
	return append(b, '}')
}
