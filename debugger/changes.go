package debugger

import (
	"context"
	"errors"
	"slices"

	"glasshouse/debugger/expr"
	"glasshouse/debugger/recording"
	"glasshouse/sandbox"
)

// change is one change of a variable.
type change struct {
	seenAt  int // the first step that arrives with the new value
	madeBy  int // the step whose line made the change; 0 if it was made before the frame's first step
	line    int64
	code    uint64          // of line
	value   recording.Value // of the variable after the change
	object  uint64          // the object that changed, if the variable itself did not
	deleted bool
	edit    uint64 // the number of the edit that made it; 0: the line did
}

// changeTracker detects, record by record, when a variable or an object that it holds changes.
type changeTracker struct {
	frame, name uint64
	reachable   map[uint64]bool // objects that the variable holds; nil: not computed yet
	pending     *change         // the change since the last call of take
}

// see examines a record that has been applied to s.
func (t *changeTracker) see(s *recording.State, rec *recording.Record) {
	if t.name == 0 {
		return
	}
	scope, setKind, deleteKind := s.Globals, recording.KindGlobal, recording.KindForget
	if t.frame != 0 {
		f := s.Frames[t.frame]
		if f == nil {
			return
		}
		scope, setKind, deleteKind = f.Variables, recording.KindSet, recording.KindDelete
	}
	switch rec.Kind {
	case setKind, deleteKind:
		if rec.Name == t.name && (t.frame == 0 || s.Current == t.frame) {
			v, exists := scope[t.name]
			t.reachable = nil
			t.keep(s, change{value: v, deleted: !exists})
		}
	case recording.KindMutate:
		v, exists := scope[t.name]
		if !exists || v.Tag != recording.TagObject {
			return
		}
		if t.reachable == nil {
			t.reachable = map[uint64]bool{}
			for _, n := range s.Reachable(v) {
				t.reachable[n] = true
			}
		}
		if t.reachable[rec.Object.Number] {
			t.reachable = nil // the object may hold other objects now
			if !rec.ReadDeeper {
				t.keep(s, change{value: v, object: rec.Object.Number})
			}
		}
	case recording.KindLost:
		t.reachable, t.pending = nil, nil
	}
}

func (t *changeTracker) keep(s *recording.State, c change) {
	c.edit = s.Edit
	if f := s.CurrentFrame(); f != nil {
		c.madeBy, c.line, c.code = f.Step, f.Line, f.Code
		if c.madeBy == 0 {
			c.line = 0
		}
	}
	t.pending = &c
}

// take reports whether the program changed the variable since the last call. Edits do not count.
func (t *changeTracker) take() bool {
	changed := t.pending != nil && t.pending.edit == 0
	t.pending = nil
	return changed
}

// eachChange calls visit for the changes of a variable in one chunk that are seen at the steps from to until. It may
// also call visit for some earlier changes. The step at which an edit was made shows it. The changes of the last line
// of a recording are seen at its end, which is the step after the last one.
func eachChange(reader *recording.Reader, c *recording.Chunk, v Variable, from, until int,
	visit func(*recording.State, change) (more bool)) error {
	t := &changeTracker{frame: v.Frame, name: reader.Table().NumberOf(v.Name)}
	if !c.MayChange(t.name) {
		return nil
	}
	var end *recording.State
	more := true
	begin := func(s *recording.State) bool { end = s; return true }
	err := reader.ReplayAfter(c, from-1, begin, func(s *recording.State, rec *recording.Record) bool {
		if rec.Kind == recording.KindLine && s.Step > until {
			more = false
			return false
		}
		t.see(s, rec)
		endsEdit := rec.Kind == recording.KindEvent && s.Edit == 0 && t.pending != nil && t.pending.edit > 0
		if rec.Kind != recording.KindLine && !endsEdit || t.pending == nil {
			return true
		}
		seen := *t.pending
		seen.seenAt, t.pending = s.Step, nil
		more = visit(s, seen)
		return more
	})
	if err == nil && more && t.pending != nil && t.pending.edit == 0 && until > reader.Steps() &&
		end.Step == reader.Steps() {
		seen := *t.pending
		seen.seenAt = reader.Steps() + 1
		visit(end, seen)
	}
	return err
}

// latestChange calls visit for changes of a variable in one chunk up to a step, the last one at the end.
func latestChange(reader *recording.Reader, c *recording.Chunk, v Variable, until int,
	visit func(*recording.State, change)) (found bool, err error) {
	if !c.MayChange(reader.Table().NumberOf(v.Name)) {
		return false, nil
	}
	starts, err := reader.CheckpointSteps(c, until)
	if err != nil {
		return false, err
	}
	for _, start := range starts {
		err := eachChange(reader, c, v, start+1, until, func(s *recording.State, seen change) bool {
			found = true
			visit(s, seen)
			return true
		})
		if err != nil || found {
			return found, err
		}
		until = start
	}
	return false, nil
}

