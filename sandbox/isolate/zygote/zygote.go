// Package zygote starts warm Python interpreters, which fork children.
//
//	z, err := zygote.Start(spec, uids, maxForks, log)       // seconds: it imports the warm modules
//	pidfd, err := z.Fork(ctx, fds, birth, uid, onExit)    // about a millisecond
//	z.Retire()                                            // ends with the last child
//
// Three programs take part:
//
//  1. The service calls Start, which runs its own binary again, in new namespaces, as
//     the launcher.
//  2. The launcher (Launch) builds the root file system and replaces itself by Python.
//     It runs no user code.
//  3. The zygote (zygote.py) imports the warm modules and forks a child for each request
//     of the service on the control socket. It holds no secret. Only its children run
//     user code.
//
// The zygote exits when its control socket closes. It is the init process of its pid
// namespace, so the kernel then kills all of its children. Without namespaces the kernel
// kills the children by their parent-death signal.
package zygote

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/layer"
	"glasshouse/sandbox/isolate/procfs"
)

// startTimeout is how long a zygote may take to import its modules, in seconds.
const startTimeout = 60

// Zygote is one warm interpreter and the control socket to it.
type Zygote struct {
	StartedAt time.Time
	DataKB    int64       // private writable memory after the warm-up
	Held      procfs.Held // after the warm-up

	cmd     *exec.Cmd
	control *os.File
	dead    chan struct{} // closed when the process is gone
	worn    chan struct{} // closed after maxForks forks

	mu          sync.Mutex
	lastID      int                 // ID of the last request for a fork
	waiting     map[int]chan forked // unanswered requests, by ID
	unborn      map[int]ExitFunc    // for children that are not forked yet, by the request's ID
	living      map[uint32]ExitFunc // for living children, by the pid in the zygote's namespace
	forks       int
	maxForks    int
	retired     bool // the zygote ends with its last child
	sharedMount int  // a mount of the spec's SharedDir, or -1
}

// ExitFunc is called once when a child has ended, with its wait status and the CPU time
// that it used.
type ExitFunc func(status int, cpuTime time.Duration)

// forked is the answer to a request for a fork.
type forked struct {
	pidfd int
	err   error
}

// InterpreterError reports that the interpreter fails in the sandbox. Another interpreter may
// work.
type InterpreterError struct{ Message string }

func (e *InterpreterError) Error() string { return e.Message }

var (
	errDied = errors.New("the zygote died")
	errGone = errors.New("the zygote has ended")
)

