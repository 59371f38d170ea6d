// Package stages describes how the rows of a statement come about: after each table, join, condition and group of it.
//
//	for _, block := range answer.Blocks {
//		for _, stage := range block.Stages { ... } // in the order in which SQL defines them
//	}
//	text := answer.Render(stages.Options{}) // for a model
//
// The order is that of the language, not that of PostgreSQL's plan. Package dbaccess computes the values.
package stages

import "time"

// Stages is a statement with the rows after each of its stages.
type Stages struct {
	Database   string    `json:"database,omitempty"`
	Lines      int       `json:"lines" doc:"The number of lines of the statement"`
	Rows       int64     `json:"rows" doc:"The rows that the statement returned now"`
	Truncated  bool      `json:"truncated" doc:"It has more rows than the limit of rows, which are not counted"`
	MS         float64   `json:"ms" doc:"How long the statement itself took, in milliseconds"`
	TotalMS    float64   `json:"total_ms" doc:"How long all of this took, in milliseconds"`
	Statements int       `json:"statements" doc:"How many derived statements ran"`
	Blocks     []Block   `json:"blocks" doc:"WITH queries and subqueries come before the block that reads them"`
	Findings   []Finding `json:"findings" doc:"What may be wrong, with the evidence of this data; the best one first"`
	NotLooked  []string  `json:"not_looked" doc:"What was not examined, and why"`
	Text       string    `json:"text" doc:"All of it for a language model"`

	// SameResult says whether the rows of a past run are those of now: one of the constants Same... below.
	SameResult    string    `json:"same_result,omitempty" enum:"yes,yes-rounded,other-order,no-clock,no,unknown"`
	ComputedAt    time.Time `json:"computed_at" doc:"Over the data of this time"`
	SchemaChanged bool      `json:"schema_changed,omitempty" doc:"Its tables have other columns or keys now"`

	// Of the statement, as sandbox.QuerySummary has it.
	Fingerprint string   `json:"-"`
	Ran         string   `json:"-"`
	Schema      string   `json:"-"`
	ReadsClock  bool     `json:"-"`
	Tables      []string `json:"-"`
}

// How the rows of a past run compare with those of now.
const (
	SameYes        = "yes"
	SameRounded    = "yes-rounded" // floats differ in their last digits, as those of a sum in another order
	SameOtherOrder = "other-order"
	SameNoClock    = "no-clock" // other rows, and the statement reads the clock
	SameNo         = "no"
	SameUnknown    = "unknown" // the rows of then are not kept
)

// DescribeSame says in a few words how the rows of a past run compare with those of now; "": that is not known.
func DescribeSame(same string) string {
	switch same {
	case SameYes:
		return "same result today as recorded"
	case SameRounded:
		return "same result today as recorded, up to rounding"
	case SameOtherOrder:
		return "same rows today as recorded, in another order"
	case SameNoClock:
		return "other rows than recorded, because of the clock"
	case SameNo:
		return "other rows than recorded"
	}
	return ""
}

// The kinds of blocks.
const (
	BlockMain     = "main"
	BlockCTE      = "cte"
	BlockSubquery = "subquery" // in FROM
	BlockArm      = "arm"      // of a set operation
	BlockView     = "view"     // the query of a view that the statement reads
	// BlockCorrelated is a subquery in an expression that reads columns of the block around it.
	BlockCorrelated = "correlated"
)

// Block is a SELECT of a statement: one list of FROM, WHERE and so on.
type Block struct {
	ID       int    `json:"id"`
	Parent   int    `json:"parent" doc:"The block that reads it; -1: none does"`
	Kind     string `json:"kind" enum:"main,cte,subquery,arm,view,correlated"`
	Name     string `json:"name,omitempty" doc:"Of a WITH query, a view, a subquery; EXISTS, IN, scalar"`
	FromLine int    `json:"from_line"`
	ToLine   int    `json:"to_line"`
	Rows     *int64 `json:"rows,omitempty" doc:"The rows of its last stage, if they were counted"`
	Reason   string `json:"reason,omitempty" doc:"Why it has no stages"`
	// Definition is the text that the stages of a view are of.
	Definition string   `json:"definition,omitempty" doc:"Of a view: its query"`
	Stages     []*Stage `json:"stages"`
}

