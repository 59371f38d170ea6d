package why

// This file has the rules about what the expressions of a step do not show: exceptions, queries, other names of an
// object, earlier calls and executions, statements that did nothing.

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
)

// checkEdit tells of a value that a person set.
func (w *slicer) checkEdit(node *Step) {
	if node.Role == "edited" {
		w.find(node, "%s did not come from the code: %s set it in the debugger, with %s", node.Name,
			node.By, node.Code)
	}
}

// checkQueries tells of the queries of the answer that failed or returned no rows, or not all.
func (w *slicer) checkQueries() {
	for _, each := range w.out.Queries {
		q := &w.question.Queries[each.Number-1]
		node := w.sender(q)
		switch {
		case q.Truncated:
			w.find(node, "query %d returned only its first %d rows: it has more than max_rows", each.Number, q.Rows)
		case q.Status == "ok" && q.Rows > 0 && lastLimit(q.SQL) == int64(q.Rows):
			w.findAt(30, node, "query %d returned %d rows, as many as its LIMIT: there may be more",
				each.Number, q.Rows)
		case q.Status == "ok" && q.Rows == 0:
			score := minEvidentScore - 1
			if w.isEmptyValue() {
				score = 80
			}
			w.findAt(score, node, "query %d returned 0 rows", each.Number)
		case q.Status == "captured": // even if an admin has decided since
			w.findAt(80, node, "query %d was captured: it had to wait for an admin, and nothing ran", each.Number)
		case q.Status != "ok" && q.Error == "":
			w.findAt(80, node, "query %d was %s", each.Number, q.Status)
		case q.Status != "ok":
			w.findAt(80, node, "query %d was %s: %s", each.Number, q.Status, program.Clip(q.Error, 100))
		}
	}
}

var limitAtEnd = regexp.MustCompile(`(?i)\blimit\s+(\d+)\s*;?\s*$`)

