package recording_test

import (
	"testing"

	"glasshouse/debugger/recording"
)

// A guest can send any values, so a DataFrame is read with bounds.
func TestDataFrameOfForgedValues(t *testing.T) {
	text := recording.Value{Tag: recording.TagRaw, Text: "<DataFrame 2x1>"}
	number := func(n int64) recording.Value { return recording.Value{Tag: recording.TagInt, Int: n} }
	label := recording.Value{Tag: recording.TagText, Text: "amt"}
	column := []recording.Value{label, {Tag: recording.TagText, Text: "float64"}, number(1)}
	for _, test := range []struct {
		values        []recording.Value
		columns, rows int
		ok            bool
	}{
		{nil, 0, 0, false},
		{[]recording.Value{text}, 0, 0, false},
		{[]recording.Value{text, label}, 0, 0, false},
		{[]recording.Value{text, number(-1)}, 0, 0, false},
		{[]recording.Value{text, number(1 << 62), label, label, label}, 0, 0, false},
		{[]recording.Value{text, number(0), label, label}, 0, 2, true},
		{append([]recording.Value{text, number(1)}, column...), 1, 0, true},
		{append(append([]recording.Value{text, number(1)}, column...), number(0), number(5), number(1)), 1, 1, true},
	} {
		o := recording.Object{Form: recording.Framed, Values: test.values}
		f, ok := o.DataFrame()
		if ok != test.ok || len(f.Columns) != test.columns || len(f.Rows) != test.rows {
			t.Errorf("%v: got %d columns, %d rows, %v; want %d, %d, %v", test.values, len(f.Columns), len(f.Rows), ok,
				test.columns, test.rows, test.ok)
		}
	}
}

// A recording has the first columns of a wide table. Its text has the number of all.
func TestDataFrameHasTheNumberOfAllColumns(t *testing.T) {
	for text, want := range map[string]int{
		"<DataFrame 300x40: a int64, ...>": 40, "<DataFrame 0x1: a int64>": 1, "<DataFrame 2x0: a int64>": 1,
		"<DataFrame 2x-5>": 1, "<DataFrame 2x99999999999999999999>": 1, "<Series a int64 5: 1>": 1, "": 1,
	} {
		o := recording.Object{Form: recording.Framed, Values: []recording.Value{{Tag: recording.TagRaw, Text: text},
			{Tag: recording.TagInt, Int: 1}, {Tag: recording.TagText, Text: "a"},
			{Tag: recording.TagText, Text: "int64"}, {Tag: recording.TagInt, Int: 0}}}
		if f, ok := o.DataFrame(); !ok || f.TotalColumns != want {
			t.Errorf("%q: got %d columns, %v; want %d", text, f.TotalColumns, ok, want)
		}
	}
}
