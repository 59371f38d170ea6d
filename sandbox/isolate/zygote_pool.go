package isolate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate/layer"
	"glasshouse/sandbox/isolate/procfs"
	"glasshouse/sandbox/isolate/zygote"
	"glasshouse/sandbox/protocol"
)

const (
	// refillDelay is how long a pool that is more than half full waits before a fork. A
	// fork takes a core for some milliseconds, which the current run needs.
	refillDelay = 10 * time.Millisecond

	// forkTimeout is how long a fork in the background may take, because the zygote may
	// have to import its packages first.
	forkTimeout = time.Minute

	// The pause after a fork in the background failed doubles with each failure.
	forkRetryDelay    = 100 * time.Millisecond
	maxForkRetryDelay = time.Second
)

// zygotePool is the zygote of one warm set and its waiting children.
type zygotePool struct {
	set      WarmSet
	isolator *Isolator
	env      *warmEnvironment
	ready    chan *Process // children that are locked down for the environment's policy
	reserved chan *Process // as ready, for users who start no other process
	spare    chan *Process // at most one child that is forked but not locked down
	wanted   chan struct{} // has an element if a zygote is missing and requested

	shortage shortage
	held     atomic.Int64 // children that fill has made and that are in no channel yet
	inUse    atomic.Int64 // processes that are assigned to a sandbox

	mu       sync.Mutex
	current  *zygote.Zygote   // nil before the first start, after a death, and while no zygote is needed
	changed  chan struct{}    // closed, and replaced, when current changes
	retired  []*zygote.Zygote // retired zygotes with living children
	lastUsed time.Time        // when a child was last requested
}

func newZygotePool(env *warmEnvironment, set WarmSet) *zygotePool {
	p := &zygotePool{set: set, isolator: env.isolator, env: env,
		spare: make(chan *Process), wanted: make(chan struct{}, 1), changed: make(chan struct{})}
	reserve := max(set.Pool/4, 1)
	p.reserved = make(chan *Process, reserve)
	p.ready = make(chan *Process, max(set.Pool-2-reserve, 1)) // fill holds two more
	if !env.alwaysWarm {
		p.ready, p.reserved = make(chan *Process), nil // fill holds the one that waits
	}
	return p
}

// requestZygote makes keepZygote start a zygote if the pool has none.
func (p *zygotePool) requestZygote() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastUsed = time.Now()
	if p.current != nil && p.current.Alive() {
		return
	}
	select {
	case p.wanted <- struct{}{}:
	default:
	}
}

// currentZygote returns the current zygote, or nil, and a channel that is closed when the
// current zygote changes.
func (p *zygotePool) currentZygote() (*zygote.Zygote, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current, p.changed
}

// awaitZygote returns a living zygote. If the pool has none, it requests one and waits.
func (p *zygotePool) awaitZygote(ctx context.Context) (*zygote.Zygote, error) {
	for {
		p.requestZygote()
		z, changed := p.currentZygote()
		if z != nil && z.Alive() {
			return z, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, FullError(ctx.Err())
		case <-p.env.ctx.Done():
			return nil, errors.New("the environment is closed")
		}
	}
}

// checkZygote returns an error if the pool has no living zygote. It does not wait.
func (p *zygotePool) checkZygote() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil && p.current.Alive() {
		return nil
	}
	return fmt.Errorf("the %s packages are being imported", p.set.Name)
}

// fill keeps the pool full until the environment is retired.
func (p *zygotePool) fill() {
	active := p.env.active
	delay := forkRetryDelay
	for {
		if len(p.ready) > cap(p.ready)/2 && len(p.reserved) == cap(p.reserved) {
			// The fork can wait until the run that took a child has begun.
			p.env.sleep(refillDelay)
		}
		if !p.env.alwaysWarm && !p.waitForZygote(active) || active.Err() != nil {
			return
		}
		ctx, cancel := context.WithTimeout(active, forkTimeout)
		child, err := p.makeChild(ctx, ProcessSpec{Policy: p.env.policy})
		cancel()
		if active.Err() != nil {
			if err == nil {
				child.Close()
			}
			return
		}
		if err != nil {
			p.isolator.config.Log("cannot prepare a sandbox: %v", err)
			p.sleepInShortage(delay)
			delay = min(2*delay, maxForkRetryDelay)
			continue
		}
		delay = forkRetryDelay
		if current, _ := p.currentZygote(); child.zygote != current { // replaced during the fork, which took long
			child.Close() // it would keep the old zygote alive until somebody takes it
			continue
		}
		select {
		case p.reserved <- child:
			continue
		default:
		}
		p.held.Add(1)
		select {
		case p.ready <- child:
		case p.reserved <- child:
		case <-child.done: // died with its zygote; keepZygote discards the dead children in the channel
			child.Close()
		case <-active.Done():
			child.Close()
		}
		p.held.Add(-1)
	}
}

