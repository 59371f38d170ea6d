package parse

// Probe is a part of a statement that may be wrong, with the statements that show what it does to the data.
type Probe struct {
	Kind       string
	Line       int
	Block      int
	Stage      int // -1: none
	Clause     string
	Subjects   []string // names and texts that the words of a finding have
	Statements []DerivedStatement
}
