package why

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
	"glasshouse/sandbox"
)

// Bounds of one answer of Why.
const (
	maxWhyNodes      = 24 // steps of the answer
	maxWhyReads      = 6  // variables that a step lists
	maxWhyVisits     = 60 // statements that are looked at
	whyValueBytes    = 120
	whyReturnWindow  = 20_000   // steps in which the calls of a statement are searched
	maxEffectChunks  = 3        // chunks that are searched for the effect of a line
	maxNameChunks    = 8        // chunks that are searched for the last call with a local variable
	maxRaisingChunks = 6        // chunks that are searched for handled exceptions
	defaultWhyBudget = 600      // tokens
	maxWhyStateBytes = 32 << 20 // of the states that an answer holds; beyond that no further step is looked for
)

// moreSteps is the limit of an answer that has not followed all steps.
const moreSteps = "the value depends on more steps than are listed"

// slicer computes one backward slice.
type slicer struct {
	ctx      context.Context
	r        Run
	reader   *recording.Reader
	table    *recording.Table
	program  *program.Program
	question Question
	out      *Answer
	states   map[int]*recording.State
	held     int // bytes of states
	nodes    []*Step
	byKey    map[sliceKey]*Step
	read     map[readKey]bool
	visited  map[int]bool // statements
	visits   int

	maxNodes, maxVisits int

	queue   []func()
	later   []func() // conditions, after the values
	idle    []idle
	earlier map[string]bool
	limits  map[string]bool
	rule    *rule // that examines the answer
}

// sliceKey identifies an effect of a statement: later executions of a loop are folded into one.
type sliceKey struct {
	statement int
	line      int64
	name      string
}

type readKey struct {
	recording.Variable
	step int
}

// Why returns the backward slice of a value: the steps that made it, what each of them read, and what about them may
// explain a wrong value. It reads the recording only. It returns recording.ErrNoStep for a step that does not exist and
// ErrNoVariable if the run has no such variable at the step.
func (r Run) Why(ctx context.Context, q Question) (*Answer, error) {
	w := r.slicer(ctx, q)
	w.out.Total = w.reader.Steps()
	if w.question.Budget == 0 {
		w.question.Budget = defaultWhyBudget
	}
	step := q.Step
	if step == 0 {
		step = w.reader.Steps() + 1
	}
	s, err := w.stateAt(step)
	if err != nil {
		return nil, err
	}
	if q.Step == 0 && len(s.Globals) == 0 { // the run was killed, and its last steps are lost
		if gap, gapErr := w.reader.LastGap(step); gapErr == nil && gap != nil && gap.After > 0 {
			step = gap.After
			if s, err = w.stateAt(step); err != nil {
				return nil, err
			}
		}
	}
	w.out.Step = step
	if err := w.begin(s, step); err != nil {
		return nil, err
	}
	w.run()
	w.finish()
	return w.out, ctx.Err()
}

func (r Run) slicer(ctx context.Context, q Question) *slicer {
	return &slicer{
		ctx: ctx, r: r, reader: r.Reader, table: r.Reader.Table(), program: r.Program,
		question: q, maxNodes: maxWhyNodes, maxVisits: maxWhyVisits,
		states: map[int]*recording.State{}, byKey: map[sliceKey]*Step{}, read: map[readKey]bool{},
		visited: map[int]bool{}, earlier: map[string]bool{}, limits: map[string]bool{},
		out: &Answer{Name: q.Name, Findings: []Finding{}, Steps: []Step{}, Earlier: []Earlier{},
			Queries: []Query{}, Limits: []string{}, NotLooked: []string{}},
	}
}