// fillers returns the number of goroutines that run fill: one more than there are CPUs, so that while one waits for the
// zygote, which forks one child after the other, the others' children join their control groups and lock themselves
// down. With 2 on 2 CPUs, 4 clients of fresh sandboxes left a tenth of the CPU time idle and got 7 % fewer runs.
func (p *zygotePool) fillers() int { return min(runtime.GOMAXPROCS(0)+1, p.set.Pool) }

// status describes the pool.
func (p *zygotePool) status() sandbox.WarmPool {
	out := sandbox.WarmPool{
		Environment: p.env.pinned.Name, Name: p.set.Name, Modules: p.set.Modules,
		Waiting: sandbox.Occupancy{
			Now: len(p.ready) + len(p.reserved) + int(p.held.Load()),
			Max: cap(p.ready) + cap(p.reserved) + p.fillers(),
		},
		InUse: int(p.inUse.Load()),
	}
	z, _ := p.currentZygote()
	out.IsWarm = z != nil && z.Alive()
	if last := p.shortage.last.Load(); last != nil {
		out.Problem = last.Detail
	}
	return out
}

// sleepInShortage waits for d, until a process has released what it used, or until the
// environment is retired.
func (p *zygotePool) sleepInShortage(d time.Duration) {
	select {
	case <-time.After(d):
	case <-p.isolator.released:
	case <-p.env.active.Done():
	}
}

