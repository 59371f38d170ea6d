package isolate

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/hatch"
)

// nursery is one warm set at work: its zygote, and the children that wait.
type nursery struct {
	set   Set
	in    *Isolator
	ready chan *Process

	mu     sync.Mutex
	zygote *zygote // replaced when it has died; nil before the first
	born   atomic.Pointer[zygote]
}

// unhurried is how long a pool that is more than half full puts off a birth: it
// takes a core for some milliseconds, which the run at hand needs.
const unhurried = 10 * time.Millisecond

// fill keeps the pool full, and the zygote alive, until the isolator closes. Two
// of it run for each nursery: one child joins its cgroup while the next is forked.
func (n *nursery) fill() {
	defer n.in.over.Done()
	for {
		if len(n.ready) > cap(n.ready)/2 { // let the run that took one begin first
			select {
			case <-time.After(unhurried):
			case <-n.in.closing:
			}
		}
		p, err := n.birth(Spec{Session: -1, Policy: n.in.config.Default})
		select {
		case <-n.in.closing:
			if err == nil {
				_ = p.Close()
			}
			return
		default:
		}
		if err != nil {
			n.in.config.Log("cannot prepare a sandbox: %v", err)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-n.in.closing:
			}
			continue
		}
		select {
		case n.ready <- p:
		case <-n.in.closing:
			_ = p.Close()
			return
		}
	}
}

// parent returns the living zygote, starting one where the last has died.
func (n *nursery) parent() (*zygote, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.zygote != nil {
		select {
		case <-n.zygote.dead:
			n.in.config.Log("the %s zygote died; starting another", n.set.Name)
			n.zygote.control.Close()
			n.in.dropFolder(n.zygote)
			n.zygote = nil
		default:
			return n.zygote, nil
		}
	}
	select {
	case <-n.in.closing:
		return nil, errors.New("closed")
	default:
	}
	spec := n.in.spec
	spec.Warm = n.set.Modules
	if n == n.in.nurseries[len(n.in.nurseries)-1] {
		spec.Folder = n.in.config.Folder
	}
	var err error
	n.zygote, err = startZygote(spec, func(line string) { n.in.config.Log("zygote: %s", line) })
	if err != nil {
		return nil, err // and n.zygote is nil
	}
	n.born.Store(n.zygote)
	return n.zygote, nil
}

// alive says why the nursery has no zygote. It never waits for one that is coming.
func (n *nursery) alive() error {
	if z := n.born.Load(); z != nil {
		select {
		case <-z.dead:
		default:
			return nil
		}
	}
	return fmt.Errorf("the %s packages are being imported", n.set.Name)
}

// close ends the zygote, and with it its children.
func (n *nursery) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.zygote != nil {
		n.zygote.close()
		n.in.dropFolder(n.zygote)
	}
}

// birth forks one child, puts it into its cgroup and has it lock itself down: it
// can run user code when birth returns.
func (n *nursery) birth(spec Spec) (*Process, error) {
	z, err := n.parent()
	if err != nil {
		return nil, err
	}
	sock, theirs, err := streamPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	p := &Process{Hatch: hatch.NewConn(sock), pidfd: -1, Session: -1, done: make(chan struct{}), baseKB: z.residentKB, dataKB: z.dataKB}
	var writers [2]*os.File
	for end, out := range []**os.File{&p.Stdout, &p.Stderr} {
		var fds [2]int
		if err = unix.Pipe2(fds[:], unix.O_CLOEXEC); err == nil {
			err = unix.SetNonblock(fds[0], true)
			*out, writers[end] = os.NewFile(uintptr(fds[0]), "output"), os.NewFile(uintptr(fds[1]), "output-child")
			defer writers[end].Close()
		}
		if err != nil {
			p.letGo()
			return nil, err
		}
	}
	if p.pidfd, err = z.fork(int(theirs.Fd()), int(writers[0].Fd()), int(writers[1].Fd()), p.exited); err != nil {
		p.letGo()
		return nil, err
	}
	p.pid = pidOf(p.pidfd)
	serial := n.in.serial.Add(1)
	if groups := n.in.groups; groups != nil {
		if p.group, err = groups.make(strconv.FormatInt(serial, 10)); err == nil {
			err = p.group.join(p.pid)
		}
		if err != nil {
			_ = p.Close()
			return nil, fmt.Errorf("join the cgroup: %w", err)
		}
	}
	enter := hatch.Enter{Filter: filterPlain, Landlock: true, Workspace: spec.Policy.WorkspaceMaxBytes, Attach: spec.Session >= 0}
	if os.Geteuid() == 0 {
		enter.UID = firstIn + int(serial%uidSlots)
	}
	if spec.UID != 0 {
		enter.UID = spec.UID
	}
	if p.Session, err = p.lock(enter, spec.Session); err != nil {
		_ = p.Close()
		return nil, fmt.Errorf("lock down: %w", err)
	}
	p.UID = enter.UID
	return p, nil
}