// The kinds of stages, in the order in which a block has them.
const (
	KindCTE      = "cte" // all of a recursive WITH query
	KindFrom     = "from"
	KindJoin     = "join"
	KindWhere    = "where" // one conjunct
	KindGroup    = "group"
	KindHaving   = "having"
	KindProject  = "project" // the SELECT list, if it makes rows
	KindDistinct = "distinct"
	KindSet      = "set"
	KindOrder    = "order"
	KindLimit    = "limit" // with OFFSET

	KindGroupingSet = "grouping-set" // a part of the groups
	KindFilter      = "filter"       // FILTER of an aggregate, a part of the groups
	KindWindow      = "window"       // a part of the stage whose rows it divides
	KindSubquery    = "subquery"     // all of a correlated subquery
)

// The states of a stage.
const (
	Counted   = "counted"
	Estimated = "estimated" // beyond the budget: the planner's estimate
	Skipped   = "skipped"   // not computed, with a Reason
	Refused   = "refused"   // may not be computed, with a Reason
	Failed    = "failed"    // the derived statement failed, which says nothing about the statement itself
)

// The reasons of stages and blocks without values, and of statements without stages.
const (
	ReasonNoStages          = "no-stages"
	ReasonVolatile          = "volatile"
	ReasonDiffers           = "derived-statement-differs"
	ReasonMasked            = "masked-column"
	ReasonParametersNotKept = "parameters-not-kept"
	ReasonSchemaChanged     = "schema-changed" // the tables of a past statement have other columns or types
	ReasonOverBudget        = "over-budget"
	ReasonTooManyStages     = "too-many-stages"
	ReasonPermission        = "permission"
	ReasonNotTraceable      = "not-traceable" // this form of SQL has no stages yet
	ReasonLateral           = "lateral"       // reads other items of FROM, and has no rows of its own
	ReasonInconsistent      = "inconsistent"  // the counts contradict the statement's own rows
)

// Stage is one step of a block. A value that is not known is absent, and never 0.
type Stage struct {
	ID           int      `json:"id"`
	Block        int      `json:"block"`
	Kind         string   `json:"kind" enum:"cte,from,join,where,group,having,project,distinct,set,order,limit,grouping-set,filter,window,subquery"`
	JoinKind     string   `json:"join,omitempty" enum:"inner,left,right,full,cross" doc:"Of a join"`
	Name         string   `json:"name,omitempty" doc:"Of the table or its alias; the operation of a set"`
	Text         string   `json:"text" doc:"The part of the statement"`
	FromLine     int      `json:"from_line"`
	ToLine       int      `json:"to_line"`
	Reads        int      `json:"reads" doc:"The block whose rows it reads; -1: none"`
	PartOf       int      `json:"part_of" doc:"The stage that it is a part of, and does not change; -1: none"`
	ViewLine     int      `json:"view_line,omitempty" doc:"Of a stage of a view: its line in the view's definition"`
	RowsIn       *int64   `json:"rows_in,omitempty" doc:"Before it; of a join: left ones; of a subquery: its runs"`
	RowsRight    *int64   `json:"rows_right,omitempty" doc:"Of a join: rows of the right side"`
	RowsOut      *int64   `json:"rows_out,omitempty"`
	Lost         *int64   `json:"lost,omitempty" doc:"Rows of rows_in that are not in its result"`
	Null         *int64   `json:"null,omitempty" doc:"Rows for which the condition is NULL"`
	Multiplied   *Matches `json:"multiplied,omitempty" doc:"Of a join: how the rows of both sides match"`
	EmptyGroups  *int64   `json:"empty_groups,omitempty" doc:"Of a filter: groups in which no row passes"`
	Window       *Window  `json:"window,omitempty"`
	State        string   `json:"state" enum:"counted,estimated,skipped,refused,failed"`
	Reason       string   `json:"reason,omitempty"`
	Message      string   `json:"message,omitempty"`
	EstimatedOut *int64   `json:"estimated_out,omitempty" doc:"The planner's estimate of rows_out, of state estimated"`
	MS           float64  `json:"ms,omitempty" doc:"How long the count took, with those that ran together with it"`
	Sample       *Sample  `json:"sample,omitempty"`
	Keys         []Keys   `json:"keys,omitempty" doc:"Of a join, with samples: keys that repeat or lose rows"`
}