// lastLimit returns the LIMIT at the end of a statement, and -1 if there is none.
func lastLimit(sql string) int64 {
	found := limitAtEnd.FindStringSubmatch(sql)
	if found == nil {
		return -1
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// isEmptyValue reports whether the asked value shows that nothing was left to compute with.
func (w *slicer) isEmptyValue() bool {
	return w.out.Name == "exception" || slices.Contains([]string{"nan", "None", "NaT", "<NA>", "inf", "-inf"},
		w.out.Value)
}

// checkHandled adds the exceptions that were caught in the functions of the slice.
func (w *slicer) checkHandled() {
	list, complete := w.handledExceptions()
	for _, h := range list {
		number := w.guard(h)
		if !w.program.IsGuessed && !w.concerns(number, h) {
			continue
		}
		how := "was caught"
		if w.passes(number) {
			how = "was caught and ignored"
		}
		w.findAt(w.handledScore(number, h.text), &Step{Step: h.step, Line: h.line}, "%s",
			h.describe(how, complete, w.program.Source))
	}
}

// guard returns the innermost try statement around the line that let an exception pass.
func (w *slicer) guard(h handled) (number int) {
	function := h.caughtIn
	if function == recording.ModuleName {
		function = ""
	}
	for i, st := range w.program.Statements {
		if st.Kind == "try" && st.Function == function && st.Line <= h.caughtAt && h.caughtAt <= st.End {
			number = i + 1 // a later one is the inner one
		}
	}
	return number
}

// concerns reports whether a try statement guards a part of the slice, or a statement that sets a variable of it.
func (w *slicer) concerns(number int, h handled) bool {
	if number == 0 {
		return false
	}
	names := map[string]bool{}
	for _, node := range w.nodes {
		if w.program.IsIn(node.statement, number) {
			return true
		}
		if node.Name != "" {
			names[node.Name] = true
		}
	}
	for i, st := range w.program.Statements {
		if !w.program.IsIn(i+1, number) {
			continue
		}
		for _, name := range append(slices.Clone(st.Sets), st.Mutates...) {
			if names[name] {
				return true
			}
		}
	}
	return false
}

// passes reports whether all handlers of a try statement only pass or continue.
func (w *slicer) passes(number int) bool {
	found := false
	for _, st := range w.program.Statements {
		if st.Kind == "except" && st.In == number {
			for _, c := range st.ChecksOf("except") {
				if !c.Passes {
					return false
				}
				found = true
			}
		}
	}
	return found
}

// handledExceptions returns the exceptions that the program caught, by the line that raised them. complete is false if
// some parts of a long recording were not searched.
func (w *slicer) handledExceptions() (out []handled, complete bool) {
	var raising []*recording.Chunk
	for _, c := range w.reader.Chunks() {
		if c.Raises {
			raising = append(raising, c)
		}
	}
	complete = len(raising) <= maxRaisingChunks
	if !complete {
		raising = append(raising[:maxRaisingChunks-1:maxRaisingChunks-1], raising[len(raising)-1])
	}
	tracker := handledTracker{table: w.table}
	for _, c := range raising {
		tracker.raised = nil
		err := w.reader.Replay(c, func(s *recording.State, rec *recording.Record) bool {
			tracker.see(s, rec)
			return s.Step < w.out.Step || s.Step == w.reader.Steps()
		})
		if err != nil {
			return tracker.list, false
		}
	}
	return tracker.list, complete
}

// handledScore returns the score of an exception that a try statement caught: it is high if the handler takes every
// exception and looks at none, or if a text with a number could not be converted.
func (w *slicer) handledScore(number int, text string) int {
	if found := quoted.FindStringSubmatch(text); found != nil && strings.Contains(text, "convert") ||
		found != nil && strings.Contains(text, "invalid literal") {
		if _, isNumber := numberIn(found[1]); isNumber {
			return w.rule.score
		}
	}
	for _, st := range w.program.Statements {
		if st.Kind != "except" || st.In != number || len(st.Sets) > 0 {
			continue
		}
		for _, c := range st.ChecksOf("except") {
			if c.Text == "" || strings.Contains(c.Text, "BaseException") || broadException.MatchString(c.Text) {
				return w.rule.score
			}
		}
	}
	return scoreLikely
}

var (
	quoted         = regexp.MustCompile(`'([^']*)'`)
	broadException = regexp.MustCompile(`\bException\b`)
)

var unitOfNumber = regexp.MustCompile(`[\s,_$€£%]`)

// numberIn returns the number that a text stands for, also with separators, a currency or a percent sign.
func numberIn(text string) (float64, bool) {
	n, err := strconv.ParseFloat(unitOfNumber.ReplaceAllString(text, ""), 64)
	return n, err == nil && !math.IsNaN(n)
}

// checkEarlier adds the variables of earlier executions.
func (w *slicer) checkEarlier() {
	for _, e := range w.out.Earlier {
		score := scoreLikely
		if w.program.MaySet(e.Name, "") { // the run was to set it, and read it before
			score = w.rule.score
		}
		switch {
		case e.Code == "given as context of the run":
		case e.Execution != "":
			w.findAt(score, nil, "%s was not set in this run: execution %s set it to %s%s", e.Name, e.Execution,
				e.Value, at(e))
		default:
			w.findAt(score, nil, "%s was not set in this run: it existed in the session before, as %s", e.Name, e.Value)
		}
	}
}

func at(e Earlier) string {
	if e.Line == 0 {
		return ""
	}
	return fmt.Sprintf(" (line %d: %s)", e.Line, program.Clip(e.Code, 100))
}

// checkAliasing tells of a change of a variable through another name.
func (w *slicer) checkAliasing(node *Step) {
	through := w.valueAt(node, node.Through)
	times := 0
	if node.after != nil && through.Tag == recording.TagObject {
		times = timesIn(node.after, node.value, through.Object)
	}
	switch {
	case node.Through == "" || node.Through == "self" || node.Through == "cls":
	case times > 1:
		w.find(node, "%s was changed in place through %s, one object that is in it %d times", node.Name, node.Through,
			times)
	case !w.isWhole(node): // the step says so
	case node.Function == "" && w.isPlainAlias(node):
		w.find(node, "%s was changed in place through %s, another name of the same object", node.Name, node.Through)
	default:
		w.findAt(scoreLikely, node, "%s was changed in place through %s, another name of the same object", node.Name,
			node.Through)
	}
}

// isWhole reports whether the object that a step changed is the variable's own, and not a part of it.
func (w *slicer) isWhole(node *Step) bool {
	through, ok := w.value(node, node.Through)
	return ok && through.Tag == recording.TagObject && through == node.value
}

// isPlainAlias reports whether one assignment such as b = a alone made a name another name of a variable.
func (w *slicer) isPlainAlias(node *Step) bool {
	found := false
	for i := range w.program.Statements {
		st := &w.program.Statements[i]
		for _, pair := range [][2]string{{node.Through, node.Name}, {node.Name, node.Through}} {
			found = found || slices.Contains(st.Sets, pair[0]) && slices.ContainsFunc(st.ChecksOf("alias"),
				func(c program.Check) bool { return c.Of == pair[1] })
		}
		if slices.Contains(st.Sets, node.Through) && len(st.ChecksOf("alias")) == 0 {
			return false
		}
	}
	return found
}

// timesIn returns how often the items of a container are the same object.
func timesIn(s *recording.State, container recording.Value, item uint64) (times int) {
	if container.Tag != recording.TagObject || s.Objects[container.Object] == nil {
		return 0
	}
	for _, v := range s.Objects[container.Object].Values {
		if v.Tag == recording.TagObject && v.Object == item {
			times++
		}
	}
	return times
}

// checkDefaults tells of a default argument that keeps what earlier calls put into it.
func (w *slicer) checkDefaults(node *Step) {
	st := w.program.Get(node.statement)
	if node.Function == "" {
		return
	}
	for number := st.In; number > 0; number = w.program.Get(number).In {
		def := w.program.Get(number)
		if def.Kind != "def" {
			continue
		}
		for _, c := range def.ChecksOf("default") {
			if !slices.Contains(st.Mutates, c.Of) {
				continue
			}
			o := w.object(node.state, w.valueAt(node, c.Of))
			if o == nil || o.Length <= 0 || o.Form == recording.Pairs && w.isCache(st.Function, c.Of) {
				continue
			}
			w.find(node, "%s is a mutable default argument of %s, one object for all calls; it had %d items from "+
				"earlier calls here", c.Of, c.Call, o.Length)
		}
		return
	}
}

// isCache reports whether a function looks up results of earlier calls in a default argument: it asks whether it has
// them, and never returns the object itself.
func (w *slicer) isCache(function, name string) (found bool) {
	for i := range w.program.Statements {
		st := &w.program.Statements[i]
		if st.Function != function {
			continue
		}
		if w.program.Text(st) == "return "+name {
			return false
		}
		found = found || st.Kind == "if" && slices.Contains(st.Reads, name)
	}
	return found
}

// maxEffectChecks bounds the statements that are searched for one without an effect.
const maxEffectChecks = 50

// checkChained tells of assignments to a copy.
func (w *slicer) checkChained() {
	w.checkNoChange("chained", "%s was assigned to a copy, so %[2]s did not change: use %[2]s.loc[rows, column] = ...")
}

// checkDiscarded tells of new objects that are not kept.
func (w *slicer) checkDiscarded() {
	w.checkNoChange("discarded", "%s returns a new object, which is not kept: %s did not change")
}

// checkNoChange tells of operations of a kind that seem to change a variable of the slice and did not, in the last
// execution of their statement.
func (w *slicer) checkNoChange(kind, format string) {
	names := map[string]bool{w.question.Name: true}
	for _, node := range w.nodes {
		names[node.Name] = true
		for _, read := range node.Reads {
			names[read.Name] = true
		}
	}
	left := maxEffectChecks
	for i := range w.program.Statements {
		st := &w.program.Statements[i]
		for _, c := range st.ChecksOf(kind) {
			if !names[c.Of] || c.Of == "" || left == 0 {
				continue
			}
			left--
			if node := w.unchanged(st, c.Of); node != nil {
				w.find(node, format, c.Text, c.Of)
			}
		}
	}
}

// unchanged returns the last step of a statement if it did not change a table or a text, and nil otherwise.
func (w *slicer) unchanged(st *program.Statement, name string) *Step {
	step := w.lastStepAt([]int64{st.Line}, 0, w.out.Step)
	before, err := w.stateAt(step)
	if step == 0 || err != nil {
		return nil
	}
	after, err := w.stateAt(step + 1)
	if err != nil {
		return nil
	}
	v := before.Resolve(w.table, name)
	a, okA := before.ValueOf(w.table, v)
	b, okB := after.ValueOf(w.table, v)
	o, p := w.object(before, a), w.object(after, b)
	isTable := w.tableOf(before, o) != nil
	isChanged := a != b || o != nil && p != nil && o.Version != p.Version
	if !okA || !okB || isChanged || !isTable && a.Tag != recording.TagText {
		return nil
	}
	return &Step{Step: step, Line: before.CurrentFrame().Line}
}
