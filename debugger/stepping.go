package debugger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"glasshouse/debugger/expr"
	"glasshouse/debugger/recording"
)

// Move is a way to move through a run. The guest protocol uses the same names for the forward moves.
type Move string

// The moves. Next, StepIn, StepOut and StepBack, the reverse of Next, stay in their thread, and stop early at a
// breakpoint. Continue and ReverseContinue stop only at breakpoints.
const (
	Next            Move = "next"
	StepIn          Move = "stepIn"
	StepOut         Move = "stepOut"
	Continue        Move = "continue"
	StepBack        Move = "stepBack"
	ReverseContinue Move = "reverseContinue"
)

func (m Move) isBackward() bool { return m == StepBack || m == ReverseContinue }

// Reason is the reason of a stop.
type Reason string

// The reasons of stops. ReasonStart and ReasonEnd are the ends of the recording.
const (
	ReasonStep       Reason = "step"
	ReasonBreakpoint Reason = "breakpoint"
	ReasonException  Reason = "exception"
	ReasonData       Reason = "data breakpoint"
	ReasonStart      Reason = "entry"
	ReasonEnd        Reason = "end"
	ReasonPause      Reason = "pause"
	ReasonGoto       Reason = "goto"
	ReasonRestart    Reason = "restart"
)

// Breakpoints are the places where a move through the recording stops, besides its own target.
type Breakpoints struct {
	Lines      []LineStop
	Exceptions bool // stops where an exception is raised
	Uncaught   bool // stops where the exception that ended the program was raised
	Data       []Variable
	DataIDs    []int // the caller's, of Data
}

// LineStop stops at a line. If Condition is set, it stops only where the condition holds in the recorded state. If Hits
// is set, it stops only where "count HitOp Hits" holds: count is how often the line was reached, and the condition
// held, since the beginning, and HitOp is ==, >=, >, <=, <, %, or "" for ==. Where it cannot be known whether the
// condition holds, it stops, and the Stop is uncertain.
type LineStop struct {
	Line      int
	Hits      int
	HitOp     string
	Condition *expr.Condition
	ID        int // the caller's

	NeedsPython bool                                 // there is a condition that only Python can evaluate
	Evaluated   func(step int) (stopped, known bool) // what the program has found at a step; nil: nothing
}

func (b LineStop) hasCondition() bool { return b.Condition != nil || b.NeedsPython }

// wantsHit reports whether the hit condition holds for a number of hits.
func (b LineStop) wantsHit(hits int) bool {
	switch b.HitOp {
	case ">=":
		return hits >= b.Hits
	case ">":
		return hits > b.Hits
	case "<=":
		return hits <= b.Hits
	case "<":
		return hits < b.Hits
	case "%":
		return b.Hits > 0 && hits%b.Hits == 0
	}
	return b.Hits == 0 || hits == b.Hits
}

func (b LineStop) countsHits() bool { return b.Hits > 0 || b.HitOp != "" }

// Variable is a name in a frame, or with Frame 0 in the run's namespace.
type Variable = recording.Variable

// Stop is the place where a move stops.
type Stop struct {
	Step   int
	Reason Reason
	Index  int // of the breakpoint in Breakpoints.Lines or Data

	IsUncertain bool // it is not known whether the breakpoint's condition holds
}

// stopRule is the common form of all moves: stop at the first step, in one direction, that is in one of frames (nil:
// none), in thread (0: none), or at a breakpoint.
type stopRule struct {
	from     int
	backward bool
	frames   map[uint64]bool
	thread   uint64
	breaks   Breakpoints
	uncaught int // the step that raised the exception that ended the program; 0: none, or no stop there
}

