package debugger

import "slices"

// Change is one moment of a variable's life.
type Change struct {
	Seen    int    // the step on whose arrival it was there
	By      int    // the step whose line made it; 0 where it was there before the first
	Value   Value  // what the variable is then
	Version uint64 // of the object that changed, where the variable itself did not
	Object  uint64
	Gone    bool  // deleted, or its frame has ended
	Line    int64 // that made it, and its code; 0 like By
	Code    uint64
}

// tracker sees, record by record, when a variable or what it holds changes.
type tracker struct {
	frame, name uint64
	reach       map[uint64]bool // objects that it holds; nil: not known
	change      *Change
}

// see looks at a record that has been applied to s.
func (t *tracker) see(s *State, rec *Record) {
	if t.name == 0 {
		return
	}
	scope, setting, removing := s.Globals, KindGlobal, KindForget
	if t.frame != 0 {
		setting, removing = KindSet, KindDelete
		f := s.Frames[t.frame]
		if f == nil {
			return
		}
		scope = f.Variables
	}
	mine := rec.Name == t.name && (t.frame == 0 || s.Current == t.frame)
	switch rec.Kind {
	case setting, removing:
		if mine {
			v, ok := scope[t.name]
			t.reach = nil
			t.keep(s, Change{Value: v, Gone: !ok})
		}
	case KindMutate:
		v, ok := scope[t.name]
		if !ok || v.Tag != TagObject {
			return
		}
		if t.reach == nil {
			t.reach = map[uint64]bool{}
			for _, n := range s.Reachable(v) {
				t.reach[n] = true
			}
		}
		if t.reach[rec.Object.Number] {
			t.reach = nil // it may hold others now
			if rec.Number == Deeper {
				return
			}
			t.keep(s, Change{Value: v, Object: rec.Object.Number, Version: rec.Object.Version})
		}
	case KindLost:
		t.reach, t.change = nil, nil
	}
}

func (t *tracker) keep(s *State, c Change) {
	if f := s.Frames[s.Current]; f != nil {
		c.By, c.Line, c.Code = f.Step, f.Line, f.Code
		if c.By == 0 {
			c.Line = 0
		}
	}
	t.change = &c
}

// take answers whether there was a change since it was asked last.
func (t *tracker) take() bool {
	had := t.change != nil
	t.change = nil
	return had
}

// LastChange returns the last change of a variable that was there on arrival at step,
// and whether there is one.
func (j *Journal) LastChange(v Variable, step int) (Change, bool, error) {
	j = j.still()
	return j.lastChange(v, step)
}

func (j *Journal) lastChange(v Variable, step int) (Change, bool, error) {
	chunks := slices.Clone(j.all())
	slices.Reverse(chunks)
	for _, c := range chunks {
		if c.First > step {
			continue
		}
		var last *Change
		err := j.latest(c, v, step, func(_ *State, seen Change) { last = &seen })
		if err != nil || last != nil {
			return deref(last), last != nil, err
		}
	}
	return Change{}, false, nil
}

func deref(c *Change) Change {
	if c == nil {
		return Change{}
	}
	return *c
}

// History returns the changes of a variable from a step on, limit at the most.
func (j *Journal) History(v Variable, from, limit int) ([]Change, error) {
	j = j.still()
	var out []Change
	for _, c := range j.all() {
		if c.Last < from || len(out) >= limit {
			continue
		}
		err := j.changes(c, v, from, j.steps(), func(_ *State, seen Change) bool {
			if seen.Seen >= from {
				out = append(out, seen)
			}
			return len(out) < limit
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// FirstValue returns the first step, from from on, on whose arrival the variable was v.
func (j *Journal) FirstValue(of Variable, want Value, from int) (Change, bool, error) {
	j = j.still()
	for _, c := range j.all() {
		if c.Last < from {
			continue
		}
		var first *Change
		err := j.changes(c, of, from, j.steps(), func(_ *State, seen Change) bool {
			if seen.Seen >= from && !seen.Gone && seen.Value == want {
				first = &seen
			}
			return first == nil
		})
		if err != nil || first != nil {
			return deref(first), first != nil, err
		}
	}
	return Change{}, false, nil
}

// changes visits those of one chunk, perhaps from a step on, and up to another. What is
// between the last line and the recording's end is seen at no step, and left out.
func (j *Journal) changes(c *Chunk, v Variable, from, until int, visit func(*State, Change) bool) error {
	t := &tracker{frame: v.Frame, name: j.table.byName[v.Name]}
	if !c.changes(t.name) {
		return nil
	}
	return j.replayFrom(c, from-1, func(*State) bool { return true }, func(s *State, rec *Record) bool {
		if rec.Kind == KindLine && s.Step > until {
			return false
		}
		t.see(s, rec)
		if rec.Kind != KindLine || t.change == nil {
			return true
		}
		seen := *t.change
		seen.Seen, t.change = s.Step, nil
		return visit(s, seen)
	})
}

// changes says whether a variable of this name may change in the chunk.
func (c *Chunk) changes(name uint64) bool { return name != 0 && (c.names[name] || len(c.objects) > 0) }

// latest visits changes of one chunk up to a step, the last one at the end.
func (j *Journal) latest(c *Chunk, v Variable, until int, visit func(*State, Change)) error {
	if !c.changes(j.table.byName[v.Name]) {
		return nil
	}
	starts, err := j.spans(c, until)
	if err != nil {
		return err
	}
	found := false
	for _, start := range starts {
		err := j.changes(c, v, start+1, until, func(s *State, seen Change) bool {
			found = true
			visit(s, seen)
			return true
		})
		if err != nil || found {
			return err
		}
		until = start
	}
	return nil
}