// run follows the values first, and then the conditions under which they were set.
func (w *slicer) run() {
	for w.ctx.Err() == nil && len(w.nodes) < w.maxNodes && w.visits < w.maxVisits {
		if len(w.queue) == 0 {
			w.queue, w.later = w.later, nil
		}
		if len(w.queue) == 0 {
			return
		}
		if w.held > maxWhyStateBytes {
			w.limit("the run has too much data in variables to follow the value further")
			return
		}
		next := w.queue[0]
		w.queue = w.queue[1:]
		next()
	}
	if len(w.queue)+len(w.later) > 0 {
		w.limit(moreSteps)
	}
}

func (w *slicer) limit(text string) {
	if !w.limits[text] && len(w.out.Limits) < 8 {
		w.limits[text] = true
		w.out.Limits = append(w.out.Limits, text)
	}
}

// follow adds the step that made a variable what it is on arrival at a step.
func (w *slicer) follow(v recording.Variable, step int) {
	if key := (readKey{v, step}); w.read[key] {
		return
	} else {
		w.read[key] = true
	}
	w.visits++
	s, err := w.stateAt(step)
	if err != nil {
		w.limit(fmt.Sprintf("step %d is not recorded", step))
		return
	}
	value, ok := s.ValueOf(w.table, v)
	if !ok {
		return
	}
	c, after, found := w.lastChangeBefore(v, value, s, step)
	if at, seen := w.setToSame(v, s, c, step); at > 0 {
		c, after, found = w.sameValueSet(value, at, seen)
	}
	last := 0
	if found {
		last = c.MadeBy
	}
	switch at := w.unseenWrite(v, value, s, last, step); {
	case at > 0:
		w.followUnseenWrite(v, at)
	case found:
		w.followChange(v, c, after)
	default:
		w.origin(v, value, s, step)
	}
}

// sameValueSet returns the change by an assignment that left a variable as it was. The step after it is seen.
func (w *slicer) sameValueSet(value recording.Value, at, seen int) (recording.Change, *recording.State, bool) {
	s, err := w.stateAt(at)
	if err != nil || s.CurrentFrame() == nil {
		return recording.Change{}, nil, false
	}
	after, err := w.stateAt(seen)
	f := s.CurrentFrame()
	return recording.Change{SeenAt: seen, MadeBy: at, Line: f.Line, Code: f.Code, Value: value}, after, err == nil
}

// followChange adds the step of a change. A change in place depends on the earlier value of the variable, too.
func (w *slicer) followChange(v recording.Variable, c recording.Change, after *recording.State) {
	if e := w.r.edit(c.Edit, c.SeenAt); e != nil {
		w.addEdit(v, c, after, e)
		return
	}
	if c.MadeBy == 0 {
		if v.Frame == 0 && c.SeenAt > w.reader.FirstStep() && !w.hasGap() {
			w.limit("the recording does not show which line changed " + v.Name)
		} else if v.Frame == 0 {
			w.origin(v, c.Value, after, c.SeenAt)
		} else {
			w.parameter(v, c)
		}
		return
	}
	node := Step{Role: "set", Name: v.Name, after: after, value: c.Value, hasValue: true}
	if c.Object != 0 {
		node.Role = "changed"
	}
	node.Value, node.Type = after.Preview(w.table, c.Value, whyValueBytes), after.TypeOf(w.table, c.Value)
	number := w.program.At(w.table.FunctionName(c.Code), c.Line)
	if node.Role == "changed" {
		if node.Through = w.through(v, number, c); node.Through == "" {
			node.Through = w.throughArray(v, number, c)
		}
	}
	key := sliceKey{number, w.program.LineOf(number, c.Line), v.Name}
	if known := w.byKey[key]; known != nil {
		if c.MadeBy != known.made { // an earlier turn of a loop
			w.beforeLoop(v, c, known)
		}
		return
	}
	if w.visit(c.MadeBy, c.SeenAt, node) && (node.Role == "changed" || w.rebuilds(number, v.Name)) {
		w.queue = append(w.queue, func() { w.follow(v, c.MadeBy) })
	}
}

