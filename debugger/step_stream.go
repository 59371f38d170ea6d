package debugger

import (
	"maps"
	"slices"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
)

// Limits of one Line.
const (
	maxLineVariables = 50
	linePreview      = 200 // bytes
)

// The statuses of a Line.
const (
	StatusExecuted   = "executed"
	StatusException  = "exception"
	StatusLost       = "lost"
	StatusUnfinished = "unfinished" // the run, or its recording, ended within the line
)

// Line is a step of the line stream: a line that has run, and the variables after it. A line that calls user code is
// sent before the lines of the call, with DuringCall set.
type Line struct {
	Step       int
	Number     int64 // 0 if steps were lost
	Code       string
	Function   string
	Status     string
	Error      string // "ValueError: ...", or the reason why steps were lost
	DuringCall bool
	Variables  map[string]string // previews by name
	Changed    []string          // variables that the line set, changed or deleted
	Exactness  map[string]string // of the variables whose objects are recorded in part: how much of each
	Unread     string            // the reason why Variables is missing

	frame    uint64
	isFolded bool // the line is a step of a comprehension
}

// stepStream converts records to Lines. A line that was sent during a call is sent again at its end only if it failed,
// or if it ends its frame and changed a variable. So the stream misses no change.
type stepStream struct {
	table   *recording.Table
	source  []string
	send    func(Line)
	open    map[uint64]*openLine  // by frame: the line that runs
	scopes  map[uint64]*sentScope // by frame; 0 is the namespace
	lines   map[uint64]int64      // by frame: its last line, if folding is set
	current uint64                // frame
	mutated []uint64              // objects, in the order of their changes
	from    int                   // the first step to send; earlier steps only update the state
	latest  recording.State       // the variables after the latest record
	folding *folding              // nil if the steps of comprehensions are steps like others
	resends bool                  // a line that was sent during a call is always sent again at its end
}

// openLine is a line that has begun and not ended.
type openLine struct {
	frame *recording.Frame
	step  int
	line  int64
	sent  bool

	isFolded bool
}

// sentScope holds the variables of a frame as they were sent last.
type sentScope struct {
	values   map[uint64]recording.Value
	previews map[uint64]string
	mutated  int // length of stepStream.mutated at that time
}

// newStepStream returns a stream for a recording that begins in state s.
func newStepStream(t *recording.Table, s *recording.State, source []string, send func(Line)) *stepStream {
	p := &stepStream{
		table: t, source: source, send: send, open: map[uint64]*openLine{}, scopes: map[uint64]*sentScope{},
		lines: map[uint64]int64{}, current: s.Current, latest: *s,
	}
	callers := map[uint64]bool{}
	for _, f := range s.Frames {
		callers[f.Parent] = true
	}
	for number, f := range s.Frames {
		if f.Step > 0 {
			p.lines[number] = f.Line
		}
		if f.Step > 0 && !f.Suspended {
			p.open[number] = &openLine{frame: f, step: f.Step, line: f.Line, sent: callers[number]}
		}
		if f.Step > 0 {
			p.rememberNew(s, f)
		}
	}
	return p
}

// see takes a record that has been applied to s.
func (p *stepStream) see(s *recording.State, rec *recording.Record) {
	left, before := p.current, p.latest
	p.current, p.latest = s.Current, *s
	switch rec.Kind {
	case recording.KindLine:
		f := s.CurrentFrame()
		if line := p.open[f.Number]; line != nil && (!line.sent || p.resends) {
			p.complete(s, line, Line{Status: StatusExecuted})
		}
		p.rememberNew(s, f)
		line := &openLine{frame: f, step: s.Step, line: f.Line}
		if p.folding != nil {
			line.isFolded = p.folding.folds(p.table.FunctionName(f.Code), p.lines[f.Number], f.Line)
			p.lines[f.Number] = f.Line
		}
		p.open[f.Number] = line
	case recording.KindPush, recording.KindResume:
		if line := p.open[rec.Parent]; line != nil && !line.sent {
			p.complete(s, line, Line{Status: StatusExecuted, DuringCall: true})
			line.sent = true
		}
	case recording.KindRaise:
		if line := p.open[s.Current]; line != nil {
			delete(p.open, s.Current)
			p.complete(s, line, Line{Status: StatusException, Error: p.exceptionText(s, rec)})
		}
	case recording.KindReturn, recording.KindSuspend, recording.KindUnwind:
		p.leaveFrame(s, left, rec)
	case recording.KindMutate:
		if !rec.ReadDeeper {
			p.mutated = append(p.mutated, rec.Object.Number)
		}
	case recording.KindLost:
		p.end(&before)
		clear(p.scopes)
		clear(p.lines)
		p.send(Line{Step: s.Step, Status: StatusLost, Error: rec.Text, Variables: map[string]string{}})
	}
}

