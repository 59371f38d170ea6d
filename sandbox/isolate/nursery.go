package isolate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox/protocol"
)

// nursery is one warm set at work: its zygote, and the children that wait. One
// goroutine keeps a living zygote, two at the most keep the pool full, one a spare.
type nursery struct {
	set    WarmSet
	in     *Isolator
	of     *edition
	ready  chan *Process
	spare  chan *Process // forked, and no more
	wanted chan struct{} // has an element where a zygote is wanted, and there is none

	mu      sync.Mutex
	current *zygote       // nil before the first, after a death, and where none is needed
	turned  chan struct{} // closed, and replaced, when current changes
	old     []*zygote     // retired, with children that still live
	used    time.Time     // when a child was last wanted
}

func newNursery(of *edition, set WarmSet) *nursery {
	n := &nursery{set: set, in: of.in, of: of, spare: make(chan *Process), wanted: make(chan struct{}, 1), turned: make(chan struct{})}
	n.ready = make(chan *Process, max(set.Pool-2, 1))
	if !of.eager {
		n.ready = make(chan *Process) // what waits is in the hand of who fills
	}
	return n
}

// want says that a child is wanted, for which a zygote must be there.
func (n *nursery) want() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.used = time.Now()
	if n.current != nil && n.current.alive() {
		return
	}
	select {
	case n.wanted <- struct{}{}:
	default:
	}
}

// now is the zygote that forks, or nil, and what is closed when it is another.
func (n *nursery) now() (*zygote, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current, n.turned
}

// unhurried is how long a pool that is more than half full puts off a birth: it
// takes a core for some milliseconds, which the run at hand needs.
const unhurried = 10 * time.Millisecond

// fill keeps the pool full until the edition is retired. Two of it run for each large
// pool: one child joins its cgroup while the next is forked.
func (n *nursery) fill() {
	ageing := n.of.ageing
	defer n.of.filling.Done()
	for {
		if len(n.ready) > cap(n.ready)/2 { // let the run that took one begin first
			n.of.pause(unhurried)
		}
		if !n.awake(ageing) {
			return
		}
		ctx, cancel := context.WithTimeout(ageing, birthTime)
		p, err := n.birth(ctx, ProcessSpec{Policy: n.of.policy})
		cancel()
		if ageing.Err() != nil {
			if err == nil {
				_ = p.Close()
			}
			return
		}
		if err != nil {
			n.in.config.Log("cannot prepare a sandbox: %v", err)
			n.of.pause(100 * time.Millisecond)
			continue
		}
		select {
		case n.ready <- p:
		case <-p.done: // with its zygote; keep sees to those that wait
			_ = p.Close()
		case <-ageing.Done():
			_ = p.Close()
			return
		}
	}
}

// awake waits until there is a zygote, or, where there should always be one, does not;
// false where the edition is retired.
func (n *nursery) awake(ageing context.Context) bool {
	for !n.of.eager {
		z, turned := n.now()
		if z != nil {
			break
		}
		select {
		case <-turned:
		case <-ageing.Done():
			return false
		}
	}
	return ageing.Err() == nil
}

// birthTime is how long the birth of a child that waits may take: a zygote may have
// to import its packages first.
const birthTime = time.Minute

// alive says why the nursery has no zygote. It never waits for one that is coming.
func (n *nursery) alive() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.current != nil && n.current.alive() {
		return nil
	}
	return fmt.Errorf("the %s packages are being imported", n.set.Name)
}

// close ends the zygotes, and with them their children, when keep and fill are over.
func (n *nursery) close() {
	for _, z := range append(n.old, n.current) {
		if z != nil {
			n.in.dropShared(z)
			z.close()
		}
	}
	n.discard(func(*Process) bool { return true }, 0)
}

// birth forks one child and has it lock itself down: it can run user code when birth
// returns.
func (n *nursery) birth(ctx context.Context, spec ProcessSpec) (*Process, error) {
	for {
		z, err := n.parent(ctx)
		if err != nil {
			return nil, err
		}
		p, err := n.birthOf(ctx, z, spec)
		if err != nil && ctx.Err() == nil && !z.alive() { // it died, or retired, just then
			continue
		}
		return p, err
	}
}

func (n *nursery) birthOf(ctx context.Context, z *zygote, spec ProcessSpec) (*Process, error) {
	enter := n.of.enter(spec)
	birth, uid := untold, 0
	if spec.SessionDir == nil && n.of.isUsual(enter) {
		birth, uid = usual, enter.UID
	}
	p, err := n.fork(ctx, z, birth, uid)
	if err != nil {
		return nil, err
	}
	return n.lock(ctx, p, spec, enter, birth == usual)
}

// birthAtOnce is a birth that somebody waits for, of a child that is forked already, where
// one is.
func (n *nursery) birthAtOnce(ctx context.Context, spec ProcessSpec) (*Process, error) {
	select {
	case p := <-n.spare:
		p, err := n.lock(ctx, p, spec, n.of.enter(spec), false)
		if err == nil || ctx.Err() != nil {
			return p, err
		}
		// it died, with its zygote
	default:
	}
	return n.birth(ctx, spec)
}

