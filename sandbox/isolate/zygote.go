package isolate

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// firstUID is the first host uid of the range that children get where the
// service is root and may map one; slots are inside uids from 1000 on.
const (
	firstUID = 1_879_048_192
	uidSlots = 65_536
	firstIn  = 1000
)

// zygote is one warm Python and the socket to it.
type zygote struct {
	cmd        *exec.Cmd
	control    *os.File
	pid        int
	dataKB     int64 // private writable memory after warm-up
	residentKB int64 // resident memory then
	shared     int   // a mount of the spec's Shared, or -1; guarded by Isolator.sharing

	mu      sync.Mutex
	next    int
	waiting map[int]chan forked
	unborn  map[int]exited    // by the number that they were asked for with
	living  map[uint32]exited // by their pid in the zygote's namespace
	dead    chan struct{}     // closed when the zygote is gone

	started time.Time
	forks   int           // so far
	most    int           // after these it is worn
	worn    chan struct{} // closed then
	retired bool          // another has taken its place: it ends with its last child
}

// noPython is why an interpreter does not serve behind a wall, which may be had with another.
type noPython struct{ error }

func (e *noPython) Unwrap() error { return e.error }

// exited is told of a child's end.
type exited func(status int, spent time.Duration)

type forked struct {
	pidfd int
	err   error
}

// startZygote starts the stage, in new namespaces where the level has them, and waits until it is a warm
// Python, or says why not. Lines that it writes to its stderr go to log.
func startZygote(spec stageSpec, ids identities, log func(string)) (*zygote, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	control, theirs := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control-child")
	specR, specW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{stageName}
	if !spec.Without.lack(WallEnvironment) {
		cmd.Env = []string{} // nil would be the service's own
	}
	cmd.Stderr, cmd.Stdout = errW, errW
	cmd.ExtraFiles = []*os.File{theirs, specR}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if spec.Private {
		namespaces(cmd.SysProcAttr, ids, spec.Without)
	}
	err = cmd.Start()
	theirs.Close()
	specR.Close()
	errW.Close()
	if err != nil {
		control.Close()
		errR.Close()
		specW.Close()
		return nil, fmt.Errorf("make the namespaces: %w", err)
	}
	var said sync.WaitGroup
	var last string
	var raised bool // Python's own, which the stage had started
	said.Add(1)
	go func() {
		defer said.Done()
		for lines := bufio.NewScanner(errR); lines.Scan(); {
			last = lines.Text()
			raised = raised || strings.HasPrefix(last, "Traceback ")
			log(last)
		}
		errR.Close()
	}()
	encodeErr := json.NewEncoder(specW).Encode(spec)
	specW.Close()
	z := &zygote{cmd: cmd, control: control, pid: cmd.Process.Pid, waiting: map[int]chan forked{}, unborn: map[int]exited{}, living: map[uint32]exited{}, dead: make(chan struct{}),
		started: time.Now(), worn: make(chan struct{}), shared: -1}
	buf, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	_ = unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 60})
	n, oobn, err := recvRetry(pair[0], buf, oob)
	if spec.Shared != "" && err == nil && n > 0 { // its mount comes first
		z.shared = oneFD(oob[:oobn])
		n, _, err = recvRetry(pair[0], buf, oob)
	}
	if err != nil || n == 0 || encodeErr != nil {
		z.letSharedGo()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		said.Wait()
		control.Close()
		if raised {
			return nil, &noPython{fmt.Errorf("the interpreter ended: %s", last)}
		}
		return nil, fmt.Errorf("the wall stage ended: %s", last)
	}
	_ = unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{})
	z.dataKB, z.residentKB = statusKB(z.pid, "VmData:"), statusKB(z.pid, "VmRSS:")
	go z.read(pair[0])
	return z, nil
}

// namespaces has a process start in namespaces of its own, where it is root and,
// where there are ids, may give one to each of its children.
func namespaces(attr *syscall.SysProcAttr, ids identities, without walls) {
	attr.Cloneflags = without.namespaces()
	if without.lack(WallUser) {
		return // the ids are the host's
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	if ids.count > 0 {
		slots := syscall.SysProcIDMap{ContainerID: firstIn, HostID: ids.first, Size: ids.count}
		attr.UidMappings, attr.GidMappings = append(attr.UidMappings, slots), append(attr.GidMappings, slots)
		attr.GidMappingsEnableSetgroups = true
	}
}

// mayChangeIDs says whether this process has the capabilities for it.
func mayChangeIDs() bool {
	var data [2]unix.CapUserData
	err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0])
	const need = 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID | 1<<unix.CAP_CHOWN
	return err == nil && data[0].Effective&need == need
}

// letSharedGo closes the mount that nobody took.
func (z *zygote) letSharedGo() {
	if z.shared >= 0 {
		_ = unix.Close(z.shared)
		z.shared = -1
	}
}

func recvRetry(fd int, buf, oob []byte) (n, oobn int, err error) {
	for {
		n, oobn, _, _, err = unix.Recvmsg(fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			return n, oobn, err
		}
	}
}