// end sends the lines that have not ended when the run ends.
func (p *stepStream) end(s *recording.State) {
	for _, number := range recording.SortedKeys(s.Frames) {
		if line := p.open[number]; line != nil && (!line.sent || p.resends) {
			p.complete(s, line, Line{Status: StatusUnfinished})
		}
	}
	clear(p.open)
}

func (p *stepStream) exceptionText(s *recording.State, rec *recording.Record) string {
	return s.ExceptionText(p.table, recording.Exception{Type: rec.Name, Message: rec.Value})
}

func (p *stepStream) leaveFrame(s *recording.State, left uint64, rec *recording.Record) {
	line := p.open[left]
	delete(p.open, left)
	if line != nil {
		switch {
		case rec.Kind == recording.KindUnwind:
			p.complete(s, line, Line{Status: StatusException, Error: p.exceptionText(s, rec)})
		case !line.sent || p.resends || p.hasChanged(s, line.frame):
			p.complete(s, line, Line{Status: StatusExecuted})
		}
	}
	if rec.Kind != recording.KindSuspend {
		delete(p.scopes, left)
		delete(p.lines, left)
	}
}

// complete fills in a line that has ended, and sends it.
func (p *stepStream) complete(s *recording.State, open *openLine, line Line) {
	f := open.frame
	if open.step < p.from {
		key, _ := p.scope(s, f)
		delete(p.scopes, key)
		p.rememberNew(s, f)
		return
	}
	line.Step, line.Number = open.step, open.line
	line.frame, line.isFolded = f.Number, open.isFolded
	line.Function = p.table.FunctionName(f.Code)
	line.Code = program.Line(p.source, open.line)
	line.Unread = p.table.Name(f.Unread)
	key, values := p.scope(s, f)
	before := p.scopes[key]
	if before == nil {
		before = &sentScope{}
	}
	now := &sentScope{values: map[uint64]recording.Value{}, previews: map[uint64]string{}, mutated: len(p.mutated)}
	line.Variables = map[string]string{}
	for _, name := range recording.SortedKeys(values) {
		v := values[name]
		if s.IsDefinition(p.table, v) {
			continue
		}
		if len(line.Variables) >= maxLineVariables {
			break
		}
		same := p.isUnchanged(s, before, name, v)
		preview, known := before.previews[name]
		if !same || !known {
			preview = s.Preview(p.table, v, linePreview)
		}
		now.values[name], now.previews[name] = v, preview
		line.Variables[p.table.Name(name)] = preview
		if o := s.Objects[v.Object]; v.Tag == recording.TagObject && o != nil && o.Exactness != recording.Exact {
			if line.Exactness == nil {
				line.Exactness = map[string]string{}
			}
			line.Exactness[p.table.Name(name)] = o.Exactness.String()
		}
		if !same {
			line.Changed = append(line.Changed, p.table.Name(name))
		}
	}
	for _, name := range recording.SortedKeys(before.values) {
		if _, exists := values[name]; !exists {
			line.Changed = append(line.Changed, p.table.Name(name))
		}
	}
	p.scopes[key] = now
	p.send(line)
}

// isUnchanged reports whether a variable has the value that was sent last, and no object that it reaches has changed.
func (p *stepStream) isUnchanged(s *recording.State, before *sentScope, name uint64, v recording.Value) bool {
	old, existed := before.values[name]
	return existed && old == v && !p.reachesMutated(s, v, before.mutated)
}

// rememberNew stores the variables of a frame at its first line, so that arguments are not sent as changes.
func (p *stepStream) rememberNew(s *recording.State, f *recording.Frame) {
	key, values := p.scope(s, f)
	if p.scopes[key] != nil {
		return
	}
	shown := maps.Clone(values)
	maps.DeleteFunc(shown, func(_ uint64, v recording.Value) bool { return s.IsDefinition(p.table, v) })
	p.scopes[key] = &sentScope{values: shown, mutated: len(p.mutated)}
}

