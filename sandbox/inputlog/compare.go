package inputlog

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"glasshouse/sandbox"
	"glasshouse/sandbox/protocol"
)

// Sameness says how the rows of a statement that runs again compare with those of a log.
type Sameness int

// The results of a comparison.
const (
	NotKnown      Sameness = iota // the log does not have enough
	Same                          // all rows, in the same order
	SameIfRounded                 // floats differ in their last digits, as those of a sum in another order
	OtherOrder                    // the same rows, perhaps rounded, in another order
	Other
)

// maxComparedBytes bounds the answers that are compared row by row: as values they take several times as much memory.
const maxComparedBytes = 4 << 20

// maxRelativeError is the largest difference of two floats that count as the same if they are rounded.
const maxRelativeError = 1e-9

// Comparer compares the rows of a statement with those that answered a request. It encodes them as the request's answer
// was, so that the hash of an answer is enough to see that all rows are the same.
type Comparer struct {
	logged  *Request
	encoder *protocol.RowWriter
	isLarge bool // it was too large to be compared, or could not be encoded
}

// Comparer returns a Comparer for the answer to r; nil: the log does not have enough of it.
func (r *Request) Comparer() *Comparer {
	if r.Form == "" || !r.HasRows || !r.IsComparable() {
		return nil
	}
	form := r.Form
	if form == plainForm {
		form = protocol.FormPlain
	}
	return &Comparer{logged: r, encoder: protocol.NewRowEncoder(form, r.IsExact)}
}

// Add is a sandbox.RowSink for the rows of now.
func (c *Comparer) Add(rows sandbox.RowBatch) error {
	if c.isLarge {
		return nil
	}
	rows.Rounded = nil
	err := c.encoder.WriteBatch(rows) // the statement does not fail because its rows cannot be compared
	if c.isLarge = err != nil || len(c.encoder.Frames()) > MaxBytes; c.isLarge {
		c.encoder = nil
	}
	return nil
}

// Compare returns how the rows that Add got compare with those of the log.
func (c *Comparer) Compare() (Sameness, error) {
	if c.isLarge {
		return NotKnown, nil
	}
	if err := c.encoder.End(false); err != nil {
		return NotKnown, err
	}
	now := c.encoder.Frames()
	switch {
	case c.logged.Equals(now):
		return Same, nil
	case !c.logged.IsKept || len(now)+len(c.logged.Answer) > 2*maxComparedBytes:
		return NotKnown, nil
	}
	columns, kept, err := c.logged.Rows()
	if err != nil || columns == nil {
		return NotKnown, err
	}
	columnsNow, rowsNow, err := protocol.AnswerRows(now)
	if err != nil || columnsNow == nil {
		return NotKnown, err
	}
	isSameColumn := func(a, b sandbox.Column) bool { return a.Name == b.Name && a.Type == b.Type }
	if !slices.EqualFunc(columns, columnsNow, isSameColumn) {
		return Other, nil
	}
	return compareRows(rowsOf(kept), rowsOf(rowsNow)), nil
}

// rowsOf returns rows of columns.
func rowsOf(columns [][]any) [][]any {
	if len(columns) == 0 {
		return nil
	}
	rows := make([][]any, len(columns[0]))
	for i := range rows {
		rows[i] = make([]any, len(columns))
		for c := range columns {
			rows[i][c] = columns[c][i]
		}
	}
	return rows
}

// compareRows may sort the rows.
func compareRows(kept, now [][]any) Sameness {
	if len(kept) != len(now) {
		return Other
	}
	isSame := func() bool {
		return slices.EqualFunc(kept, now, func(a, b []any) bool { return slices.EqualFunc(a, b, isSameValue) })
	}
	if isSame() {
		return SameIfRounded
	}
	sortRows(kept)
	sortRows(now)
	if isSame() {
		return OtherOrder
	}
	return Other
}

// isSameValue reports whether two values are the same apart from the last digits of floats. NaN is the same as NaN.
func isSameValue(a, b any) bool {
	switch a := a.(type) {
	case float64:
		b, ok := b.(float64)
		difference := math.Abs(a - b)
		return ok && (a == b || math.IsNaN(a) && math.IsNaN(b) ||
			!math.IsInf(difference, 0) && difference <= maxRelativeError*max(math.Abs(a), math.Abs(b)))
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, isSameValue)
	case []byte:
		b, ok := b.([]byte)
		return ok && bytes.Equal(a, b)
	}
	return a == b
}

// sortRows sorts rows by their other values first and then by their floats, so that rows whose floats differ in the
// last digits come in the same order.
func sortRows(rows [][]any) {
	type sortedRow struct {
		key    string
		floats []float64
		row    []any
	}
	list := make([]sortedRow, len(rows))
	for i, row := range rows {
		var key strings.Builder
		list[i].row = row
		for _, v := range row {
			if f, ok := v.(float64); ok {
				list[i].floats = append(list[i].floats, f)
				continue
			}
			fmt.Fprintf(&key, "%T %v\x00", v, v)
		}
		list[i].key = key.String()
	}
	slices.SortFunc(list, func(a, b sortedRow) int {
		return cmp.Or(strings.Compare(a.key, b.key), slices.Compare(a.floats, b.floats))
	})
	for i := range list {
		rows[i] = list[i].row
	}
}
