package protocol

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"slices"

	"glasshouse/sandbox"
)

// The forms in which a guest may ask for rows.
const (
	FormPlain = ""      // for dicts
	FormFrame = "frame" // times as numpy stores them, and numeric values as float64 unless Request.Exact is set
	FormArrow = "arrow" // like frame, and texts as Arrow stores them
)

const (
	flushBytes   = 128 << 10 // frames are sent when they have this size together
	inPlaceBytes = 1 << 20   // values of this size are sent without a copy
)

// RowWriter answers one Request with a result: a frame of its columns, a frame for each
// batch of rows, and an Answer at the end. A small result is sent at once.
//
// A batch is the marshal data of the tuple (count, columns); columns is a list. A column is
// a list of values, or a tuple (form, values, nulls) of a string and two bytes objects:
//
//	"q" "d" "?"  int64, float64 and bool, as C stores them; times of FormFrame are int64
//	"t"          texts, separated by NUL; a text does not contain NUL
//	"a"          texts without separator; a fourth item has the length of each, as int32
//
// nulls has a byte for each value, which is 1 for NULL. It is empty if the column has no
// NULL. The format is CPython's marshal, version 2. Its codes have not changed since Python
// 2.5 (Python/marshal.c).
type RowWriter struct {
	conn  *Conn // nil: the frames go to sent
	sent  []byte
	id    uint32
	form  string
	exact bool
	begun bool
	out   frames
	hold  func(int) error // of the batch that is written

	rounded []bool // for each column: a numeric value lost digits
}

// RowWriter returns a writer for the Request with this ID, form and exactness.
func (c *Conn) RowWriter(id uint32, form string, exact bool) *RowWriter {
	return &RowWriter{conn: c, id: id, form: form, exact: exact}
}

// NewRowEncoder returns a writer that keeps the frames, for the Request with the ID 0.
func NewRowEncoder(form string, exact bool) *RowWriter { return &RowWriter{form: form, exact: exact} }

// Frames returns the frames so far, as JoinAnswer does.
func (w *RowWriter) Frames() []byte { return w.sent }

// flush sends or keeps the frames.
func (w *RowWriter) flush() error {
	if w.conn != nil {
		return w.conn.flush(&w.out)
	}
	for _, part := range append(w.out.before, w.out.tail) {
		w.sent = append(w.sent, part...)
	}
	w.out = frames{tail: w.out.tail[:0]}
	return nil
}

// WriteBatch is a sandbox.RowSink. It waits for a slow guest.
func (w *RowWriter) WriteBatch(rows sandbox.RowBatch) error {
	if !w.begun {
		w.begun, w.rounded = true, make([]bool, len(rows.Columns))
		if err := w.out.json(KindColumns, Columns{w.id, rows.Columns}); err != nil {
			return err
		}
	}
	if rows.Count == 0 {
		return nil
	}
	w.hold = rows.Hold
	w.out.begin(KindRows)
	w.out.tail = binary.BigEndian.AppendUint32(w.out.tail, w.id)
	w.out.tail = appendInt(appendSize(append(w.out.tail, '('), 2), int64(rows.Count))
	w.out.tail = appendSize(append(w.out.tail, '['), len(rows.Data))
	for i := range rows.Data {
		wasRounded := w.rounded[i]
		if err := w.column(i, rows.Columns[i], &rows.Data[i], rows.Count); err != nil {
			return err
		}
		if w.rounded[i] && !wasRounded && rows.Rounded != nil {
			rows.Rounded(i)
		}
	}
	w.out.end()
	if len(w.out.before) == 0 && len(w.out.tail) < flushBytes {
		return nil
	}
	return w.flush()
}

// End ends the answer.
func (w *RowWriter) End(truncated bool) error {
	if err := w.out.json(KindAnswer, Answer{ID: w.id, Value: truncated}); err != nil {
		return err
	}
	return w.flush()
}

// column encodes the count values of the column with index i.
func (w *RowWriter) column(i int, c sandbox.Column, v *sandbox.ColumnValues, count int) error {
	f := &w.out
	if v.Array != nil {
		return w.arrays(v, count)
	}
	isArrowText := w.form == FormArrow && len(v.Ends) > 0 && (c.Kind == "string" || c.Kind == "text")
	switch {
	case w.form != FormPlain && f.times(c, v):
	case w.form != FormPlain && !w.exact && c.Kind == "decimal":
		w.rounded[i] = f.decimals(v, w.rounded[i])
	case len(v.Ints) > 0:
		f.tuple(3, "q", 8*count)
		b := f.space(8 * count)
		for i, n := range v.Ints {
			binary.LittleEndian.PutUint64(b[8*i:], uint64(n))
		}
	case len(v.Floats) > 0:
		f.tuple(3, "d", 8*count)
		b := f.space(8 * count)
		for i, x := range v.Floats {
			if v.Nulls != nil && v.Nulls[i] {
				x = math.NaN() // as data frames represent NULL
			}
			binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x))
		}
	case len(v.Bools) > 0:
		f.tuple(3, "?", count)
		f.bools(v.Bools)
	case isArrowText:
		f.tuple(4, "a", len(v.Text))
		f.raw(v.Text)
	case len(v.Ends) == 1:
		f.tuple(3, "t", len(v.Text))
		f.raw(v.Text)
	case len(v.Ends) > 0:
		f.tuple(3, "t", len(v.Text)+count-1)
		b := f.space(len(v.Text) + count - 1)
		for i := range v.Ends {
			if i > 0 {
				b[0], b = 0, b[1:]
			}
			b = b[copy(b, v.TextAt(i)):]
		}
	default:
		var err error
		f.tail, err = appendList(f.tail, v.Others[:count])
		return err
	}
	f.tail = appendSize(append(f.tail, 's'), len(v.Nulls))
	f.bools(v.Nulls)
	if isArrowText {
		f.tail = appendSize(append(f.tail, 's'), 4*count)
		b, start := f.space(4*count), 0
		for i, end := range v.Ends {
			binary.LittleEndian.PutUint32(b[4*i:], uint32(end-start))
			start = end
		}
	}
	return nil
}

