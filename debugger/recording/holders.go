package recording

// maxHolderSearch bounds how many objects and values one search for changed variables visits, because a client waits
// for the answer at each stop.
const maxHolderSearch = 200_000

// AddHolders adds to names the variables in scopes that hold one of the given objects, at any depth. It walks once from
// all variables down to the objects, and then back up along the same edges, so its time is linear in the size of the
// graph. It does not find objects beyond maxHolderSearch.
func AddHolders(s *State, objects, names map[uint64]bool, scopes ...map[uint64]Value) {
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
		for _, name := range SortedKeys(scope) {
			if v := scope[name]; v.Tag == TagObject {
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
