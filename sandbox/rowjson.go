package sandbox

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// AppendJSON appends a value of a row to JSON text. kind is the kind of its column. Decimals become numbers with all
// their digits, JSON columns stay as they are, and what JSON cannot hold becomes {"type", "repr"}.
func AppendJSON(b []byte, v any, kind string) []byte {
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
			b = AppendJSON(b, x, kind)
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
