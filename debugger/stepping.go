package debugger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Verb is a wish to move, in the words of the Debug Adapter Protocol.
type Verb string

// The verbs. Next, StepIn and StepOut, and StepBack, their mirror, stay in their lane,
// and stop early at a breakpoint; Continue and ReverseContinue stop at nothing else.
const (
	Next            Verb = "next"
	StepIn          Verb = "stepIn"
	StepOut         Verb = "stepOut"
	Continue        Verb = "continue"
	StepBack        Verb = "stepBack"
	ReverseContinue Verb = "reverseContinue"
)

// Reason says why a move came to its stop.
type Reason string

// The reasons; Start and End are the recording's own ends.
const (
	ReasonStep      Reason = "step"
	ReasonLine      Reason = "breakpoint"
	ReasonException Reason = "exception"
	ReasonData      Reason = "data breakpoint"
	ReasonStart     Reason = "entry"
	ReasonEnd       Reason = "end"
)

// Breakpoints are where a move stops beside its own goal.
type Breakpoints struct {
	Lines      []LineBreak
	Exceptions bool
	Data       []Variable
}

// LineBreak stops at a line; with Hits, only where the times that it was reached since
// the beginning compare so with it (HitOp is ==, >=, >, <=, <, % or "" for ==); with a
// Condition, only where the recording tells that it holds.
type LineBreak struct {
	File      string
	Line      int
	Hits      int
	HitOp     string
	Condition *Condition
	ID        int // the caller's
}

