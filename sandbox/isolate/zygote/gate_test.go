package zygote

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/seccomp"
)

const testForkFlags = uint64(unix.SIGCHLD | unix.CLONE_PIDFD | unix.CLONE_NEWUSER | unix.CLONE_NEWPID)

func newGate(zygote int) *gate {
	return &gate{zygote: zygote, uids: map[int]int{}, asked: map[int]int{}}
}

func call(tid, number int, args ...uint64) seccomp.Call {
	c := seccomp.Call{TID: tid, Number: number}
	copy(c.Args[:], args)
	return c
}

// A zygote makes one fork for each child that the service has asked for, and not a fork too late.
func TestGateAllowsTheForksThatWereAskedFor(t *testing.T) {
	const zygote = 100
	g := newGate(zygote)
	fork := func(tid int, flags uint64) bool { return g.allows(call(tid, unix.SYS_CLONE, flags)) }
	if fork(zygote, testForkFlags) {
		t.Error("a fork that nobody asked for: got true")
	}
	g.expectFork()
	for name, refused := range map[string]bool{
		"of another thread":                fork(zygote+1, testForkFlags),
		"with shared memory":               fork(zygote, testForkFlags|unix.CLONE_VM),
		"with the upper half of the flags": fork(zygote, testForkFlags|1<<40),
	} {
		if refused {
			t.Errorf("a fork %s: got true", name)
		}
	}
	if !fork(zygote, testForkFlags) {
		t.Error("the fork that the service asked for: got false")
	}
	if fork(zygote, testForkFlags) {
		t.Error("a second fork: got true")
	}
	g.forked()
	g.expectFork()
	g.forked() // the zygote answered without a fork
	if fork(zygote, testForkFlags) {
		t.Error("a fork after the answer: got true")
	}
}

func TestGateAllowsAChildItsOwnUID(t *testing.T) {
	g := newGate(100)
	change := func(tid, number int, ids ...uint64) bool { return g.allows(call(tid, number, ids...)) }
	if change(101, unix.SYS_SETRESUID, 5000, 5000, 5000) || change(101, unix.SYS_SETGROUPS, 0) {
		t.Error("a change that nobody asked for: got true")
	}
	g.expectUID(101, 5000)
	if !change(101, unix.SYS_SETGROUPS, 0) || !change(101, unix.SYS_SETRESGID, 5000, 5000, 5000) ||
		!change(101, unix.SYS_SETRESUID, 5000, 5000, 5000) {
		t.Error("the change of the child: got false")
	}
	for name, allowed := range map[string]bool{
		"groups":           change(101, unix.SYS_SETGROUPS, 1),
		"another uid":      change(101, unix.SYS_SETRESUID, 5001, 5001, 5001),
		"root's saved uid": change(101, unix.SYS_SETRESUID, 5000, 5000, 0),
		"the zygote":       change(100, unix.SYS_SETRESUID, 5000, 5000, 5000),
		"another child":    change(102, unix.SYS_SETRESUID, 5000, 5000, 5000),
	} {
		if allowed {
			t.Errorf("%s: got true", name)
		}
	}
	g.forget(101)
	if change(101, unix.SYS_SETRESUID, 5000, 5000, 5000) {
		t.Error("after the child has ended: got true")
	}
}

// A process may signal itself. One that asks without end is killed.
func TestGateEndsProcessesThatAskTooMuch(t *testing.T) {
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	pid := cmd.Process.Pid
	g := newGate(100)
	if g.allows(call(pid, unix.SYS_KILL, uint64(os.Getpid()), 0)) || g.allows(call(pid, unix.SYS_KILL, ^uint64(0), 9)) {
		t.Error("a signal to another process: got true")
	}
	for range maxQuestions - 2 {
		if !g.allows(call(pid, unix.SYS_TGKILL, uint64(pid), uint64(pid), 0)) {
			t.Fatal("a signal to itself: got false")
		}
	}
	if g.allows(call(pid, unix.SYS_KILL, uint64(pid), 0)) {
		t.Error("one question too many: got true")
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process that asked: got no error of Wait, want that it was killed")
	}
}
