// Package zygote starts warm Python interpreters, which fork children.
//
//	z, err := zygote.Start(ctx, spec, maxForks, log)      // seconds: it imports the warm modules
//	pidfd, err := z.Fork(ctx, fds, birth, uid, onExit)    // about a millisecond
//	fds, err := z.Prepare(pidfd, enter)                   // gives the child its mounts
//	z.Retire()                                            // ends with the last child
//
// Three programs take part:
//
//  1. The service calls Start, which runs its own binary again, in new namespaces, as
//     the launcher.
//  2. The launcher (Launch) builds the root file system, starts Python, and gives children
//     their mounts. It runs no user code and no package.
//  3. The zygote (zygote.py) gives up its rights, imports the warm modules, and forks a child
//     for each request of the service on the control socket. It holds no secret. Packages run
//     code in it, so the service trusts it no more than its children.
//
// The zygote exits when its control socket closes. The launcher, which ends with it, is the
// init process of its pid namespace, so the kernel then kills all of its children. Without
// namespaces the launcher becomes the zygote, and the kernel kills the children by their
// parent-death signal.
package zygote

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/layer"
	"glasshouse/sandbox/isolate/procfs"
	"glasshouse/sandbox/protocol"
)

// startTimeout is how long a zygote may take to import its modules, in seconds.
const startTimeout = 60