// read takes the zygote's answers until it is gone; then nobody waits for it
// any more, and every child of it is over.
func (z *zygote) read(fd int) {
	buf, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	for {
		n, oobn, err := recvRetry(fd, buf, oob)
		if err != nil || n == 0 {
			break
		}
		if n < 5 {
			continue
		}
		kind, id, rest := buf[0], binary.BigEndian.Uint32(buf[1:]), buf[5:n]
		z.mu.Lock()
		switch {
		case kind == 'f' && len(rest) == 4:
			pid := binary.BigEndian.Uint32(rest)
			z.living[pid] = z.unborn[int(id)]
			delete(z.unborn, int(id))
			z.tell(int(id), forked{pidfd: oneFD(oob[:oobn])})
		case kind == 'e':
			delete(z.unborn, int(id))
			z.tell(int(id), forked{pidfd: -1, err: errors.New(string(rest))})
			z.leave()
		case kind == 'x' && len(rest) == 12:
			if f := z.living[id]; f != nil {
				delete(z.living, id)
				f(int(binary.BigEndian.Uint32(rest)), time.Duration(binary.BigEndian.Uint64(rest[4:]))*time.Microsecond)
			}
			z.leave()
		}
		z.mu.Unlock()
	}
	_ = z.cmd.Process.Kill()
	_ = z.cmd.Wait()
	z.mu.Lock()
	defer z.mu.Unlock()
	close(z.dead)
	_ = z.control.Close()
	for id, c := range z.waiting {
		delete(z.waiting, id)
		c <- forked{pidfd: -1, err: errors.New("the zygote died")}
	}
	for _, f := range slices.Concat(slices.Collect(maps.Values(z.unborn)), slices.Collect(maps.Values(z.living))) {
		f(int(unix.SIGKILL), 0)
	}
	clear(z.unborn)
	clear(z.living)
}

// tell answers who waits for a child, if anybody still does. The caller holds z.mu.
func (z *zygote) tell(id int, answer forked) {
	if c := z.waiting[id]; c != nil {
		delete(z.waiting, id)
		c <- answer
	} else if answer.pidfd >= 0 {
		_ = unix.Close(answer.pidfd)
	}
}

func oneFD(oob []byte) int {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return -1
	}
	for i := range msgs {
		if fds, err := unix.ParseUnixRights(&msgs[i]); err == nil && len(fds) > 0 {
			return fds[0]
		}
	}
	return -1
}

// fork asks for one child, with its ends of the hatch, stdout and stderr, and the doors of its
// control group. birth is the
// index of one of its stageSpec's, and uid the child's, or 0 where it is told that later.
// over is called once.
func (z *zygote) fork(ctx context.Context, ends []int, birth, uid int, over exited) (pidfd int, err error) {
	answer := make(chan forked, 1)
	z.mu.Lock()
	select {
	case <-z.dead:
		z.mu.Unlock()
		return -1, errors.New("the zygote is gone")
	default:
	}
	z.next++
	if z.forks++; z.forks == z.most {
		close(z.worn)
	}
	id := z.next
	z.waiting[id], z.unborn[id] = answer, over
	message := []byte{'F'}
	for _, word := range []int{id, uid, birth} {
		message = binary.BigEndian.AppendUint32(message, uint32(word))
	}
	err = unix.Sendmsg(int(z.control.Fd()), message, unix.UnixRights(ends...), nil, unix.MSG_NOSIGNAL)
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
	delete(z.waiting, id) // z.unborn stays: the child may come, finds its hatch closed, and leaves
	z.mu.Unlock()
	select {
	case a := <-answer: // it came just now
		return a.pidfd, a.err
	default:
		return -1, full(ctx.Err())
	}
}

// setMost says after how many forks it is worn.
func (z *zygote) setMost(forks int) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.most = forks
}

// retire has it end with its last child.
func (z *zygote) retire() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.retired = true
	z.leave()
}

// childless says whether it has no child.
func (z *zygote) childless() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return len(z.unborn)+len(z.living) == 0
}

// leave ends a retired zygote that has no child left. The caller holds z.mu.
func (z *zygote) leave() {
	if z.retired && len(z.unborn)+len(z.living) == 0 {
		_ = z.cmd.Process.Kill()
	}
}

// alive says whether it can still fork.
func (z *zygote) alive() bool {
	select {
	case <-z.dead:
		return false
	default:
		return true
	}
}

func (z *zygote) close() {
	_ = z.cmd.Process.Kill()
	<-z.dead
}

// statusKB reads one number of /proc/PID/status.
func statusKB(pid int, field string) int64 {
	for _, line := range strings.Split(read("/proc/"+strconv.Itoa(pid)+"/status"), "\n") {
		if rest, ok := strings.CutPrefix(line, field); ok {
			v, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return v
		}
	}
	return 0
}

// pidOf is the pid, as the host sees it, of the process behind a pidfd; 0 where
// it is gone.
func pidOf(pidfd int) int {
	for _, line := range strings.Split(read("/proc/self/fdinfo/"+strconv.Itoa(pidfd)), "\n") {
		if rest, ok := strings.CutPrefix(line, "Pid:"); ok {
			pid, _ := strconv.Atoi(strings.TrimSpace(rest))
			return max(pid, 0)
		}
	}
	return 0
}

// streamPair makes a socket pair: ours as a connection, theirs as a descriptor.
func streamPair() (*net.UnixConn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "hatch"), os.NewFile(uintptr(pair[1]), "hatch-child")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	sock, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, nil, io.ErrUnexpectedEOF
	}
	return sock, theirs, nil
}
