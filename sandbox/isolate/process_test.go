package isolate

import (
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/protocol"
)

// started is a process that only waits, and a descriptor of it.
func started(t *testing.T) (*exec.Cmd, int) {
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

// hosts is the service's end of a hatch whose other end is there until the test's end.
func hosts(t *testing.T) *protocol.Conn {
	t.Helper()
	conn, theirs, err := streamPair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	return protocol.NewConn(conn)
}

// A signal that comes after the end reaches nobody: the number of the descriptor is
// another process's by then.
func TestASignalAfterTheEnd(t *testing.T) {
	_, first := started(t)
	p := &Process{Conn: hosts(t), pidfd: first}
	if err := p.letGo(); err != nil {
		t.Fatal(err)
	}
	other, second := started(t)
	defer unix.Close(second)
	var err error
	for second != first { // whatever took the number
		if second, err = unix.Dup(second); err != nil || second > first+100 {
			t.Fatalf("the descriptor %d is not to be had: %v", first, err)
		}
		defer unix.Close(second)
	}
	p.Kill()
	if err := other.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait()
	if status := other.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != unix.SIGTERM { // one that was there before it wins
		t.Errorf("another process was signalled: it ended by %s", status.Signal())
	}
}

// The group of a child that could not join it is not another's.
func TestAGroupThatCouldNotBeJoined(t *testing.T) {
	c := groups(t, 1) // of the other, none is used again
	if c == nil {
		return
	}
	for exit, again := range map[int]bool{0: true, noGroup: false} {
		g := fresh(t, c, "first")
		p := &Process{Conn: hosts(t), pidfd: -1, group: g, status: exit << 8, done: make(chan struct{})}
		close(p.done)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		next := fresh(t, c, "second")
		if (next.name == g.name) != again {
			t.Errorf("after the exit status %d the next group is %s, and it was %s", exit, next.name, g.name)
		}
		if err := next.abandon(); err != nil {
			t.Error(err)
		}
	}
}
