package why

import (
	"fmt"
	"slices"
	"strings"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
)

// maxUnseenWrites bounds the executions of statements that are examined for a write to one object.
const maxUnseenWrites = 8

// partly returns the objects of a value that the recording has in part, so that a change of them may be missing there.
func partly(s *recording.State, v recording.Value) map[uint64]bool {
	found := map[uint64]bool{}
	for _, n := range s.Reachable(v) {
		if o := s.Objects[n]; o != nil && (o.Exactness == recording.Sampled || o.Exactness == recording.Unread) {
			found[n] = true
		}
	}
	return found
}

// unseenWrite returns the last step after a step and before another at which a statement wrote to a part of a variable
// that is recorded in part, and 0 if there is none. The statement may do so through another name. s is the state at
// the step before.
func (w *slicer) unseenWrite(v recording.Variable, value recording.Value, s *recording.State, after, before int) int {
	objects := partly(s, value)
	if len(objects) == 0 {
		return 0
	}
	var lines []int64
	passed := w.linesOf(v.Name)
	for i := range w.program.Statements {
		if st := &w.program.Statements[i]; len(st.Mutates) > 0 && !passed[st.Line] {
			lines = st.AppendLines(lines)
		}
	}
	step := before
	for range maxUnseenWrites {
		if step = w.lastStepAt(lines, 0, step); step <= after {
			return 0
		}
		w.visits++
		if w.writtenThrough(step, objects) != "" {
			return step
		}
	}
	return 0
}

// writtenThrough returns the name through which the statement at a step writes to one of these objects, or "".
func (w *slicer) writtenThrough(step int, objects map[uint64]bool) string {
	s, err := w.reader.State(step)
	if err != nil || s.CurrentFrame() == nil {
		return ""
	}
	f := s.CurrentFrame()
	st := w.program.Get(w.program.At(w.table.FunctionName(f.Code), f.Line))
	for _, name := range st.Mutates {
		value, ok := s.ValueOf(w.table, s.Resolve(w.table, name))
		if ok && slices.ContainsFunc(s.Reachable(value), func(n uint64) bool { return objects[n] }) {
			return name
		}
	}
	return ""
}

// followUnseenWrite adds the step of such a write, and what the variable was before it.
func (w *slicer) followUnseenWrite(v recording.Variable, step int) {
	s, err := w.stateAt(step)
	if err != nil || s.CurrentFrame() == nil {
		return
	}
	value, ok := s.ValueOf(w.table, v)
	if !ok {
		return
	}
	seen := w.completed(step, s.Current)
	if seen == 0 { // an exception left the line: it may have written before
		seen = step + 1
	}
	after, err := w.stateAt(seen)
	if err != nil {
		return
	}
	node := Step{Role: "changed", Name: v.Name, Unseen: true, after: after, value: value, hasValue: true,
		Value: after.Preview(w.table, value, whyValueBytes), Type: after.TypeOf(w.table, value)}
	if through := w.writtenThrough(step, partly(s, value)); through != v.Name {
		node.Through = through
	}
	if w.visit(step, seen, node) {
		w.queue = append(w.queue, func() { w.follow(v, step) })
	}
}

// readBefore reports whether a statement of the slice read a variable at or before a step.
func (w *slicer) readBefore(v recording.Variable, step int) bool {
	var lines []int64
	for _, node := range w.nodes {
		if st := w.program.Get(node.statement); slices.Contains(st.Reads, v.Name) {
			lines = st.AppendLines(lines)
		} else if node.statement == 0 {
			lines = append(lines, node.Line)
		}
	}
	return w.lastStepAt(lines, v.Frame, step+1) > 0
}

// neverRan adds conditions to the answer: those that were never true, so that a statement which sets the variable
// never ran.
func (w *slicer) neverRan(v recording.Variable, frame *recording.Frame) {
	function := ""
	if v.Frame != 0 && frame != nil {
		function = w.table.FunctionName(frame.Code)
	}
	for i := range w.program.Statements {
		st := &w.program.Statements[i]
		if st.Function != function || !slices.Contains(st.Sets, v.Name) && !slices.Contains(st.Mutates, v.Name) {
			continue
		}
		if head := w.program.HeadOf(st); head != nil && w.hasRun(head) {
			w.addNoChange(v, st, head)
			continue
		}
		if w.hasRun(st) {
			continue
		}
		inner := st
		for number := st.In; number > 0; number = inner.In {
			outer := w.program.Get(number)
			if w.hasRun(outer) {
				if !w.partRan(number, inner.Branch) {
					w.addNeverRan(st, inner, outer)
				}
				break
			}
			inner = outer
		}
	}
}