// addEdit adds a value that a person set. The line at which the program was stopped did not make it.
func (w *slicer) addEdit(v recording.Variable, c recording.Change, after *recording.State, e *sandbox.Edit) {
	key := sliceKey{-1, int64(e.Number), v.Name}
	if w.byKey[key] != nil {
		return
	}
	node := &Step{
		Step: e.Step, Line: e.Line, Code: program.Clip(e.Code, whyValueBytes), Function: e.Function, Name: v.Name,
		Role: "edited", Value: after.Preview(w.table, c.Value, whyValueBytes), Type: after.TypeOf(w.table, c.Value),
		Times: 1, Reads: []Read{}, By: e.By(),
		state: after, after: after, until: e.Step, value: c.Value, hasValue: true,
	}
	if node.Function == recording.ModuleName {
		node.Function = ""
	}
	w.byKey[key] = node
	w.nodes = append(w.nodes, node)
}

// through returns another variable that a statement changed the object of a variable through, and "" if there is none.
func (w *slicer) through(v recording.Variable, number int, c recording.Change) string {
	st := w.program.Get(number)
	s, err := w.stateAt(c.MadeBy)
	if err != nil || slices.Contains(st.Mutates, v.Name) {
		return ""
	}
	for _, name := range append(slices.Clone(st.Mutates), st.Reads...) {
		other := s.Resolve(w.table, name)
		if other == v {
			continue
		}
		if value, ok := s.ValueOf(w.table, other); ok && slices.Contains(s.Reachable(value), c.Object) {
			return name
		}
	}
	return ""
}

// throughArray returns another variable whose array a statement changed together with the array of a variable: they
// share memory.
func (w *slicer) throughArray(v recording.Variable, number int, c recording.Change) string {
	s, err := w.stateAt(c.MadeBy)
	after, afterErr := w.stateAt(c.SeenAt)
	st := w.program.Get(number)
	if err != nil || afterErr != nil || w.arrayIn(after, c.Object) == nil || slices.Contains(st.Mutates, v.Name) {
		return ""
	}
	for _, name := range st.Mutates {
		value, ok := s.ValueOf(w.table, s.Resolve(w.table, name))
		before := w.arrayIn(s, value.Object)
		if now := w.arrayIn(after, value.Object); ok && name != v.Name && before != nil && now != nil &&
			before.Version != now.Version {
			return name
		}
	}
	return ""
}

// arrayIn returns an object of a state if it is an array.
func (w *slicer) arrayIn(s *recording.State, number uint64) *recording.Object {
	if o := s.Objects[number]; o != nil && w.table.Name(o.Type) == "numpy.ndarray" {
		return o
	}
	return nil
}

// rebuilds reports whether a statement changes a variable that it does not set.
func (w *slicer) rebuilds(number int, name string) bool {
	st := w.program.Get(number)
	return slices.Contains(st.Mutates, name) && !slices.Contains(st.Sets, name)
}

// visit adds a step to the slice, and queues what its statement read. It reports whether the step is new.
func (w *slicer) visit(step, until int, node Step) bool {
	s, err := w.stateAt(step)
	if err != nil || s.CurrentFrame() == nil {
		w.limit(fmt.Sprintf("step %d is not recorded", step))
		return false
	}
	f := s.CurrentFrame()
	number := w.program.At(w.table.FunctionName(f.Code), f.Line)
	key := sliceKey{number, w.program.LineOf(number, f.Line), node.Name}
	if w.byKey[key] != nil || node.Role == "used" && w.visited[number] {
		return false
	}
	st := w.program.Get(number)
	node.made, node.Line, node.statement = step, key.line, number
	if step = w.startOf(step, f, st); step != node.made {
		if s, err = w.stateAt(step); err != nil || s.CurrentFrame() == nil {
			w.limit(fmt.Sprintf("step %d is not recorded", step))
			return false
		}
	}
	node.Step, node.state = step, s
	node.frame, node.code, node.until, node.Reads = f.Number, f.Code, until, []Read{}
	if node.after != nil {
		w.held += node.after.Bytes()
	}
	node.lastLine = st.End
	if node.Code = w.program.Text(st); number == 0 {
		node.Code = strings.TrimSpace(program.Line(w.program.Source, f.Line))
	}
	if name := w.table.FunctionName(f.Code); name != recording.ModuleName {
		node.Function = name
	}
	node.Times = w.timesOf(f.Code, f.Line, st)
	if f.Unread != 0 {
		w.limit("variables of " + w.table.FunctionName(f.Code) + " are not recorded: " + w.table.Name(f.Unread))
	}
	kept := &node
	w.byKey[key] = kept
	w.nodes = append(w.nodes, kept)
	if w.visited[number] && number != 0 { // another effect of a statement whose reads are followed already
		w.addReads(kept, st)
		return true
	}
	w.visited[number] = true
	w.addReads(kept, st)
	w.queue = append(w.queue, func() { w.followCalls(kept, st) })
	w.later = append(w.later, func() { w.followCondition(kept, st) })
	return true
}

