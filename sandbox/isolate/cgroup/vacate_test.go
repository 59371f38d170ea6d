package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// delegatedGroup returns a group of version 2 of the kernel, and a controller that groups below it can have. If this
// machine has none, it logs that and returns "".
func delegatedGroup(t *testing.T) (base, controller string) {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		available, _ := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
		fields := slices.DeleteFunc(strings.Fields(string(available)), func(c string) bool {
			// They allow processes next to them (threaded controllers).
			return slices.Contains([]string{"cpu", "cpuset", "pids", "perf_event"}, c)
		})
		if len(fields) == 0 {
			continue
		}
		controller = fields[0]
		enabled, _ := os.ReadFile(filepath.Join(root, "cgroup.subtree_control"))
		if !slices.Contains(strings.Fields(string(enabled)), controller) {
			if writeFile(root, "cgroup.subtree_control", "+"+controller) != nil {
				continue
			}
			t.Cleanup(func() { _ = writeFile(root, "cgroup.subtree_control", "-"+controller) })
		}
		if base, err := os.MkdirTemp(root, "vacate-test-"); err == nil {
			t.Cleanup(func() {
				for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // killed processes end
					_ = os.Remove(filepath.Join(base, serviceGroup))
					if err := os.Remove(base); err == nil || time.Now().After(end) {
						return
					}
				}
			})
			return base, controller
		}
	}
	t.Log("report: not tested, because this machine gives no control groups of version 2")
	return "", ""
}

// startIn starts a shell command in a group, and returns when it has printed a line.
func startIn(t *testing.T, group, command string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", "echo $$ >"+group+"/cgroup.procs; "+command)
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// The kernel enables controllers below a group only after the service and its processes have left it.
func TestVacateMovesTheServiceAndItsProcesses(t *testing.T) {
	base, controller := delegatedGroup(t)
	if base == "" {
		return
	}
	cmd := startIn(t, base, "sleep 600 & echo started; wait")
	if err := writeFile(base, "cgroup.subtree_control", "+"+controller); !errors.Is(err, unix.EBUSY) {
		t.Fatalf("enable %s in a group with processes: got %v, want EBUSY", controller, err)
	}
	for range 2 { // again if a weaker level was tried first
		if err := vacate(base, cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeFile(base, "cgroup.subtree_control", "+"+controller); err != nil {
		t.Errorf("enable %s after vacate: %v", controller, err)
	}
	text, _ := os.ReadFile(filepath.Join(base, serviceGroup, "cgroup.procs"))
	if got := strings.Fields(string(text)); len(got) != 2 || !slices.Contains(got, fmt.Sprint(cmd.Process.Pid)) {
		t.Errorf("%s: got processes %q, want the shell and sleep", serviceGroup, got)
	}
}

func TestVacateLeavesAGroupWithOtherProcesses(t *testing.T) {
	base, _ := delegatedGroup(t)
	if base == "" {
		return
	}
	startIn(t, base, "echo started; exec sleep 600")
	own := startIn(t, base, "echo started; exec sleep 600")
	if err := vacate(base, own.Process.Pid); !errors.Is(err, unix.EBUSY) {
		t.Errorf("with another process: got %v, want EBUSY", err)
	}
	text, _ := os.ReadFile(filepath.Join(base, "cgroup.procs"))
	if got := strings.Fields(string(text)); len(got) != 2 {
		t.Errorf("got processes %q in the group, want both shells", got)
	}
}
