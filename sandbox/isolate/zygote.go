package isolate

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
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
	folder     int   // a mount of the spec's folder, or -1; guarded by Isolator.folderMu

	mu      sync.Mutex
	next    int
	waiting map[int]chan forked
	exits   map[int]func(status int, spent time.Duration)
	dead    chan struct{} // closed when the zygote is gone
}

type forked struct {
	pidfd int
	err   error
}

// startZygote starts the stage in new namespaces and waits until it is a warm
// Python, or says why not. Lines that it writes to its stderr go to log.
func startZygote(spec stageSpec, log func(string)) (*zygote, error) {
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
	cmd.Env = []string{}
	cmd.Stderr, cmd.Stdout = errW, errW
	cmd.ExtraFiles = []*os.File{theirs, specR}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		Setsid:     true,
	}
	if os.Geteuid() == 0 {
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: firstIn, HostID: firstUID, Size: uidSlots}}
		cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings = ids, ids
		cmd.SysProcAttr.GidMappingsEnableSetgroups = true
	} else {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	err = cmd.Start()
	theirs.Close()
	specR.Close()
	errW.Close()
	if err != nil {
		return nil, fmt.Errorf("make the namespaces: %w", err)
	}
	var said sync.WaitGroup
	var last string
	said.Add(1)
	go func() {
		defer said.Done()
		for lines := bufio.NewScanner(errR); lines.Scan(); {
			last = lines.Text()
			log(last)
		}
		errR.Close()
	}()
	encodeErr := json.NewEncoder(specW).Encode(spec)
	specW.Close()
	z := &zygote{cmd: cmd, control: control, pid: cmd.Process.Pid, waiting: map[int]chan forked{}, exits: map[int]func(int, time.Duration){}, dead: make(chan struct{}), folder: -1}
	buf, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	_ = unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 60})
	n, oobn, err := recvRetry(pair[0], buf, oob)
	if spec.Folder != "" && err == nil && n > 0 { // its mount comes first
		z.folder = oneFD(oob[:oobn])
		n, _, err = recvRetry(pair[0], buf, oob)
	}
	if err != nil || n == 0 || encodeErr != nil {
		z.letFolderGo()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		said.Wait()
		control.Close()
		return nil, fmt.Errorf("the wall stage ended: %s", last)
	}
	_ = unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{})
	z.dataKB, z.residentKB = statusKB(z.pid, "VmData:"), statusKB(z.pid, "VmRSS:")
	go z.read(pair[0])
	return z, nil
}

func recvRetry(fd int, buf, oob []byte) (n, oobn int, err error) {
	for {
		n, oobn, _, _, err = unix.Recvmsg(fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			return n, oobn, err
		}
	}
}

func (z *zygote) letFolderGo() {
	if z.folder >= 0 {
		_ = unix.Close(z.folder)
		z.folder = -1
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
		var m struct {
			Op     string  `json:"op"`
			ID     int     `json:"id"`
			Status int     `json:"status"`
			CPU    float64 `json:"cpu"` // seconds
			Error  string  `json:"error"`
		}
		if json.Unmarshal(buf[:n], &m) != nil {
			continue
		}
		z.mu.Lock()
		switch m.Op {
		case "forked", "failed":
			answer := forked{pidfd: -1, err: errors.New(m.Error)}
			if m.Op == "forked" {
				answer = forked{pidfd: oneFD(oob[:oobn])}
			}
			if c := z.waiting[m.ID]; c != nil {
				delete(z.waiting, m.ID)
				c <- answer
			}
		case "exited":
			if f := z.exits[m.ID]; f != nil {
				delete(z.exits, m.ID)
				f(m.Status, time.Duration(m.CPU*float64(time.Second)))
			}
		}
		z.mu.Unlock()
	}
	_ = z.cmd.Process.Kill()
	_ = z.cmd.Wait()
	z.mu.Lock()
	defer z.mu.Unlock()
	close(z.dead)
	for id, c := range z.waiting {
		delete(z.waiting, id)
		c <- forked{pidfd: -1, err: errors.New("the zygote died")}
	}
	for id, f := range z.exits {
		delete(z.exits, id)
		f(int(unix.SIGKILL), 0)
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

// fork asks for one child. exited is called once, with its wait status.
func (z *zygote) fork(hatch, stdout, stderr int, exited func(status int, spent time.Duration)) (pidfd int, err error) {
	answer := make(chan forked, 1)
	z.mu.Lock()
	select {
	case <-z.dead:
		z.mu.Unlock()
		return -1, errors.New("the zygote is gone")
	default:
	}
	z.next++
	id := z.next
	z.waiting[id], z.exits[id] = answer, exited
	message := []byte(`{"op":"fork","id":` + strconv.Itoa(id) + `}`)
	err = unix.Sendmsg(int(z.control.Fd()), message, unix.UnixRights(hatch, stdout, stderr), nil, unix.MSG_NOSIGNAL)
	if err != nil {
		delete(z.waiting, id)
		delete(z.exits, id)
		z.mu.Unlock()
		return -1, err
	}
	z.mu.Unlock()
	select {
	case a := <-answer:
		return a.pidfd, a.err
	case <-time.After(10 * time.Second):
		return -1, errors.New("the zygote did not fork within 10 s")
	}
}

func (z *zygote) close() {
	_ = z.cmd.Process.Kill()
	<-z.dead
	z.control.Close()
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