// arrays encodes a column of arrays as lists. It returns a *sandbox.Refusal if they are too large.
func (w *RowWriter) arrays(v *sandbox.ColumnValues, count int) error {
	b := appendSize(append(w.out.tail, '['), count)
	if len(v.Text) > inPlaceBytes { // a large one gets the memory that it needs, once it is known to fit
		size, err := arraysSize(v, count)
		if err == nil && w.hold != nil {
			err = w.hold(size)
		}
		if err != nil {
			return err
		}
		b = slices.Grow(b, size)
	}
	type list struct{ offset, items int }
	var open []list
	for i := range count {
		array, ok := v.At(i).(sandbox.Array)
		if !ok {
			b = append(b, 'N')
			continue
		}
		for token, element := range array.Tokens() {
			if len(open) > 0 && token != sandbox.ArrayEnd {
				open[len(open)-1].items++
			}
			switch token {
			case sandbox.ArrayBegin:
				open = append(open, list{len(b) + 1, 0})
				b = appendSize(append(b, '['), 0)
			case sandbox.ArrayEnd: // the number of items is known here
				last := open[len(open)-1]
				binary.LittleEndian.PutUint32(b[last.offset:], uint32(last.items))
				open = open[:len(open)-1]
			default:
				var err error
				if b, err = appendValue(b, element); err != nil {
					return err
				}
			}
		}
	}
	w.out.tail = b
	return nil
}

// arraysSize returns how many bytes arrays writes for the values of a column, or the *sandbox.Refusal for more than
// sandbox.MaxAnswerBytes.
func arraysSize(v *sandbox.ColumnValues, count int) (size int, err error) {
	var element []byte
	for i := range count {
		array, ok := v.At(i).(sandbox.Array)
		if !ok {
			size++
			continue
		}
		for token, value := range array.Tokens() {
			switch token {
			case sandbox.ArrayBegin:
				size += 5 // type and number of items
			case sandbox.ArrayElement:
				if element, err = appendValue(element[:0], value); err != nil {
					return 0, err
				}
				size += len(element)
			}
			if size > sandbox.MaxAnswerBytes {
				return 0, sandbox.AnswerTooLarge()
			}
		}
	}
	return size, nil
}

// frames holds frames that are sent together: first before, then tail. before refers to
// large values without copying them, so their owner must not change them until they are sent.
type frames struct {
	tail       []byte
	before     net.Buffers
	beforeSize int // bytes of before

	// The start of the unfinished frame: the index of its buffer (len(before) means tail),
	// its offset in that buffer, and its offset in all buffers together.
	buffer, offset, start int
}

// begin begins a frame; end ends it.
func (f *frames) begin(k Kind) {
	f.buffer, f.offset, f.start = len(f.before), len(f.tail), f.beforeSize+len(f.tail)
	f.tail = append(f.tail, 0, 0, 0, 0, byte(k))
}

func (f *frames) end() {
	header := f.tail
	if f.buffer < len(f.before) {
		header = f.before[f.buffer]
	}
	binary.BigEndian.PutUint32(header[f.offset:], uint32(f.beforeSize+len(f.tail)-f.start-headerBytes))
}

// json adds a whole frame.
func (f *frames) json(k Kind, v any) error {
	f.begin(k)
	body := bytes.NewBuffer(f.tail)
	encoder := json.NewEncoder(body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("encode a frame of kind %c: %w", k, err)
	}
	f.tail = body.Bytes()
	f.end()
	return nil
}

// tuple begins a tuple of n items: its form, and a bytes object whose size bytes follow.
func (f *frames) tuple(n int, form string, size int) {
	f.tail = appendText(appendSize(append(f.tail, '('), n), form)
	f.tail = appendSize(append(f.tail, 's'), size)
}

// raw adds bytes. It does not copy values of inPlaceBytes or more.
func (f *frames) raw(v []byte) {
	if len(v) < inPlaceBytes {
		f.tail = append(f.tail, v...)
		return
	}
	f.beforeSize += len(f.tail) + len(v)
	f.before = append(f.before, f.tail, v)
	f.tail = nil
}

func (f *frames) bools(list []bool) {
	b := f.space(len(list))
	for i, v := range list {
		b[i] = 0
		if v {
			b[i] = 1
		}
	}
}

// space adds size bytes, which the caller sets.
func (f *frames) space(size int) []byte {
	before := len(f.tail)
	f.tail = slices.Grow(f.tail, size)[:before+size]
	return f.tail[before:]
}

func appendList(b []byte, list []any) ([]byte, error) {
	b = appendSize(append(b, '['), len(list))
	var err error
	for _, v := range list {
		if b, err = appendValue(b, v); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func appendValue(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, 'N'), nil
	case bool:
		return appendBool(b, v), nil
	case int64:
		return appendInt(b, v), nil
	case float64:
		return binary.LittleEndian.AppendUint64(append(b, 'g'), math.Float64bits(v)), nil
	case string:
		return appendText(b, v), nil
	case []byte:
		return append(appendSize(append(b, 's'), len(v)), v...), nil
	case []any:
		return appendList(b, v)
	}
	return nil, fmt.Errorf("encode a column: %T is not a type that sandbox.ColumnValues may have", v)
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

// appendInt encodes an int32 as 'i', and any other integer as 'l': a count of 15-bit
// digits, with the sign of the integer, and the digits.
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
