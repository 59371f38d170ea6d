package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"glasshouse/sandbox"
)

// rowEncoder encodes rows as a JSON list of objects. Decimals become numbers with all their digits, JSON
// columns stay as they are, and repeated column names become name, name_2, and so on. Values that JSON
// can't hold become {"type", "repr"}.
type rowEncoder struct {
	text  []byte
	names [][]byte
}

// add is a sandbox.RowSink.
func (e *rowEncoder) add(rows sandbox.RowBatch) error {
	if e.names == nil {
		e.begin(rows.Columns)
	}
	for r := range rows.Count {
		if len(e.text) > 1 {
			e.text = append(e.text, ',')
		}
		e.text = append(e.text, '{')
		for i, name := range e.names {
			if i > 0 {
				e.text = append(e.text, ',')
			}
			e.text = append(append(e.text, name...), ':')
			e.text = appendValue(e.text, rows.Data[i].At(r), rows.Columns[i].Kind)
		}
		e.text = append(e.text, '}')
	}
	return nil
}

func (e *rowEncoder) begin(columns []sandbox.Column) {
	e.text, e.names = []byte{'['}, make([][]byte, len(columns))
	seen := map[string]bool{}
	for i, c := range columns {
		name := c.Name
		for n := 2; seen[name]; n++ {
			name = fmt.Sprintf("%s_%d", c.Name, n)
		}
		seen[name] = true
		e.names[i], _ = json.Marshal(name)
	}
}

// json returns the whole list. It must be called after add, which is called at least once for every result.
func (e *rowEncoder) json() json.RawMessage { return append(e.text, ']') }

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