// hasRun reports whether the recording has a step at one of a statement's lines.
func (w *slicer) hasRun(st *program.Statement) bool {
	file := w.table.NumberOf(w.table.ProgramFile())
	return slices.ContainsFunc(w.reader.Chunks(), func(c *recording.Chunk) bool { return hasStepsOf(c, file, st) })
}

// partRan reports whether a statement in a part of another one ran.
func (w *slicer) partRan(outer int, branch string) bool {
	return slices.ContainsFunc(w.program.Statements, func(st program.Statement) bool {
		return st.In == outer && st.Branch == branch && w.hasRun(&st)
	})
}

// addNeverRan adds the step of the statement outer that decided that its part inner, and with it st, never ran.
func (w *slicer) addNeverRan(st, inner, outer *program.Statement) {
	why := ""
	switch outer.Kind {
	case "if", "while":
		why = "was never true"
		if inner.Branch == "else" && outer.Kind == "if" {
			why = "was never false"
		}
	case "for":
		why = "had no items"
	}
	if why == "" || inner.Branch != "" && outer.Kind != "if" || w.hasGap() {
		return
	}
	step := w.lastStepAt(outer.AppendLines(nil), 0, w.out.Step)
	s, err := w.stateAt(step)
	if step == 0 || err != nil || s.CurrentFrame() == nil {
		return
	}
	w.visit(step, step+1, Step{Role: "condition"})
	times := w.timesOf(s.CurrentFrame().Code, s.CurrentFrame().Line, outer)
	often := ""
	if times > 1 && outer.Kind != "for" {
		often = fmt.Sprintf(" in %d times", times)
	}
	w.keepIdle(step, st.Line, "%s never ran: %s (line %d) %s%s", w.program.Text(st),
		strings.TrimSuffix(w.program.Text(outer), ":"), outer.Line, why, often)
}

// addNoChange tells that a statement on the line of its head never changed a variable.
func (w *slicer) addNoChange(v recording.Variable, st, head *program.Statement) {
	searched := 0
	for _, c := range w.reader.Chunks() {
		if c.LineCount(recording.Location{File: w.table.NumberOf(w.table.ProgramFile()), Line: st.Line}) == 0 {
			continue
		}
		isChanged := false
		err := w.reader.EachChange(c, v, 1, w.out.Step, func(_ *recording.State, seen recording.Change) bool {
			isChanged = isChanged || seen.Line == st.Line && seen.MadeBy > 0
			return !isChanged
		})
		if searched++; err != nil || isChanged || searched >= maxEffectChunks {
			return
		}
	}
	step := w.lastStepAt(head.AppendLines(nil), 0, w.out.Step)
	s, err := w.stateAt(step)
	if step == 0 || err != nil || s.CurrentFrame() == nil || w.hasGap() {
		return
	}
	w.visit(step, step+1, Step{Role: "condition"})
	times := "once"
	if n := w.timesOf(s.CurrentFrame().Code, s.CurrentFrame().Line, head); n > 1 {
		times = fmt.Sprintf("%d times", n)
	}
	w.keepIdle(step, st.Line, "%s ran %s and never changed %s", w.program.Text(st), times, v.Name)
}

// idle is a statement that would have set the value and did not.
type idle struct {
	node *Step
	text string
}

func (w *slicer) keepIdle(step int, line int64, format string, args ...any) {
	w.idle = append(w.idle, idle{&Step{Step: step, Line: line}, fmt.Sprintf(format, args...)})
}

// checkIdle tells of statements that would have set the value and did not.
func (w *slicer) checkIdle() {
	for _, each := range w.idle {
		w.find(each.node, "%s", each.text)
	}
}

// hasGap reports whether the recording has a gap, in which a statement may have run.
func (w *slicer) hasGap() bool {
	return slices.ContainsFunc(w.reader.Chunks(), func(c *recording.Chunk) bool { return c.Loses })
}
