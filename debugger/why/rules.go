package why

import (
	"fmt"

	"glasshouse/debugger/program"
)

// rule examines an answer for one thing that often explains a wrong value and that no fact tells: a fact is about one
// expression of the replay.
type rule struct {
	name     string // kind of its findings
	of       string // what it examines: theAnswer, eachStep, or the kind of an operation (Check.Kind) of a step
	score    int    // of a finding whose effect the values of the run show
	examines string // as docs/debugging.md has it
	examine  func(*slicer, *Step, program.Check)
}

// The values of rule.of besides the kinds of operations.
const (
	theAnswer = "the answer" // examine gets no step
	eachStep  = "each step"  // examine gets no operation
)

// rules is the table of all rules. To add one, write its function, and a line here with what it adds to the facts. "of
// 94" is the number of wrong analyses, of 94 that people have written, whose cause no finding names without the rule.
var rules []rule

func init() { // functions of rules refer to the table
	rules = []rule{
		// These are events of the recording, or differences between two of its states. No expression shows them.
		{"query", theAnswer, 90, "queries that failed or returned no rows, or not all",
			ofAnswer((*slicer).checkQueries)},
		// 1 of 94: a function that returns 0 for a text that float() refuses.
		{"handled_exception", theAnswer, 85, "exceptions that the program caught", ofAnswer((*slicer).checkHandled)},
		{"never_ran", theAnswer, 55, "statements that would have set the value", ofAnswer((*slicer).checkIdle)},
		{"chained_assignment", theAnswer, 93, "assignments to a copy", ofAnswer((*slicer).checkChained)},
		{"discarded", theAnswer, 91, "new tables and texts that are not kept", ofAnswer((*slicer).checkDiscarded)},
		{"earlier_execution", theAnswer, 88, "variables of the session", ofAnswer((*slicer).checkEarlier)},
		{"edit", eachStep, 100, "values that a person set in the debugger", ofStep((*slicer).checkEdit)},
		{"aliasing", eachStep, 85, "changes of an object through another name", ofStep((*slicer).checkAliasing)},
		{"mutable_default", eachStep, 85, "items that earlier calls put into a default",
			ofStep((*slicer).checkDefaults)},
		// 1 of 94, at the line that gets nothing: the fact is that sum() has no items, and not where they are.
		{"exhausted_iterator", "iterate", 95, "iterators that an earlier step used", (*slicer).checkIterate},

		// 1 of 94: the fact is the default, and not the key that the dict lacks.
		{"default_item", "default_item", 85, "keys that a dict lacks", (*slicer).checkDefaultItem},
		// 2 of 94: the fact is the number of rows, and not which row of equal keys was kept.
		{"drop_duplicates", "drop_duplicates", 65, "rows of which the first one is kept", (*slicer).checkDropped},
		// 1 of 94: the fact is the quotient, and not the rest.
		{"floor_division", "floor_division", 69, "a rest that // drops", (*slicer).checkFloorDivision},
		// 1 of 94: a result such as 28.999999999999996 that becomes 28. Correct code does so, too: the score is low.
		{"truncation", "convert", 50, "conversions of floats to integers", (*slicer).checkTruncation},
	}
}

func ofAnswer(f func(*slicer)) func(*slicer, *Step, program.Check) {
	return func(w *slicer, _ *Step, _ program.Check) { f(w) }
}

func ofStep(f func(*slicer, *Step)) func(*slicer, *Step, program.Check) {
	return func(w *slicer, node *Step, _ program.Check) { f(w, node) }
}

// checkAnswer applies the rules to the answer, and then to each step.
func (w *slicer) checkAnswer() {
	for i := range rules {
		if w.rule = &rules[i]; w.rule.of == theAnswer {
			w.rule.examine(w, nil, program.Check{})
		}
	}
	for _, node := range w.nodes {
		w.check(node)
	}
}

// check applies the rules to a step.
func (w *slicer) check(node *Step) {
	st := w.program.Get(node.statement)
	for i := range rules {
		if w.rule = &rules[i]; w.rule.of == eachStep {
			w.rule.examine(w, node, program.Check{})
		}
		for _, c := range st.ChecksOf(w.rule.of) {
			w.rule.examine(w, node, c)
		}
	}
}

// find adds a finding of the current rule about a step, once.
func (w *slicer) find(node *Step, format string, args ...any) {
	w.findAt(w.rule.score, node, format, args...)
}

// findAt is find with another score than that of the rule.
func (w *slicer) findAt(score int, node *Step, format string, args ...any) {
	f := Finding{Kind: w.rule.name, Text: fmt.Sprintf(format, args...), Score: score}
	if node != nil {
		f.Step, f.Line = node.Step, node.Line
	}
	for _, known := range w.out.Findings {
		if known.Kind == f.Kind && known.Line == f.Line && known.Text == f.Text {
			return
		}
	}
	w.out.Findings = append(w.out.Findings, f)
}

// Scores order the findings: what the values of the run prove comes before what only the code suggests.
const (
	minEvidentScore = 70 // the score from which on the values of the run show an effect
	scoreLikely     = 65
)