func (b LineBreak) wants(hits int) bool {
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

// Variable is a name in a frame, or with Frame 0 in the run's namespace.
type Variable struct {
	Frame uint64
	Name  string
}

// Stop is where a move came to.
type Stop struct {
	Step   int
	Reason Reason
	Break  int // which of Lines or Data, from 0
}

// rule is what every verb reduces to: the first step, in one direction, that is in one
// of frames (nil: none) or in lane, or at a breakpoint.
type rule struct {
	from   int
	back   bool
	frames map[uint64]bool
	lane   uint64
	breaks Breakpoints
}

// Move finds the stop for a verb at a step; 0 is ahead of the first, and going back one
// more than there are is behind the last. It gives up when ctx ends.
func (j *Journal) Move(ctx context.Context, from int, verb Verb, breaks Breakpoints) (Stop, error) {
	j = j.still()
	r := rule{from: from, back: verb == StepBack || verb == ReverseContinue, breaks: breaks}
	if last := j.steps(); from == last+1 && verb == StepBack {
		_, err := j.state(last)
		return Stop{Step: last, Reason: ReasonStep}, err
	} else if from < 0 || from > last && (from > last+1 || !r.back) {
		return Stop{}, fmt.Errorf("step %d: %w", from, ErrNoStep)
	}
	if from > 0 && verb != Continue && verb != ReverseContinue {
		s, err := j.state(from)
		if err != nil {
			return Stop{}, err
		}
		r.aim(s, verb)
		stack := s.Stack(s.Current)
		if err := j.join(&r, stack[len(stack)-1]); err != nil {
			return Stop{}, err
		}
	} else if from == 0 && verb != Continue {
		if verb == StepBack || verb == ReverseContinue {
			return Stop{Reason: ReasonStart}, nil
		}
		return j.first()
	}
	return j.find(ctx, r)
}

// Goto checks that a step can be shown.
func (j *Journal) Goto(step int) (Stop, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if _, err := j.state(step); err != nil {
		return Stop{}, err
	}
	return Stop{Step: step, Reason: ReasonStep}, nil
}

func (j *Journal) first() (Stop, error) {
	for _, c := range j.all() {
		if c.First <= c.Last {
			return Stop{Step: c.First, Reason: ReasonStep}, nil
		}
	}
	return Stop{Reason: ReasonEnd}, nil
}

func (r *rule) aim(s *State, verb Verb) {
	stack := s.Stack(s.Current)
	lane := stack[0].Lane
	if verb == StepIn {
		r.lane = lane
		return
	}
	if verb == StepOut {
		stack = stack[1:]
	}
	r.frames = map[uint64]bool{}
	for _, f := range stack {
		if f.Lane == lane {
			r.frames[f.Number] = true
		}
	}
}

// find applies a rule. A chunk in which nothing can match is not opened. What is sought
// among a million steps can take seconds, unless ctx ends first.
func (j *Journal) find(ctx context.Context, r rule) (Stop, error) {
	w, err := j.watch(r)
	if err != nil {
		return Stop{}, err
	}
	chunks := j.all()
	if r.back {
		chunks = slices.Clone(chunks)
		slices.Reverse(chunks)
	}
	for _, c := range chunks {
		if r.back && c.First > r.from || !r.back && c.Last < r.from {
			w.pass(c)
			continue
		}
		if !w.may(c) {
			w.pass(c)
			continue
		}
		if err := w.search(ctx, c); err != nil {
			return Stop{}, err
		}
		if w.found.Step > 0 && (!r.back || w.found.Step >= c.First) {
			return w.found, nil
		}
	}
	if w.found.Step > 0 {
		return w.found, nil
	}
	if r.back {
		stop, err := j.first()
		stop.Reason = ReasonStart
		return stop, err
	}
	return Stop{Step: j.steps(), Reason: ReasonEnd}, nil
}

// watcher looks for a rule's stop in one chunk after the other.
type watcher struct {
	j     *Journal
	rule  rule
	lines []line
	hits  []int // of each line breakpoint, ahead of the chunk that comes (going back: up to its end)
	names []uint64
	found Stop
}

func (j *Journal) watch(r rule) (*watcher, error) {
	w := &watcher{j: j, rule: r}
	for _, b := range r.breaks.Lines {
		w.lines = append(w.lines, line{j.table.byName[b.File], int64(b.Line)})
	}
	w.hits = make([]int, len(w.lines))
	for _, v := range r.breaks.Data {
		w.names = append(w.names, j.table.byName[v.Name])
	}
	if r.back {
		for _, c := range j.all() {
			w.count(c, 1)
		}
	}
	return w, nil
}

func (w *watcher) count(c *Chunk, sign int) {
	for i, l := range w.lines {
		w.hits[i] += sign * c.count(l)
	}
}

func (w *watcher) pass(c *Chunk) {
	if w.rule.back {
		w.count(c, -1)
	} else {
		w.count(c, 1)
	}
}

func (w *watcher) may(c *Chunk) bool {
	if w.rule.lane != 0 || w.rule.breaks.Exceptions && c.raises {
		return true
	}
	for f := range w.rule.frames {
		if c.frames[f] {
			return true
		}
	}
	return slices.ContainsFunc(w.names, c.changes) || slices.ContainsFunc(w.lines, func(l line) bool { return c.count(l) > 0 })
}

// search finds the nearest match in a chunk: going back, the last one before from.
func (w *watcher) search(ctx context.Context, c *Chunk) error {
	counted := slices.ContainsFunc(w.rule.breaks.Lines, func(b LineBreak) bool { return b.Hits > 0 || b.HitOp != "" })
	if !w.rule.back {
		from := w.rule.from
		if counted {
			from = 0
		}
		return w.see(ctx, c, from, math.MaxInt)
	}
	w.count(c, -1) // what was counted is ahead of the chunk's end
	starts := []int{0}
	if !counted {
		var err error
		if starts, err = w.j.spans(c, w.rule.from); err != nil {
			return err
		}
	}
	end := w.rule.from
	for _, start := range starts {
		later := w.found
		w.found = Stop{}
		if err := w.see(ctx, c, start, end); err != nil {
			return err
		}
		if w.found.Step < later.Step { // an exception of a line that is further back
			w.found = later
		}
		if w.found.Step > max(start, c.First-1) {
			return nil
		}
		end = start
	}
	return nil
}

// see offers the matches in a chunk behind a step, up to the line of another; going
// forward, the first.
func (w *watcher) see(ctx context.Context, c *Chunk, from, until int) error {
	hits := slices.Clone(w.hits)
	trackers := make([]*tracker, len(w.names))
	for i, v := range w.rule.breaks.Data {
		trackers[i] = &tracker{frame: v.Frame, name: w.names[i]}
	}
	left := false // by an exception, which then is raised again in the caller
	err := w.j.replayFrom(c, from, func(*State) bool { return true }, func(s *State, rec *Record) bool {
		if rec.Kind == KindRaise && w.rule.breaks.Exceptions && !left {
			if step := s.Frames[s.Current].Step; step > 0 {
				w.offer(Stop{Step: step, Reason: ReasonException})
			}
		}
		left = rec.Kind == KindUnwind
		for _, t := range trackers {
			t.see(s, rec)
		}
		if rec.Kind == KindLine {
			w.line(s, hits)
			for i, t := range trackers {
				if t.take() {
					w.offer(Stop{Step: s.Step, Reason: ReasonData, Break: i})
				}
			}
		}
		return s.Step < until && (w.rule.back || w.found.Step == 0) && ctx.Err() == nil
	})
	if !w.rule.back {
		w.hits = hits
	}
	return errors.Join(err, ctx.Err())
}

// line looks at one step.
func (w *watcher) line(s *State, hits []int) {
	f := s.Frames[s.Current]
	at := line{w.j.table.Code(f.Code).File, f.Line}
	for i, l := range w.lines {
		if l != at {
			continue
		}
		hits[i]++
		b := w.rule.breaks.Lines[i]
		if !b.wants(hits[i]) {
			continue
		}
		if b.Condition != nil {
			if holds, err := b.Condition.Holds(s, &w.j.table); err != nil || !holds {
				continue
			}
		}
		w.offer(Stop{Step: s.Step, Reason: ReasonLine, Break: i})
	}
	if w.rule.frames[f.Number] || w.rule.lane != 0 && w.rule.lane == f.Lane {
		w.offer(Stop{Step: s.Step, Reason: ReasonStep})
	}
}

// offer keeps the match that is nearest; of one step, the first that was offered, so
// that a breakpoint goes ahead of the step that it is at.
func (w *watcher) offer(stop Stop) {
	if w.rule.back {
		if stop.Step < w.rule.from && stop.Step > w.found.Step {
			w.found = stop
		}
	} else if stop.Step > w.rule.from && w.found.Step == 0 {
		w.found = stop
	}
}
