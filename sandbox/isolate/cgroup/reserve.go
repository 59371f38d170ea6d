package cgroup

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Bounds are the limits that this process has together with the other processes of its control groups: the lowest of
// each group from its own up to the root.
type Bounds struct {
	MemoryBytes int64 // math.MaxInt64: no limit
	Tasks       int   // threads and processes; math.MaxInt: no limit
	TasksLeft   int   // that can still be made
}

// OwnBounds returns the bounds of this process. Without control groups there are none.
func OwnBounds() Bounds {
	b := Bounds{math.MaxInt64, math.MaxInt, math.MaxInt}
	own, err := ownGroups()
	if err != nil {
		return b
	}
	root := func(controller string) (dir, top string) {
		if _, isFirst := own["memory"]; isFirst {
			top = filepath.Join("/sys/fs/cgroup", controller)
			dir = filepath.Join(top, own[controller])
			if _, err := os.Stat(dir); err != nil { // the group is outside this mount, as in a container
				dir = top
			}
			return dir, top
		}
		return filepath.Join("/sys/fs/cgroup", own[""]), "/sys/fs/cgroup"
	}
	for dir, top := root("memory"); ; dir = filepath.Dir(dir) {
		for _, file := range []string{"memory.limit_in_bytes", "memory.max"} {
			if limit, ok := readNumber(dir, file); ok {
				b.MemoryBytes = min(b.MemoryBytes, limit)
			}
		}
		if len(dir) <= len(top) {
			break
		}
	}
	for dir, top := root("pids"); ; dir = filepath.Dir(dir) {
		if limit, ok := readNumber(dir, "pids.max"); ok {
			used, _ := readNumber(dir, "pids.current")
			b.Tasks, b.TasksLeft = min(b.Tasks, int(limit)), min(b.TasksLeft, int(max(limit-used, 0)))
		}
		if len(dir) <= len(top) {
			break
		}
	}
	return b
}

// readNumber returns the number in a file. It returns false for a file that does not exist or has no limit.
func readNumber(dir, file string) (int64, bool) {
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// Limit limits all groups of the tree together, so that they leave a reserve to other processes. 0 means no limit.
func (t *Tree) Limit(memoryBytes int64, tasks int) error {
	var err error
	if memoryBytes > 0 {
		err = writeFile(t.dirs["memory"], t.file("memory.limit_in_bytes", "memory.max"),
			strconv.FormatInt(memoryBytes, 10))
		if err == nil {
			t.maxMemory = memoryBytes
		}
	}
	if tasks > 0 {
		err = errors.Join(err, writeFile(t.dirs["pids"], "pids.max", strconv.Itoa(tasks)))
		if err == nil {
			t.maxTasks = tasks
		}
	}
	return err
}

// MayFork reports whether another process may join a group of the tree. The kernel limits the forks of the processes
// in the tree, but not how many join it.
func (t *Tree) MayFork() bool {
	used, ok := t.readTotal("pids", "pids.current")
	return t.maxTasks == 0 || !ok || used < int64(t.maxTasks)
}

// MemoryUse returns the part of the memory of Limit that all groups use and the kernel cannot take back, from 0 to 1.
// File contents that are on a disk do not count, unless there is much else.
func (t *Tree) MemoryUse() float64 {
	used, ok := t.readTotal("memory", t.file("memory.usage_in_bytes", "memory.current"))
	if t.maxMemory == 0 || !ok {
		return 0
	}
	use := float64(used) / float64(t.maxMemory)
	if use < 0.8 {
		return use
	}
	stat, _ := os.ReadFile(filepath.Join(t.dirs["memory"], "memory.stat"))
	prefix := t.file("total_", "")
	for line := range strings.Lines(string(stat)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == prefix+"active_file" || name == prefix+"inactive_file" {
			bytes, _ := strconv.ParseInt(value, 10, 64)
			used -= bytes
		}
	}
	return float64(used) / float64(t.maxMemory)
}

// readTotal returns the number in a file of the tree.
func (t *Tree) readTotal(controller, file string) (n int64, ok bool) {
	_ = t.all.use(func() error {
		var err error
		n, err = strconv.ParseInt(strings.TrimSpace(t.all.read(controller, file)), 10, 64)
		ok = err == nil
		return nil
	})
	return n, ok
}