// addReads lists the variables that a statement read, and queues them.
func (w *slicer) addReads(node *Step, st *program.Statement) {
	reads := slices.Clone(st.Reads)
	for _, name := range w.program.ReadsInLine(node.statement, node.Name) {
		if !slices.Contains(reads, name) {
			reads = append(reads, name)
		}
	}
	if node.statement == 0 {
		reads = program.NamesIn(program.Line(w.program.Source, node.Line))
	}
	for _, name := range reads {
		v := node.state.Resolve(w.table, name)
		value, ok := node.state.ValueOf(w.table, v)
		if !ok {
			if outer, found := w.enclosing(node.state, name); found {
				v = outer
				value, ok = node.state.ValueOf(w.table, v)
			}
		}
		if !ok || node.state.IsDefinition(w.table, value) {
			continue
		}
		if len(node.Reads) < maxWhyReads {
			node.Reads = append(node.Reads, Read{name, node.state.Preview(w.table, value, whyValueBytes),
				node.state.TypeOf(w.table, value)})
		}
		w.queue = append(w.queue, func() { w.follow(v, node.Step) })
	}
}

// parameter follows an argument, or a variable of a closure, to the call.
func (w *slicer) parameter(v recording.Variable, c recording.Change) {
	at, _ := callOf(w.reader, v.Frame, c.SeenAt)
	if at.step == 0 {
		return
	}
	w.visit(at.step, c.SeenAt, Step{Role: "used"})
}

// origin notes a variable that existed before the first step.
func (w *slicer) origin(v recording.Variable, value recording.Value, s *recording.State, step int) {
	if v.Frame != 0 || w.earlier[v.Name] || s.IsDefinition(w.table, value) {
		return
	}
	if gap, err := w.reader.LastGap(step); err == nil && gap != nil {
		w.limit("the value of " + v.Name + " was set before or in a gap: " + gap.String())
		return
	}
	w.earlier[v.Name] = true
	if slices.Contains(w.question.Context, v.Name) || v.Name == "context" {
		w.out.Earlier = append(w.out.Earlier, Earlier{Name: v.Name, Code: "given as context of the run",
			Value: s.Preview(w.table, value, whyValueBytes)})
		return
	}
	found := &Earlier{}
	if w.question.Earlier != nil {
		if known := w.question.Earlier(w.ctx, v.Name); known != nil {
			found = known
		}
	}
	found.Name, found.Value = v.Name, s.Preview(w.table, value, whyValueBytes)
	w.out.Earlier = append(w.out.Earlier, *found)
}

