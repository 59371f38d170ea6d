package cgroup

import (
	"strconv"
	"strings"
)

const (
	// maxSpares is how many empty groups wait for the next children.
	maxSpares = 8

	// maxLeftover is the most memory in bytes that may still be charged to an empty group
	// that is reused. Each CPU keeps up to 256 KiB of pages that are not yet returned. The
	// next child's peak may be too high by this much.
	maxLeftover = 512 << 10
)

// KeepSpares makes the tree keep at most n empty groups, if that is fewer than usual.
func (t *Tree) KeepSpares(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.maxSpares = min(n, maxSpares)
}

// takeSpare returns a spare group, or nil, and whether the tree is closed.
func (t *Tree) takeSpare() (g *Group, closed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.spares) == 0 {
		return nil, t.closed
	}
	last := len(t.spares) - 1
	g = t.spares[last]
	t.spares = t.spares[:last]
	return g, t.closed
}

// reuse makes a released group a spare if it is like a new one: it has no process and no
// memory, swapped out or not, no process was killed at its memory limit, and its CPU quota
// and memory peaks can be reset. On version 2 the peak can't be reset. reuse returns false if
// the caller must remove the group. The caller holds g.mu. The spare takes over the group's
// open files.
func (g *Group) reuse() bool {
	t := g.tree
	if t.version != 1 || g.limits == (Limits{}) || t.hasAllSpares() || !g.empty() {
		return false
	}
	if g.setQuota() != nil || g.write("memory", "memory.max_usage_in_bytes", "0") != nil {
		return false
	}
	if g.limits.TCPBytes > 0 && g.write("memory", tcpPeakFile, "0") != nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.spares) >= t.maxSpares {
		return false
	}
	t.spares = append(t.spares, &Group{
		tree: t, name: g.name, quota: g.quota, limits: g.limits, files: g.files, divisor: g.divisor,
	})
	g.files = nil
	return true
}

// hasAllSpares reports whether the tree needs no other spare group.
func (t *Tree) hasAllSpares() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed || len(t.spares) >= t.maxSpares
}

// empty reports whether a group of version 1 has no process, no memory and no counted kill.
// It returns false if a file can't be read.
func (g *Group) empty() bool {
	isSmall := func(text string) bool {
		bytes, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		return err == nil && bytes <= maxLeftover
	}
	swap := g.read("memory", "memory.memsw.usage_in_bytes") // absent without swap accounting
	return g.read("pids", "pids.current") == "0\n" &&
		strings.Contains(g.read("memory", "memory.oom_control"), "oom_kill 0\n") &&
		isSmall(g.read("memory", "memory.usage_in_bytes")) && (swap == "" || isSmall(swap)) &&
		(g.limits.TCPBytes == 0 || g.read("memory", tcpUsageFile) == "0\n")
}
