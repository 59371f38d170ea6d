package debugger

import "maps"

// evaluated is what is known of the conditions that the program has evaluated: at which steps a breakpoint was set in
// the program, and at which of them it has stopped there. Only Python can evaluate some conditions, and only while the
// program is at that step, so a search through the recording reads their results here.
type evaluated struct {
	from    map[int]int          // by breakpoint: the program has it after this step
	stopped map[int]map[int]bool // by breakpoint: the steps at which it has stopped the program
	until   int                  // the program has no breakpoints after this step; 0: it still has them
}

// set notes that the program gets breakpoints after a step. It forgets the others.
func (e *evaluated) set(lines []guestLine, step int) {
	from, stopped := map[int]int{}, map[int]map[int]bool{}
	for _, b := range lines {
		from[b.ID], stopped[b.ID] = step, e.stopped[b.ID]
		if earlier, ok := e.from[b.ID]; ok {
			from[b.ID] = earlier
		}
	}
	e.from, e.stopped = from, stopped
}

// stop notes that the program has stopped at breakpoints.
func (e *evaluated) stop(ids []int, step int) {
	for _, id := range ids {
		if _, isLine := e.from[id]; !isLine {
			continue
		}
		if e.stopped[id] == nil {
			e.stopped[id] = map[int]bool{}
		}
		e.stopped[id][step] = true
	}
}

// of returns a function that tells whether a breakpoint has stopped the program at a step, and whether that is known.
func (e *evaluated) of(id, steps int) func(step int) (stopped, known bool) {
	from, ok := e.from[id]
	if !ok {
		return nil
	}
	stopped := maps.Clone(e.stopped[id])
	until := steps
	if e.until > 0 {
		until = e.until
	}
	return func(step int) (bool, bool) { return stopped[step], step > from && step <= until }
}
