package parse

// StagePlan has the stages of a statement and the statements that count their rows.
type StagePlan struct {
	Lines  int
	Blocks []PlanBlock // by their ID
	Order  []int       // of blocks: children before the block that reads them
	Stages []PlanStage // by their ID
	Counts []CountStatement
	// Shared are statements that compute several of Counts with one computation of the WITH queries.
	Shared []SharedCounts
	Probes []Probe
	// HasMoreParts says that views, subqueries and so on were left out, because the plan is full.
	HasMoreParts bool
}

// PlanBlock is a block without its values.
type PlanBlock struct {
	ID, Parent int
	Kind, Name string
	From, To   int // lines
	Reason     string
	Last       int    // the stage that has the block's rows; -1: none
	Definition string // of a view: its query
}

// PlanStage is a stage without its values.
type PlanStage struct {
	Block, Reads     int
	Kind, Name, Text string
	From, To         int  // lines
	Left, Right      int  // the stages whose rows come in; -1: none
	LeftIsKey        bool // of a join: its left side compares a column that is unique in its own table
	Follows          int  // the stage with the same number of rows, which has no statement of its own; -1: none
	PartOf           int  // the stage that it is a part of, whose rows it does not change; -1: none
	Same             int  // the stage with the same values, of a subquery that is a condition; -1: none
	ViewLine         int  // of a stage of a view: its line in the definition
	Reason, Message  string
	JoinKind         string // of a join: "inner", "left", "right", "full" or "cross"
	Sample           *DerivedStatement
	Keys             []KeySample // of a join
}

// DerivedStatement is a statement that is made of parts of another, with :name, and the names of its parameters.
type DerivedStatement struct {
	SQL   string
	Names []string
}

// CountStatement returns one row of counts.
type CountStatement struct {
	DerivedStatement
	Values []CountValue // by column
	Class  CountClass
}

// CountClass says how important counts are.
type CountClass int

// The classes, the most important first.
const (
	CountsRows    CountClass = iota // the rows after a stage
	CountsMatches                   // how the sides of a join match
	CountsPart                      // of what is in a stage: a view, a subquery, a filter, a window
)

// SharedCounts is a statement with the values of several of StagePlan.Counts.
type SharedCounts struct {
	DerivedStatement
	Counts []int // whose columns come one after another
}

// CountValue says what a column of a CountStatement is.
type CountValue struct {
	Stage int
	What  CountKind
}

// CountKind is a value of a stage.
type CountKind int

// The values of a stage.
const (
	CountIn          CountKind = iota // rows before it
	CountOut                          // rows after it
	CountNull                         // rows for which its condition is NULL
	CountPairs                        // rows of both sides of a join that match
	CountWithLeft                     // the same, and each row of the left side that matches none
	CountWithRight                    // the same for the right side
	CountMaxLeft                      // the most rows of the left side with one key
	CountMaxRight                     // the same for the right side
	CountNullLeft                     // rows of the left side whose key is NULL
	CountNullRight                    // the same for the right side
	CountEmptyGroups                  // groups in which no row passes a filter
	CountPartitions                   // of a window
	CountLargest                      // the rows of the largest partition
	CountTied                         // rows that are equal to others of their partition in the order of a window
)

// Bounds of a plan.
const (
	maxStages  = 64
	maxDerived = 200
)