// Zygote is one warm interpreter and the control socket to it.
type Zygote struct {
	StartedAt time.Time
	DataKB    int64       // private writable memory after the warm-up
	Held      procfs.Held // after the warm-up

	PID int // in this process's pid namespace

	cmd     *exec.Cmd // the launcher
	output  *outputLog
	control *os.File
	prepare *os.File      // to the launcher; nil without namespaces
	dead    chan struct{} // closed when the process is gone
	worn    chan struct{} // closed after maxForks forks

	preparing sync.Mutex // held while the launcher answers
	gate      gate

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

// Start starts a zygote, which is worn after maxForks forks, and waits until it is warm, or ctx ends. It passes the
// zygote's output to log, line by line.
func Start(ctx context.Context, spec Spec, maxForks int, log func(line string)) (*Zygote, error) {
	control, childControl, err := socketPair()
	if err != nil {
		return nil, err
	}
	prepare, childPrepare, err := socketPair()
	if err != nil {
		closeAll(control, childControl)
		return nil, err
	}
	specR, specW, err := os.Pipe()
	if err != nil {
		closeAll(control, childControl, prepare, childPrepare)
		return nil, err
	}
	outputR, outputW, err := os.Pipe()
	if err != nil {
		closeAll(control, childControl, prepare, childPrepare, specR, specW)
		return nil, err
	}
	cmd := launcherCommand(spec)
	cmd.Stdout, cmd.Stderr = outputW, outputW
	cmd.ExtraFiles = []*os.File{childControl, specR, childPrepare} // controlFD, specFD and prepareFD
	err = cmd.Start()
	closeAll(childControl, specR, childPrepare, outputW)
	if err != nil {
		closeAll(control, prepare, outputR, specW)
		return nil, fmt.Errorf("make the namespaces: %w", err)
	}
	output := &outputLog{from: outputR}
	output.done.Go(func() { output.read(log) })
	z := &Zygote{cmd: cmd, output: output, control: control, prepare: prepare, StartedAt: time.Now(),
		sharedMount: -1, maxForks: maxForks,
		waiting: map[int]chan forked{}, unborn: map[int]ExitFunc{}, living: map[uint32]ExitFunc{},
		dead: make(chan struct{}), worn: make(chan struct{})}
	if spec.TempDir != "" {
		go z.limitFiles(spec.TempDir, log)
	}
	stop := context.AfterFunc(ctx, z.kill) // the import of a package may never end
	err = json.NewEncoder(specW).Encode(spec)
	specW.Close()
	if err == nil {
		err = z.awaitReady(spec)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		z.CloseSharedMount()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		close(z.dead)
		output.end()
		closeAll(control, prepare)
		if output.traceback {
			return nil, &InterpreterError{"the interpreter ended: " + output.last}
		}
		return nil, fmt.Errorf("the launcher ended: %s", output.last)
	}
	z.DataKB, z.Held = procfs.StatusKB(z.PID, "VmData"), procfs.HeldBy(z.PID)
	go z.readAnswers()
	return z, nil
}

// socketPair returns a connected pair of sockets that keep the bounds of messages.
func socketPair() (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket-child"), nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// launcherCommand returns the command of the launcher in its namespaces.
func launcherCommand(spec Spec) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{LauncherName}
	if !spec.Without.Has(layer.Environment) {
		cmd.Env = []string{} // nil would be the service's own
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if spec.Namespaces {
		setNamespaces(cmd.SysProcAttr, spec.UIDs, spec.Without)
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
	if uids.Count == 0 {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
		return
	}
	attr.UidMappings = []syscall.SysProcIDMap{
		{ContainerID: innerLauncherUID, HostID: uids.First - reservedUIDs, Size: reservedUIDs},
		{ContainerID: FirstInnerUID, HostID: uids.First, Size: uids.Count},
	}
	attr.GidMappings, attr.GidMappingsEnableSetgroups = attr.UidMappings, true
	attr.AmbientCaps = launcherCapabilities // it starts as the service's account, which has no id there
}

// awaitReady waits until the zygote has imported its modules. It receives what the launcher and the zygote send before:
// a mount of the shared folder, the zygote's pidfd, and the listener of its filter.
func (z *Zygote) awaitReady(spec Spec) (err error) {
	z.PID = z.cmd.Process.Pid
	control, prepare := int(z.control.Fd()), int(z.prepare.Fd())
	for _, fd := range []int{control, prepare} {
		_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: startTimeout})
	}
	defer unix.SetsockoptTimeval(control, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{})
	if spec.Namespaces {
		if spec.SharedDir != "" {
			if z.sharedMount, err = receiveFD(prepare); err != nil {
				return err
			}
		}
		pidfd, err := receiveFD(prepare)
		if err != nil {
			return err
		}
		z.PID, err = procfs.PIDOf(pidfd)
		_ = unix.Close(pidfd)
		if err != nil {
			return err
		}
	}
	if spec.Lock.Filter != nil {
		listener, err := receiveFD(control)
		if err != nil {
			return err
		}
		if err := z.gate.open(z.PID, listener); err != nil {
			return err
		}
	}
	n, _, err := receive(control, make([]byte, 4096), nil)
	if err == nil && n == 0 {
		err = errGone
	}
	return err
}

// receiveFD receives the descriptor of a message.
func receiveFD(from int) (int, error) {
	message, control := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	n, controlLen, err := receive(from, message, control)
	if err == nil && n == 0 {
		err = errGone
	}
	if err != nil {
		return -1, err
	}
	fd := firstFD(control[:controlLen])
	if fd < 0 {
		return -1, errors.New("a message of the launcher or the zygote has no descriptor")
	}
	return fd, nil
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
	if fds := allFDs(control); len(fds) > 0 {
		closeFDs(fds[1:])
		return fds[0]
	}
	return -1
}

// allFDs returns the descriptors of a control message.
func allFDs(control []byte) (all []int) {
	messages, _ := unix.ParseSocketControlMessage(control)
	for i := range messages {
		fds, _ := unix.ParseUnixRights(&messages[i])
		all = append(all, fds...)
	}
	return all
}

func closeFDs(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// Prepare gives a child the ids, mounts and network that enter describes, before the child locks itself down. given are
// the descriptors that Enter describes. made are a clone of the tree of the child's mounts, and the listener in its
// network, if it has one; the caller closes them. Prepare is for zygotes with namespaces.
func (z *Zygote) Prepare(pidfd int, enter protocol.Enter, given ...int) (made []int, err error) {
	body, err := json.Marshal(enter)
	if err != nil {
		return nil, err
	}
	z.preparing.Lock()
	defer z.preparing.Unlock()
	socket := int(z.prepare.Fd())
	rights := unix.UnixRights(append([]int{pidfd}, given...)...)
	if err := unix.Sendmsg(socket, body, rights, nil, unix.MSG_NOSIGNAL); err != nil {
		return nil, fmt.Errorf("ask the launcher for mounts: %w", err)
	}
	message, control := make([]byte, maxAnswer), make([]byte, unix.CmsgSpace(2*4))
	n, controlLen, err := receive(socket, message, control)
	if err == nil && n == 0 {
		err = errGone
	}
	if err == unix.EAGAIN { // a later answer must not be taken for that to another request
		z.kill()
	}
	if err != nil {
		return nil, fmt.Errorf("the launcher: %w", err)
	}
	made = allFDs(control[:controlLen])
	var a answerPrepare
	err = json.Unmarshal(message[:n], &a)
	want := 1
	if enter.Network != nil {
		want++
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	} else if err == nil && len(made) != want { // this process has no descriptor left for them
		err = unix.EMFILE
	}
	if err != nil {
		closeFDs(made)
		return nil, err
	}
	return made, nil
}

// readAnswers reads the zygote's messages until the zygote ends. Then it fails all requests
// and reports all children as killed.
//
// A message begins with its kind: 'f' a child was forked, 'e' a fork failed, 'x' a child
// has exited.
func (z *Zygote) readAnswers() {
	fd := int(z.control.Fd())
	message, control := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	for {
		n, controlLen, err := receive(fd, message, control)
		if err != nil || n == 0 {
			break
		}
		if n < 5 {
			n = copy(message, "?????")
		}
		kind, id, rest := message[0], binary.BigEndian.Uint32(message[1:]), message[5:n]
		z.mu.Lock()
		switch {
		case kind == 'f' && len(rest) == 4 && z.unborn[int(id)] != nil:
			z.gate.forked()
			pid := binary.BigEndian.Uint32(rest)
			z.living[pid] = z.unborn[int(id)]
			delete(z.unborn, int(id))
			answer := forked{pidfd: firstFD(control[:controlLen])}
			if answer.pidfd < 0 { // the child finds its connection closed and exits
				answer.err = unix.EMFILE
			}
			z.answer(int(id), answer)
		case kind == 'e' && z.unborn[int(id)] != nil:
			z.gate.forked()
			delete(z.unborn, int(id))
			z.answer(int(id), forked{pidfd: -1, err: errors.New(string(rest))})
			z.killIfUnused()
		case kind == 'x' && len(rest) == 12 && z.living[id] != nil:
			z.gate.forget(int(id))
			onExit := z.living[id]
			delete(z.living, id)
			cpuTime := time.Duration(binary.BigEndian.Uint64(rest[4:])) * time.Microsecond
			onExit(int(binary.BigEndian.Uint32(rest)), cpuTime)
			z.killIfUnused()
		default: // the zygote is not what it was
			closeFDs(allFDs(control[:controlLen]))
			z.kill()
		}
		z.mu.Unlock()
	}
	z.kill()
	_ = z.cmd.Wait()
	z.mu.Lock()
	defer z.mu.Unlock()
	close(z.dead)
	_ = z.control.Close()
	z.preparing.Lock() // Prepare uses its number
	_ = z.prepare.Close()
	z.preparing.Unlock()
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
	z.gate.expectFork()
	err = unix.Sendmsg(int(z.control.Fd()), request, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
	if err != nil {
		z.gate.forked()
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

// ExpectUID lets a child change to this uid and the equal gid, on levels without namespaces.
func (z *Zygote) ExpectUID(pid, uid int) { z.gate.expectUID(pid, uid) }

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
		z.kill()
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

// Close kills the zygote, and with it all of its children. It returns when the zygote's output is logged.
func (z *Zygote) Close() {
	z.CloseSharedMount()
	z.kill()
	<-z.dead
	z.output.end()
}

// kill kills the process that the service has started, and with it the zygote. It ends their conversation, because a
// zygote without a pid namespace can survive the launcher.
func (z *Zygote) kill() {
	_ = z.cmd.Process.Kill()
	if raw, err := z.control.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) }) // fails if it is closed
	}
}