// FindStop returns where a move from a step stops. Step 0 is before the first step; a backward move may also begin one
// step after the last one. FindStop returns ctx's error when ctx ends.
func (r *Recording) FindStop(ctx context.Context, from int, move Move, breaks Breakpoints) (Stop, error) {
	reader := r.journal.Snapshot()
	rule := stopRule{from: from, backward: move.isBackward(), breaks: breaks}
	if breaks.Uncaught && !breaks.Exceptions {
		var err error
		if rule.uncaught, err = r.ends.uncaught(ctx, reader); err != nil {
			return Stop{}, err
		}
	}
	last := reader.Steps()
	switch {
	case from == last+1 && move == StepBack:
		_, err := reader.State(last)
		return Stop{Step: last, Reason: ReasonStep}, err
	case from == reader.End() && !rule.backward && from > last:
		return Stop{Step: from, Reason: ReasonEnd}, nil
	case from < 0 || from > last && (from > last+1 || !rule.backward):
		return Stop{}, fmt.Errorf("step %d: %w", from, recording.ErrNoStep)
	case move == Continue || move == ReverseContinue && from > 0:
		return findStop(ctx, reader, rule)
	case from == 0 && rule.backward:
		return Stop{Reason: ReasonStart}, nil
	case from == 0:
		if first := reader.FirstStep(); first > 0 {
			return Stop{Step: first, Reason: ReasonStep}, nil
		}
		return Stop{Reason: ReasonEnd}, nil
	}
	s, err := reader.State(from)
	if err != nil {
		return Stop{}, err
	}
	rule.setTarget(s, move)
	stack := s.Stack(s.Current)
	if err := r.roots.addOtherRoot(reader, &rule, stack[len(stack)-1]); err != nil {
		return Stop{}, err
	}
	return findStop(ctx, reader, rule)
}

// setTarget sets the frames or the thread in which a step from s stops.
func (r *stopRule) setTarget(s *recording.State, move Move) {
	stack := s.Stack(s.Current)
	thread := stack[0].Thread
	if move == StepIn {
		r.thread = thread
		return
	}
	if move == StepOut {
		stack = stack[1:]
	}
	r.frames = map[uint64]bool{}
	for _, f := range stack {
		if f.Thread == thread {
			r.frames[f.Number] = true
		}
	}
}

// findStop applies a rule. It decodes only chunks in which the rule may stop. A search through a million steps may take
// seconds, unless ctx ends first.
func findStop(ctx context.Context, reader *recording.Reader, rule stopRule) (Stop, error) {
	w := newStopSearch(reader, rule)
	if err := w.countConditions(ctx); err != nil {
		return Stop{}, err
	}
	chunks := slices.Clone(reader.Chunks())
	if rule.backward {
		slices.Reverse(chunks)
	}
	for _, c := range chunks {
		outside := rule.backward && c.First > rule.from || !rule.backward && c.Last < rule.from
		if outside || !w.mayStopIn(c) {
			w.skip(c)
			continue
		}
		if err := w.search(ctx, c); err != nil {
			return Stop{}, err
		}
		if w.found.Step > 0 && (!rule.backward || w.found.Step >= c.First) {
			return w.found, nil
		}
	}
	switch {
	case w.found.Step > 0:
		return w.found, nil
	case rule.backward:
		return Stop{Step: reader.FirstStep(), Reason: ReasonStart}, nil
	}
	if rule.from >= reader.Steps() {
		return Stop{Step: reader.End(), Reason: ReasonEnd}, nil
	}
	return Stop{Step: reader.Steps(), Reason: ReasonEnd}, nil
}

// stopSearch searches for a rule's stop, chunk by chunk.
type stopSearch struct {
	reader *recording.Reader
	table  *recording.Table
	rule   stopRule
	lines  []recording.Location // of the line breakpoints
	hits   []int                // of each line breakpoint, before the next chunk; in a backward search, up to its end
	names  []uint64             // of the data breakpoints
	found  Stop

	// counted has the stops of each line breakpoint with a condition and a hit count, by their steps. Its hits are not
	// those of the line, which the index of a chunk has.
	counted []map[int]Stop
}

func newStopSearch(reader *recording.Reader, rule stopRule) *stopSearch {
	w := &stopSearch{reader: reader, table: reader.Table(), rule: rule}
	file := w.table.NumberOf(w.table.ProgramFile())
	for _, b := range rule.breaks.Lines {
		w.lines = append(w.lines, recording.Location{File: file, Line: int64(b.Line)})
	}
	w.hits = make([]int, len(w.lines))
	for _, v := range rule.breaks.Data {
		w.names = append(w.names, w.table.NumberOf(v.Name))
	}
	if rule.backward {
		for _, c := range reader.Chunks() {
			w.addHits(c, 1)
		}
	}
	return w
}

