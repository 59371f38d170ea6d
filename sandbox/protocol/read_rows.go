package protocol

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"glasshouse/sandbox"
)

// AnswerRows returns the columns of an answer, and the values of each: nil, bool, int64, float64, string, or []any. It
// returns no columns for an answer without rows. Times are texts.
func AnswerRows(frames []byte) (columns []sandbox.Column, data [][]any, err error) {
	columns, err = AnswerColumns(frames)
	if err != nil || columns == nil {
		return nil, nil, err
	}
	data = make([][]any, len(columns))
	for rest := frames; len(rest) > 0; {
		if len(rest) < headerBytes {
			return nil, nil, io.ErrUnexpectedEOF
		}
		size, kind := int(binary.BigEndian.Uint32(rest)), Kind(rest[4])
		if size > len(rest)-headerBytes {
			return nil, nil, io.ErrUnexpectedEOF
		}
		body := rest[headerBytes : headerBytes+size]
		rest = rest[headerBytes+size:]
		if kind != KindRows {
			continue
		}
		if len(body) < 4 {
			return nil, nil, io.ErrUnexpectedEOF
		}
		if err := readBatch(body[4:], columns, data); err != nil {
			return nil, nil, err
		}
	}
	return columns, data, nil
}

// readBatch appends the values of a batch to data.
func readBatch(body []byte, columns []sandbox.Column, data [][]any) error {
	r := marshalReader{rest: body}
	batch, err := r.value(0)
	if err != nil {
		return err
	}
	parts, ok := batch.([]any)
	if !ok || len(parts) != 2 {
		return errMarshal("a batch is not a pair")
	}
	count, _ := parts[0].(int64)
	list, _ := parts[1].([]any)
	if len(list) != len(columns) {
		return errMarshal("a batch has %d columns, want %d", len(list), len(columns))
	}
	for c, part := range list {
		values, err := columnValues(columns[c], part, int(count))
		if err != nil {
			return err
		}
		if len(values) != int(count) {
			return errMarshal("a column has %d values, want %d", len(values), count)
		}
		data[c] = append(data[c], values...)
	}
	return nil
}

func errMarshal(format string, args ...any) error {
	return fmt.Errorf("read the rows of an answer: "+format, args...)
}

// packed is a tuple of a form and its bytes, which a list of values is not.
type packed []any

func columnValues(c sandbox.Column, part any, count int) ([]any, error) {
	p, isPacked := part.(packed)
	if !isPacked {
		list, ok := part.([]any)
		if !ok {
			return nil, errMarshal("a column is not a list")
		}
		if c.Kind == "timedelta" && !c.Array {
			for i, v := range list {
				list[i] = intervalText(v)
			}
		}
		return list, nil
	}
	form, _ := p[0].(string)
	raw, isBytes := p[1].([]byte)
	nulls, hasNulls := p[2].([]byte)
	if !isBytes || !hasNulls || len(nulls) != 0 && len(nulls) != count {
		return nil, errMarshal("a column of the form %q has no bytes", form)
	}
	values, err := packedValues(c, form, raw, p, count)
	if err != nil {
		return nil, err
	}
	for i, null := range nulls {
		if null == 1 && i < len(values) {
			values[i] = nil
		}
	}
	return values, nil
}

func packedValues(c sandbox.Column, form string, raw []byte, p packed, count int) (values []any, err error) {
	values = make([]any, 0, count)
	switch form {
	case "q":
		for ; len(raw) >= 8; raw = raw[8:] {
			values = append(values, timeText(c.Kind, int64(binary.LittleEndian.Uint64(raw))))
		}
	case "d":
		for ; len(raw) >= 8; raw = raw[8:] {
			values = append(values, math.Float64frombits(binary.LittleEndian.Uint64(raw)))
		}
	case "?":
		for _, b := range raw {
			values = append(values, b == 1)
		}
	case "t":
		for text := range strings.SplitSeq(string(raw), "\x00") {
			values = append(values, text)
		}
	case "a":
		lengths, ok := []byte(nil), len(p) == 4
		if ok {
			lengths, ok = p[3].([]byte)
		}
		if !ok {
			return nil, errMarshal("texts have no lengths")
		}
		for ; len(lengths) >= 4; lengths = lengths[4:] {
			size := int(binary.LittleEndian.Uint32(lengths))
			if size < 0 || size > len(raw) {
				return nil, io.ErrUnexpectedEOF
			}
			values, raw = append(values, string(raw[:size])), raw[size:]
		}
	default:
		return nil, errMarshal("a column has the form %.20q", form)
	}
	return values, nil
}