// Start starts a zygote, which is worn after maxForks forks, and waits until it is warm. It passes the zygote's output
// to log, line by line.
func Start(spec Spec, uids UIDRange, maxForks int, log func(line string)) (*Zygote, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	control, childControl := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control-child")
	specR, specW, err := os.Pipe()
	if err != nil {
		closeAll(control, childControl)
		return nil, err
	}
	outputR, outputW, err := os.Pipe()
	if err != nil {
		closeAll(control, childControl, specR, specW)
		return nil, err
	}
	cmd := launcherCommand(spec, uids)
	cmd.Stdout, cmd.Stderr = outputW, outputW
	cmd.ExtraFiles = []*os.File{childControl, specR} // controlFD and specFD
	err = cmd.Start()
	closeAll(childControl, specR, outputW)
	if err != nil {
		closeAll(control, outputR, specW)
		return nil, fmt.Errorf("make the namespaces: %w", err)
	}
	output := &outputLog{}
	output.done.Go(func() { output.read(outputR, log) })
	z := &Zygote{cmd: cmd, control: control, StartedAt: time.Now(), sharedMount: -1, maxForks: maxForks,
		waiting: map[int]chan forked{}, unborn: map[int]ExitFunc{}, living: map[uint32]ExitFunc{},
		dead: make(chan struct{}), worn: make(chan struct{})}
	err = json.NewEncoder(specW).Encode(spec)
	specW.Close()
	if err == nil {
		err = z.awaitReady(pair[0], spec.SharedDir != "")
	}
	if err != nil {
		z.CloseSharedMount()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		output.done.Wait()
		control.Close()
		if output.traceback {
			return nil, &InterpreterError{"the interpreter ended: " + output.last}
		}
		return nil, fmt.Errorf("the launcher ended: %s", output.last)
	}
	z.DataKB, z.Held = procfs.StatusKB(cmd.Process.Pid, "VmData"), procfs.HeldBy(cmd.Process.Pid)
	go z.readAnswers(pair[0])
	return z, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// outputLog collects the output of a zygote.
type outputLog struct {
	done      sync.WaitGroup // until the zygote's output ends
	last      string         // the last line
	traceback bool           // the output has a Python traceback, so the launcher had started Python
}

func (o *outputLog) read(from *os.File, log func(line string)) {
	defer from.Close()
	for lines := bufio.NewScanner(from); lines.Scan(); {
		o.last = lines.Text()
		o.traceback = o.traceback || strings.HasPrefix(o.last, "Traceback ")
		log(o.last)
	}
}

// launcherCommand returns the command of the launcher in its namespaces.
func launcherCommand(spec Spec, uids UIDRange) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{LauncherName}
	if !spec.Without.Has(layer.Environment) {
		cmd.Env = []string{} // nil would be the service's own
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if spec.Namespaces {
		setNamespaces(cmd.SysProcAttr, uids, spec.Without)
	}
	return cmd
}

// setNamespaces makes a process start in new namespaces, in which it is root and may
// use the uids of the range.
func setNamespaces(attr *syscall.SysProcAttr, uids UIDRange, without layer.Set) {
	attr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	for l, flag := range map[layer.Layer]uintptr{
		layer.User: unix.CLONE_NEWUSER, layer.PID: unix.CLONE_NEWPID, layer.Network: unix.CLONE_NEWNET, layer.IPC: unix.CLONE_NEWIPC,
	} {
		if !without.Has(l) {
			attr.Cloneflags |= flag
		}
	}
	if without.Has(layer.User) {
		return // the uids are the machine's
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	if uids.Count > 0 {
		children := syscall.SysProcIDMap{ContainerID: FirstInnerUID, HostID: uids.First, Size: uids.Count}
		attr.UidMappings, attr.GidMappings = append(attr.UidMappings, children), append(attr.GidMappings, children)
		attr.GidMappingsEnableSetgroups = true
	}
}

// awaitReady waits for the zygote's first messages: a mount of the shared folder, if the spec
// has one, and then the ready message.
func (z *Zygote) awaitReady(fd int, hasShared bool) error {
	message, control := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: startTimeout})
	n, controlLen, err := receive(fd, message, control)
	if hasShared && err == nil && n > 0 {
		z.sharedMount = firstFD(control[:controlLen])
		n, _, err = receive(fd, message, control)
	}
	if err == nil && n == 0 {
		err = errGone
	}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{})
	return err
}

func receive(fd int, message, control []byte) (n, controlLen int, err error) {
	for {
		n, controlLen, _, _, err = unix.Recvmsg(fd, message, control, unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			return n, controlLen, err
		}
	}
}

// firstFD returns the first descriptor of a control message, or -1.
func firstFD(control []byte) int {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return -1
	}
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil && len(fds) > 0 {
			return fds[0]
		}
	}
	return -1
}

// readAnswers reads the zygote's messages until the zygote ends. Then it fails all requests
// and reports all children as killed.
//
// A message begins with its kind: 'f' a child was forked, 'e' a fork failed, 'x' a child
// has exited.
func (z *Zygote) readAnswers(fd int) {
	message, control := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	for {
		n, controlLen, err := receive(fd, message, control)
		if err != nil || n == 0 {
			break
		}
		if n < 5 {
			continue
		}
		kind, id, rest := message[0], binary.BigEndian.Uint32(message[1:]), message[5:n]
		z.mu.Lock()
		switch {
		case kind == 'f' && len(rest) == 4:
			pid := binary.BigEndian.Uint32(rest)
			z.living[pid] = z.unborn[int(id)]
			delete(z.unborn, int(id))
			answer := forked{pidfd: firstFD(control[:controlLen])}
			if answer.pidfd < 0 { // the child finds its connection closed and exits
				answer.err = unix.EMFILE
			}
			z.answer(int(id), answer)
		case kind == 'e':
			delete(z.unborn, int(id))
			z.answer(int(id), forked{pidfd: -1, err: errors.New(string(rest))})
			z.killIfUnused()
		case kind == 'x' && len(rest) == 12:
			if onExit := z.living[id]; onExit != nil {
				delete(z.living, id)
				cpuTime := time.Duration(binary.BigEndian.Uint64(rest[4:])) * time.Microsecond
				onExit(int(binary.BigEndian.Uint32(rest)), cpuTime)
			}
			z.killIfUnused()
		}
		z.mu.Unlock()
	}
	_ = z.cmd.Process.Kill()
	_ = z.cmd.Wait()
	z.mu.Lock()
	defer z.mu.Unlock()
	close(z.dead)
	_ = z.control.Close()
	for id := range z.waiting {
		z.answer(id, forked{pidfd: -1, err: errDied})
	}
	for _, onExit := range slices.Concat(slices.Collect(maps.Values(z.unborn)), slices.Collect(maps.Values(z.living))) {
		onExit(int(unix.SIGKILL), 0)
	}
	clear(z.unborn)
	clear(z.living)
}

