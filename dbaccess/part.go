package dbaccess

import (
	"bytes"
	"fmt"
	"strconv"

	"glasshouse/sandbox"
)

const (
	// partSize is when the rows that were read are handed over: their bytes on the
	// wire, and eight more a value.
	partSize = 256 << 10
	// huge is a text that is handed over from where it was read, in a part of its own.
	huge = 1 << 20
)

// part is the rows that were read and not handed over yet. Its memory is used again for
// the next ones.
type part struct {
	take    sandbox.RowSink
	rows    sandbox.RowBatch
	columns []column
	size    int
	taken   bool // some were handed over
}

// column is how a column is read.
type column struct {
	slot   slot
	decode decoder // of those in Others
	masked bool
}

// slot is which of sandbox.Values a column is in.
type slot byte

const (
	inText slot = iota
	inTime
	inInts
	inFloats
	inBools
	inOthers
)

func (p *part) describe(columns []sandbox.Column, how []column) {
	p.columns, p.rows.Columns, p.rows.Data = how, columns, make([]sandbox.ColumnValues, len(columns))
}

// add adds a row, whose bytes are valid until it returns, and hands over what is there
// when it is enough.
func (p *part) add(row [][]byte) error {
	size := 8 * len(row)
	for _, text := range row {
		size += len(text)
	}
	if size >= partSize && p.rows.Count > 0 {
		if err := p.handOver(); err != nil {
			return err
		}
	}
	for i, text := range row {
		if err := p.put(i, text); err != nil {
			return err
		}
	}
	p.rows.Count++
	if p.size += size; p.size < partSize {
		return nil
	}
	return p.handOver()
}

// put adds a value; nil is NULL.
func (p *part) put(i int, text []byte) error {
	c, v := &p.columns[i], &p.rows.Data[i]
	switch {
	case c.masked:
		text = maskText
	case text == nil:
		v.Nulls = append(append(v.Nulls, make([]bool, p.rows.Count-len(v.Nulls))...), true)
	}
	var err error
	switch c.slot {
	case inText:
		if len(v.Text) == 0 && len(text) >= huge {
			v.Text = text[:len(text):len(text)]
		} else {
			v.Text = append(v.Text, text...)
		}
		v.Ends = append(v.Ends, len(v.Text))
	case inTime:
		v.Text = appendTime(v.Text, text)
		v.Ends = append(v.Ends, len(v.Text))
	case inInts:
		var n int64
		if text != nil {
			n, err = strconv.ParseInt(string(text), 10, 64)
		}
		v.Ints = append(v.Ints, n)
	case inFloats:
		var f float64
		if text != nil {
			f, err = strconv.ParseFloat(string(text), 64)
		}
		v.Floats = append(v.Floats, f)
	case inBools:
		v.Bools = append(v.Bools, string(text) == "t")
	case inOthers:
		var one any
		if text != nil {
			one = c.decode(string(text))
		}
		v.Others = append(v.Others, one)
	}
	if err != nil {
		return fmt.Errorf("the server's value of a column of type %s: %w", p.rows.Columns[i].Type, err)
	}
	return nil
}

// end hands over what is left, or the columns where there were no rows.
func (p *part) end() error {
	if p.rows.Columns == nil || p.taken && p.rows.Count == 0 {
		return nil
	}
	return p.handOver()
}

func (p *part) handOver() error {
	for i := range p.rows.Data {
		if v := &p.rows.Data[i]; len(v.Nulls) > 0 {
			v.Nulls = append(v.Nulls, make([]bool, p.rows.Count-len(v.Nulls))...)
		} else {
			v.Nulls = nil
		}
	}
	if err := p.take(p.rows); err != nil {
		return &leftError{err}
	}
	for i := range p.rows.Data {
		v := &p.rows.Data[i]
		clear(v.Others) // or what they hold would stay
		*v = sandbox.ColumnValues{Nulls: again(v.Nulls), Ints: again(v.Ints), Floats: again(v.Floats), Bools: again(v.Bools), Text: again(v.Text), Ends: again(v.Ends), Others: again(v.Others)}
	}
	p.rows.Count, p.size, p.taken = 0, 0, true
	return nil
}

// again is the memory of a list for the next, unless it is that of a huge text, which is
// not ours, or much more than a part needs.
func again[T any](list []T) []T {
	if cap(list) >= huge {
		return nil
	}
	return list[:0]
}

// leftError says that nobody takes a statement's rows any more.
type leftError struct{ cause error }

func (e *leftError) Error() string { return "the rows were not taken: " + e.cause.Error() }
func (e *leftError) Unwrap() error { return e.cause }

// appendTime writes PostgreSQL's timestamp as ISO 8601 has it, the offset in full: the
// session is in UTC.
func appendTime(b, text []byte) []byte {
	at := bytes.IndexByte(text, ' ')
	if at < 0 {
		return append(b, text...)
	}
	b = append(append(append(b, text[:at]...), 'T'), text[at+1:]...)
	if bytes.HasSuffix(text, []byte("+00")) {
		b = append(b, ":00"...)
	}
	return b
}