// lastChange calls visit with changes of a variable that are seen at or before a step; the last call has the last one.
func lastChange(
	reader *recording.Reader, v Variable, step int, visit func(*recording.State, change),
) (found bool, err error) {
	for _, c := range slices.Backward(reader.Chunks()) {
		if c.First > step+1 { // the next chunk may begin with an edit at this step
			continue
		}
		if found, err = latestChange(reader, c, v, step, visit); found || err != nil {
			break
		}
	}
	return found, err
}

// ChangeView is one change of a variable.
type ChangeView struct {
	Seen     int    `json:"seen_at" doc:"The first step with the new value; total_steps + 1 is the end"`
	Step     int    `json:"step" doc:"The step whose line made the change; 0 if earlier than the frame's first step"`
	Line     int64  `json:"line_number"`
	Code     string `json:"line_code"`
	Function string `json:"function,omitempty"`
	Value    string `json:"value,omitempty"`
	Type     string `json:"type,omitempty"`
	Gone     bool   `json:"gone,omitempty"`
	Frame    uint64 `json:"frame"`

	Edit *sandbox.Edit `json:"edit,omitempty" doc:"A person made the change in the debugger, and not the line"`
}

func (r *Recording) changeView(t *recording.Table, s *recording.State, v Variable, c change) ChangeView {
	view := ChangeView{
		Seen: c.seenAt, Step: c.madeBy, Line: c.line, Code: SourceLine(r.Source,
			c.line), Function: t.FunctionName(c.code),
		Gone: c.deleted, Frame: v.Frame,
	}
	if c.edit > 0 {
		view.Edit = r.edit(c.edit, c.seenAt)
	}
	if !c.deleted {
		view.Value, view.Type = s.Preview(t, c.value, maxValuePreview), s.TypeOf(t, c.value)
	}
	return view
}

// Changes returns at most limit changes of a variable that are seen at or after a step.
func (r *Recording) Changes(v Variable, from, limit int) ([]ChangeView, error) {
	reader := r.journal.Snapshot()
	out := []ChangeView{}
	for _, c := range reader.Chunks() {
		if c.Last+1 < from || len(out) >= limit {
			continue
		}
		err := eachChange(reader, c, v, from, reader.Steps()+1, func(s *recording.State, seen change) bool {
			if seen.seenAt >= from {
				out = append(out, r.changeView(reader.Table(), s, v, seen))
			}
			return len(out) < limit
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// FramesWith returns the first frames, at most most, that set a variable with a name.
func (r *Recording) FramesWith(name string, most int) (frames []uint64, err error) {
	reader := r.journal.Snapshot()
	number := reader.Table().NumberOf(name)
	for _, c := range reader.Chunks() {
		if !c.SetsName(number) || len(frames) >= most {
			continue
		}
		err := reader.Replay(c, func(s *recording.State, rec *recording.Record) bool {
			if rec.Kind == recording.KindSet && rec.Name == number && !slices.Contains(frames, s.Current) {
				frames = append(frames, s.Current)
			}
			return len(frames) < most
		})
		if err != nil {
			return nil, err
		}
	}
	return frames, nil
}

// LastChange returns the last change of a variable that is seen at or before a step. The list is empty if there is
// none.
func (r *Recording) LastChange(v Variable, step int) ([]ChangeView, error) {
	reader, out := r.journal.Snapshot(), []ChangeView{}
	_, err := lastChange(reader, v, step, func(s *recording.State, seen change) {
		out = append(out[:0], r.changeView(reader.Table(), s, v, seen))
	})
	return out, err
}

// FindCondition returns the first step, from a step on, at which a condition holds, and 0 if there is none. If function
// is not "", only its steps count. unknown is the number of steps at which the condition could not be evaluated.
func (r *Recording) FindCondition(ctx context.Context, c *expr.Condition, from int, function string) (step,
	unknown int, err error) {
	reader := r.journal.Snapshot()
	t := reader.Table()
	for _, chunk := range reader.Chunks() {
		if chunk.Last < from {
			continue
		}
		err := reader.ReplayAfter(chunk, from-1, nil, func(s *recording.State, rec *recording.Record) bool {
			if ctx.Err() != nil {
				return false
			}
			if rec.Kind != recording.KindLine || s.Step < from {
				return true
			}
			if function != "" && t.FunctionName(s.CurrentFrame().Code) != function {
				return true
			}
			holds, err := c.Holds(s, t)
			if err != nil {
				unknown++
			} else if holds {
				step = s.Step
			}
			return step == 0
		})
		if err = errors.Join(err, ctx.Err()); err != nil || step > 0 {
			return step, unknown, err
		}
	}
	return 0, unknown, nil
}
