package why

import (
	"regexp"
	"slices"
	"strings"

	"glasshouse/debugger/recording"
)

// tableFacts are the recorded facts of an array, a series or a data frame.
type tableFacts struct {
	kind       string // DataFrame, Series, ndarray or another class of pandas
	rows       int64
	dtype      string // of an array
	columns    []columnFacts
	dimensions int                 // of an array; 0 of others
	cells      [][]recording.Value // of the first rows, by column; an array has one
}

type columnFacts struct {
	name, dtype string
	missing     int64 // -1 if it is unknown
}

// column returns a column by name, or nil; "" is the only column of a series.
func (t *tableFacts) column(name string) *columnFacts {
	if i := t.indexOf(name); i >= 0 {
		return &t.columns[i]
	}
	return nil
}

func (t *tableFacts) indexOf(name string) int {
	if name == "" && t.kind == "Series" && len(t.columns) == 1 {
		return 0
	}
	return slices.IndexFunc(t.columns, func(c columnFacts) bool { return c.name == name })
}

// isText reports whether a column holds Python objects or texts.
func (c *columnFacts) isText() bool {
	return c.dtype == "object" || c.dtype == "str" || strings.HasPrefix(c.dtype, "string")
}

// hasMissing reports whether a column of the table has as many missing values.
func (t *tableFacts) hasMissing(count int64) bool {
	return slices.ContainsFunc(t.columns, func(c columnFacts) bool { return c.missing == count })
}

// tableOf returns the facts of an object that is a table, and nil for other objects.
func (w *slicer) tableOf(s *recording.State, o *recording.Object) *tableFacts {
	if o == nil || o.Form < recording.Described || len(o.Values) < 2 {
		return nil
	}
	name := w.table.Name(o.Type)
	t := &tableFacts{kind: name[strings.LastIndexByte(name, '.')+1:], rows: o.Length}
	switch o.Form {
	case recording.Framed:
		w.readFrame(s, o, t)
	default: // an array or an index; the text names its type first
		found := arrayText.FindStringSubmatch(o.Values[0].Text)
		if found == nil {
			return nil
		}
		t.dtype, t.dimensions = found[1], 1+strings.Count(found[2], "x")
		for i := 2; i < len(o.Values); i += 2 {
			t.cells = append(t.cells, o.Values[i:i+1])
		}
	}
	return t
}

var arrayText = regexp.MustCompile(`^<\w+ ([\w\[\], ]+) (\d+(?:x\d+)*)[:>]`)

// readFrame reads a DataFrame or a Series.
func (w *slicer) readFrame(s *recording.State, o *recording.Object, t *tableFacts) {
	frame, _ := o.DataFrame() // it is empty if it is not whole
	for _, c := range frame.Columns {
		t.columns = append(t.columns, columnFacts{w.label(s, c.Label), c.Type, c.Missing})
	}
	for _, row := range frame.Rows {
		t.cells = append(t.cells, row.Cells)
	}
}

// label returns the name of a column.
func (w *slicer) label(s *recording.State, v recording.Value) string {
	if v.Tag == recording.TagText {
		return v.Text
	}
	return s.Preview(w.table, v, 60)
}

// cellsOf returns the first recorded cells of a column.
func (t *tableFacts) cellsOf(name string) (out []recording.Value) {
	if i := t.indexOf(name); i >= 0 {
		for _, row := range t.cells {
			out = append(out, row[i])
		}
	}
	return out
}

// tableBefore returns the facts of a variable on arrival at a step, or nil.
func (w *slicer) tableBefore(node *Step, name string) *tableFacts {
	v, ok := w.value(node, name)
	if !ok {
		return nil
	}
	return w.tableOf(node.state, w.object(node.state, v))
}

// tableAfter returns the facts of the table that a step made, or nil.
func (w *slicer) tableAfter(node *Step) *tableFacts {
	if node.after == nil || !node.hasValue {
		return nil
	}
	return w.tableOf(node.after, w.object(node.after, node.value))
}

// holdsText reports whether a column holds texts. The type object says nothing: it is also that of Decimal and of
// dates, so one of the recorded values must be a text.
func (t *tableFacts) holdsText(c *columnFacts) bool {
	return c.dtype != "object" ||
		slices.ContainsFunc(t.cellsOf(c.name), func(v recording.Value) bool { return v.Tag == recording.TagText })
}

// numberText returns one of the recorded values of a column if all of them are texts of numbers, and "" if not.
func (t *tableFacts) numberText(column string) (found string) {
	for _, v := range t.cellsOf(column) {
		if v.Tag != recording.TagText || !numericText.MatchString(v.Text) {
			return ""
		}
		found = v.Text
	}
	return found
}

// isMixed reports whether a column holds texts as well as values of other types, as far as its values are recorded.
func (t *tableFacts) isMixed(column string) bool {
	texts, others := 0, 0
	for _, v := range t.cellsOf(column) {
		switch v.Tag {
		case recording.TagText:
			texts++
		case recording.TagInt, recording.TagFloat, recording.TagTrue, recording.TagFalse, recording.TagObject:
			others++
		}
	}
	return texts > 0 && others > 0
}

// hasEqual reports whether two of the values are equal.
func hasEqual(values []recording.Value) bool {
	seen := map[recording.Value]bool{}
	for _, v := range values {
		if seen[v] {
			return true
		}
		seen[v] = true
	}
	return false
}
