package dbaccess

import (
	"bytes"
	"fmt"
	"strconv"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

const (
	// batchBytes is the size at which a batch is flushed: bytes as received plus eight per value.
	batchBytes = 256 << 10
	// maxReusedItems bounds the capacity of a list that is reused for the next batch. A text of
	// this length is passed on without a copy, in a batch of its own.
	maxReusedItems = 1 << 20
)

// rowBatcher collects rows into batches and passes them to the sink. Batches share memory.
type rowBatcher struct {
	sink       sandbox.RowSink
	rows       sandbox.RowBatch
	columns    []columnReader
	bytes      int
	flushedAny bool
	held       *limit.Held // memory of the user
}

// columnReader says how the values of a column are stored.
type columnReader struct {
	storage valueStorage
	decode  decoder              // for values in Others
	array   *sandbox.ArrayFormat // of an array column
}

// valueStorage names the list of sandbox.ColumnValues that holds a column.
type valueStorage byte

const (
	storeText valueStorage = iota
	storeTime
	storeInts
	storeFloats
	storeBools
	storeOthers
)

func (p *rowBatcher) describe(columns []sandbox.Column, how []columnReader) {
	p.columns, p.rows.Columns, p.rows.Data = how, columns, make([]sandbox.ColumnValues, len(columns))
	for i, c := range how {
		p.rows.Data[i].Array = c.array
	}
}

// add adds a row and flushes a full batch. The bytes of the row are valid until add returns.
func (p *rowBatcher) add(row [][]byte) error {
	size := 8 * len(row)
	for _, text := range row {
		size += len(text)
	}
	if size >= batchBytes && p.rows.Count > 0 {
		if err := p.flush(); err != nil {
			return err
		}
	}
	for i, text := range row {
		if err := p.addValue(i, text); err != nil {
			return err
		}
	}
	p.rows.Count++
	if p.bytes += size; p.bytes < batchBytes {
		return nil
	}
	return p.flush()
}

// addValue adds the value of column i; nil means NULL.
func (p *rowBatcher) addValue(i int, text []byte) error {
	c, v := &p.columns[i], &p.rows.Data[i]
	if text == nil {
		v.Nulls = append(append(v.Nulls, make([]bool, p.rows.Count-len(v.Nulls))...), true)
	}
	var err error
	switch c.storage {
	case storeText:
		if len(v.Text) == 0 && len(text) >= maxReusedItems {
			v.Text = text[:len(text):len(text)]
		} else {
			v.Text = append(v.Text, text...)
		}
		v.Ends = append(v.Ends, len(v.Text))
	case storeTime:
		v.Text = appendTime(v.Text, text)
		v.Ends = append(v.Ends, len(v.Text))
	case storeInts:
		var n int64
		if text != nil {
			n, err = parseInt(text)
		}
		v.Ints = append(v.Ints, n)
	case storeFloats:
		var f float64
		if text != nil {
			f, err = strconv.ParseFloat(string(text), 64)
		}
		v.Floats = append(v.Floats, f)
	case storeBools:
		v.Bools = append(v.Bools, string(text) == "t")
	case storeOthers:
		var one any
		if text != nil {
			one = c.decode(text)
		}
		v.Others = append(v.Others, one)
	}
	if err != nil {
		return fmt.Errorf("the server's value of a column of type %s: %w", p.rows.Columns[i].Type, err)
	}
	return nil
}

// finish flushes the rest. It passes on the columns if there were no rows.
func (p *rowBatcher) finish() error {
	if p.rows.Columns == nil || p.flushedAny && p.rows.Count == 0 {
		return nil
	}
	return p.flush()
}

func (p *rowBatcher) flush() error {
	for i := range p.rows.Data {
		if v := &p.rows.Data[i]; len(v.Nulls) > 0 {
			v.Nulls = append(v.Nulls, make([]bool, p.rows.Count-len(v.Nulls))...)
		} else {
			v.Nulls = nil
		}
	}
	held := 0
	p.rows.Hold = func(n int) error {
		err := p.held.Add(n)
		if err == nil {
			held += n
		}
		return err
	}
	err := p.sink(p.rows)
	if held > 0 {
		_ = p.held.Add(-held) // less always fits
	}
	if err != nil {
		return &sinkError{err}
	}
	for i := range p.rows.Data {
		v := &p.rows.Data[i]
		clear(v.Others) // release the memory that the values refer to
		*v = sandbox.ColumnValues{
			Nulls:  reuse(v.Nulls),
			Ints:   reuse(v.Ints),
			Floats: reuse(v.Floats),
			Bools:  reuse(v.Bools),
			Text:   reuse(v.Text),
			Ends:   reuse(v.Ends),
			Others: reuse(v.Others),
			Array:  v.Array,
		}
	}
	p.rows.Count, p.bytes, p.flushedAny = 0, 0, true
	return nil
}

// reuse returns an empty list with the same memory. It returns nil for large lists, and for the
// memory of a large text, which belongs to the connection's buffer.
func reuse[T any](list []T) []T {
	if cap(list) >= maxReusedItems {
		return nil
	}
	return list[:0]
}

// sinkError wraps an error that the sink returned.
type sinkError struct{ cause error }

func (e *sinkError) Error() string { return "the reader of the rows failed: " + e.cause.Error() }
func (e *sinkError) Unwrap() error { return e.cause }

// parseInt parses an integer. It is faster than strconv.ParseInt, which parses what may overflow and what is not a
// number.
func parseInt(text []byte) (int64, error) {
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	const safeDigits = 18 // each number of 18 digits is an int64
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return strconv.ParseInt(string(text), 10, 64)
		}
		n = 10*n + int64(c-'0')
	}
	switch {
	case len(digits) == 0 || len(digits) > safeDigits:
		return strconv.ParseInt(string(text), 10, 64)
	case len(digits) < len(text):
		return -n, nil
	}
	return n, nil
}

// appendTime appends a PostgreSQL timestamp in ISO 8601 with a full offset. The session is in UTC.
func appendTime(b, text []byte) []byte {
	start := len(b)
	b = append(b, text...)
	at := len("2006-01-02")
	if len(text) <= at || text[at] != ' ' {
		at = bytes.IndexByte(text, ' ') // a year may have more digits
	}
	if at < 0 {
		return b
	}
	if b[start+at] = 'T'; bytes.HasSuffix(text, []byte("+00")) {
		b = append(b, ":00"...)
	}
	return b
}