func (w *stopSearch) addHits(c *recording.Chunk, sign int) {
	for i, l := range w.lines {
		w.hits[i] += sign * c.LineCount(l)
	}
}

// skip counts the hits of a chunk in which the rule does not stop.
func (w *stopSearch) skip(c *recording.Chunk) {
	if w.rule.backward {
		w.addHits(c, -1)
	} else {
		w.addHits(c, 1)
	}
}

func (w *stopSearch) mayStopIn(c *recording.Chunk) bool {
	if w.rule.thread != 0 || w.rule.breaks.Exceptions && c.Raises {
		return true
	}
	if n := w.rule.uncaught; n > 0 && c.First <= n && n <= c.Last {
		return true
	}
	for f := range w.rule.frames {
		if c.HasFrame(f) {
			return true
		}
	}
	return slices.ContainsFunc(w.names, c.MayChange) ||
		slices.ContainsFunc(w.lines, func(l recording.Location) bool { return c.LineCount(l) > 0 })
}

// search finds the nearest stop in a chunk. A backward search replays from one checkpoint after the other, the nearest
// first.
func (w *stopSearch) search(ctx context.Context, c *recording.Chunk) error {
	countsHits := slices.ContainsFunc(w.rule.breaks.Lines, LineStop.countsHits)
	if !w.rule.backward {
		from := w.rule.from
		if countsHits {
			from = 0
		}
		return w.replay(ctx, c, from, math.MaxInt)
	}
	w.addHits(c, -1) // so that hits are those before the chunk
	starts := []int{0}
	if !countsHits {
		var err error
		if starts, err = w.reader.CheckpointSteps(c, w.rule.from); err != nil {
			return err
		}
	}
	end := w.rule.from
	for _, start := range starts {
		later := w.found
		w.found = Stop{}
		if err := w.replay(ctx, c, start, end); err != nil {
			return err
		}
		if w.found.Step < later.Step { // the stop is an exception of a line before the checkpoint
			w.found = later
		}
		if w.found.Step > max(start, c.First-1) {
			return nil
		}
		end = start
	}
	return nil
}

// replay offers the stops in a chunk after one step and up to another one; a forward search ends at the first stop.
func (w *stopSearch) replay(ctx context.Context, c *recording.Chunk, from, until int) error {
	hits := slices.Clone(w.hits)
	trackers := make([]*recording.ChangeTracker, len(w.names))
	for i, v := range w.rule.breaks.Data {
		trackers[i] = &recording.ChangeTracker{Frame: v.Frame, Name: w.names[i]}
	}
	unwound := false // an exception has just left a frame: it is then raised again in the caller
	err := w.reader.ReplayAfter(c, from, nil, func(s *recording.State, rec *recording.Record) bool {
		if rec.Kind == recording.KindRaise && w.rule.breaks.Exceptions && !unwound {
			if step := s.CurrentFrame().Step; step > 0 {
				w.offer(Stop{Step: step, Reason: ReasonException})
			}
		}
		switch rec.Kind {
		case recording.KindUnwind:
			unwound = true
		case recording.KindRaise, recording.KindLine, recording.KindPush, recording.KindResume:
			unwound = false // other records, such as those of variables, may come before the raise in the caller
		}
		for _, t := range trackers {
			t.See(s, rec)
		}
		if rec.Kind == recording.KindLine {
			w.seeLine(s, hits)
			for i, t := range trackers {
				if t.Take() {
					w.offer(Stop{Step: s.Step, Reason: ReasonData, Index: i})
				}
			}
		}
		return s.Step < until && (w.rule.backward || w.found.Step == 0) && ctx.Err() == nil
	})
	if !w.rule.backward {
		w.hits = hits
		for i, t := range trackers { // what the last line changed is seen at the end
			if until == math.MaxInt && c.Last == w.reader.Steps() && t.Take() {
				w.offer(Stop{Step: w.reader.End(), Reason: ReasonData, Index: i})
			}
		}
	}
	return errors.Join(err, ctx.Err())
}

