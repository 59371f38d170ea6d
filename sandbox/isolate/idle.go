package isolate

import (
	"container/list"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/isolate/procfs"
)

// defaultMaxOpenIdle is the default of Config.MaxOpenIdle.
const defaultMaxOpenIdle = 64

// idleProcesses bounds how many idle processes keep all of their descriptors open. Idle processes beyond max keep only
// those that cannot be opened again: the pidfd, the connection, the mounts of the session, and the network's listener.
// Those that have been idle longest are closed first, so a session that is used often pays nothing. The nil value does
// nothing.
type idleProcesses struct {
	max int

	mu        sync.Mutex // also guards idle and isGone of each Process
	open      list.List  // of *Process; the one that has been idle longest is first
	copies    []*Process // whose unchanged copies are given back next
	isSharing bool       // shareCopies runs
}

// add notes that a process is idle.
func (q *idleProcesses) add(p *Process) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.idle != nil || p.isGone {
		return
	}
	p.idle = q.open.PushBack(p)
	for e := q.open.Front(); e != nil && q.open.Len() > q.max; {
		oldest, next := e.Value.(*Process), e.Next()
		// A signal stops the threads of a process a little later. One that prints to a closed pipe would fail.
		if !oldest.hasRun || procfs.IsStopped(oldest.pid) {
			q.open.Remove(e)
			oldest.idle = nil
			oldest.closeSpareFiles()
			q.shareLater(oldest)
		}
		e = next
	}
}

// remove notes that a process is not idle or, if isGone, that it is closed.
func (q *idleProcesses) remove(p *Process, isGone bool) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	p.isGone = p.isGone || isGone
	if p.idle != nil {
		q.open.Remove(p.idle)
		p.idle = nil
	}
}

// Wake prepares an idle process for a run or an inspection. It returns FaultFull if there are no descriptors for its
// output. The caller calls Rest afterwards.
func (p *Process) Wake() error {
	p.use.Lock() // until its copies are given back
	p.isAwake = true
	p.use.Unlock()
	p.idlers.remove(p, false)
	p.hasRun = true
	err := p.openFiles()
	if err != nil {
		p.Rest()
	}
	return err
}

// openFiles opens what closeSpareFiles has closed. It returns FaultFull if there are no descriptors.
func (p *Process) openFiles() error {
	if p.group != nil {
		p.group.KeepFiles()
	}
	var err error
	if p.Stdout == nil {
		p.Stdout, err = p.openOutput(1, p.outputs[0])
	}
	if p.Stderr == nil && err == nil {
		p.Stderr, err = p.openOutput(2, p.outputs[1])
	}
	if err != nil {
		return AsShortage(fmt.Errorf("open the output of a sandbox: %w", err))
	}
	return nil
}

// Rest notes that the process is idle: it is frozen, or waits for its first run, and its output was read.
func (p *Process) Rest() {
	p.use.Lock()
	p.isAwake = false
	p.use.Unlock()
	p.idlers.add(p)
}

// fileID identifies an open file of the kernel, such as a pipe.
type fileID struct{ device, inode uint64 }

func idOf(f *os.File) (id fileID, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return id, err
	}
	var st unix.Stat_t
	controlErr := raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &st) })
	return fileID{uint64(st.Dev), st.Ino}, errors.Join(err, controlErr)
}

// closeSpareFiles closes the descriptors that Wake or their users can open again. The process must be idle.
func (p *Process) closeSpareFiles() {
	p.Conn.ReleaseBuffer()
	if p.group != nil {
		p.group.CloseFiles()
	}
	for n, f := range []**os.File{&p.Stdout, &p.Stderr} {
		if *f == nil || p.neverFrozen { // code that runs now would fail to print
			continue
		}
		id, err := idOf(*f)
		if err != nil {
			continue
		}
		again, err := openPipe(p.outputPath(strconv.Itoa(n+1)), id)
		if err != nil { // as without private mounts, where /proc hides the files of a child
			continue
		}
		_ = unix.Close(again)
		_ = (*f).Close()
		*f, p.outputs[n] = nil, id
	}
}

func (p *Process) outputPath(fd string) string { return "/proc/" + strconv.Itoa(p.pid) + "/fd/" + fd }

// openOutput opens the read end of a pipe whose write end the process has, usually as descriptor fd. User code may have
// given it another number. If the process has closed the write end, there is no output, and the result is empty.
func (p *Process) openOutput(fd int, id fileID) (*os.File, error) {
	opened, err := openPipe(p.outputPath(strconv.Itoa(fd)), id)
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return nil, err
	}
	if err != nil {
		paths, _ := filepath.Glob(p.outputPath("*"))
		for _, path := range paths {
			if opened, err = openPipe(path, id); err == nil {
				break
			}
		}
	}
	if err != nil {
		return os.Open(os.DevNull)
	}
	return os.NewFile(uintptr(opened), "output"), nil
}

var errOtherFile = errors.New("it is another file")

// openPipe opens the read end of the pipe id by the path of its write end in /proc. User code decides what the path
// refers to, so it is checked before it is opened. The process is frozen and cannot change it.
func openPipe(path string, id fileID) (int, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return -1, err
	}
	if (fileID{uint64(st.Dev), st.Ino}) != id {
		return -1, errOtherFile
	}
	return unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
}
