package sandbox

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"net"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxAnswerBytes bounds one answer with rows, as it is written for a client or for code, with the names, quotes and
// escapes that the encoding adds. It equals the default limit of a result's bytes as PostgreSQL sends them, so that
// only an encoding that makes a result larger meets it.
const MaxAnswerBytes = 64 << 20

// AnswerTooLarge is the refusal of a result whose encoding has more than MaxAnswerBytes.
func AnswerTooLarge() *Refusal {
	return &Refusal{
		Reason: "too-large", Failed: true,
		Message: fmt.Sprintf("the answer would have more than %d MiB as it is written: names, quotes, escapes and "+
			"the elements of arrays count", MaxAnswerBytes>>20),
		Hint: "select fewer rows or columns, use LIMIT and OFFSET, aggregate, or use unnest(array) to read the " +
			"elements of an array as rows",
	}
}

// RowBatch is a batch of rows of a result, column by column. It is valid until the RowSink
// that gets it returns.
type RowBatch struct {
	Columns []Column       // the same in every batch of a result
	Data    []ColumnValues // of each column
	Count   int            // rows; a result may have rows and no columns

	// Hold counts n more bytes, which the sink holds until it returns, as memory of the user. It returns a *Refusal if
	// the user's results have too much. nil: nobody counts.
	Hold func(n int) error

	// Rounded notes that the sink passes on a value of the column with this index as a float64 that is not the same
	// number. nil: nobody notes it.
	Rounded func(column int)
}

// RowSink gets a result batch by batch, from one goroutine, which waits for the sink. If a
// statement returns columns, the sink is called at least once, even if there are no rows. An
// error of the sink ends the statement. A statement may fail after the sink has got rows.
type RowSink func(RowBatch) error

// QuerySummary summarizes the result of a statement. Truncated is set if and only if the
// result had more rows or bytes than the limits allow.
type QuerySummary struct {
	Rows        int
	Bytes       int64 // of values, as the server sent them
	Truncated   bool
	Fingerprint string // of the statement without its constants
	// ComputedWithMask are the masked columns of the statement's tables, if it computed a value with "***" in their
	// place. nil: it did not, or the database has no --server-check, which tells.
	ComputedWithMask []string
	Ran              string   // the text that PostgreSQL ran, which reads no masked column; "" if it ran none
	Schema           string   // fingerprint of its tables and views: columns, types, keys, definitions
	Tables           []string // the tables and views in the statement, and those in its views
	ReadsClock       bool     // the statement gives other rows at another time
	ExecutionID      string   // of the execution that records a client's statement; "" for a statement of code
}

// RoundNotice tells a reader that numeric columns were passed to code with fewer digits than the database has.
func RoundNotice(columns []string) string {
	return "the numeric columns " + strings.Join(columns, ", ") + " are float64 in db_frame, and some of their " +
		"values lost digits: db_frame(..., exact=True) keeps them as Decimal"
}

// MaskNotice tells a reader that values were computed with "***" in place of a masked column. columns are those of the
// statement's tables.
func MaskNotice(columns []string) string {
	return `values were computed with "***" in place of one of the masked columns ` + strings.Join(columns, ", ")
}

// ColumnValues are the values of one column. The values of an array column are in Text, and
// Array is set. The values of any other column are in the field for its Kind: Ints for int,
// Floats for float, Bools for bool, Others for bytes and timedelta, and Text for all other
// kinds. Each field also has an element for NULL.
type ColumnValues struct {
	Nulls  []bool // one for each value; nil if no value is NULL
	Ints   []int64
	Floats []float64
	Bools  []bool
	Text   []byte // all values, concatenated
	Ends   []int  // where each value ends in Text
	Others []any  // nil, []byte, or []any of three int64, the months, days and microseconds of a timedelta

	Array *ArrayFormat // of the texts of an array column; nil: another column
}

// At returns one value: nil, bool, int64, float64, string, []byte, []any of a timedelta, or an
// Array, which is valid as long as the batch. Column describes it.
func (v *ColumnValues) At(i int) any {
	switch {
	case v.isNull(i):
		return nil
	case len(v.Ints) > 0:
		return v.Ints[i]
	case len(v.Floats) > 0:
		return v.Floats[i]
	case len(v.Bools) > 0:
		return v.Bools[i]
	case v.Array != nil:
		return Array{v.TextAt(i), v.Array}
	case len(v.Ends) > 0:
		return string(v.TextAt(i))
	}
	return v.Others[i]
}

func (v *ColumnValues) isNull(i int) bool { return v.Nulls != nil && v.Nulls[i] }

// TextAt returns one value of a text column, without a copy.
func (v *ColumnValues) TextAt(i int) []byte {
	if i == 0 {
		return v.Text[:v.Ends[0]]
	}
	return v.Text[v.Ends[i-1]:v.Ends[i]]
}

