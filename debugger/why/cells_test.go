package why

import (
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// A path has an index, a key or an attribute behind a variable, and is of the end of the run.
func TestCellPath(t *testing.T) {
	for name, want := range map[string]string{
		"rows[3]['x']": "rows[3]['x']", " t.loc['Oslo', 'price'] ": "t.loc['Oslo', 'price']", "p.x": "p.x",
		"d['größe'][0]": "d['größe'][0]", "x": "", "": "", "a + b": "", "f(x)": "", "3.5": "", "x == 3": "",
		"a;b[0]": "",
	} {
		if got := (&Question{Name: name}).CellPath(); got != want {
			t.Errorf("%q: got the path %q, want %q", name, got, want)
		}
	}
	if got := (&Question{Name: "p.x", Step: 3}).CellPath(); got != "" {
		t.Errorf("at a step: got the path %q, want none", got)
	}
}

// The text of a cell is short, also for many steps of many rows.
func TestCellTextIsShort(t *testing.T) {
	cell := &sandbox.Cell{Value: "6", Ends: strings.Repeat("line 3: apply: not further; ", 20)}
	for range 40 {
		step := sandbox.CellStep{Line: 7, Code: strings.Repeat("c", 80), What: strings.Repeat("w", 400),
			TotalRows: 2000, Of: 4000}
		for n := range int64(20) {
			step.Rows = append(step.Rows, n)
			step.Cells = append(step.Cells, sandbox.CellPart{Row: "1", Column: strings.Repeat("n", 100),
				Value: strings.Repeat("v", 100)})
		}
		cell.From = append(cell.From, step)
	}
	y := &Answer{Name: "t[0]"}
	y.AddCell(cell, &Question{Name: "t[0]"})
	y.AddFacts(nil, "", 0)
	if len(y.Text) > defaultWhyBudget*BytesPerToken/2 || !strings.HasPrefix(y.Text, "t[0] is 6.\n") {
		t.Errorf("got %d bytes:\n%s\nwant at most half of the budget", len(y.Text), y.Text)
	}
	empty := &Answer{}
	empty.AddCell(&sandbox.Cell{Ends: "x is not a variable"}, &Question{})
	if empty.Cell.From == nil || len(empty.cellLines()) != 1 {
		t.Errorf("got %+v and %q, want one line", empty.Cell, empty.cellLines())
	}
}
