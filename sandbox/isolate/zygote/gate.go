package zygote

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/procfs"
	"glasshouse/sandbox/isolate/seccomp"
)

// gate decides on the system calls of a zygote and its children that their filter leaves to the service: one fork for
// each child that the service has asked for, the change of a child to its own uid, and signals of a process to itself.
// So a package in the zygote cannot use these rights, whatever code it runs.
type gate struct {
	mu       sync.Mutex
	zygote   int         // pid
	expected int         // forks that the service has asked for, and the zygote has not made
	made     int         // forks that the zygote has made, and not reported
	uids     map[int]int // of children that must change to them, by pid
	asked    map[int]int // questions of threads, by id
}

// maxQuestions is how many questions a thread may ask. A process whose thread asks more is killed, because the answers
// take the service's CPU time.
const maxQuestions = 10_000

// open begins to answer the listener of a zygote's filter.
func (g *gate) open(zygote, listener int) error {
	g.zygote, g.uids, g.asked = zygote, map[int]int{}, map[int]int{}
	if err := unix.SetNonblock(listener, true); err != nil {
		_ = unix.Close(listener)
		return err
	}
	file := os.NewFile(uintptr(listener), "seccomp")
	go func() { _ = seccomp.Answer(file, g.allows) }()
	return nil
}

// expectFork allows one fork.
func (g *gate) expectFork() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expected++
}

// forked ends what expectFork began: the zygote has answered.
func (g *gate) forked() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.made > 0 {
		g.made--
	} else if g.expected > 0 {
		g.expected--
	}
}

// expectUID allows a child to change to a uid and the equal gid.
func (g *gate) expectUID(pid, uid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.uids != nil && uid != 0 {
		g.uids[pid] = uid
	}
}

// forget forgets a child that has ended.
func (g *gate) forget(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.uids, pid)
	delete(g.asked, pid)
}

func (g *gate) allows(call seccomp.Call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.asked) > maxQuestions { // of threads that have ended
		clear(g.asked)
	}
	if g.asked[call.TID]++; g.asked[call.TID] > maxQuestions {
		_ = unix.Kill(procfs.ProcessOf(call.TID), unix.SIGKILL)
		return false
	}
	switch call.Number {
	case unix.SYS_CLONE:
		if call.TID != g.zygote || g.expected == 0 || call.Args[0]&^forkFlags != 0 {
			return false
		}
		g.expected--
		g.made++
		g.asked[call.TID] = 0
		return true
	case unix.SYS_SETGROUPS:
		return g.uids[call.TID] != 0 && call.Args[0] == 0
	case unix.SYS_SETRESGID, unix.SYS_SETRESUID:
		uid := uint64(g.uids[call.TID])
		return uid != 0 && call.Args[0] == uid && call.Args[1] == uid && call.Args[2] == uid
	case unix.SYS_KILL, unix.SYS_TGKILL:
		pid := int(call.Args[0])
		return pid == call.TID || pid == procfs.ProcessOf(call.TID)
	}
	return false
}

// forkFlags are the flags of clone with which a zygote may make a child (fork_server.py).
const forkFlags = uint64(unix.SIGCHLD | unix.CLONE_PIDFD | unix.CLONE_CHILD_SETTID | unix.CLONE_CHILD_CLEARTID |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWNET)
