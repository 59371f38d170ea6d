package isolate

import (
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/cgroup"
	"glasshouse/sandbox/protocol"
)

// startSleeper starts a process that does nothing, and returns its pidfd.
func startSleeper(t *testing.T) (*exec.Cmd, int) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, fd
}

// openConn returns a connection whose other end is open until the test ends.
func openConn(t *testing.T) *protocol.Conn {
	t.Helper()
	conn, other, err := socketPair(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	return protocol.NewConn(conn)
}

// After Close, the number of the pidfd may refer to another process.
func TestSignalAfterCloseReachesNoProcess(t *testing.T) {
	_, first := startSleeper(t)
	p := &Process{Conn: openConn(t), pidfd: first}
	p.closeFiles()
	other, second := startSleeper(t)
	defer unix.Close(second)
	var err error
	for second != first {
		if second, err = unix.Dup(second); err != nil || second > first+100 {
			t.Fatalf("reuse the descriptor %d: got %d, %v", first, second, err)
		}
		defer unix.Close(second)
	}
	p.Kill()
	if err := other.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait()
	// If a SIGKILL had reached the process before the SIGTERM, the status would show SIGKILL.
	if status := other.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != unix.SIGTERM {
		t.Errorf("another process: got %s, want only the SIGTERM of this test", status.Signal())
	}
}

func TestGroupThatCouldNotBeJoinedIsNotReused(t *testing.T) {
	tree, err := cgroup.Open()
	if err != nil || tree.Version() != 1 { // groups of version 2 are never reused
		t.Logf("report: not tested, because this machine has no control groups of version 1: %v", err)
		return
	}
	t.Cleanup(tree.Close)
	makeGroup := func() *cgroup.Group {
		t.Helper()
		g, err := tree.Make()
		if err == nil {
			err = g.SetLimits(cgroup.Limits{MemoryBytes: 32 << 20, CPUPercent: 50, Tasks: 16})
		}
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for exitStatus, want := range map[int]bool{0: true, cannotJoin: false} {
		g := makeGroup()
		p := &Process{Conn: openConn(t), pidfd: -1, group: g, status: exitStatus << 8, done: make(chan struct{})}
		close(p.done)
		p.Close()
		next := makeGroup()
		if got := next.Name() == g.Name(); got != want {
			t.Errorf("after the exit status %d: got reused %v, want %v", exitStatus, got, want)
		}
		next.Remove()
	}
}
