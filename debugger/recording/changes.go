package recording

import "slices"

// Variable is a name in a frame, or with Frame 0 in the run's namespace.
type Variable struct {
	Frame uint64
	Name  string
}

// Resolve returns the variable with a name: in the current frame, or else in the namespace.
func (s *State) Resolve(t *Table, name string) Variable {
	if f := s.CurrentFrame(); f != nil {
		if _, isLocal := f.Variables[t.NumberOf(name)]; isLocal {
			return Variable{f.Number, name}
		}
	}
	return Variable{0, name}
}

// ValueOf returns the value of a variable.
func (s *State) ValueOf(t *Table, v Variable) (Value, bool) {
	scope := s.Globals
	if v.Frame != 0 {
		f := s.Frames[v.Frame]
		if f == nil {
			return Value{}, false
		}
		scope = f.Variables
	}
	value, ok := scope[t.NumberOf(v.Name)]
	return value, ok
}

// Change is one change of a variable.
type Change struct {
	SeenAt  int // the first step that arrives with the new value
	MadeBy  int // the step whose line made the change; 0 if it was made before the frame's first step
	Line    int64
	Code    uint64 // of line
	Value   Value  // of the variable after the change
	Object  uint64 // the object that changed, if the variable itself did not
	Deleted bool
	Edit    uint64 // the number of the edit that made it; 0: the line did
}

// ChangeTracker detects, record by record, when a variable or an object that it holds changes.
type ChangeTracker struct {
	Frame, Name uint64
	reachable   map[uint64]bool // objects that the variable holds; nil: not computed yet
	pending     *Change         // the change since the last call of take
}

// See examines a record that has been applied to s.
func (t *ChangeTracker) See(s *State, rec *Record) {
	if t.Name == 0 {
		return
	}
	scope, setKind, deleteKind := s.Globals, KindGlobal, KindForget
	if t.Frame != 0 {
		f := s.Frames[t.Frame]
		if f == nil {
			return
		}
		scope, setKind, deleteKind = f.Variables, KindSet, KindDelete
	}
	switch rec.Kind {
	case setKind, deleteKind:
		if rec.Name == t.Name && (t.Frame == 0 || s.Current == t.Frame) {
			v, exists := scope[t.Name]
			t.reachable = nil
			t.keep(s, Change{Value: v, Deleted: !exists})
		}
	case KindMutate:
		v, exists := scope[t.Name]
		if !exists || v.Tag != TagObject {
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
				t.keep(s, Change{Value: v, Object: rec.Object.Number})
			}
		}
	case KindLost:
		t.reachable, t.pending = nil, nil
	}
}

func (t *ChangeTracker) keep(s *State, c Change) {
	c.Edit = s.Edit
	if f := s.CurrentFrame(); f != nil {
		c.MadeBy, c.Line, c.Code = f.Step, f.Line, f.Code
		if c.MadeBy == 0 {
			c.Line = 0
		}
	}
	t.pending = &c
}

// Take reports whether the program changed the variable since the last call. Edits do not count.
func (t *ChangeTracker) Take() bool {
	changed := t.pending != nil && t.pending.Edit == 0
	t.pending = nil
	return changed
}

// EachChange calls visit for the changes of a variable in one chunk that are seen at the steps from to until. It may
// also call visit for some earlier changes. The step at which an edit was made shows it. The changes of the last line
// of a recording are seen at its end, which is the step after the last one.
func (r *Reader) EachChange(
	c *Chunk, v Variable, from, until int, visit func(*State, Change) (more bool),
) error {
	return r.EachChangeElsewhere(c, v, from, until, nil, visit)
}

// EachChangeElsewhere is EachChange, but need not call visit for changes of objects at some lines.
func (r *Reader) EachChangeElsewhere(
	c *Chunk, v Variable, from, until int, passed map[int64]bool, visit func(*State, Change) (more bool),
) error {
	t := &ChangeTracker{Frame: v.Frame, Name: r.Table().NumberOf(v.Name)}
	if !c.MayChange(t.Name) {
		return nil
	}
	var end *State
	more := true
	begin := func(s *State) bool { end = s; return true }
	watch := &Watch{Frame: v.Frame, Name: t.Name, Until: until, Passed: passed, Objects: func(s *State) []uint64 {
		value, _ := s.ValueOf(r.Table(), v)
		return s.Reachable(value)
	}}
	err := r.ReplayChanges(c, from-1, watch, begin, func(s *State, rec *Record) bool {
		if rec.Kind == KindLine && s.Step > until {
			more = false
			return false
		}
		t.See(s, rec)
		endsEdit := rec.Kind == KindEvent && s.Edit == 0 && t.pending != nil && t.pending.Edit > 0
		if rec.Kind != KindLine && !endsEdit || t.pending == nil {
			return true
		}
		seen := *t.pending
		seen.SeenAt, t.pending = s.Step, nil
		more = visit(s, seen)
		return more
	})
	if err == nil && more && t.pending != nil && t.pending.Edit == 0 && until > r.Steps() &&
		end.Step == r.Steps() {
		seen := *t.pending
		seen.SeenAt = r.Steps() + 1
		visit(end, seen)
	}
	return err
}

// LatestChange calls visit for changes of a variable in one chunk up to a step, the last one at the end.
func (r *Reader) LatestChange(
	c *Chunk, v Variable, until int, visit func(*State, Change),
) (found bool, err error) {
	if !c.MayChange(r.Table().NumberOf(v.Name)) {
		return false, nil
	}
	starts, err := r.CheckpointSteps(c, until)
	if err != nil {
		return false, err
	}
	for _, start := range starts {
		err := r.EachChange(c, v, start+1, until, func(s *State, seen Change) bool {
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

// LastChange calls visit with changes of a variable that are seen at or before a step; the last call has the last one.
func (r *Reader) LastChange(v Variable, step int, visit func(*State, Change)) (found bool, err error) {
	for _, c := range slices.Backward(r.Chunks()) {
		if c.First > step+1 { // the next chunk may begin with an edit at this step
			continue
		}
		if found, err = r.LatestChange(c, v, step, visit); found || err != nil {
			break
		}
	}
	return found, err
}