// seeLine offers the stops at one step.
func (w *stopSearch) seeLine(s *recording.State, hits []int) {
	f, at := s.CurrentFrame(), w.at(s)
	isWithin := w.isWithin(s, f)
	for i, l := range w.lines {
		if l != at {
			continue
		}
		hits[i]++
		if isWithin {
			continue
		}
		if b := w.rule.breaks.Lines[i]; b.hasCondition() && b.countsHits() {
			if stop, ok := w.counted[i][s.Step]; ok {
				w.offer(stop)
			}
		} else if stops, uncertain := w.condition(b, s); stops && b.wantsHit(hits[i]) {
			w.offer(Stop{Step: s.Step, Reason: ReasonBreakpoint, Index: i, IsUncertain: uncertain})
		}
	}
	if s.Step == w.rule.uncaught {
		w.offer(Stop{Step: s.Step, Reason: ReasonException})
	}
	if w.rule.frames[f.Number] || w.rule.thread != 0 && w.rule.thread == f.Thread {
		w.offer(Stop{Step: s.Step, Reason: ReasonStep})
	}
}

// condition reports whether the condition of a breakpoint holds at a step, and whether that is uncertain.
func (w *stopSearch) condition(b LineStop, s *recording.State) (holds, uncertain bool) {
	if !b.hasCondition() {
		return true, false
	}
	if b.Evaluated != nil {
		if stopped, known := b.Evaluated(s.Step); known && (stopped || !b.countsHits()) {
			return stopped, false
		}
	}
	if b.NeedsPython {
		return true, true
	}
	holds, err := b.Condition.Holds(s, w.table)
	return holds || err != nil, err != nil
}

// countConditions finds the stops of the line breakpoints that have a condition and a hit count.
func (w *stopSearch) countConditions(ctx context.Context) error {
	w.counted = make([]map[int]Stop, len(w.lines))
	for i, b := range w.rule.breaks.Lines {
		if !b.hasCondition() || !b.countsHits() {
			continue
		}
		w.counted[i] = map[int]Stop{}
		hits, isUncertain := 0, false
		for _, c := range w.reader.Chunks() {
			if c.LineCount(w.lines[i]) == 0 {
				continue
			}
			err := w.reader.Replay(c, func(s *recording.State, rec *recording.Record) bool {
				if rec.Kind == recording.KindLine && w.at(s) == w.lines[i] {
					if holds, uncertain := w.condition(b, s); holds {
						hits++
						isUncertain = isUncertain || uncertain // and so are all later counts
						if b.wantsHit(hits) {
							w.counted[i][s.Step] = Stop{
								Step: s.Step, Reason: ReasonBreakpoint, Index: i, IsUncertain: isUncertain,
							}
						}
					}
				}
				return ctx.Err() == nil
			})
			if err = errors.Join(err, ctx.Err()); err != nil {
				return err
			}
		}
	}
	return nil
}

// isWithin reports whether a frame is a generator expression at the line of the statement that runs it. As in the
// guest, no breakpoint stops there.
func (w *stopSearch) isWithin(s *recording.State, f *recording.Frame) bool {
	parent := s.Frames[f.Parent]
	return parent != nil && parent.Line == f.Line && strings.HasSuffix(w.table.FunctionName(f.Code), "<genexpr>")
}

// at returns the line of a step.
func (w *stopSearch) at(s *recording.State) recording.Location {
	f := s.CurrentFrame()
	return recording.Location{File: w.table.Code(f.Code).File, Line: f.Line}
}

// offer keeps the nearest stop. Of several stops at one step it keeps the first, so that a breakpoint precedes the
// step.
func (w *stopSearch) offer(stop Stop) {
	if w.rule.backward {
		if stop.Step < w.rule.from && stop.Step > w.found.Step {
			w.found = stop
		}
	} else if stop.Step > w.rule.from && w.found.Step == 0 {
		w.found = stop
	}
}
