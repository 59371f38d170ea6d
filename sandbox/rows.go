package sandbox

import (
	"fmt"
	"strings"
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
	ExecutionID      string // of the execution that records a client's statement; "" for a statement of code
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
