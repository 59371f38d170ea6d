package isolate

import (
	"strconv"
	"strings"
)

const (
	// spares is how many groups wait for the next child. The kernel takes longer to make
	// and to remove those of one child than for its namespaces and mounts together.
	spares = 8

	// leftover is what an empty group may have of memory to be used again, in bytes: what
	// the kernel has not taken back yet, of which each CPU keeps up to 256 KiB. So much the
	// next child's peak may be above its own.
	leftover = 512 << 10
)

// again is a group that was used before; nil where there is none. closed: nor are there any others.
func (c *cgroups) again() (g *cgroup, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spare) == 0 {
		return nil, c.closed
	}
	last := len(c.spare) - 1
	g = c.spare[last]
	c.spare = c.spare[:last]
	return g, c.closed
}

// reuse keeps a group that is over for another child, as far as that child can't tell it
// from a fresh one: no process is in it, none was killed in it for want of memory, it has
// no memory, nor any that is swapped out, and its share of CPU and its peak begin anew.
// False: it is to be removed. On version 2 the peak can't begin anew for all who read it. The
// caller holds mu, and leaves the group's files to the next one.
func (g *cgroup) reuse() bool {
	c := g.in
	if c.version != 1 || g.held == (bounds{}) || !g.empty() {
		return false
	}
	if g.share() != nil || g.write("memory", "memory.max_usage_in_bytes", "0") != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.spare) >= spares {
		return false
	}
	c.spare = append(c.spare, &cgroup{in: c, name: g.name, quota: g.quota, held: g.held, kept: g.kept})
	g.kept = nil
	return true
}

// empty says whether the group of version 1 has nothing and remembers nothing. What
// can't be read is taken for the worst.
func (g *cgroup) empty() bool {
	few := func(text string) bool {
		bytes, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		return err == nil && bytes <= leftover
	}
	swap := g.read("memory", "memory.memsw.usage_in_bytes") // absent without swap accounting
	return g.read("pids", "pids.current") == "0\n" &&
		strings.Contains(g.read("memory", "memory.oom_control"), "oom_kill 0\n") &&
		few(g.read("memory", "memory.usage_in_bytes")) && (swap == "" || few(swap))
}
