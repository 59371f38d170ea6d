package debugger

// maxReached bounds how many objects and parts of them are looked at to tell what one
// line has changed: a stop must not take longer than whoever waits for it.
const maxReached = 200_000

// changedBy returns the variables that the line of a step has changed by the next one,
// where both are of one frame.
func (j *Journal) changedBy(step int, frame uint64) []string {
	j.mu.RLock()
	defer j.mu.RUnlock()
	names := map[uint64]bool{}
	for _, c := range j.all() {
		if step+1 < c.First || step > c.Last {
			continue
		}
		var end *State
		mutated := map[uint64]bool{}
		_ = j.replayFrom(c, step, func(s *State) bool { end = s; return true }, func(s *State, rec *Record) bool { // what is damaged was said by State
			if rec.Kind == KindLine && s.Step > step || s.Step < step || s.Current != frame {
				return s.Step <= step
			}
			switch rec.Kind {
			case KindGlobal:
				if !hidden(s, &j.table, rec.Value) { // as it is not among the variables
					names[rec.Name] = true
				}
			case KindSet, KindDelete, KindForget:
				names[rec.Name] = true
			case KindMutate:
				if rec.Number != Deeper {
					mutated[rec.Object.Number] = true
				}
			}
			return true
		})
		if f := end.on(frame); f != nil && len(mutated) > 0 {
			end.holders(mutated, names, f.Variables, end.Globals)
		}
	}
	var out []string
	for _, n := range sortedKeys(names) {
		out = append(out, j.table.Name(n))
	}
	return out
}

// on is a frame of a state that there may be none of.
func (s *State) on(frame uint64) *Frame {
	if s == nil {
		return nil
	}
	return s.Frames[frame]
}

// holders adds the names in scopes that hold one of some objects, at any depth. It goes
// once from all names down, and from the objects up the ways that it came. What is
// beyond maxReached holds none.
func (s *State) holders(objects, names map[uint64]bool, scopes ...map[uint64]Value) {
	named, above := map[uint64][]uint64{}, map[uint64][]uint64{} // by object
	room := maxReached
	var queue []uint64
	reach := func(n uint64) {
		if _, seen := above[n]; !seen {
			above[n] = nil
			queue = append(queue, n)
		}
	}
	for _, scope := range scopes {
		for _, name := range sortedKeys(scope) {
			if v := scope[name]; v.Tag == TagObject {
				reach(v.Object)
				named[v.Object] = append(named[v.Object], name)
			}
		}
	}
	for i := 0; i < len(queue); i++ {
		o := s.Objects[queue[i]]
		if o == nil {
			continue
		}
		if room -= 1 + len(o.Values); room < 0 {
			break
		}
		o.holds(func(n uint64) {
			reach(n)
			above[n] = append(above[n], o.Number)
		})
	}
	queue = queue[:0]
	for n := range objects {
		if _, reached := above[n]; reached {
			queue = append(queue, n)
		}
	}
	for i := 0; i < len(queue); i++ {
		n := queue[i]
		for _, name := range named[n] {
			names[name] = true
		}
		queue = append(queue, above[n]...)
		delete(above, n) // it is gone through once
		delete(named, n)
	}
}
