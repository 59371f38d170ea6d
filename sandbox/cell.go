package sandbox

// Cell is one value of a run, such as rows[3]["x"], and the rows and cells that it was made from.
type Cell struct {
	Value string     `json:"value"`
	From  []CellStep `json:"from" doc:"The expressions that made the value, the last first"`
	// Ends says where the steps end although something was before them, and why.
	Ends string `json:"ends,omitempty" doc:"Where the steps end, and why; empty if nothing was before"`
}

// CellStep is what one expression did to the cells.
type CellStep struct {
	Line int64  `json:"line"`
	Code string `json:"code"`
	What string `json:"what" doc:"What the expression did"`
	// Rows are positions from 0 in the table that the expression got.
	Rows       []int64    `json:"rows" doc:"The first 20 rows that it took, by position from 0"`
	TotalRows  int64      `json:"total_rows"`
	Of         int64      `json:"of" doc:"The rows of the table; 0 if there is none"`
	Cells      []CellPart `json:"cells" doc:"The first 20 cells that it took"`
	TotalCells int64      `json:"total_cells"`
	Times      int64      `json:"times" doc:"How often the expression did so"`
}

// CellPart is a cell that an expression took.
type CellPart struct {
	Row    string `json:"row" doc:"The label of its row"`
	Column string `json:"column"`
	Value  string `json:"value"`
}
