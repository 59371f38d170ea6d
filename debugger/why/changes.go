package why

import (
	"context"
	"slices"
	"strings"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
)

// stateAt returns the state on arrival at a step, or after the last record for the step behind the last one.
func (w *slicer) stateAt(step int) (*recording.State, error) {
	if s := w.states[step]; s != nil {
		return s, nil
	}
	var s *recording.State
	var err error
	if step == w.reader.Steps()+1 && step > 1 {
		s, err = w.endState()
	} else {
		s, err = w.reader.State(step)
	}
	if err == nil {
		w.states[step] = s
		w.held += s.Bytes()
	}
	return s, err
}

// endState returns the state after the last record.
func (w *slicer) endState() (*recording.State, error) {
	chunks := w.reader.Chunks()
	last := chunks[len(chunks)-1]
	var end *recording.State
	begin := func(s *recording.State) bool { end = s; return true }
	err := w.reader.ReplayAfter(last, w.reader.Steps(), begin, func(*recording.State,
		*recording.Record) bool {
		return true
	})
	return end, err
}

// changeMadeAt returns the change of a variable that a step's line made.
func (w *slicer) changeMadeAt(
	v recording.Variable, step, until int,
) (made recording.Change, after *recording.State, found bool) {
	searched := 0
	for _, c := range w.reader.Chunks() {
		if c.Last < step || c.First > until || searched >= maxEffectChunks {
			continue
		}
		searched++
		err := w.reader.EachChange(c, v, step+1, until, func(s *recording.State, seen recording.Change) bool {
			if seen.MadeBy == step && seen.Edit == 0 {
				made, after, found = seen, s, true
			}
			return !found
		})
		if err != nil || found {
			break
		}
	}
	return made, after, found
}

// changeThroughOther returns the last change in place of a variable between a step and the change c, by a line that is
// not passed over. Such a line changes the object through another name, or in a function.
func (w *slicer) changeThroughOther(
	v recording.Variable, c recording.Change, after int, passed map[int64]bool,
) (found recording.Change, s *recording.State, ok bool) {
	searched := 0
	if c.Object == 0 {
		return found, nil, false
	}
	for _, chunk := range w.reader.Chunks() {
		if chunk.Last <= after || chunk.First > c.MadeBy || searched >= maxEffectChunks {
			continue
		}
		searched++
		err := w.reader.EachChangeElsewhere(chunk, v, after+1, c.MadeBy, passed, func(
			_ *recording.State, seen recording.Change,
		) bool {
			if seen.Object != 0 && seen.Edit == 0 && seen.MadeBy > after && !passed[seen.Line] {
				found = seen
			}
			return true
		})
		if err != nil {
			break
		}
	}
	if found.MadeBy == 0 {
		return found, nil, false
	}
	s, err := w.stateAt(found.SeenAt)
	return found, s, err == nil
}

// firstChange returns the first change of a variable in the run.
func (w *slicer) firstChange(
	v recording.Variable, last recording.Change,
) (first recording.Change, after *recording.State, found bool) {
	number := w.table.NumberOf(v.Name)
	for _, c := range w.reader.Chunks() {
		if c.First > last.SeenAt || !setsVariable(c, number, v) {
			continue
		}
		err := w.reader.EachChange(c, v, 1, last.SeenAt, func(s *recording.State, seen recording.Change) bool {
			if seen.MadeBy == 0 && v.Frame == 0 {
				return true
			}
			first, found, after = seen, true, s
			return false
		})
		if err != nil || found {
			break
		}
	}
	return first, after, found
}

// setsVariable reports whether a variable, whose name has a number, may be set in a chunk.
func setsVariable(c *recording.Chunk, name uint64, v recording.Variable) bool {
	return v.Frame == 0 && c.SetsGlobal(name) || v.Frame != 0 && c.SetsLocal(name) && c.HasFrame(v.Frame)
}

// lastStepAt returns the last step before a step at one of the lines, in a frame unless it is 0, and 0 if there is
// none.
func (w *slicer) lastStepAt(lines []int64, frame uint64, before int) (found int) {
	if len(lines) == 0 {
		return 0
	}
	file := w.table.NumberOf(w.table.ProgramFile())
	for _, c := range slices.Backward(w.reader.Chunks()) {
		if c.First >= before || frame != 0 && !c.HasFrame(frame) ||
			!slices.ContainsFunc(lines, func(l int64) bool {
				return c.LineCount(recording.Location{File: file,
					Line: l}) > 0
			}) {
			continue
		}
		starts, err := w.reader.CheckpointSteps(c, before)
		if err != nil {
			return 0
		}
		until := before
		for _, start := range starts {
			err := w.reader.ReplayAfter(c, start, nil, func(s *recording.State, rec *recording.Record) bool {
				if s.Step >= until {
					return false
				}
				f := s.CurrentFrame()
				if rec.Kind == recording.KindLine && slices.Contains(lines, f.Line) && (frame == 0 ||
					f.Number == frame) {
					found = s.Step
				}
				return true
			})
			if err != nil || found > 0 {
				return found
			}
			until = start + 1
		}
	}
	return 0
}

