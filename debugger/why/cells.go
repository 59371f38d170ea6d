package why

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"glasshouse/debugger/program"
	"glasshouse/sandbox"
)

// Bounds of the cells in a text.
const (
	maxCellLines     = 8
	maxCellRows      = 4 // of a line, and values of a column
	maxCellColumns   = 3 // of a line
	maxCellCode      = 50
	maxCellText      = 120
	maxCellValueText = 40
)

// cellPath matches a variable with an index or an attribute behind it. The guest parses it.
var cellPath = regexp.MustCompile(`^\s*[\pL_][\pL\pN_]*\s*[.\[][^;\n]*$`)

// CellPath returns the name of the question if it is the path of a value at the end of the run, such as rows[3]["x"],
// and "" otherwise.
func (q *Question) CellPath() string {
	if q.Step != 0 || !cellPath.MatchString(q.Name) {
		return ""
	}
	return strings.TrimSpace(q.Name)
}

// AddCell adds the value at the path of the question and its origin, as a replay found them. cell is nil if the replay
// did not find them.
func (y *Answer) AddCell(cell *sandbox.Cell, q *Question) {
	if cell == nil {
		if q.Step != 0 && cellPath.MatchString(q.Name) {
			y.NotLooked = append(y.NotLooked,
				"the cell, which is followed from the end of the run only: ask without step")
		}
		return
	}
	y.Cell = cell
	for n := range cell.From {
		if step := &cell.From[n]; step.Rows == nil {
			step.Rows = []int64{}
		}
		if step := &cell.From[n]; step.Cells == nil {
			step.Cells = []sandbox.CellPart{}
		}
	}
	if cell.From == nil {
		cell.From = []sandbox.CellStep{}
	}
	if y.Value == "" {
		y.Value = program.Clip(oneLine(cell.Value), maxResultBytes)
	}
}

// cellLines returns the steps of the cell as lines.
func (y *Answer) cellLines() (lines []string) {
	if y.Cell == nil {
		return nil
	}
	if len(y.Cell.From) > 0 {
		lines = append(lines, "This cell, the last step first:")
	}
	steps := y.shownCellSteps()
	var before *sandbox.CellStep
	for n := range steps[:min(len(steps), maxCellLines)] {
		lines = append(lines, cellLine(&steps[n], before))
		before = &steps[n]
	}
	if more := len(steps) - maxCellLines; more > 0 {
		lines = append(lines, fmt.Sprintf("  ... %d more in cell", more))
	}
	if y.Cell.Ends != "" && y.Cell.Value == "" {
		return append(lines, "Not followed: "+program.Clip(oneLine(y.Cell.Ends), maxCellText)+".")
	}
	if y.Cell.Ends != "" {
		lines = append(lines, "  Followed until "+program.Clip(oneLine(y.Cell.Ends), maxCellText)+".")
	}
	return lines
}

// shownCellSteps returns the steps without the assignments of columns whose value the next step computes in the same
// rows.
func (y *Answer) shownCellSteps() (steps []sandbox.CellStep) {
	for n := range y.Cell.From {
		step := &y.Cell.From[n]
		if n+1 < len(y.Cell.From) && strings.HasPrefix(step.What, "set the column ") {
			if next := &y.Cell.From[n+1]; next.Line == step.Line && haveSameRows(step, next) {
				continue
			}
		}
		steps = append(steps, *step)
	}
	return steps
}

func haveSameRows(a, b *sandbox.CellStep) bool {
	return a.TotalRows == b.TotalRows && a.Of == b.Of && slices.Equal(a.Rows, b.Rows)
}

// cellLine returns a step as a line: what it did, the rows that it took, and their values. before is the line above, or
// nil.
func cellLine(step, before *sandbox.CellStep) string {
	out := &strings.Builder{}
	fmt.Fprintf(out, "  line %d: %s", step.Line, program.Clip(oneLine(step.Code), maxCellCode))
	if step.What != "" {
		fmt.Fprintf(out, ": %s", program.Clip(oneLine(step.What), maxCellText))
	}
	switch {
	case before != nil && step.TotalRows > 1 && haveSameRows(step, before):
		out.WriteString("; the same rows")
	case step.TotalRows > 1 || step.TotalRows == 1 && step.Of > 1:
		var rows []string
		for _, row := range step.Rows[:min(len(step.Rows), maxCellRows)] {
			rows = append(rows, strconv.FormatInt(row, 10))
		}
		fmt.Fprintf(out, "; %d", step.TotalRows)
		if step.Of > 0 {
			fmt.Fprintf(out, " of %d", step.Of)
		}
		fmt.Fprintf(out, " rows: %s", shortened(rows, step.TotalRows))
	}
	var columns []string
	values := map[string][]string{}
	for _, cell := range step.Cells {
		name := program.Clip(oneLine(cell.Column), maxCellValueText)
		if values[name] == nil {
			columns = append(columns, name)
		}
		if len(values[name]) < maxCellRows {
			values[name] = append(values[name], program.Clip(oneLine(cell.Value), maxCellValueText))
		}
	}
	for _, name := range columns[:min(len(columns), maxCellColumns)] {
		total := int64(len(values[name]))
		if len(columns) == 1 {
			total = step.TotalCells
		}
		out.WriteString("; ")
		if name != "" {
			out.WriteString(name + " = ")
		}
		out.WriteString(shortened(values[name], total))
	}
	if step.Times > 1 {
		fmt.Fprintf(out, "; %d times", step.Times)
	}
	return out.String()
}

// shortened joins the first of a total number of texts.
func shortened(texts []string, total int64) string {
	if total > int64(len(texts)) {
		texts = append(texts, "...")
	}
	return strings.Join(texts, ", ")
}
