package isolate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

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
	Python  string                           // the interpreter of the environment
	Sets    []Set                            // warm sets, from small to large; at least one
	Level   string                           // force a level; "" is the best that the machine has
	Folder  string                           // of the host's, for a Folder; "" where there is none
	Default policy.Policy                    // of most sandboxes: what waits ready is ready for it
	Log     func(format string, args ...any) // never nil
}

// Spec is what one child is started with.
type Spec struct {
	SandboxID string
	Policy    policy.Policy
	Session   int    // descriptor of the /session mount of an earlier child, or -1
	UID       int    // that child's
	Code      string // what it will run, where that is all: it chooses the warm set
}

// Isolator owns the zygotes and the pools of waiting children.
type Isolator struct {
	config    Config
	spec      stageSpec
	groups    *cgroups
	why       string // why there are no cgroups
	version   []int
	nurseries []*nursery // one for each warm set

	serial   atomic.Int64 // of cgroups
	folderMu sync.Mutex

	closing chan struct{}
	over    sync.WaitGroup
}

// Open probes the machine by raising the wall once, with the largest warm set,
// fills the pools in the background, and returns. The error says what the machine
// lacks.
func Open(config Config) (*Isolator, error) {
	py, err := inspectPython(config.Python)
	if err != nil {
		return nil, err
	}
	files, err := python.Inside()
	if err != nil {
		return nil, err
	}
	i := &Isolator{config: config, version: py.Version, closing: make(chan struct{})}
	i.spec = stageSpec{Files: files, Python: py.Executable}
	i.spec.Binds, i.spec.Links, i.spec.Path = rootOf(py)
	if i.spec.Policy, i.spec.Rules, err = encode(config.Default); err != nil {
		return nil, err
	}
	filter, err := Filter()
	if err != nil {
		return nil, err
	}
	i.spec.Filters = map[string][]byte{filterPlain: filter}
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
	for _, set := range config.Sets {
		i.nurseries = append(i.nurseries, &nursery{set: set, in: i, ready: make(chan *Process, max(set.Pool-2, 1))})
	}
	// The smallest shows that a wall can be raised; the others warm up meanwhile.
	if _, err = i.nurseries[0].parent(); err != nil {
		return nil, fmt.Errorf("%w; the wall needs user namespaces: check `unshare -Urm true`, the sysctls user.max_user_namespaces and "+
			"kernel.apparmor_restrict_unprivileged_userns", err)
	}
	for n := len(i.nurseries) - 1; n >= 0; n-- {
		i.over.Add(2)
		go i.nurseries[n].fill()
		go i.nurseries[n].fill()
	}
	return i, nil
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

// Ready says why no child could be started now: its zygote has died, and another
// is not there yet.
func (i *Isolator) Ready() error {
	for _, n := range i.nurseries {
		if err := n.alive(); err != nil {
			return err
		}
	}
	return nil
}

// Python is the version of the interpreter inside.
func (i *Isolator) Python() []int { return i.version }

// Start gives a locked child to a sandbox. Most wait ready; one with a /session of
// its own, or of another size than the default, is made. A full machine is
// FaultFull.
func (i *Isolator) Start(ctx context.Context, spec Spec) (*Process, error) {
	n := i.nurseries[smallest(i.config.Sets, spec.Code)]
	if spec.Session >= 0 || spec.Policy.WorkspaceMaxBytes != i.config.Default.WorkspaceMaxBytes {
		p, err := n.birth(spec)
		if err == nil {
			err = i.assign(p, spec)
		}
		return p, err
	}
	for {
		var p *Process
		select {
		case p = <-n.ready:
		default:
			select {
			case p = <-n.ready:
			case <-ctx.Done():
				return nil, &sandbox.Error{Fault: sandbox.FaultFull, Detail: "no sandbox became free in time; try again", RetryAfter: 1, Cause: ctx.Err()}
			case <-i.closing:
				return nil, &sandbox.Error{Fault: sandbox.FaultFull, Detail: "the service is stopping", RetryAfter: 5}
			}
		}
		select {
		case <-p.done: // died while it waited, with its zygote
			_ = p.Close()
			continue
		default:
		}
		return p, i.assign(p, spec)
	}
}

// assign sets a locked child's limits, and tells it what it is to be. The child is
// closed where that fails.
func (i *Isolator) assign(p *Process, spec Spec) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("assign: %w", err), p.Close())
		}
	}()
	pol := spec.Policy
	memory := int64(pol.MaxMemoryMB) << 20
	if p.group != nil {
		if err := p.group.limit(memory, pol.CPUPercent, pol.MaxThreads+1); err != nil {
			return err
		}
	}
	for resource, most := range map[int]int64{
		unix.RLIMIT_NOFILE: int64(pol.MaxOpenFiles), unix.RLIMIT_FSIZE: pol.FileMaxBytes,
		unix.RLIMIT_DATA: p.dataKB<<10 + memory + int64(pol.MaxThreads)*8<<20, // a stack for each thread
	} {
		if err := unix.Prlimit(p.pid, resource, &unix.Rlimit{Cur: uint64(most), Max: uint64(most)}, nil); err != nil {
			return fmt.Errorf("prlimit: %w", err)
		}
	}
	var a hatch.Assign
	if !reflect.DeepEqual(pol, i.config.Default) {
		if a.Policy, a.Rules, err = encode(pol); err != nil {
			return err
		}
	}
	return p.Hatch.Write(hatch.KindAssign, a)
}

// encode is a policy, and the rules for code that come of it, as JSON.
func encode(p policy.Policy) (pol, rules json.RawMessage, err error) {
	if pol, err = json.Marshal(p); err == nil {
		rules, err = json.Marshal(policy.Rules(p))
	}
	return pol, rules, err
}

// Close ends the zygotes, and with them every child, and removes the cgroups.
func (i *Isolator) Close() {
	close(i.closing)
	for _, n := range i.nurseries {
		n.close()
	}
	i.over.Wait()
	for _, n := range i.nurseries {
		close(n.ready)
		for p := range n.ready {
			_ = p.Close()
		}
	}
	if i.groups != nil {
		i.groups.remove()
	}
}