// Matches says how the rows of two sides of a join match. What is not known is absent.
type Matches struct {
	Pairs          *int64 `json:"pairs,omitempty" doc:"Rows of both sides that match"`
	LeftUnmatched  *int64 `json:"left_unmatched,omitempty"`
	RightUnmatched *int64 `json:"right_unmatched,omitempty"`
	MaxLeft        *int64 `json:"max_left,omitempty" doc:"The most rows of the left side with one key"`
	MaxRight       *int64 `json:"max_right,omitempty" doc:"The most rows of the right side with one key"`
	NullKeys       *int64 `json:"null_keys,omitempty" doc:"Rows of both sides whose key is NULL, which match nothing"`
}

// Window says how a window divides the rows of a stage.
type Window struct {
	Partitions int64  `json:"partitions"`
	Largest    int64  `json:"largest" doc:"Rows of the largest partition"`
	Tied       *int64 `json:"tied,omitempty" doc:"Rows equal to others in the order, if values depend on that"`
}

// Sample has a few rows after a stage.
type Sample struct {
	Columns     []string `json:"columns"`
	Rows        [][]any  `json:"rows" doc:"Values as texts; NULL is null; a masked one is ***"`
	MoreColumns int      `json:"more_columns,omitempty" doc:"The number of columns that are not shown"`
}

// The kinds of keys.
const (
	KeysRepeated = "repeated"
	KeysLost     = "lost"
)

// Keys has a few keys of one side of a join.
type Keys struct {
	Kind string `json:"kind" enum:"repeated,lost" doc:"repeated: of several rows, their number in the last column"`
	Side string `json:"side" enum:"left,right" doc:"The side whose rows have the keys"`
	Sample
}

// Bounds of a sample.
const (
	MaxSampleRows    = 5
	MaxSampleColumns = 16
	MaxSampleChars   = 200 // of a value
)

// Finding says what a part of a statement does to this data, and may be wrong. Its evidence is a count over this data,
// never a value of it.
type Finding struct {
	Kind     string           `json:"kind" doc:"A stable code, such as fan-out"`
	Score    int              `json:"score" doc:"90 and more: hardly meant; 70 to 89: likely a fault; less: possible"`
	Line     int              `json:"line"`
	Block    int              `json:"block"`
	Stage    int              `json:"stage" doc:"The stage that it is about; -1: none"`
	Clause   string           `json:"clause" doc:"The part of the statement"`
	Text     string           `json:"text" doc:"What the clause does, what follows, and what would differ"`
	Evidence map[string]int64 `json:"evidence" doc:"The numbers of this data that the text names"`
}

// The least score of findings.
const (
	ScoreCertain = 90
	ScoreLikely  = 70
)

// StageByID returns the stage with an ID, or nil.
func (s *Stages) StageByID(id int) *Stage {
	for i := range s.Blocks {
		for _, stage := range s.Blocks[i].Stages {
			if stage.ID == id {
				return stage
			}
		}
	}
	return nil
}

// WithoutTimes removes what depends on the time that the statements took.
func (s *Stages) WithoutTimes() {
	s.MS, s.TotalMS = 0, 0
	for i := range s.Blocks {
		for _, stage := range s.Blocks[i].Stages {
			stage.MS = 0
		}
	}
}