// answer sends an answer to the Fork that waits for it. If that Fork has returned already,
// answer closes the pidfd. The caller holds z.mu.
func (z *Zygote) answer(id int, a forked) {
	if waiting := z.waiting[id]; waiting != nil {
		delete(z.waiting, id)
		waiting <- a
	} else if a.pidfd >= 0 {
		_ = unix.Close(a.pidfd)
	}
}

// Fork forks one child and returns its pidfd, which the caller closes. fds are the
// child's ends of the protocol socket, stdout and stderr, and the descriptors through
// which it joins its control group. birth is an index of the spec's Births. uid is the child's
// uid, or 0 if the child gets its Enter after the fork. onExit is called once when the child
// has ended, even if Fork fails because ctx ended.
func (z *Zygote) Fork(ctx context.Context, fds []int, birth, uid int, onExit ExitFunc) (pidfd int, err error) {
	answer := make(chan forked, 1)
	z.mu.Lock()
	if !z.Alive() {
		z.mu.Unlock()
		return -1, errGone
	}
	z.lastID++
	if z.forks++; z.forks == z.maxForks {
		close(z.worn)
	}
	id := z.lastID
	z.waiting[id], z.unborn[id] = answer, onExit
	request := []byte{'F'}
	for _, word := range []int{id, uid, birth} {
		request = binary.BigEndian.AppendUint32(request, uint32(word))
	}
	err = unix.Sendmsg(int(z.control.Fd()), request, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
	if err != nil {
		delete(z.waiting, id)
		delete(z.unborn, id)
		z.mu.Unlock()
		return -1, err
	}
	z.mu.Unlock()
	select {
	case a := <-answer:
		return a.pidfd, a.err
	case <-ctx.Done():
	}
	z.mu.Lock()
	delete(z.waiting, id) // not from unborn: the child may still be forked; it finds its socket closed and exits
	z.mu.Unlock()
	select {
	case a := <-answer: // the answer arrived just before the lock
		return a.pidfd, a.err
	default:
		return -1, ctx.Err()
	}
}

// Worn returns a channel that is closed when the zygote is worn.
func (z *Zygote) Worn() <-chan struct{} { return z.worn }

// Retire makes the zygote end with its last child.
func (z *Zygote) Retire() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.retired = true
	z.killIfUnused()
}

// Childless reports whether the zygote has no child.
func (z *Zygote) Childless() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return len(z.unborn)+len(z.living) == 0
}

// killIfUnused ends a retired zygote that has no child. The caller holds z.mu.
func (z *Zygote) killIfUnused() {
	if z.retired && len(z.unborn)+len(z.living) == 0 {
		_ = z.cmd.Process.Kill()
	}
}

// Dead returns a channel that is closed when the zygote has ended.
func (z *Zygote) Dead() <-chan struct{} { return z.dead }

// Alive reports whether the zygote has not ended.
func (z *Zygote) Alive() bool {
	select {
	case <-z.dead:
		return false
	default:
		return true
	}
}

// TakeSharedMount returns a mount of the spec's SharedDir, which the caller closes, or -1 if
// it was taken already.
func (z *Zygote) TakeSharedMount() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	fd := z.sharedMount
	z.sharedMount = -1
	return fd
}

// CloseSharedMount closes the mount of SharedDir unless it was taken.
func (z *Zygote) CloseSharedMount() {
	if fd := z.TakeSharedMount(); fd >= 0 {
		_ = unix.Close(fd)
	}
}

// Close kills the zygote, and with it all of its children.
func (z *Zygote) Close() {
	z.CloseSharedMount()
	_ = z.cmd.Process.Kill()
	<-z.dead
}