// timeText returns the text of a time that numpy stores as a number; other numbers are as they are.
func timeText(kind string, n int64) any {
	switch kind {
	case "date", "timestamp", "timestamptz", "timedelta":
		if n == notATime {
			return nil
		}
	}
	switch kind {
	case "date":
		return time.Unix(n, 0).UTC().Format(time.DateOnly)
	case "timestamp":
		return time.UnixMicro(n).UTC().Format("2006-01-02 15:04:05.999999")
	case "timestamptz":
		return time.UnixMicro(n).UTC().Format("2006-01-02 15:04:05.999999+00:00")
	case "timedelta":
		return intervalOf(0, 0, n)
	}
	return n
}

// intervalText returns the text of an interval of months, days and microseconds.
func intervalText(v any) any {
	parts, ok := v.([]any)
	if !ok || len(parts) != 3 {
		return v
	}
	months, _ := parts[0].(int64)
	days, _ := parts[1].(int64)
	micros, _ := parts[2].(int64)
	return intervalOf(months, days, micros)
}

func intervalOf(months, days, micros int64) string {
	var texts []string
	if months != 0 {
		texts = append(texts, fmt.Sprintf("%d mons", months))
	}
	const day = 24 * 60 * 60 * 1_000_000
	if months == 0 && days == 0 {
		days, micros = micros/day, micros%day
	}
	if days != 0 {
		texts = append(texts, fmt.Sprintf("%d days", days))
	}
	if micros != 0 || len(texts) == 0 {
		sign := ""
		if micros < 0 {
			sign, micros = "-", -micros
		}
		text := time.UnixMicro(micros).UTC().Format("15:04:05.999999")
		texts = append(texts, sign+text)
	}
	return strings.Join(texts, " ")
}

const maxMarshalDepth = 64

// marshalReader reads the part of CPython's marshal format that RowWriter writes.
type marshalReader struct{ rest []byte }

func (r *marshalReader) take(n int) ([]byte, error) {
	if n < 0 || n > len(r.rest) {
		return nil, io.ErrUnexpectedEOF
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out, nil
}

func (r *marshalReader) size() (int, error) {
	b, err := r.take(4)
	if err != nil {
		return 0, err
	}
	return int(int32(binary.LittleEndian.Uint32(b))), nil
}

func (r *marshalReader) value(depth int) (any, error) {
	code, err := r.take(1)
	if err != nil {
		return nil, err
	}
	if depth > maxMarshalDepth {
		return nil, errMarshal("it is nested too deeply")
	}
	switch code[0] {
	case 'N':
		return nil, nil
	case 'T', 'F':
		return code[0] == 'T', nil
	case 'i':
		n, err := r.size()
		return int64(n), err
	case 'l':
		return r.long()
	case 'g':
		b, err := r.take(8)
		if err != nil {
			return nil, err
		}
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
	case 'u', 's':
		n, err := r.size()
		if err != nil {
			return nil, err
		}
		b, err := r.take(n)
		if code[0] == 'u' {
			return string(b), err
		}
		return b, err
	case '(', '[':
		return r.items(code[0] == '(', depth)
	}
	return nil, errMarshal("unexpected type %q", code[0])
}

func (r *marshalReader) items(isTuple bool, depth int) (any, error) {
	n, err := r.size()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > len(r.rest) { // each takes a byte at least
		return nil, io.ErrUnexpectedEOF
	}
	list := make([]any, n)
	for i := range list {
		if list[i], err = r.value(depth + 1); err != nil {
			return nil, err
		}
	}
	if isTuple && n >= 3 {
		return packed(list), nil
	}
	return list, nil
}

func (r *marshalReader) long() (any, error) {
	n, err := r.size()
	if err != nil {
		return nil, err
	}
	digits, err := r.take(2 * max(n, -n))
	if err != nil {
		return nil, err
	}
	var u uint64
	for i := len(digits) - 2; i >= 0; i -= 2 {
		u = u<<15 | uint64(binary.LittleEndian.Uint16(digits[i:]))
	}
	if n < 0 {
		u = -u
	}
	return int64(u), nil
}
