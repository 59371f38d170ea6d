package hatch

import (
	"encoding/binary"
	"fmt"
	"math"

	"glasshouse/sandbox"
)

// appendRows encodes rows as the marshal data of
// (columns, data, truncated): columns a tuple of (name, type, kind, of, array),
// data a tuple of one list a column, or of what pack makes of it. The format is CPython's marshal, version
// 2, whose codes have been stable since Python 2.5 (Python/marshal.c).
func appendRows(b []byte, rows sandbox.Rows, packed bool) ([]byte, error) {
	b = appendSize(append(b, '('), 3)
	b = appendSize(append(b, '('), len(rows.Columns))
	for _, c := range rows.Columns {
		b = appendSize(append(b, '('), 5)
		b = appendText(appendText(appendText(appendText(b, c.Name), c.Type), c.Kind), c.Of)
		b = appendBool(b, c.Array)
	}
	b = appendSize(append(b, '('), len(rows.Data))
	for i, column := range rows.Data {
		if packed {
			if values, nulls, ok := pack(rows.Columns[i], column); ok {
				b = appendBytes(appendBytes(appendSize(append(b, '('), 2), values), nulls)
				continue
			}
		}
		var err error
		if b, err = appendList(b, column); err != nil {
			return nil, err
		}
	}
	return appendBool(b, rows.Truncated), nil
}

func appendList(b []byte, list []any) ([]byte, error) {
	b = appendSize(append(b, '['), len(list))
	for _, v := range list {
		switch v := v.(type) {
		case nil:
			b = append(b, 'N')
		case bool:
			b = appendBool(b, v)
		case int64:
			b = appendInt(b, v)
		case float64:
			b = binary.LittleEndian.AppendUint64(append(b, 'g'), math.Float64bits(v))
		case string:
			b = appendText(b, v)
		case []byte:
			b = appendBytes(b, v)
		case []any:
			var err error
			if b, err = appendList(b, v); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("hatch: a value of type %T is not of the closed set of sandbox.Rows", v)
		}
	}
	return b, nil
}

func appendSize(b []byte, n int) []byte { return binary.LittleEndian.AppendUint32(b, uint32(n)) }

func appendBytes(b, v []byte) []byte { return append(appendSize(append(b, 's'), len(v)), v...) }

func appendText(b []byte, s string) []byte {
	return append(appendSize(append(b, 'u'), len(s)), s...)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 'T')
	}
	return append(b, 'F')
}

// appendInt writes small integers as 'i' and others as 'l', whose digits are
// of 15 bits, their count signed as the number is.
func appendInt(b []byte, v int64) []byte {
	if v >= math.MinInt32 && v <= math.MaxInt32 {
		return binary.LittleEndian.AppendUint32(append(b, 'i'), uint32(int32(v)))
	}
	sign, u := int32(1), uint64(v)
	if v < 0 {
		sign, u = -1, -uint64(v)
	}
	var digits []byte
	count := int32(0)
	for ; u > 0; u >>= 15 {
		digits = binary.LittleEndian.AppendUint16(digits, uint16(u&0x7fff))
		count++
	}
	b = binary.LittleEndian.AppendUint32(append(b, 'l'), uint32(sign*count))
	return append(b, digits...)
}
