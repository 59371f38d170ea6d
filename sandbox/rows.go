package sandbox

// RowBatch is a batch of rows of a result, column by column. It is valid until the RowSink
// that gets it returns.
type RowBatch struct {
	Columns []Column       // the same in every batch of a result
	Data    []ColumnValues // of each column
	Count   int            // rows; a result may have rows and no columns
}

// RowSink gets a result batch by batch, from one goroutine, which waits for it. If a
// statement returns columns, the sink is called at least once, with no rows if there are
// none. An error of the sink ends the statement. A statement may fail after it has given rows.
type RowSink func(RowBatch) error

// QuerySummary is what a statement returned. Truncated is set exactly if it had more rows,
// or bytes, than its limits allow.
type QuerySummary struct {
	Rows        int
	Bytes       int64 // of values, as the server sent them
	Truncated   bool
	Fingerprint string // of the statement without its constants
}

// ColumnValues are the values of one column. Those of an array column are in Others. Those
// of any other column are in the field for its Kind: Ints for int, Floats for float, Bools
// for bool, Others for bytes and timedelta, and Text for all other kinds. A NULL has an
// element, too.
type ColumnValues struct {
	Nulls  []bool // one for each value; nil if no value is NULL
	Ints   []int64
	Floats []float64
	Bools  []bool
	Text   []byte // all values, one after the other
	Ends   []int  // where each value ends in Text
	Others []any  // nil, []byte, or nested []any of what At may return
}

// At returns one value: nil, bool, int64, float64, string, []byte or nested []any. Column
// describes it.
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

// TextAt returns one value of a text column, without a copy.
func (v *ColumnValues) TextAt(i int) []byte {
	if i == 0 {
		return v.Text[:v.Ends[0]]
	}
	return v.Text[v.Ends[i-1]:v.Ends[i]]
}