// RowJSON is the JSON text of rows, within a number of bytes. It is kept in chunks, so that it takes no more memory
// than its size while it grows. The zero RowJSON has no room: set Max.
type RowJSON struct {
	Max  int               // bytes that the text may have
	Hold func(n int) error // is called before the text takes n more bytes of memory; nil: nobody counts
	Err  error             // why the text is not complete: AnswerTooLarge, or the error of Hold

	full net.Buffers
	last []byte
	size int // bytes of full and last
	held int // bytes for which Hold was called
}

// chunkBytes is the size of a chunk, unless a single value is larger, and the unit in which Hold is called.
const chunkBytes = 1 << 20

// Len returns the size of the text in bytes.
func (j *RowJSON) Len() int { return j.size }

// WriteTo writes the text.
func (j *RowJSON) WriteTo(w io.Writer) (int64, error) {
	written := int64(0)
	for _, chunk := range append(j.full, j.last) {
		n, err := w.Write(chunk)
		if written += int64(n); err != nil {
			return written, err
		}
	}
	return written, nil
}

// Bytes returns the text as one.
func (j *RowJSON) Bytes() []byte {
	if len(j.full) == 0 {
		return j.last
	}
	return bytes.Join(append(j.full, j.last), nil)
}

// take returns the chunk to which size bytes are added, or nil if they do not fit.
func (j *RowJSON) take(size int) []byte {
	if j.Err != nil {
		return nil
	}
	if size > j.Max-j.size {
		j.Err = AnswerTooLarge()
		return nil
	}
	if j.size += size; j.size > j.held && j.Hold != nil {
		n := max(chunkBytes, j.size-j.held)
		if j.Err = j.Hold(n); j.Err != nil {
			return nil
		}
		j.held += n
	}
	if len(j.last) > 0 && len(j.last)+size > chunkBytes {
		j.full, j.last = append(j.full, j.last), make([]byte, 0, max(size, chunkBytes))
	} else if j.last == nil || size > chunkBytes {
		j.last = make([]byte, 0, max(size, 64))
	}
	return j.last
}

// At adds value i of a column, whose kind is that of its column. It does not copy a text.
func (j *RowJSON) At(column *ColumnValues, i int, kind string) {
	if len(column.Ends) > 0 && column.Array == nil && !column.isNull(i) {
		j.text(column.TextAt(i), kind)
	} else {
		j.Value(column.At(i), kind)
	}
}

// Value adds a value of a row, as ColumnValues.At returns it. kind is the kind of its column. Decimals become numbers
// with all their digits, JSON columns stay as they are, and what JSON cannot hold becomes {"type", "repr"}. A value
// that does not fit is not encoded to its end.
func (j *RowJSON) Value(v any, kind string) {
	switch v := v.(type) {
	case nil:
		j.Raw("null")
	case bool:
		j.Raw(strconv.FormatBool(v))
	case int64:
		var digits [20]byte
		j.raw(strconv.AppendInt(digits[:0], v, 10))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			j.opaque("float", strconv.FormatFloat(v, 'g', -1, 64))
		} else {
			var digits [24]byte // -1.7976931348623157e+308
			j.raw(strconv.AppendFloat(digits[:0], v, 'g', -1, 64))
		}
	case []byte:
		j.opaque("bytes", "base64:"+base64.StdEncoding.EncodeToString(v))
	case []any: // a timedelta
		j.Raw(fmt.Sprintf(`{"months":%d,"days":%d,"microseconds":%d}`, v...))
	case Array:
		j.array(v, kind)
	case string:
		j.text([]byte(v), kind)
	default:
		j.opaque(fmt.Sprintf("%T", v), fmt.Sprint(v))
	}
}

func (j *RowJSON) text(v []byte, kind string) {
	switch {
	case kind != "json" && kind != "decimal":
		j.quoted(v)
	case !json.Valid(v):
		j.opaque(kind, string(v))
	default:
		j.raw(v)
	}
}

func (j *RowJSON) array(a Array, kind string) {
	follows := false // another item of the innermost list
	for token, v := range a.Tokens() {
		if follows && token != ArrayEnd {
			j.Raw(",")
		}
		switch token {
		case ArrayBegin, ArrayEnd:
			j.Raw(string(token))
		default:
			j.Value(v, kind)
		}
		if follows = token != ArrayBegin; j.Err != nil {
			return
		}
	}
}

func (j *RowJSON) opaque(kind, repr string) {
	j.Raw(`{"type":`)
	j.String(kind)
	j.Raw(`,"repr":`)
	j.String(repr)
	j.Raw("}")
}

// Raw adds JSON text as it is.
func (j *RowJSON) Raw(text string) {
	if b := j.take(len(text)); b != nil {
		j.last = append(b, text...)
	}
}

func (j *RowJSON) raw(text []byte) {
	if b := j.take(len(text)); b != nil {
		j.last = append(b, text...)
	}
}

const hexDigits = "0123456789abcdef"

