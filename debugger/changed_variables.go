package debugger

import "glasshouse/debugger/recording"

// maxHolderSearch bounds how many objects and values one search for changed variables visits, because a client waits
// for the answer at each stop.
const maxHolderSearch = 200_000

// changedVariables returns the names of the variables that the line of a step changed in a frame, or with an edit those
// that the edit at the step changed there. Those of the line are empty if the next step is in another frame.
func changedVariables(reader *recording.Reader, step int, frame, edit uint64) []string {
	t := reader.Table()
	names := map[uint64]bool{}
	for _, c := range reader.Chunks() {
		if step+1 < c.First || step > c.Last {
			continue
		}
		var end *recording.State
		mutated := map[uint64]bool{}
		begin := func(s *recording.State) bool { end = s; return true }
		// Damage is not reported here: reading the step's state has reported it.
		_ = reader.ReplayAfter(c, step, begin, func(s *recording.State, rec *recording.Record) bool {
			if rec.Kind == recording.KindLine && s.Step > step || s.Step < step || s.Edit != edit ||
				edit == 0 && s.Current != frame {
				return s.Step <= step
			}
			switch rec.Kind {
			case recording.KindGlobal:
				if !s.IsDefinition(t, rec.Value) {
					names[rec.Name] = true
				}
			case recording.KindSet, recording.KindDelete, recording.KindForget:
				names[rec.Name] = true
			case recording.KindMutate:
				if !rec.ReadDeeper {
					mutated[rec.Object.Number] = true
				}
			}
			return true
		})
		if end == nil || len(mutated) == 0 {
			continue
		}
		scopes := []map[uint64]recording.Value{end.Globals}
		if f := end.Frames[frame]; f != nil {
			scopes = append(scopes, f.Variables)
		}
		addHolders(end, mutated, names, scopes...)
	}
	var out []string
	for _, n := range recording.SortedKeys(names) {
		out = append(out, t.Name(n))
	}
	return out
}

// addHolders adds to names the variables in scopes that hold one of the given objects, at any depth. It walks once from
// all variables down to the objects, and then back up along the same edges, so its time is linear in the size of the
// graph. It does not find objects beyond maxHolderSearch.
func addHolders(s *recording.State, objects, names map[uint64]bool, scopes ...map[uint64]recording.Value) {
	holders := map[uint64][]uint64{} // by object: the variables that hold it directly
	parents := map[uint64][]uint64{} // by object: the objects that hold it directly
	left := maxHolderSearch
	var queue []uint64
	reach := func(n uint64) {
		if _, seen := parents[n]; !seen {
			parents[n] = nil
			queue = append(queue, n)
		}
	}
	for _, scope := range scopes {
		for _, name := range recording.SortedKeys(scope) {
			if v := scope[name]; v.Tag == recording.TagObject {
				reach(v.Object)
				holders[v.Object] = append(holders[v.Object], name)
			}
		}
	}
	for i := 0; i < len(queue); i++ {
		o := s.Objects[queue[i]]
		if o == nil {
			continue
		}
		if left -= 1 + len(o.Values); left < 0 {
			break
		}
		o.EachHeld(func(n uint64) {
			reach(n)
			parents[n] = append(parents[n], o.Number)
		})
	}
	queue = queue[:0]
	for n := range objects {
		if _, reached := parents[n]; reached {
			queue = append(queue, n)
		}
	}
	for i := 0; i < len(queue); i++ {
		n := queue[i]
		for _, name := range holders[n] {
			names[name] = true
		}
		queue = append(queue, parents[n]...)
		delete(parents, n) // so that each object is visited once
		delete(holders, n)
	}
}
