package hatch

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"glasshouse/sandbox"
)

// pack makes one array of a column of numbers or times, as numpy has it: int64 or
// float64, little-endian, a byte a bool, and microseconds since 1970 for times.
// Nulls is a byte a row that is 1 where the value is NULL, and empty where none is,
// or where the value itself says so (NaN, and the least integer for a time). Not ok
// where the column is of another kind, or has a value that does not fit, such as
// infinity.
func pack(c sandbox.Column, column []any) (values, nulls []byte, ok bool) {
	var one func(b []byte, v any) ([]byte, bool)
	var null uint64
	switch {
	case c.Array:
		return nil, nil, false
	case c.Kind == "int":
		one = packInt
	case c.Kind == "bool":
		one = packBool
	case c.Kind == "float":
		one, null = packFloat, math.Float64bits(math.NaN())
	case c.Kind == "timestamp", c.Kind == "timestamptz":
		one, null = packTime, 1<<63 // numpy's NaT
	default:
		return nil, nil, false
	}
	masked := null == 0
	values = make([]byte, 0, 8*len(column))
	for i, v := range column {
		if v != nil {
			if values, ok = one(values, v); !ok {
				return nil, nil, false
			}
			continue
		}
		if masked && nulls == nil {
			nulls = make([]byte, len(column))
		}
		if masked {
			nulls[i] = 1
		}
		if c.Kind == "bool" {
			values = append(values, 0)
		} else {
			values = binary.LittleEndian.AppendUint64(values, null)
		}
	}
	return values, nulls, true
}

func packInt(b []byte, v any) ([]byte, bool) {
	n, ok := v.(int64)
	return binary.LittleEndian.AppendUint64(b, uint64(n)), ok
}

func packBool(b []byte, v any) ([]byte, bool) {
	yes, ok := v.(bool)
	if yes {
		return append(b, 1), ok
	}
	return append(b, 0), ok
}

func packFloat(b []byte, v any) ([]byte, bool) {
	f, ok := v.(float64)
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(f)), ok
}

func packTime(b []byte, v any) ([]byte, bool) {
	s, ok := v.(string)
	if !ok {
		return b, false
	}
	micros, ok := microseconds(s)
	return binary.LittleEndian.AppendUint64(b, uint64(micros)), ok
}

// microseconds reads 2006-01-02T15:04:05[.999999][+00:00], and no other form.
func microseconds(s string) (int64, bool) {
	if len(s) > 6 && s[len(s)-6:] == "+00:00" {
		s = s[:len(s)-6]
	}
	const form = "2006-01-02T15:04:05"
	if len(s) < len(form) || len(s) > len(form)+7 || len(s) == len(form)+1 {
		return 0, false
	}
	var fraction int64
	if len(s) > len(form) {
		digits := s[len(form)+1:]
		n, err := strconv.ParseUint(digits, 10, 32)
		if s[len(form)] != '.' || err != nil {
			return 0, false
		}
		for range 6 - len(digits) {
			n *= 10
		}
		fraction = int64(n)
	}
	t, err := time.Parse(form, s[:len(form)])
	return t.Unix()*1_000_000 + fraction, err == nil
}
