package main

import (
	"fmt"
	"math"

	"glasshouse/sandbox/isolate"
)

// plan says how this process divides its file descriptors. makePlan returns it.
type plan struct {
	warmSets    []isolate.WarmSet
	openIdle    int // idle sandboxes that keep all descriptors
	connections int // of clients
	reserve     int // descriptors that no sandbox gets
}

// Descriptors of the service's parts, at most.
const (
	ownDescriptors     = 64 // files, listeners, zygotes, history's connections, the embedded PostgreSQL
	idleDescriptors    = 3  // of an idle sandbox; one with a network has another, for which the reserve is kept
	openDescriptors    = 9  // that an idle or running sandbox may have in addition
	waitingDescriptors = 7  // of a guest that waits for a sandbox
	spareDescriptors   = 8  // of a control group that waits for a guest
)

// Memory of a guest that does nothing, and that of a session with a few variables.
const (
	waitingMemoryBytes = 3 << 19
	idleMemoryBytes    = 2 << 20
)

// makePlan lowers the settings that do not fit into a capacity, and returns one line for each of them. It returns an
// error if there is no room for a single sandbox.
func (s *settings) makePlan(c isolate.Capacity) (p plan, lines []string, err error) {
	lower := func(flag string, value *int, most int, reason, remedy string) {
		if *value > most {
			const line = "--%s is %d instead of %d: %s hold no more; %s"
			lines = append(lines, fmt.Sprintf(line, flag, most, *value, reason, remedy))
			*value = most
		}
	}
	const (
		raiseFiles = "raise the hard limit of open files (LimitNOFILE in systemd, ulimit -Hn, --ulimit nofile of a " +
			"container)"
		raiseTasks = "raise the limit of processes (TasksMax in systemd, the pids limit of a container, ulimit -u, " +
			"the sysctl kernel.pid_max)"
	)
	files := fmt.Sprintf("%d file descriptors", c.Descriptors)
	lower("parallel", &s.limits.parallel, max(c.Descriptors/64, 2), files, raiseFiles)
	databases := s.databases.names()
	lower("max-queries", &s.limits.queries.each, max(c.Descriptors/64/len(databases), 4), files, raiseFiles)
	lower("pool", &s.python.pool, max(c.Descriptors/128, 1), files, raiseFiles)
	p.warmSets = isolate.WarmSets(s.python.pool)
	if c.Descriptors < 512 { // code without a set of its own uses the largest
		p.warmSets = []isolate.WarmSet{p.warmSets[0], p.warmSets[len(p.warmSets)-1]}
	}
	waiting := 0
	for _, set := range p.warmSets {
		waiting += max(set.Pool, 2) + 1 // a spare one, too
	}
	p.openIdle = min(max(c.Descriptors/128, 2), 64)
	minConnections := min(max(c.Descriptors/10, 24), 256)
	p.reserve = min(max(c.Descriptors/16, 32), 512) + minConnections

	queries := 0
	for _, name := range databases {
		queries += s.limits.queries.of(name)
	}
	left := c.Descriptors - ownDescriptors - queries - waiting*waitingDescriptors - p.reserve -
		(s.limits.parallel+p.openIdle)*openDescriptors - min(p.openIdle, 8)*spareDescriptors
	room := []struct {
		most           int
		reason, remedy string
	}{
		{left / idleDescriptors, files, raiseFiles},
		{sub(c.Tasks, isolate.ReservedTasks+waiting+s.limits.parallel),
			fmt.Sprintf("%d processes and threads", c.Tasks), raiseTasks},
		{sub(c.Namespaces, waiting+8), fmt.Sprintf("namespaces for %d processes", c.Namespaces),
			"raise the sysctls user.max_*_namespaces"},
		{int((c.MemoryBytes - c.ReservedMemory() - int64(waiting)*waitingMemoryBytes) / idleMemoryBytes),
			fmt.Sprintf("%d MiB of memory", c.MemoryBytes>>20), "give the service more memory"},
	}
	for _, r := range room {
		if r.most < 1 {
			return p, lines, fmt.Errorf("the service has no room for a sandbox: %s are too few; %s", r.reason, r.remedy)
		}
		lower("max-sandboxes", &s.limits.sandboxes, r.most, r.reason, r.remedy)
	}
	if c.Networks < s.limits.sandboxes {
		const line = "only %d sandboxes can have a network: raise the sysctl user.max_net_namespaces"
		lines = append(lines, fmt.Sprintf(line, c.Networks))
	}
	connections := max(left-s.limits.sandboxes*idleDescriptors, 0) + minConnections
	p.connections = min(connections, c.Descriptors/2, 1<<16)
	return p, lines, nil
}

// sub returns a - b, or math.MaxInt if a is that.
func sub(a, b int) int {
	if a == math.MaxInt {
		return a
	}
	return a - b
}