// lastChangeBefore returns the last change of a variable that is seen at or before a step, and the state after it. s is
// the state at the step. It opens only chunks that set the name, or change an object that the variable holds.
func (w *slicer) lastChangeBefore(
	v recording.Variable, value recording.Value, s *recording.State, step int,
) (c recording.Change, after *recording.State, found bool) {
	number, objects := w.table.NumberOf(v.Name), s.Reachable(value)
	for _, chunk := range slices.Backward(w.reader.Chunks()) {
		sets := setsVariable(chunk, number, v)
		if chunk.First > step+1 || !sets && !chunk.TouchesAny(objects) {
			continue
		}
		ok, err := w.reader.LatestChange(chunk, v, step, func(_ *recording.State, seen recording.Change) { c = seen })
		if err != nil {
			return c, nil, false
		}
		if ok {
			after, err = w.stateAt(c.SeenAt)
			return c, after, err == nil
		}
	}
	return c, nil, false
}

// setToSame returns the last assignment of a variable before a step that gave it the object that it already had, after
// the change last, and the next step of its frame. A recording has no change there. It returns 0 if there is none, or
// if an exception left the assignment. s is the state at the step.
func (w *slicer) setToSame(v recording.Variable, s *recording.State, last recording.Change, before int) (at, seen int) {
	function, frame := "", v.Frame
	if f := s.Frames[v.Frame]; f != nil {
		function = w.table.FunctionName(f.Code)
	}
	lines, loops := w.program.Assignments(v.Name, function)
	if len(lines)+len(loops) == 0 {
		return 0, 0
	}
	if frame == 0 {
		first, err := w.stateAt(1)
		if err != nil || first.CurrentFrame() == nil {
			return 0, 0
		}
		frame = first.CurrentFrame().Number
	}
	if at = w.lastStepAt(lines, frame, before); at > last.MadeBy {
		if seen = w.completed(at, frame); seen == 0 || seen > before {
			at, seen = 0, 0
		}
	}
	at = max(at, last.MadeBy)
	for _, loop := range loops {
		turn := w.lastStepAt(loop.Body, frame, before+1) // a loop that has no items sets nothing
		if head := w.lastStepAt(loop.Head, frame, turn); turn > 0 && head > at {
			at, seen = head, w.completed(head, frame)
		}
	}
	if at <= last.MadeBy || seen == 0 {
		return 0, 0
	}
	return at, seen
}

// completed returns the next step of a frame after its step at, and 0 if an exception left that step's line. After the
// last line it returns the number of the steps and 1.
func (w *slicer) completed(at int, frame uint64) int {
	seen, failed, searched := 0, false, 0
	for _, c := range w.reader.Chunks() {
		if c.Last < at {
			continue
		}
		if searched++; searched > maxEffectChunks {
			return 0
		}
		err := w.reader.ReplayAfter(c, at, nil, func(s *recording.State, rec *recording.Record) bool {
			f := s.CurrentFrame()
			switch isIn := f != nil && f.Number == frame; {
			case s.Step < at, s.Step == at && rec.Kind == recording.KindLine:
			case rec.Kind == recording.KindRaise && isIn, rec.Kind == recording.KindLost:
				failed = true
			case rec.Kind == recording.KindLine && isIn:
				seen = s.Step
			}
			return seen == 0 && !failed
		})
		switch {
		case err != nil || failed:
			return 0
		case seen > 0:
			return seen
		}
	}
	return w.reader.Steps() + 1
}

// LastSet returns the step that set or changed a global variable last, or nil if the run did not.
func (r Run) LastSet(ctx context.Context, name string) *Earlier {
	w := r.slicer(ctx, Question{})
	step := w.reader.Steps() + 1
	s, err := w.stateAt(step)
	if err != nil {
		return nil
	}
	v := recording.Variable{Name: name}
	value, ok := s.ValueOf(w.table, v)
	if !ok {
		return nil
	}
	c, after, found := w.lastChangeBefore(v, value, s, step)
	if at, seen := w.setToSame(v, s, c, step); at > 0 {
		set, err := w.stateAt(at)
		if after, _ = w.stateAt(seen); err != nil || after == nil {
			return nil
		}
		c, found = recording.Change{MadeBy: at, SeenAt: seen, Line: set.CurrentFrame().Line, Value: value}, true
	}
	if !found || c.MadeBy == 0 {
		return nil
	}
	set := &Earlier{Name: name, Value: after.Preview(w.table, c.Value, whyValueBytes), Step: c.MadeBy, Line: c.Line,
		Code: strings.TrimSpace(program.Line(r.Program.Source, c.Line))}
	if e := r.edit(c.Edit, c.SeenAt); e != nil {
		set.Code = program.Clip(e.Code, whyValueBytes) + "   # by " + e.By() + " in the debugger"
	}
	return set
}

// enclosing finds a variable of a closure in the frames that called the current one.
func (w *slicer) enclosing(s *recording.State, name string) (recording.Variable, bool) {
	number := w.table.NumberOf(name)
	for _, f := range s.Stack(s.Current) {
		if _, ok := f.Variables[number]; ok && number != 0 {
			return recording.Variable{Frame: f.Number, Name: name}, true
		}
	}
	return recording.Variable{}, false
}
