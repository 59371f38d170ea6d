package isolatetest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"glasshouse/sandbox/supervisor"
)

// stat returns the fields of /proc/PID/stat after the command's name: the state, the
// parent's pid, and so on. It returns nil if the process is gone.
func stat(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(text), ") ")
	return strings.Fields(after)
}

// Lives reports whether a process exists and is not a zombie.
func Lives(pid int) bool {
	fields := stat(pid)
	return len(fields) > 0 && fields[0] != "Z"
}

// Children returns the living child processes of a process.
func Children(pid int) (pids []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		body, _ := os.ReadFile(task)
		for word := range strings.FieldsSeq(string(body)) {
			if child, err := strconv.Atoi(word); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// findProcess returns the pid of the process with the command name name, or 0.
func findProcess(name string) int {
	files, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, file := range files {
		if comm, _ := os.ReadFile(file); strings.TrimSpace(string(comm)) == name {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return pid
		}
	}
	return 0
}

// processOf returns the pid of a session's process.
func processOf(t testing.TB, s *supervisor.Session) int {
	t.Helper()
	name := Nonce()[:15] // as long as the kernel allows
	e := Run(t, s, fmt.Sprintf("import ctypes\nctypes.CDLL(None).prctl(15, %q.encode(), 0, 0, 0)  # PR_SET_NAME", name))
	pid := findProcess(name)
	if pid == 0 {
		t.Fatalf("find the session's process: got none (%s %s)", e.Status, Why(e))
	}
	return pid
}

// zygoteOf returns the pid of the zygote that forked a session's process.
func zygoteOf(t testing.TB, s *supervisor.Session) int {
	t.Helper()
	fields := stat(processOf(t, s))
	if len(fields) < 2 {
		t.Fatal("find the session's zygote: the session's process does not exist any more")
	}
	zygote, _ := strconv.Atoi(fields[1])
	return zygote
}

// zygotesUsing returns this process's zygotes that import from the environments of a data folder.
func zygotesUsing(environments string) []int {
	// Mounts have the path within their file system, which is shorter if the data folder is on a mount of its own.
	folder := filepath.Join(filepath.Base(filepath.Dir(environments)), filepath.Base(environments))
	processes := Children(os.Getpid())
	for _, launcher := range slices.Clone(processes) { // which is the zygote on levels without mounts
		processes = append(processes, Children(launcher)...)
	}
	return slices.DeleteFunc(processes, func(pid int) bool {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // has the folder on levels without mounts
		mounts, _ := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
		return !strings.Contains(string(command), "zygote.py") ||
			!strings.Contains(string(command)+string(mounts), folder)
	})
}
