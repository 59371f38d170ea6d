package isolate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/hatch"
	"glasshouse/sandbox/python"
)

// The levels of the wall, strongest first.
const (
	LevelFull           = "full"
	LevelWithoutCgroups = "full-without-cgroups"
)

// Config says how to raise the wall.
type Config struct {
	Python string                           // the interpreter of the environment
	Warm   []string                         // modules to import before the fork
	Pool   int                              // children that wait ready
	Level  string                           // force a level; "" is the best that the machine has
	Log    func(format string, args ...any) // never nil
}

// Spec is what one child is started with.
type Spec struct {
	SandboxID string
	Policy    policy.Policy
	Rules     policy.CodeRules
	Slot      int // of the sandbox: its uid where a range is mapped
	Session   int // descriptor of the /session mount of an earlier child, or -1
}

// Isolator owns the zygote and the pool of waiting children.
type Isolator struct {
	config  Config
	spec    stageSpec
	filter  []byte
	groups  *cgroups
	why     string // why there are no cgroups
	version []int

	mu     sync.Mutex
	zygote *zygote
	serial int
	closed bool
	pool   chan *Process
	refill chan struct{}
	over   sync.WaitGroup
}

// Open probes the machine by raising the wall once, fills the pool in the
// background, and returns. The error says what the machine lacks.
func Open(config Config) (*Isolator, error) {
	py, err := inspectPython(config.Python)
	if err != nil {
		return nil, err
	}
	files, err := python.Inside()
	if err != nil {
		return nil, err
	}
	i := &Isolator{config: config, version: py.Version, pool: make(chan *Process, max(config.Pool, 1)), refill: make(chan struct{}, 1)}
	i.spec = stageSpec{Files: files, Python: py.Executable, Warm: config.Warm}
	i.spec.Binds, i.spec.Links, i.spec.Path = rootOf(py)
	if i.filter, err = Filter(); err != nil {
		return nil, err
	}
	switch config.Level {
	case "", LevelFull:
		if i.groups, err = openCgroups(); err != nil {
			i.why = err.Error()
			if config.Level == LevelFull {
				return nil, fmt.Errorf("level full needs cgroups: %w", err)
			}
			config.Log("no cgroups, so memory is bounded by RLIMIT_DATA and CPU share is not bounded: %v", err)
		}
	case LevelWithoutCgroups:
		i.why = "the operator chose this level"
	default:
		return nil, fmt.Errorf("isolation %q is not known: use %s or %s, or leave it out", config.Level, LevelFull, LevelWithoutCgroups)
	}
	if i.zygote, err = i.spawn(); err != nil {
		return nil, fmt.Errorf("%w; the wall needs user namespaces: check `unshare -Urm true`, the sysctls user.max_user_namespaces and "+
			"kernel.apparmor_restrict_unprivileged_userns", err)
	}
	i.over.Add(1)
	go i.fill()
	return i, nil
}

func (i *Isolator) spawn() (*zygote, error) {
	return startZygote(i.spec, func(line string) { i.config.Log("zygote: %s", line) })
}

// Level is the wall's level, and what is not enforced by it and why.
func (i *Isolator) Level() (level, missing string) {
	if i.groups == nil {
		return LevelWithoutCgroups, i.why
	}
	return LevelFull, ""
}

// Isolation is what an execution behind this wall reports.
func (i *Isolator) Isolation() sandbox.Isolation {
	by := map[string]string{
		"max_execution_time": "deadline and SIGKILL by the service", "max_open_files": "RLIMIT_NOFILE", "max_processes": "seccomp",
		"max_memory_mb": "RLIMIT_DATA", "cpu_percent": "none", "max_threads": "none", "file_max_bytes": "RLIMIT_FSIZE",
		"workspace_max_bytes": "tmpfs", "network": "network namespace, seccomp",
	}
	level, _ := i.Level()
	if i.groups != nil {
		v := fmt.Sprintf("cgroup v%d", i.groups.version)
		by["max_memory_mb"], by["cpu_percent"], by["max_threads"] = v+", RLIMIT_DATA", v, v
	}
	return sandbox.Isolation{Level: level, EnforcedBy: by}
}

// Python is the version of the interpreter inside.
func (i *Isolator) Python() []int { return i.version }

