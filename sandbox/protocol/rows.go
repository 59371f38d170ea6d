package protocol

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net"

	"glasshouse/sandbox"
)

// The forms in which a child may want a result.
const (
	FormPlain = ""      // for dicts
	FormFrame = "frame" // times as numpy has them
	FormArrow = "arrow" // and texts as Arrow has them
)

const (
	flushAt = 128 << 10 // bytes that are sent at once
	large   = 1 << 20   // bytes that are sent from where they are
)

// RowWriter answers one Ask with a result, part by part: a frame of its columns, one a part
// with rows, and an Answer at the end. A small result is sent at once.
//
// A part is the marshal data of (count, columns), columns a list. One of them is
// a list of values, or a tuple (form, values, nulls) of a string and bytes:
//
//	"q" "d" "?"  int64, float64 and bool, as C has them; times of a frame are int64
//	"t"          texts, with NUL between them, which no text has
//	"a"          texts with nothing between them, and a fourth in the tuple: how long each is, int32
//
// nulls is a byte a value that is 1 where it is NULL; empty where none is. The format
// is CPython's marshal, version 2, whose codes have been stable since Python 2.5
// (Python/marshal.c).
type RowWriter struct {
	conn  *Conn
	id    uint32
	form  string
	begun bool
	out   output
}

// RowWriter makes one; form is what the Ask says.
func (c *Conn) RowWriter(id uint32, form string) *RowWriter {
	return &RowWriter{conn: c, id: id, form: form}
}

// WriteBatch is a sandbox.Take; it waits for a child that is slow.
func (r *RowWriter) WriteBatch(rows sandbox.RowBatch) error {
	if !r.begun {
		r.begun = true
		if err := r.out.json(KindColumns, Columns{r.id, rows.Columns}); err != nil {
			return err
		}
	}
	if rows.Count == 0 {
		return nil
	}
	r.out.begin(KindRows)
	r.out.b = binary.BigEndian.AppendUint32(r.out.b, r.id)
	r.out.b = appendInt(appendSize(append(r.out.b, '('), 2), int64(rows.Count))
	r.out.b = appendSize(append(r.out.b, '['), len(rows.Data))
	for i := range rows.Data {
		if err := r.column(rows.Columns[i], &rows.Data[i], rows.Count); err != nil {
			return err
		}
	}
	r.out.end()
	if len(r.out.before) == 0 && len(r.out.b) < flushAt {
		return nil
	}
	return r.conn.flush(&r.out)
}

// End says that this was all.
func (r *RowWriter) End(truncated bool) error {
	if err := r.out.json(KindAnswer, Answer{ID: r.id, Value: truncated}); err != nil {
		return err
	}
	return r.conn.flush(&r.out)
}

// column encodes the count values of one column.
func (r *RowWriter) column(c sandbox.Column, v *sandbox.ColumnValues, count int) error {
	o := &r.out
	arrow := r.form == FormArrow && len(v.Ends) > 0 && (c.Kind == "string" || c.Kind == "text")
	switch {
	case r.form != FormPlain && o.times(c, v):
	case len(v.Ints) > 0:
		o.tuple(3, "q", 8*count)
		for _, n := range v.Ints {
			o.b = binary.LittleEndian.AppendUint64(o.b, uint64(n))
		}
	case len(v.Floats) > 0:
		o.tuple(3, "d", 8*count)
		for i, f := range v.Floats {
			if v.Nulls != nil && v.Nulls[i] {
				f = math.NaN() // which is what it is in a frame
			}
			o.b = binary.LittleEndian.AppendUint64(o.b, math.Float64bits(f))
		}
	case len(v.Bools) > 0:
		o.tuple(3, "?", count)
		o.bools(v.Bools)
	case arrow:
		o.tuple(4, "a", len(v.Text))
		o.raw(v.Text)
	case len(v.Ends) == 1:
		o.tuple(3, "t", len(v.Text))
		o.raw(v.Text)
	case len(v.Ends) > 0:
		o.tuple(3, "t", len(v.Text)+count-1)
		for i := range v.Ends {
			if i > 0 {
				o.b = append(o.b, 0)
			}
			o.b = append(o.b, v.TextAt(i)...)
		}
	default:
		var err error
		o.b, err = appendList(o.b, v.Others[:count])
		return err
	}
	o.b = appendSize(append(o.b, 's'), len(v.Nulls))
	o.bools(v.Nulls)
	if arrow {
		o.b = appendSize(append(o.b, 's'), 4*count)
		from := 0
		for _, end := range v.Ends {
			o.b = appendSize(o.b, end-from)
			from = end
		}
	}
	return nil
}

// output is frames that are sent together. What is large is not copied into it, and so
// must be there until it is sent.
type output struct {
	b      []byte
	before net.Buffers // what comes before b
	size   int         // of that

	part, at, from int // where the frame begins that is not ended: in which of before, or in b; and in all
}

func (o *output) begin(k Kind) {
	o.part, o.at, o.from = len(o.before), len(o.b), o.size+len(o.b)
	o.b = append(o.b, 0, 0, 0, 0, byte(k))
}

func (o *output) end() {
	head := o.b
	if o.part < len(o.before) {
		head = o.before[o.part]
	}
	binary.BigEndian.PutUint32(head[o.at:], uint32(o.size+len(o.b)-o.from-5))
}

// json writes a whole frame.
func (o *output) json(k Kind, v any) error {
	o.begin(k)
	body := bytes.NewBuffer(o.b)
	enc := json.NewEncoder(body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("hatch: encode %c: %w", k, err)
	}
	o.b = body.Bytes()
	o.end()
	return nil
}

// tuple begins one of n, with its form and a bytes object of so many bytes, which are
// to follow.
func (o *output) tuple(n int, form string, size int) {
	o.b = appendText(appendSize(append(o.b, '('), n), form)
	o.b = appendSize(append(o.b, 's'), size)
}

func (o *output) raw(v []byte) {
	if len(v) < large {
		o.b = append(o.b, v...)
		return
	}
	o.size += len(o.b) + len(v)
	o.before = append(o.before, o.b, v)
	o.b = nil
}

func (o *output) bools(list []bool) {
	for _, yes := range list {
		var b byte
		if yes {
			b = 1
		}
		o.b = append(o.b, b)
	}
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
			b = append(appendSize(append(b, 's'), len(v)), v...)
		case []any:
			var err error
			if b, err = appendList(b, v); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("hatch: a value of type %T is not of the closed set of sandbox.Values", v)
		}
	}
	return b, nil
}

func appendSize(b []byte, n int) []byte { return binary.LittleEndian.AppendUint32(b, uint32(n)) }

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
