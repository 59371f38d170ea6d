package why

import (
	"fmt"
	"regexp"
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
			y.NotLooked = append(y.NotLooked, "the cell, which is followed from the end of the run only: ask without step")
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
	for n := range y.Cell.From[:min(len(y.Cell.From), maxCellLines)] {
		lines = append(lines, cellLine(&y.Cell.From[n]))
	}
	if more := len(y.Cell.From) - maxCellLines; more > 0 {
		lines = append(lines, fmt.Sprintf("  ... %d more in cell", more))
	}
	if y.Cell.Ends != "" {
		lines = append(lines, "  Followed until "+program.Clip(oneLine(y.Cell.Ends), maxCellText)+".")
	}
	return lines
}

// cellLine returns a step as a line: what it did, the rows that it took, and their values.
func cellLine(step *sandbox.CellStep) string {
	out := &strings.Builder{}
	fmt.Fprintf(out, "  line %d: %s", step.Line, program.Clip(oneLine(step.Code), maxCellCode))
	if step.What != "" {
		fmt.Fprintf(out, ": %s", program.Clip(oneLine(step.What), maxCellText))
	}
	if step.TotalRows > 1 || step.TotalRows == 1 && step.Of > 1 {
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
