// Package procfs reads facts about a process from /proc and from the process's clock.
package procfs

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ReadFile returns the content of a file of at most 4096 bytes, or "" if it cannot be read.
// It does not use os.File, because the Go runtime registers each os.File with its poller,
// which takes longer than the read.
func ReadFile(path string) string {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	var buf [4096]byte // /proc/PID/status has about 1500
	n, _ := unix.Read(fd, buf[:])
	_ = unix.Close(fd)
	return string(buf[:max(n, 0)])
}

// field returns the value of a line "NAME: VALUE" of a file, or "".
func field(path, name string) string {
	for line := range strings.SplitSeq(ReadFile(path), "\n") {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// StatusKB returns a memory size of /proc/PID/status in KiB, such as "VmRSS"; 0 if
// the process is gone.
func StatusKB(pid int, name string) int64 {
	kb, _ := strconv.ParseInt(strings.TrimSuffix(field("/proc/"+strconv.Itoa(pid)+"/status", name), " kB"), 10, 64)
	return kb
}

// Held is the memory in KiB that the kernel holds for a process, without that of files on a disk.
type Held struct {
	OwnKB    int64 // resident anonymous pages, swapped pages and page tables
	SharedKB int64 // resident pages of files in memory
}

// HeldBy returns the memory of a process; zero if the process is gone.
func HeldBy(pid int) (h Held) {
	for line := range strings.SplitSeq(ReadFile("/proc/"+strconv.Itoa(pid)+"/status"), "\n") {
		name, value, _ := strings.Cut(line, ":")
		kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "RssAnon", "VmSwap", "VmPTE":
			h.OwnKB += kb
		case "RssShmem":
			h.SharedKB += kb
		}
	}
	return h
}

// Beyond returns the KiB that a process has more than its parent. A child maps some of the pages of files in memory
// that its parent has, so these count only as far as they are more.
func (h Held) Beyond(parent Held) int64 {
	return max(0, h.OwnKB-parent.OwnKB+max(0, h.SharedKB-parent.SharedKB))
}

// SharedWritable returns the mappings of a process that it shares with its children and can write, by their names.
func SharedWritable(pid int) (names []string) {
	maps, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps") // the process may have ended
	for line := range strings.SplitSeq(string(maps), "\n") {
		fields := strings.Fields(line)
		if len(fields) > 1 && strings.HasPrefix(fields[1], "rw") && strings.HasSuffix(fields[1], "s") {
			names = append(names, strings.Join(fields[min(5, len(fields)):], " "))
		}
	}
	return names
}

// PIDOf returns the pid, in this process's pid namespace, of the process that a pidfd
// refers to; 0 if the process is gone. It needs a descriptor, and returns an error if there is none.
func PIDOf(pidfd int) (int, error) {
	path := "/proc/self/fdinfo/" + strconv.Itoa(pidfd)
	pid, _ := strconv.Atoi(field(path, "Pid"))
	if pid != 0 {
		return max(pid, 0), nil
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) // why there is no pid
	if err == nil {
		_ = unix.Close(fd)
	}
	return 0, err
}

// ParentOf returns the pid of the parent of a process, and ProcessOf that of the process of a thread; 0 if it is gone.
func ParentOf(pid int) int { return statusNumber(pid, "PPid") }

// ProcessOf: see ParentOf.
func ProcessOf(tid int) int { return statusNumber(tid, "Tgid") }

func statusNumber(pid int, name string) int {
	n, _ := strconv.Atoi(field("/proc/"+strconv.Itoa(pid)+"/status", name))
	return n
}

// CPUTime returns the CPU time of all threads that a process has or had; 0 if the
// process is gone. It reads the process's CPU-time clock, whose number is derived from
// the pid (clock_getcpuclockid(3)).
func CPUTime(pid int) time.Duration {
	const schedClock = 2 // CPUCLOCK_SCHED of the kernel's posix-timers.h
	var t unix.Timespec
	if pid <= 0 || unix.ClockGettime(int32(^pid)<<3|schedClock, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// CountThreads returns the number of a process's threads.
func CountThreads(pid int) int { return countEntries(pid, "task") }

// CountFiles returns the number of a process's open files.
func CountFiles(pid int) int { return countEntries(pid, "fd") }

// SetOOMScore sets the score of a process by which the kernel chooses what it ends when there is
// no memory left. It does nothing if this process may not set it.
func SetOOMScore(pid, score int) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	_, _ = unix.Write(fd, strconv.AppendInt(nil, int64(score), 10))
	_ = unix.Close(fd)
}

// IsStopped reports whether every thread of a process is stopped by a signal, or has exited.
func IsStopped(pid int) bool {
	folder := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, _ := os.ReadDir(folder)
	for _, thread := range threads {
		stat := ReadFile(folder + thread.Name() + "/stat") // PID (NAME) STATE ..., with any NAME
		state := stat[strings.LastIndex(stat, ") ")+1:]
		if stat != "" && !strings.HasPrefix(state, " T") && !strings.HasPrefix(state, " Z") {
			return false
		}
	}
	return true
}

// CountTasksOf returns the number of threads of all processes of a user.
func CountTasksOf(uid int) (n int) {
	processes, _ := os.ReadDir("/proc")
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		status := "/proc/" + p.Name() + "/status"
		owner, _, _ := strings.Cut(field(status, "Uid"), "\t")
		if owner == strconv.Itoa(uid) {
			n += CountThreads(pid)
		}
	}
	return n
}

func countEntries(pid int, folder string) int {
	entries, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/" + folder)
	return len(entries)
}
