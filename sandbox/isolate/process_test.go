package isolate

import (
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/hatch"
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

// A signal that comes after the end reaches nobody: the number of the descriptor is
// another process's by then.
func TestASignalAfterTheEnd(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[1])
	file := os.NewFile(uintptr(pair[0]), "hatch")
	conn, err := net.FileConn(file)
	file.Close()
	if err != nil {
		t.Fatal(err)
	}
	_, first := started(t)
	p := &Process{Hatch: hatch.NewConn(conn.(*net.UnixConn)), pidfd: first}
	if err := p.letGo(); err != nil {
		t.Fatal(err)
	}
	other, second := started(t)
	defer unix.Close(second)
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
