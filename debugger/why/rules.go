package why

import "glasshouse/debugger/program"

// rule examines an answer for one thing that often explains a wrong value.
type rule struct {
	name     string
	of       string // what it examines: theAnswer, eachStep, or the kind of an operation (Check.Kind) of a step
	examines string
	maxScore int // of its findings
	examine  func(w *slicer, node *Step, st *program.Statement, c program.Check)
}

// The values of rule.of besides the kinds of operations.
const (
	theAnswer = "the answer" // examine gets no step
	eachStep  = "each step"  // examine gets no operation
)

// rules is the table of all rules. To add one, write its function and add it here.
var rules []rule

func init() { // a rule may refer to the table
	rules = []rule{
		{"query", theAnswer, "queries that failed or returned no rows, or not all", 90, ofAnswer((*slicer).checkQueries)},
		{"filled_in_sql", theAnswer, "queries that replace missing values", 40, ofAnswer((*slicer).checkFilledInSQL)},
		{"handled_exception", theAnswer, "exceptions that the program caught", 85, ofAnswer((*slicer).findHandled)},
		{"never_ran", theAnswer, "statements that would have set the value", 55, ofAnswer((*slicer).checkIdle)},
		{"without_effect", theAnswer, "results that are not kept", 93, ofAnswer((*slicer).checkWithoutEffect)},
		{"earlier_execution", theAnswer, "variables of the session", 88, ofAnswer((*slicer).checkEarlier)},

		{"edit", eachStep, "values that a person set in the debugger", 100, ofStep((*slicer).checkEdit)},
		{"aliasing", eachStep, "changes through another name", 85, ofStep((*slicer).checkAliasing)},
		{"mutable_default", eachStep, "default arguments that keep items", 85, ofStep((*slicer).checkDefaults)},
		{"set_again", eachStep, "variables that changed after the step", 55, ofStep((*slicer).checkSetAgain)},
		{"tables", eachStep, "rows, missing values and types before and after", 85, ofStep((*slicer).checkTables)},

		{"iterator", "iterate", "iterators that a step has used up", 95, (*slicer).checkIterate},
		{"zip", "zip", "sequences of different lengths", 90, (*slicer).checkLengths},
		{"select", "select", "negative indexes, masks of another length", 90, (*slicer).checkSelect},
		{"floor_division", "floor_division", "a // b", 69, (*slicer).checkFloorDivision},
		{"range", "range", "range(len(a)) without an end", 45, (*slicer).checkRange},
		{"slice", "slice", "slices without an end", 45, (*slicer).checkSlice},
		{"order_of_texts", "order", "sorting of numbers that are texts", 85, (*slicer).checkOrder},
		{"arithmetic", "arithmetic", "numbers that are texts; labels of series", 90, (*slicer).checkArithmetic},
		{"aggregate", "aggregate", "missing values, texts, axis, deviation, mean of means", 85,
			(*slicer).checkAggregate},
		{"groupby", "groupby", "rows without a key", 88, (*slicer).checkGroups},
		{"merge", "merge", "keys without a match or with several", 95, (*slicer).checkMerge},
		{"sort", "sort", "texts, equal keys", 85, (*slicer).checkSort},
		{"concat", "concat", "labels that occur twice", 45, (*slicer).checkConcat},
		{"time", "time", "time zones and the clock", 65, (*slicer).checkTime},
		{"convert", "convert", "fractions that are cut, small integer types", 65, (*slicer).checkConvert},
		{"coerce", "coerce", "texts that became missing", 85, (*slicer).checkCoerce},
		{"keys", "keys", "items with equal keys", 65, (*slicer).checkKeys},
		{"closure", "closure", "lambdas of a loop", 70, (*slicer).checkClosure},
		{"compares_nan", "compares_nan", "x == nan", 85, (*slicer).checkNaN},
		{"precedence", "precedence", "a & b > c", 85, (*slicer).checkPrecedence},
		{"default_item", "default_item", "keys that a dict lacks", 85, (*slicer).checkDefaultItem},
		{"shift", "shift", "shift over the rows of several groups", 80, (*slicer).checkShift},
	}
}

func ofAnswer(f func(*slicer)) func(*slicer, *Step, *program.Statement, program.Check) {
	return func(w *slicer, _ *Step, _ *program.Statement, _ program.Check) { f(w) }
}

func ofStep(f func(*slicer, *Step)) func(*slicer, *Step, *program.Statement, program.Check) {
	return func(w *slicer, node *Step, _ *program.Statement, _ program.Check) { f(w, node) }
}

// checkAnswer applies the rules to the answer, and then to each step.
func (w *slicer) checkAnswer() {
	for i := range rules {
		if rules[i].of == theAnswer {
			w.apply(&rules[i], nil, nil, program.Check{})
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
		if rules[i].of == eachStep {
			w.apply(&rules[i], node, st, program.Check{})
			continue
		}
		for _, c := range st.ChecksOf(rules[i].of) {
			if !isForged(c) {
				w.apply(&rules[i], node, st, c)
			}
		}
	}
}

func (w *slicer) apply(r *rule, node *Step, st *program.Statement, c program.Check) {
	w.rule = r
	r.examine(w, node, st, c)
	w.rule = nil
}

// isForged reports whether an operation lacks what its kind always has.
func isForged(c program.Check) bool {
	return len(c.Args) < map[string]int{"range": 1, "precedence": 1, "default_item": 2}[c.Kind] ||
		c.Kind == "select" && len(c.Names) == 0
}