// hasChanged reports whether a frame's variables differ from the variables that were sent last.
func (p *stepStream) hasChanged(s *recording.State, f *recording.Frame) bool {
	key, values := p.scope(s, f)
	before := p.scopes[key]
	if before == nil {
		return false
	}
	shown := 0
	for name, v := range values {
		if s.IsDefinition(p.table, v) {
			continue
		}
		shown++
		if len(before.values) < maxLineVariables && !p.isUnchanged(s, before, name, v) {
			return true
		}
	}
	return shown < len(before.values)
}

// scope returns a frame's variables and their key in p.scopes. A module's variables are the namespace's, and those of a
// comprehension that runs in the module's frame.
func (p *stepStream) scope(s *recording.State, f *recording.Frame) (uint64, map[uint64]recording.Value) {
	if p.table.FunctionName(f.Code) == recording.ModuleName {
		if len(f.Variables) == 0 {
			return 0, s.Globals
		}
		all := maps.Clone(s.Globals)
		maps.Copy(all, f.Variables)
		return 0, all
	}
	return f.Number, f.Variables
}

// reachesMutated reports whether v reaches an object that has changed since p.mutated had a length.
func (p *stepStream) reachesMutated(s *recording.State, v recording.Value, since int) bool {
	mutated := p.mutated[since:]
	if v.Tag != recording.TagObject || len(mutated) == 0 {
		return false
	}
	if len(mutated) > 64 { // a loop often changes the same object many times
		mutated = slices.Clone(mutated)
		slices.Sort(mutated)
		mutated = slices.Compact(mutated)
	}
	return slices.ContainsFunc(s.Reachable(v), func(n uint64) bool { return slices.Contains(mutated, n) })
}

// maxLineSteps bounds how many later steps Lines reads to find the end of a line that calls user code.
const maxLineSteps = 10_000

// Lines returns the steps from first to last, each step once, with the variables after the line. Of a line that calls
// user code and does not end within maxLineSteps, they are those at the call. DuringCall marks lines that call user
// code and do not fail. Changed has only changes within the step's chunk.
func (r *Recording) Lines(first, last int) (out []Line, err error) {
	err = r.journal.Read(func(reader *recording.Reader) error {
		out, err = linesOf(reader, first, last, r.Source, nil)
		return err
	})
	return out, err
}

func linesOf(reader *recording.Reader, first, last int, source []string, fold *folding) ([]Line, error) {
	found, gaps := map[int]Line{}, map[int][]Line{}
	open := map[int]bool{} // steps that were found during a call
	send := func(l Line) {
		if l.Step < first || l.Step > last {
			return
		}
		if l.Status == StatusLost {
			gaps[l.Step] = append(gaps[l.Step], l)
			return
		}
		before, sent := found[l.Step]
		if sent && !open[l.Step] && l.Status != StatusException {
			return
		}
		for _, name := range before.Changed {
			if !slices.Contains(l.Changed, name) {
				l.Changed = append(l.Changed, name)
			}
		}
		if delete(open, l.Step); l.DuringCall {
			open[l.Step] = true
		}
		l.DuringCall = l.DuringCall || before.DuringCall && l.Status == StatusExecuted
		found[l.Step] = l
	}
	wanted := min(last, reader.Steps()) - first + 1
	for _, c := range reader.Chunks() {
		if c.Last < first || len(found) >= wanted && len(open) == 0 || c.First > last+maxLineSteps {
			continue
		}
		var stream *stepStream
		var end *recording.State
		begin := func(s *recording.State) bool {
			stream, end = newStepStream(reader.Table(), s, source, send), s
			stream.from, stream.folding, stream.resends = first, fold, true
			return true
		}
		err := reader.ReplayAfter(c, 0, begin, func(s *recording.State, rec *recording.Record) bool {
			stream.see(s, rec)
			return (len(found) < wanted || len(open) > 0) && s.Step < last+maxLineSteps
		})
		if err != nil {
			return nil, err
		}
		if end.Step == reader.Steps() {
			stream.end(end)
		}
	}
	out := make([]Line, 0, len(found))
	for _, step := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[step])
	}
	for _, step := range slices.Sorted(maps.Keys(gaps)) {
		after := slices.IndexFunc(out, func(l Line) bool { return l.Step > step })
		if after < 0 {
			after = len(out)
		}
		out = slices.Insert(out, after, gaps[step]...)
	}
	return out, nil
}