// forkSpares keeps one child ready that is forked and in its cgroup, which on version 1
// can take many times as long as all the rest, and has not been told how to lock itself
// down: for a sandbox that none of the pool is fit for.
func (n *nursery) forkSpares() {
	ageing := n.of.ageing
	defer n.of.filling.Done()
	for ageing.Err() == nil {
		z, turned := n.now()
		if z == nil {
			select {
			case <-turned:
			case <-ageing.Done():
			}
			continue
		}
		ctx, cancel := context.WithTimeout(ageing, birthTime)
		p, err := n.fork(ctx, z, untold, 0)
		cancel()
		if err != nil {
			n.of.pause(100 * time.Millisecond) // whoever needs one is told why
			continue
		}
		select {
		case n.spare <- p:
			n.of.pause(unhurried)
			continue
		case <-p.done:
			n.of.pause(unhurried)
		case <-turned:
		case <-ageing.Done():
		}
		_ = p.Close()
	}
}

// fork has the zygote fork a child, and puts it into a cgroup of its own.
func (n *nursery) fork(ctx context.Context, z *zygote, birth, uid int) (*Process, error) {
	sock, theirs, err := streamPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	p := &Process{Conn: protocol.NewConn(sock), pidfd: -1, from: z, done: make(chan struct{}), baseKB: z.residentKB, dataKB: z.dataKB}
	p.Conn.Trusting, p.restless = n.in.spec.Without.lack(WallFrames), n.in.spec.Without.lack(WallFreeze)
	var writers [2]*os.File
	for end, out := range []**os.File{&p.Stdout, &p.Stderr} {
		var fds [2]int
		if err = unix.Pipe2(fds[:], unix.O_CLOEXEC); err == nil {
			err = unix.SetNonblock(fds[0], true)
			*out, writers[end] = os.NewFile(uintptr(fds[0]), "output"), os.NewFile(uintptr(fds[1]), "output-child")
			defer writers[end].Close()
		}
		if err != nil {
			return nil, errors.Join(err, p.letGo())
		}
	}
	ends := []int{int(theirs.Fd()), int(writers[0].Fd()), int(writers[1].Fd())}
	if groups := n.in.groups; groups != nil {
		var doors []int
		if p.group, err = groups.make(strconv.FormatInt(n.in.serial.Add(1), 10)); err == nil {
			doors, err = p.group.doors()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make the cgroup: %w", err), p.unborn())
		}
		ends = append(ends, doors...)
	}
	if p.pidfd, err = z.fork(ctx, ends, birth, uid, p.exited); err != nil {
		return nil, errors.Join(err, p.unborn())
	}
	_ = theirs.Close() // or the child's death, while it locks itself down, would go unseen
	if p.pid = pidOf(p.pidfd); p.pid == 0 {
		return nil, errors.Join(errGone, p.Close())
	}
	if p.group != nil && p.group.in.version == 2 {
		if err = p.group.join(p.pid); err != nil {
			return nil, errors.Join(fmt.Errorf("join the cgroup: %w", err), p.Close())
		}
	}
	return p, nil
}

// lock gives a child its limits and its Home, and has it lock itself down there. told: it
// knows how. The child is closed where that fails.
func (n *nursery) lock(ctx context.Context, p *Process, spec ProcessSpec, enter protocol.Enter, told bool) (_ *Process, err error) {
	p.given = spec.SessionDir
	if p.group != nil {
		err = p.group.limit(boundsOf(spec.Policy)) // so that most have theirs before they are wanted
	}
	if err == nil {
		p.SessionDir, err = n.of.settle(ctx, p, spec, enter, told)
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("lock down: %w", err), p.Close())
		if p.unjoined() {
			err = errors.Join(errors.New("it could not join its control groups"), err)
		}
		return nil, err
	}
	return p, nil
}

// enter is how a child locks itself down, but for where it has its Home from.
func (e *edition) enter(spec ProcessSpec) protocol.Enter {
	i := e.in
	enter := protocol.Enter{Filter: filterPlain, Landlock: i.rung.landlock, Workspace: spec.Policy.WorkspaceMaxBytes}
	if spec.Policy.EnableNetworkAccess {
		enter.Filter, enter.Network = filterNetwork, e.network()
	}
	if i.ids.count > 0 && !i.spec.Without.lack(WallUID) {
		first := i.ids.first
		if i.rung.private {
			first = firstIn
		}
		enter.UID = first + int(i.uids.Add(1)%int64(i.ids.count-1)) // the last is for what is shared
	}
	if i.spec.Without.lack(WallSeccomp) {
		enter.Filter = ""
	}
	if i.spec.Without.lack(WallLandlock) {
		enter.Landlock = false
	}
	return enter
}

// settle gives a child its Home, and has it lock itself down there. told: it knows how.
func (e *edition) settle(ctx context.Context, p *Process, spec ProcessSpec, enter protocol.Enter, told bool) (*SessionDir, error) {
	i := e.in
	home := spec.SessionDir
	if home != nil {
		enter.UID = home.uid
	}
	if i.rung.private {
		var mounts []int
		if enter.Attach = home != nil; enter.Attach {
			mounts = []int{home.mount}
			if home.data >= 0 {
				mounts = append(mounts, home.data)
			}
		}
		own, err := p.lock(ctx, enter, told, mounts...)
		if err != nil {
			return nil, err
		}
		return &SessionDir{uid: enter.UID, mount: own[0], data: own[1]}, nil
	}
	var err error
	if home == nil {
		home, err = i.makeHome(enter.UID)
	} else {
		err = home.renew(spec.Policy.WorkspaceMaxBytes)
	}
	if err != nil {
		return nil, err
	}
	enter.Folder = home.dir
	if _, err = p.lock(ctx, enter, false); err != nil && home != spec.SessionDir {
		err = errors.Join(err, home.Close())
	}
	return home, err
}

// pause waits for d, or until the edition ends.
func (e *edition) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-e.life.Done():
	}
}
