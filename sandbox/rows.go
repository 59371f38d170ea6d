package sandbox

// RowBatch are some rows of a result, column by column. They are valid until the Take
// that they were given to returns.
type RowBatch struct {
	Columns []Column       // the same of every part of a result
	Data    []ColumnValues // of each column
	Count   int            // of rows, which may have no columns
}

// RowSink takes a result part by part, from one goroutine, and is waited for. Where a
// statement gives columns it is called at least once, with no rows where there are
// none. An error of its ends the statement; one of the statement may come after rows.
type RowSink func(RowBatch) error

// QuerySummary is what a statement came to. Truncated is true exactly where it had more
// rows, or bytes, than were allowed.
type QuerySummary struct {
	Rows        int
	Bytes       int64 // of values, as they came over the wire
	Truncated   bool
	Fingerprint string // of the statement, whatever its constants
}

// ColumnValues are those of one column. Where it is no array, its Kind says where they are:
// Ints for int, Floats for float, Bools for bool, Others for bytes and timedelta, and
// Text for all else. Those of an array are Others. A place is kept for each NULL.
type ColumnValues struct {
	Nulls  []bool // one a value; nil where none is NULL
	Ints   []int64
	Floats []float64
	Bools  []bool
	Text   []byte // of all values, one after the other
	Ends   []int  // where each ends in Text
	Others []any  // nil, []byte, or nested []any of what At may give
}

// At is one value: nil, bool, int64, float64, string, []byte or nested []any, as
// Column says.
func (v *ColumnValues) At(i int) any {
	switch {
	case v.Nulls != nil && v.Nulls[i]:
		return nil
	case len(v.Ints) > 0:
		return v.Ints[i]
	case len(v.Floats) > 0:
		return v.Floats[i]
	case len(v.Bools) > 0:
		return v.Bools[i]
	case len(v.Ends) > 0:
		return string(v.TextAt(i))
	}
	return v.Others[i]
}

// TextAt is one text.
func (v *ColumnValues) TextAt(i int) []byte {
	if i == 0 {
		return v.Text[:v.Ends[0]]
	}
	return v.Text[v.Ends[i-1]:v.Ends[i]]
}