// beforeLoop goes on before the loop in which statements changed a variable again and again. known is the node of the
// last change. Statements of the variable that have a node are passed over: each turn of the loop would lead to them.
func (w *slicer) beforeLoop(v recording.Variable, c recording.Change, known *Step) {
	if w.visits++; w.visits >= w.maxVisits {
		w.limit(moreSteps)
		return
	}
	if first, s, found := w.firstChange(v, c); found && first.SeenAt < c.SeenAt && known.First == "" &&
		first.Line == c.Line {
		known.First = s.Preview(w.table, first.Value, whyValueBytes)
	}
	function := ""
	if v.Frame != 0 {
		function = w.table.FunctionName(c.Code)
	}
	passed := w.linesOf(v.Name)
	others := slices.DeleteFunc(w.program.Writers(v.Name, function), func(l int64) bool { return passed[l] })
	step := w.lastStepAt(others, v.Frame, c.MadeBy)
	if made, s, ok := w.changeThroughOther(v, c, step, passed); ok {
		w.followChange(v, made, s)
		return
	}
	if step == 0 {
		if first, s, found := w.firstChange(v, c); found && first.Line != c.Line {
			w.followChange(v, first, s)
		} else if found && first.MadeBy > 0 && w.readBefore(v, first.MadeBy) {
			w.queue = append(w.queue, func() { w.follow(v, first.MadeBy) }) // what it was before the loop
		}
		return
	}
	if made, s, ok := w.changeMadeAt(v, step, c.MadeBy); ok {
		w.followChange(v, made, s)
		return
	}
	w.queue = append(w.queue, func() { w.follow(v, step+1) })
}

// linesOf returns the lines of the statements that have a node for a variable.
func (w *slicer) linesOf(name string) map[int64]bool {
	lines := map[int64]bool{}
	for key := range w.byKey {
		if key.name != name {
			continue
		}
		lines[key.line] = true
		for st, line := w.program.Get(key.statement), int64(0); line <= st.End-st.Line; line++ {
			lines[st.Line+line] = true
		}
	}
	return lines
}

// followCondition adds the statement that decided whether a statement ran.
func (w *slicer) followCondition(node *Step, st *program.Statement) {
	number := st.In
	for number > 0 {
		outer := w.program.Get(number)
		switch outer.Kind {
		case "def", "class":
			return
		case "if", "while", "for", "match", "case", "with":
			var lines []int64
			for line := outer.Line; line <= outer.End; line++ {
				lines = append(lines, line)
			}
			w.visits++
			if step := w.lastStepAt(lines, node.frame, node.Step); step > 0 && !w.visited[number] {
				w.visit(step, step+1, Step{Role: "condition"})
			}
			return
		}
		number = outer.In
	}
}

// followCalls adds the return statements of the program's functions that a statement called.
func (w *slicer) followCalls(node *Step, st *program.Statement) {
	if len(st.Calls) == 0 && node.statement != 0 || node.until <= node.Step+1 {
		return
	}
	w.visits++
	type returned struct {
		step  int
		value string
		kind  string
	}
	last := map[uint64]returned{}
	from := max(node.Step, node.until-whyReturnWindow)
	for _, c := range w.reader.Chunks() {
		if c.Last < from || c.First > node.until {
			continue
		}
		var left *recording.Frame
		err := w.reader.ReplayAfter(c, from, func(s *recording.State) bool { left = s.CurrentFrame(); return true },
			func(s *recording.State, rec *recording.Record) bool {
				if (rec.Kind == recording.KindReturn || rec.Kind == recording.KindSuspend) && left != nil &&
					s.Current == node.frame && left.Step >= node.Step && left.Number != node.frame &&
					!program.IsComprehension(w.table.FunctionName(left.Code)) {
					last[left.Code] = returned{left.Step, s.Preview(w.table, rec.Value, whyValueBytes),
						s.TypeOf(w.table, rec.Value)}
				}
				left = s.CurrentFrame()
				return s.Step < node.until
			})
		if err != nil {
			return
		}
	}
	for _, code := range recording.SortedKeys(last) {
		r := last[code]
		w.visit(r.step, node.until, Step{Role: "returned", Value: r.value, Type: r.kind})
	}
}
