package cgroup

import "time"

// When the kernel removes a group of the memory controller, it moves the group's part of the lists of cached files, for
// each file system of the machine, to the group's parent. An idle sandbox has four file systems. While 1000 sandboxes
// end, this takes 0.4 ms of CPU time for each group, and 1.4 ms while 3000 end. So groups wait until sandboxes that end
// together have ended: removalDelay after the last Release, but at most maxRemovalDelay after the first.
const (
	removalDelay    = 200 * time.Millisecond
	maxRemovalDelay = 10 * time.Second
)

const (
	removeTries = 100         // of Remove, one millisecond apart
	retryDelay  = time.Second // of the tree, after a group could not be removed; most still have a process
	lateTries   = 3           // after so many the group is late
)

// endedGroup is a group that the tree removes soon.
type endedGroup struct {
	name   string
	failed int // tries
}

// removeLater adds an ended group to those that the tree removes soon. It removes a group of a closed tree now.
func (t *Tree) removeLater(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		_ = t.rmdir(name, removeTries)
		return
	}
	t.ended = append(t.ended, endedGroup{name: name})
	t.scheduleRemoval(removalDelay)
}

// scheduleRemoval makes the tree remove its ended groups after a delay. The caller holds t.mu.
func (t *Tree) scheduleRemoval(delay time.Duration) {
	now := time.Now()
	switch {
	case t.removal == nil:
		t.due = now.Add(maxRemovalDelay)
		t.removal = time.AfterFunc(delay, t.removeEnded)
	case now.Add(delay).Before(t.due):
		t.removal.Reset(delay)
	}
}

// removeEnded removes the ended groups, and tries those later that cannot be removed.
func (t *Tree) removeEnded() {
	t.removing.Lock()
	defer t.removing.Unlock()
	t.mu.Lock()
	ended := t.ended
	t.ended, t.removal = nil, nil
	t.mu.Unlock()
	var left []endedGroup
	late := 0
	var reason error
	for _, g := range ended {
		err := t.rmdir(g.name, 1)
		if err == nil {
			continue
		}
		g.failed++
		left = append(left, g)
		if g.failed >= lateTries {
			late++
			reason = err
		}
	}
	t.mu.Lock()
	isNew := late > 0 && t.late == 0
	t.late = late
	if t.ended = append(t.ended, left...); len(left) > 0 && !t.closed {
		t.scheduleRemoval(retryDelay)
	}
	t.mu.Unlock()
	if isNew && t.Log != nil {
		t.Log("remove the control groups of ended sandboxes: %v: %d are removed later, and others that are late "+
			"meanwhile are only counted", reason, late)
	}
}

// Late returns how many ended groups could not be removed for long.
func (t *Tree) Late() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.late
}
