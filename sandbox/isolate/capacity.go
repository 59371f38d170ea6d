package isolate

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/cgroup"
	"glasshouse/sandbox/isolate/procfs"
)

// Capacity is what this process may still use of the machine: the lowest of its own limits, those of its control
// groups, and those of the kernel.
type Capacity struct {
	Descriptors int   // open files (RLIMIT_NOFILE)
	Tasks       int   // processes and threads
	Namespaces  int   // processes that can have those that every sandbox needs: pid, mount, uts and ipc
	Networks    int   // network namespaces
	MemoryBytes int64 // of the machine or of the control group, including what is in use
}

// ReservedTasks are never given to sandboxes. They are for the service, its PostgreSQL, its zygotes and the commands
// that it starts.
const ReservedTasks = 100

// ReservedMemory returns how much of the memory is never given to sandboxes, for the same reason: what the service
// needs to start, and a tenth, up to 1 GiB.
func (c Capacity) ReservedMemory() int64 { return 384<<20 + min(c.MemoryBytes/10, 1<<30) }

// minGuestMemoryBytes and minGuestTasks are the least that all guests together get, however little there is.
const (
	minGuestMemoryBytes = 96 << 20
	minGuestTasks       = 16
)

// RaiseLimits raises this process's soft limits of open files and of processes to the hard limits. The zygotes
// inherit that of processes; each guest has limits of its own.
func RaiseLimits() error {
	for name, resource := range map[string]int{"open files": unix.RLIMIT_NOFILE, "processes": unix.RLIMIT_NPROC} {
		var l unix.Rlimit
		err := unix.Getrlimit(resource, &l)
		if err == nil && l.Cur != l.Max {
			l.Cur = l.Max
			err = unix.Setrlimit(resource, &l)
		}
		if err != nil {
			return fmt.Errorf("raise the limit of %s: %w", name, err)
		}
	}
	return nil
}

// MeasureCapacity returns the Capacity of this process.
func MeasureCapacity() Capacity {
	c := Capacity{Tasks: math.MaxInt, Namespaces: math.MaxInt, Networks: math.MaxInt, MemoryBytes: math.MaxInt64}
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil {
		c.Descriptors = int(min(files.Cur, math.MaxInt32))
	}
	own := cgroup.OwnBounds()
	c.Tasks = min(own.TasksLeft, machineTasksLeft(), userTasksLeft())
	// A sandbox has one of each kind, and another of mounts for the files that outlive its process.
	for kind, each := range map[string]int{"pid": 1, "mnt": 2, "uts": 1, "ipc": 1} {
		c.Namespaces = min(c.Namespaces, readLimit("/proc/sys/user/max_"+kind+"_namespaces")/each)
	}
	c.Networks = readLimit("/proc/sys/user/max_net_namespaces")
	c.MemoryBytes = min(own.MemoryBytes, machineMemory())
	return c
}

// machineMemory returns the memory of the machine in bytes.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return math.MaxInt64
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// machineTasksLeft returns how many processes and threads the kernel can still make.
func machineTasksLeft() int {
	limit := min(readLimit("/proc/sys/kernel/pid_max"), readLimit("/proc/sys/kernel/threads-max"))
	fields := strings.Fields(procfs.ReadFile("/proc/loadavg")) // the fourth is RUNNING/ALL
	if limit == math.MaxInt || len(fields) < 4 {
		return limit
	}
	_, all, _ := strings.Cut(fields[3], "/")
	used, _ := strconv.Atoi(all)
	return max(limit-used, 0)
}

// userTasksLeft returns how many processes and threads RLIMIT_NPROC leaves to this process's user. The kernel does not
// limit root.
func userTasksLeft() int {
	var l unix.Rlimit
	if os.Geteuid() == 0 || unix.Getrlimit(unix.RLIMIT_NPROC, &l) != nil || l.Cur > math.MaxInt32 {
		return math.MaxInt
	}
	return max(int(l.Cur)-procfs.CountTasksOf(os.Getuid()), 0)
}

// readLimit returns the number in a file, or math.MaxInt if there is none.
func readLimit(path string) int {
	n, err := strconv.Atoi(strings.TrimSpace(procfs.ReadFile(path)))
	if err != nil {
		return math.MaxInt
	}
	return n
}

// limitGuests limits all guests together, so that they leave the reserve to the service.
func (i *Isolator) limitGuests() {
	c := MeasureCapacity()
	memory := max(c.MemoryBytes-c.ReservedMemory(), minGuestMemoryBytes)
	tasks := max(c.Tasks-ReservedTasks, minGuestTasks)
	if err := i.cgroups.Limit(memory, tasks); err != nil {
		i.config.Log("the guests together have no limit of memory and processes: %v", err)
	}
}