// fill keeps the pool full, and the zygote alive.
func (i *Isolator) fill() {
	defer i.over.Done()
	for {
		p, err := i.birth()
		if err != nil {
			i.mu.Lock()
			closed := i.closed
			i.mu.Unlock()
			if closed {
				return
			}
			i.config.Log("cannot prepare a sandbox: %v", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		i.mu.Lock()
		if i.closed {
			i.mu.Unlock()
			_ = p.Close()
			return
		}
		i.mu.Unlock()
		i.pool <- p
	}
}

// birth forks one child, unconfined as yet but with no user code to run, and
// puts it into its cgroup.
func (i *Isolator) birth() (*Process, error) {
	i.mu.Lock()
	if i.closed {
		i.mu.Unlock()
		return nil, errors.New("closed")
	}
	z := i.zygote
	select {
	case <-z.dead:
		i.config.Log("the zygote died; starting another")
		fresh, err := i.spawn()
		if err != nil {
			i.mu.Unlock()
			return nil, err
		}
		z.control.Close()
		i.zygote, z = fresh, fresh
	default:
	}
	i.serial++
	serial := i.serial
	i.mu.Unlock()

	sock, theirs, err := streamPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	p := &Process{Hatch: hatch.NewConn(sock), done: make(chan struct{}), baseKB: statusKB(z.pid, "VmRSS:")}
	var writers [2]*os.File
	for n, end := range []**os.File{&p.Stdout, &p.Stderr} {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
			return nil, err
		}
		if err := unix.SetNonblock(fds[0], true); err != nil {
			return nil, err
		}
		*end, writers[n] = os.NewFile(uintptr(fds[0]), "output"), os.NewFile(uintptr(fds[1]), "output-child")
		defer writers[n].Close()
	}
	p.pidfd, err = z.fork(int(theirs.Fd()), int(writers[0].Fd()), int(writers[1].Fd()), p.exited)
	if err != nil {
		_ = p.Hatch.Close()
		_ = p.Stdout.Close()
		_ = p.Stderr.Close()
		return nil, err
	}
	p.pid = pidOf(p.pidfd)
	if i.groups != nil {
		p.group, err = i.groups.make(strconv.Itoa(serial))
		if err == nil {
			err = p.group.join(p.pid)
		}
		if err != nil {
			_ = p.Close()
			return nil, fmt.Errorf("join the cgroup: %w", err)
		}
	}
	return p, nil
}

// Start gives one waiting child to a sandbox: it is locked down when Start
// returns. The second value is a descriptor of the sandbox's /session, which
// outlives the child; the caller closes it. A full machine is FaultFull.
func (i *Isolator) Start(ctx context.Context, spec Spec) (*Process, int, error) {
	for {
		var p *Process
		select {
		case p = <-i.pool:
		case <-ctx.Done():
			return nil, -1, &sandbox.Error{Fault: sandbox.FaultFull, Detail: "no sandbox became free in time; try again", RetryAfter: 1, Cause: ctx.Err()}
		}
		select {
		case <-p.done: // died while it waited, with its zygote
			_ = p.Close()
			continue
		default:
		}
		session, err := i.enter(p, spec)
		if err != nil {
			_ = p.Close()
			return nil, -1, fmt.Errorf("lock down: %w", err)
		}
		return p, session, nil
	}
}

func (i *Isolator) enter(p *Process, spec Spec) (int, error) {
	pol := spec.Policy
	policyJSON, err := json.Marshal(pol)
	if err != nil {
		return -1, err
	}
	rules, err := json.Marshal(spec.Rules)
	if err != nil {
		return -1, err
	}
	memory := int64(pol.MaxMemoryMB) << 20
	if p.group != nil {
		if err := p.group.limit(memory, pol.CPUPercent, pol.MaxThreads+1); err != nil {
			return -1, err
		}
	}
	enter := hatch.Enter{
		SandboxID: spec.SandboxID, Policy: policyJSON, Rules: rules, Filter: i.filter, Landlock: true,
		DataLimit: statusKB(p.pid, "VmData:")<<10 + memory + int64(pol.MaxThreads)*8<<20, // a stack for each thread
		Inodes:    16384, Attach: spec.Session >= 0,
	}
	if os.Geteuid() == 0 {
		enter.UID = firstIn + spec.Slot%uidSlots
	}
	var fds []int
	if enter.Attach {
		fds = []int{spec.Session}
	}
	if err := p.Hatch.Write(hatch.KindEnter, enter, fds...); err != nil {
		return -1, err
	}
	ready, session, err := p.Hatch.ReadReady()
	if err == nil && ready.Error != "" {
		err = errors.New(ready.Error)
	}
	if err != nil && session >= 0 {
		_ = unix.Close(session)
	}
	return session, err
}

// Close ends the zygote, and with it every child, and removes the cgroups.
func (i *Isolator) Close() {
	i.mu.Lock()
	i.closed = true
	i.zygote.close()
	i.mu.Unlock()
	for stop := false; !stop; {
		select {
		case p := <-i.pool:
			_ = p.Close()
		case <-time.After(200 * time.Millisecond):
			stop = true
		}
	}
	i.over.Wait()
	if i.groups != nil {
		i.groups.remove()
	}
}
