package isolate

import "glasshouse/sandbox/isolate/cgroup"

// Parts of the memory of all guests together (cgroup.Tree.MemoryUse).
const (
	maxMemoryUse   = 0.9  // with more in use, no guest is made
	fullMemoryUse  = 0.95 // with more in use, there is too little for the guests that run
	patientChecks  = 4    // that find the memory full before a guest is killed
	minVictimBytes = 8 << 20
)

// memoryGuard ends one of the running guests if the memory of all guests together is full for some time: of the large
// ones, which use at least half as much as the largest, the one that began last, so that those before it can end. The
// kernel would end one, too, but only when it cannot take back a single page. Until then many guests that need memory
// read the same files from disk again and again, and none makes progress.
type memoryGuard struct {
	tree *cgroup.Tree // nil: without control groups
	full int          // checks in a row that found the memory full
}

// relieve checks the memory. Only one goroutine may call it at a time.
func (g *memoryGuard) relieve(running map[*Process]bool) {
	if g.tree == nil || g.tree.MemoryUse() < fullMemoryUse {
		g.full = 0
		return
	}
	if g.full++; g.full < patientChecks {
		return
	}
	g.full = 0
	most := int64(minVictimBytes)
	used := make(map[*Process]int64, len(running))
	for p := range running {
		if !p.isVictim.Load() {
			used[p] = p.Memory()
			most = max(most, used[p])
		}
	}
	var victim *Process
	for p, bytes := range used {
		if bytes >= most/2 && (victim == nil || p.begun > victim.begun) {
			victim = p
		}
	}
	if victim != nil {
		victim.isVictim.Store(true)
		victim.Kill()
		_ = victim.group.LiftCPU() // it has used up its share by looking for memory, and would end later
	}
}
