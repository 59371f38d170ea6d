package cgroup

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// When the kernel removes a group of the memory controller, it moves the group's part of the lists of cached files, for
// each file system of the machine, to the group's parent. An idle sandbox has four file systems. While 1000 sandboxes
// end, this takes 0.4 ms of CPU time for each group, and 1.4 ms while 3000 end. So groups wait until sandboxes that end
// together have ended: removalDelay after the last Release, but at most maxRemovalDelay after the first.
const (
	removalDelay    = 200 * time.Millisecond
	maxRemovalDelay = 10 * time.Second
)

// busyDelay is how long a group waits that still has a process.
const busyDelay = time.Second

// removeLater adds an ended group to those that the tree removes soon. It returns false if the tree is closed.
func (t *Tree) removeLater(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.ended = append(t.ended, name)
	t.scheduleRemoval(removalDelay)
	return true
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

// removeEnded removes the ended groups, and tries those later that are busy.
func (t *Tree) removeEnded() {
	t.removing.Lock()
	defer t.removing.Unlock()
	t.mu.Lock()
	names := t.ended
	t.ended, t.removal = nil, nil
	t.mu.Unlock()
	var busy []string
	var failed error
	for _, name := range names {
		if err := t.rmdir(name, 1); errors.Is(err, unix.EBUSY) {
			busy = append(busy, name)
		} else if err != nil {
			failed = errors.Join(failed, err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = errors.Join(t.failed, failed)
	if t.ended = append(t.ended, busy...); len(busy) > 0 && !t.closed {
		t.scheduleRemoval(busyDelay)
	}
}

// takeFailure returns the error of removals since the last call.
func (t *Tree) takeFailure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.failed
	t.failed = nil
	return err
}