// waitForZygote waits until the pool has a zygote, without requesting one. It returns false if
// ctx ends first.
func (p *zygotePool) waitForZygote(ctx context.Context) bool {
	for ctx.Err() == nil {
		z, changed := p.currentZygote()
		if z != nil {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return false
}

// keepSpare keeps one child that is forked and in its control group but has not locked itself
// down. Joining a control group of version 1 can take much longer than the other steps. The
// spare child is for a sandbox that cannot use a child of the pool.
func (p *zygotePool) keepSpare() {
	active := p.env.active
	delay := forkRetryDelay
	for p.waitForZygote(active) {
		z, changed := p.currentZygote()
		if z == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(active, forkTimeout)
		child, err := p.fork(ctx, z, birthToldLater, 0)
		cancel()
		if err != nil {
			p.env.sleep(delay) // the caller that needs a child gets the error
			delay = min(2*delay, maxForkRetryDelay)
			continue
		}
		delay = forkRetryDelay
		select {
		case p.spare <- child:
			p.env.sleep(refillDelay)
			continue
		case <-child.done:
			p.env.sleep(refillDelay)
		case <-changed:
		case <-active.Done():
		}
		child.Close()
	}
}

// close ends the zygotes and their children. The pool's goroutines must have ended.
func (p *zygotePool) close() {
	for _, z := range append(p.retired, p.current) {
		if z != nil {
			z.Close()
		}
	}
	p.discardReady(func(*Process) bool { return true }, 0)
}

// discardReady closes the waiting children for which discard returns true. It pauses after
// each of them while the pool is filled again.
func (p *zygotePool) discardReady(discard func(*Process) bool, pause time.Duration) {
	for _, waiting := range []chan *Process{p.ready, p.reserved} {
		for range cap(waiting) + 2 { // fill holds two more
			select {
			case child := <-waiting:
				if !discard(child) {
					select {
					case waiting <- child:
						continue
					default:
					}
				}
				child.Close()
				p.env.sleep(pause)
				continue
			default:
			}
			break
		}
	}
}

// makeChildNow makes a child for a waiting caller. It takes the spare child, which has no network, if possible.
func (p *zygotePool) makeChildNow(ctx context.Context, spec ProcessSpec) (*Process, error) {
	spare := p.spare
	if spec.Policy.EnableNetworkAccess {
		spare = nil
	}
	select {
	case child := <-spare:
		child, err := p.lockDown(ctx, child, spec, p.env.lockdownFor(spec), false)
		if err == nil || ctx.Err() != nil {
			return child, AsShortage(err)
		}
		// The spare child died with its zygote, or there is a shortage, which may have ended.
	default:
	}
	return p.makeChild(ctx, spec)
}

// makeChild forks a child and waits until it has locked itself down. The child can then run
// user code.
func (p *zygotePool) makeChild(ctx context.Context, spec ProcessSpec) (*Process, error) {
	for {
		z, err := p.awaitZygote(ctx)
		if err != nil {
			return nil, err
		}
		child, err := p.makeChildOf(ctx, z, spec)
		if err != nil && ctx.Err() == nil && !z.Alive() {
			continue
		}
		return child, err
	}
}

// makeChildOf is makeChild with a given zygote.
func (p *zygotePool) makeChildOf(ctx context.Context, z *zygote.Zygote, spec ProcessSpec) (_ *Process, err error) {
	defer func() {
		err = AsShortage(err)
		p.shortage.note(err)
	}()
	enter := p.env.lockdownFor(spec)
	began := time.Now()
	birth, uid := birthToldLater, 0
	if enter.Network != nil {
		birth = birthNetwork
	} else if spec.SessionDir == nil && p.env.isDefaultBirth(enter) {
		birth, uid = birthDefault, enter.UID
	}
	child, err := p.fork(ctx, z, birth, uid)
	if err != nil {
		return nil, err
	}
	child, err = p.lockDown(ctx, child, spec, enter, birth == birthDefault)
	if err == nil {
		p.isolator.config.Forked(time.Since(began))
	}
	return child, err
}

// guestOOMScore is what a guest has more than the service on the kernel's scale of 1000
// (proc(5)): if the machine has no memory left, the kernel ends guests before zygotes.
const guestOOMScore = 600

// fork makes the zygote fork a child in its own control group.
func (p *zygotePool) fork(ctx context.Context, z *zygote.Zygote, birth, uid int) (_ *Process, err error) {
	if tree := p.isolator.cgroups; tree != nil {
		if !tree.MayFork() {
			return nil, errNoTasks
		}
		if tree.MemoryUse() > maxMemoryUse {
			return nil, unix.ENOMEM
		}
	}
	sock, childSock, err := socketPair(p.isolator.config.Descriptors)
	if err != nil {
		return nil, err
	}
	defer childSock.Close()
	child := &Process{Conn: protocol.NewConn(sock), pidfd: -1, zygote: z, done: make(chan struct{}),
		idlers: &p.isolator.idle, released: p.isolator.released, late: p.isolator.late}
	without := p.isolator.baseSpec.Without
	child.Conn.Trusting, child.neverFrozen = without.Has(layer.Frames), without.Has(layer.Freeze)
	isForked := false
	defer func() {
		switch {
		case err == nil:
		case isForked:
			child.Close()
		default:
			child.abandon()
		}
	}()
	stdout, err := outputPipe(&child.Stdout)
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	stderr, err := outputPipe(&child.Stderr)
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	fds := []int{int(childSock.Fd()), int(stdout.Fd()), int(stderr.Fd())}
	var joinFDs []int
	if tree := p.isolator.cgroups; tree != nil {
		if child.group, err = tree.Make(); err == nil {
			joinFDs, err = child.group.JoinFDs()
		}
		if err != nil {
			return nil, fmt.Errorf("make the control group: %w", err)
		}
	}
	child.pidfd, err = z.Fork(ctx, append(fds, joinFDs...), birth, uid, child.onExit)
	if err != nil {
		if ctx.Err() != nil {
			err = FullError(err)
		}
		return nil, err
	}
	isForked = true
	_ = childSock.Close() // otherwise the connection stays open if the child dies during the lockdown
	if child.pid, err = procfs.PIDOf(child.pidfd); child.pid == 0 {
		return nil, errors.Join(errors.New("the child died directly after the fork"), err)
	}
	if procfs.ParentOf(child.pid) != z.PID { // a package in the zygote could send another pidfd
		return nil, errors.New("the zygote sent a process that is not its child")
	}
	procfs.SetOOMScore(child.pid, guestOOMScore)
	if child.group != nil && joinFDs == nil {
		if err = child.group.Join(child.pid); err != nil {
			return nil, fmt.Errorf("join the control group: %w", err)
		}
	}
	return child, nil
}

// socketPair returns a connected pair of stream sockets: ours as a connection, and the
// child's as a file. It returns an error if only the reserve of descriptors is left.
func socketPair(reserve *limit.Descriptors) (*net.UnixConn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := reserve.Check(max(pair[0], pair[1])); err != nil {
		_, _ = unix.Close(pair[0]), unix.Close(pair[1])
		return nil, nil, err
	}
	ours, childs := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket-child")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		childs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), childs, nil
}

// outputPipe makes a pipe with a read end that does not block. The caller closes both ends.
func outputPipe(readEnd **os.File) (writeEnd *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	err = unix.SetNonblock(fds[0], true)
	*readEnd, writeEnd = os.NewFile(uintptr(fds[0]), "output"), os.NewFile(uintptr(fds[1]), "output-child")
	if err != nil {
		writeEnd.Close()
		return nil, err
	}
	return writeEnd, nil
}
