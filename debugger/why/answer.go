package why

import (
	"context"

	"glasshouse/debugger/recording"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// Question asks where a value comes from.
type Question struct {
	Name    string          // a variable, or an expression whose variables are meant; "" is the result of the run
	Step    int             // the value on arrival at this step; 0 is the end of the run
	Budget  int             // tokens of the text; 0 is 600
	Context []string        // keys of the run's context, which are variables of the code
	Queries []sandbox.Query // of the run

	WithoutFacts bool // do not replay the run to look at the values in between

	// Earlier returns where an earlier run of the session set a variable, or nil. It may be nil.
	Earlier func(ctx context.Context, name string) *Earlier
}

// Answer is the answer to a WhyQuestion: the backward slice of a value.
type Answer struct {
	Name     string    `json:"name"`
	Value    string    `json:"value,omitempty"`
	Type     string    `json:"type,omitempty"`
	Total    int       `json:"total_steps"`
	Step     int       `json:"step" doc:"The value on arrival at this step; total_steps + 1 is the end"`
	Findings []Finding `json:"findings" doc:"What may explain a wrong value, the highest score first"`
	Steps    []Step    `json:"steps" doc:"The steps that made the value, the last first"`
	Earlier  []Earlier `json:"earlier" doc:"Values that the run found in the session"`
	Queries  []Query   `json:"queries" doc:"The queries behind the value"`
	Limits   []string  `json:"limits" doc:"What the recording does not tell; empty if the answer is exact"`
	// NotLooked is what could explain a wrong value, too, and was not examined.
	NotLooked []string `json:"not_looked_at" doc:"What was not examined, although it may explain a wrong value"`
	// Facts is what the expressions of the steps got and gave, if the run could run again.
	Facts []sandbox.Fact `json:"facts,omitempty" doc:"What expressions of the steps got and gave, from a replay"`
	// Cell is the value at the path of the question, and the rows and cells behind it.
	Cell       *sandbox.Cell `json:"cell,omitempty" doc:"The value at a path such as rows[3]['x'], and its origin"`
	statements [][2]int64
	Replay     string `json:"replay_id,omitempty" doc:"The execution that found the facts"`
	Text       string `json:"text" doc:"The answer for a model, in at most the given number of tokens"`
}

// Step is an execution of a statement that the value depends on.
type Step struct {
	Step      int    `json:"step"`
	Line      int64  `json:"line_number"`
	Code      string `json:"line_code"`
	Function  string `json:"function,omitempty"`
	Name      string `json:"name,omitempty" doc:"The variable that the step set or changed"`
	Value     string `json:"value,omitempty" doc:"The variable after the step, or the returned value"`
	First     string `json:"first_value,omitempty" doc:"Of a line that ran often: the first value"`
	Type      string `json:"type,omitempty"`
	Role      string `json:"role" enum:"set,changed,returned,raised,condition,used,edited" doc:"changed in place"`
	Times     int    `json:"times" doc:"How often the statement ran in the run; 0 if not counted"`
	Reads     []Read `json:"reads" doc:"The variables that the step read"`
	Rows      string `json:"rows,omitempty" doc:"Of data frames: the rows before and after"`
	Through   string `json:"through,omitempty" doc:"Other name through which the object was changed"`
	Unseen    bool   `json:"unseen,omitempty" doc:"It wrote to an object that is recorded in part"`
	By        string `json:"by,omitempty" doc:"Of role edited: the person who set the value in the debugger"`
	statement int
	lastLine  int64            // of the statement
	state     *recording.State // on arrival
	after     *recording.State // once the value was set; nil if unknown
	frame     uint64
	code      uint64
	until     int // the step that shows the effect

	made     int // the last step of the statement before that; Step is the first one
	value    recording.Value
	hasValue bool
}

// Read is a variable that a step read.
type Read struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Type  string `json:"type,omitempty"`
}

// Finding is a fact that often explains a wrong value.
type Finding struct {
	Kind  string `json:"kind"`
	Step  int    `json:"step,omitempty"`
	Line  int64  `json:"line_number,omitempty"`
	Text  string `json:"text"`
	Score int    `json:"score" doc:"Rank, up to 100: from 70 on, numbers of this run show that it had an effect"`
}

// Earlier is a variable that an earlier run of the session set.
type Earlier struct {
	Name      string `json:"name"`
	Value     string `json:"value,omitempty"`
	Execution string `json:"execution_id,omitempty" doc:"The run that set it, if it is known"`
	Step      int    `json:"step,omitempty"`
	Line      int64  `json:"line_number,omitempty"`
	Code      string `json:"line_code,omitempty"`
}

// Query is a query behind the value.
type Query struct {
	Number    int    `json:"number" doc:"Its number in the execution, from 1"`
	Step      int    `json:"step,omitempty"`
	SQL       string `json:"query"`
	Rows      int    `json:"rows"`
	Status    string `json:"status"`
	Truncated bool   `json:"truncated,omitempty"`

	// SameResult, Stages and SQLFindings are of the query as it runs now, if it was looked at.
	SameResult  string           `json:"same_result,omitempty" enum:"yes,yes-rounded,other-order,no-clock,no,unknown"`
	Stages      []string         `json:"stages,omitempty" doc:"The rows after each of its stages, a line for a block"`
	SQLFindings []stages.Finding `json:"findings,omitempty" doc:"What may be wrong in its SQL"`
}
