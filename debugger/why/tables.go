package why

import (
	"fmt"
	"regexp"
	"strings"

	"glasshouse/debugger/recording"
)

// tableFacts are the recorded facts of an array, a series or a data frame.
type tableFacts struct {
	rows       int64
	columns    []columnFacts
	dimensions int // of an array; 0 of others
}

type columnFacts struct{ name, dtype string }

// tableOf returns the facts of an object that is a table, and nil for other objects.
func (w *slicer) tableOf(s *recording.State, o *recording.Object) *tableFacts {
	if o == nil || o.Form < recording.Described || len(o.Values) < 2 {
		return nil
	}
	t := &tableFacts{rows: o.Length}
	if o.Form == recording.Framed {
		frame, _ := o.DataFrame() // it is empty if it is not whole
		for _, c := range frame.Columns {
			name := c.Label.Text
			if c.Label.Tag != recording.TagText {
				name = s.Preview(w.table, c.Label, 60)
			}
			t.columns = append(t.columns, columnFacts{name, c.Type})
		}
		return t
	}
	found := arrayText.FindStringSubmatch(o.Values[0].Text) // an array or an index
	if found == nil {
		return nil
	}
	t.dimensions = 1 + strings.Count(found[1], "x")
	return t
}

// arrayText matches the text of an array or an index, which has its type and its shape first.
var arrayText = regexp.MustCompile(`^<\w+ [\w\[\], ]+ (\d+(?:x\d+)*)[:>]`)

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

// describeRows sets the numbers of rows before and after a step. The length of a row of an array is none.
func (w *slicer) describeRows(node *Step) {
	after := w.tableAfter(node)
	if after == nil {
		return
	}
	var rows []string
	for _, name := range w.program.Get(node.statement).Reads {
		if before := w.tableBefore(node, name); before != nil && (node.Through == "" || name == node.Name) &&
			before.dimensions == after.dimensions {
			rows = append(rows, fmt.Sprintf("%s %d", name, before.rows))
		}
	}
	if len(rows) > 0 {
		node.Rows = fmt.Sprintf("rows: %s -> %d", strings.Join(rows, ", "), after.rows)
	}
}