// String adds a string of JSON, as encoding/json writes it without the escapes for HTML.
func (j *RowJSON) String(s string) { j.quoted([]byte(s)) }

// quoted adds a string of JSON. It computes its size first, as far as there is room: a text with control characters
// becomes six times as long.
func (j *RowJSON) quoted(s []byte) {
	size := len(`""`)
	for i := 0; i < len(s) && size <= j.Max; {
		plain := plainPrefix(s[i:])
		if size, i = size+plain, i+plain; i < len(s) {
			n, width := escapedSize(s[i:])
			size, i = size+n, i+width
		}
	}
	b := j.take(size)
	if b == nil {
		return
	}
	b = append(b, '"')
	for i := 0; i < len(s); {
		plain := plainPrefix(s[i:])
		b = append(b, s[i:i+plain]...)
		if i += plain; i == len(s) {
			break
		}
		n, width := escapedSize(s[i:])
		switch c := s[i]; {
		case n == width:
			b = append(b, s[i:i+width]...)
		case n == 2:
			b = append(b, '\\', shortEscapes[c])
		case width == 1 && c < utf8.RuneSelf:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		case width == 1:
			b = append(b, `\ufffd`...)
		default:
			b = append(b, '\\', 'u', '2', '0', '2', hexDigits[s[i+2]&0xf])
		}
		i += width
	}
	j.last = append(b, '"')
}

// plainPrefix returns the number of bytes at the beginning of s that are ASCII and have no escape.
func plainPrefix(s []byte) int {
	for i, c := range s {
		if !plainBytes[c] {
			return i
		}
	}
	return len(s)
}

var plainBytes = func() (plain [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		plain[c] = shortEscapes[c] == 0
	}
	return plain
}()

// shortEscapes are the letters of the escapes that encoding/json writes with two characters.
var shortEscapes = [utf8.RuneSelf]byte{
	'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't',
}

// escapedSize returns the size of the first character of s and its size in a string of JSON: encoding/json escapes
// what ends a line in JavaScript, and replaces bytes that are not UTF-8.
func escapedSize(s []byte) (escaped, width int) {
	c := s[0]
	switch {
	case c < utf8.RuneSelf && shortEscapes[c] != 0:
		return 2, 1
	case c < ' ':
		return len(`\u0000`), 1
	case c < utf8.RuneSelf:
		return 1, 1
	}
	r, width := utf8.DecodeRune(s)
	if r == utf8.RuneError && width == 1 || r == '\u2028' || r == '\u2029' {
		return len(`\ufffd`), width
	}
	return width, width
}

// ArrayFormat says how the text of an array column is read.
type ArrayFormat struct {
	Separator byte                  // between elements
	Element   func(text []byte) any // decodes an element that is not NULL; it keeps no part of text
}

// Array is a value of an array column, as PostgreSQL's text. It is decoded while it is encoded for a client: a list of
// Go values would take many times the memory of the text.
type Array struct {
	text   []byte
	format *ArrayFormat
}

// ArrayToken is a part of an array.
type ArrayToken byte

// The parts of an array. Arrays nest.
const (
	ArrayBegin   ArrayToken = '['
	ArrayEnd     ArrayToken = ']'
	ArrayElement ArrayToken = 'e'
)

// Tokens yields the tokens of an array, each element with its value: nil, or as the format decodes it. Explicit bounds
// such as [0:1]= are left out, because a list cannot have them. For every ArrayBegin an ArrayEnd is yielded, even if
// the text is cut.
func (a Array) Tokens() iter.Seq2[ArrayToken, any] {
	return func(yield func(ArrayToken, any) bool) {
		s, depth := a.text, 0
		if bytes.HasPrefix(s, []byte("[")) {
			_, s, _ = bytes.Cut(s, []byte("="))
		}
		var unescaped []byte
		for len(s) > 0 {
			token, value, size := ArrayElement, any(nil), 1
			switch s[0] {
			case a.format.Separator:
				s = s[1:]
				continue
			case '{':
				token = ArrayBegin
				depth++
			case '}':
				if token = ArrayEnd; depth == 0 {
					return
				}
				depth--
			case '"':
				unescaped, size = unquote(unescaped[:0], s)
				value = a.format.Element(unescaped)
			default:
				for size < len(s) && s[size] != a.format.Separator && s[size] != '}' {
					size++
				}
				if string(s[:size]) != "NULL" {
					value = a.format.Element(s[:size])
				}
			}
			s = s[size:]
			if !yield(token, value) {
				return
			}
		}
		for ; depth > 0; depth-- {
			if !yield(ArrayEnd, nil) {
				return
			}
		}
	}
}

// unquote appends the text of the quoted element at the beginning of s, and returns the element's size in s.
func unquote(b, s []byte) (text []byte, size int) {
	i := 1
	for ; i < len(s) && s[i] != '"'; i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b = append(b, s[i])
	}
	return b, min(i+1, len(s))
}
