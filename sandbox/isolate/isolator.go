package isolate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"glasshouse/policy"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/environment"
	"glasshouse/sandbox/isolate/cgroup"
	"glasshouse/sandbox/isolate/filetree"
	"glasshouse/sandbox/isolate/layer"
	"glasshouse/sandbox/isolate/zygote"
	"glasshouse/sandbox/protocol"
	"glasshouse/sandbox/python"
)

// Config configures an Isolator.
type Config struct {
	Python          string                           // the interpreter of the default environment, or the one it was made from
	EnvironmentsDir string                           // folder of the environments; "" if only the default one exists
	WarmSets        []WarmSet                        // from small to large; at least one
	DataSets        map[string]string                // read-only as /data/NAME: NAME to a path on the machine
	Level           string                           // the only level to try; "" means the strongest of the machine
	MinLevel        string                           // weaker levels are refused; "" means LevelLandlock
	WorkDir         string                           // emptied; for levels without private mounts; "" means a temporary one
	SharedDir       string                           // a folder of the machine for SharedSessionDir; "" for none
	DefaultPolicy   policy.Policy                    // of most sandboxes; waiting children are prepared for it
	CABundle        string                           // PEM file of certificates for user code; "" means the machine's
	Recycle         RecyclePolicy                    // when a zygote is replaced
	HashSeed        uint32                           // of Python's hashes of texts; 0: random
	MaxOpenIdle     int                              // idle processes that keep all descriptors open; 0 means 64
	Descriptors     *limit.Descriptors               // keeps a reserve from processes; nil: none
	Users           *limit.Users                     // among whom CPU time is divided; nil: all have the same weight
	Log             func(format string, args ...any) // required
	Without         layer.Set                        // layers to leave out; only tests of the layers set it

	// Forked is called after each fork of a guest, with the time until the guest was locked down; PoolMissed before a
	// start waits for a fork. Several goroutines call them.
	Forked     func(took time.Duration) // nil: not
	PoolMissed func()                   // nil: not
}

// ProcessSpec describes a process to start.
type ProcessSpec struct {
	Policy     policy.Policy
	SessionDir *SessionDir // from an earlier process of the sandbox, or nil for a new one
	Code       string      // the code that will run, if known; the warm set depends on it
	First      bool        // the user starts no other process now, and may take one that is reserved for such users
	User       string      // all processes of a user together get the user's part of CPU time
	Unpinned   bool        // the next process with the new SessionDir gets the current version of the environment
}

// Isolator starts processes. It owns the zygotes and the children that wait.
type Isolator struct {
	config    Config
	level     levelSpec         // the level taken
	isolation sandbox.Isolation // the level as executions report it
	rejected  []Attempt         // stronger levels that this machine lacks
	baseSpec  zygote.Spec       // the fields that all environments have in common
	uids      zygote.UIDRange
	cgroups   *cgroup.Tree // nil on levels without
	idle      idleProcesses
	released  chan struct{} // capacity 1: a process has ended, so that another may fit
	late      *lateCleanups
	sharing   cpuSharing
	sysctls   *os.File // the folder /proc/sys/net, or nil if children can't write to it
	workDir   string   // of guest code and session directories, on levels without private mounts
	store     environment.Store

	extensions map[string]string // the paths of the C extensions among baseSpec.Files, by name

	hasSessionPath bool // the path /session leads to the session directory

	refreshMu sync.Mutex // held by Refresh and Close
	mu        sync.Mutex
	current   map[string]*warmEnvironment // by the environment's name; guarded by mu
	running   map[*warmEnvironment]bool   // current and retired ones; guarded by mu
	closing   sync.WaitGroup              // of retired ones

	uidCount atomic.Int64    // number of uids given to children so far
	ctx      context.Context // for all background work
	cancel   context.CancelFunc
}

// Open chooses the strongest level of the machine: it starts the smallest warm set on each
// level until a child passes the test. Open returns before the other warm sets are imported
// and the pools are full. It returns *IsolationError if the machine has no accepted level.
func Open(config Config) (*Isolator, error) {
	config.Recycle = config.Recycle.withDefaults()
	i := &Isolator{config: config, uids: zygote.FindUIDRange(),
		store:   environment.Store{Dir: config.EnvironmentsDir, Base: config.Python},
		current: map[string]*warmEnvironment{}, running: map[*warmEnvironment]bool{},
		sharing: cpuSharing{users: config.Users}}
	if config.Forked == nil {
		i.config.Forked = func(time.Duration) {}
	}
	if config.PoolMissed == nil {
		i.config.PoolMissed = func() {}
	}
	if i.uids.Count > 1 {
		// Two services on one machine must not start with the same uids, because they would
		// share what the kernel counts by uid.
		i.uidCount.Store(rand.Int64N(int64(i.uids.Count)))
	}
	i.released = make(chan struct{}, 1)
	i.late = newLateCleanups(config.Log)
	i.idle.max = cmp.Or(config.MaxOpenIdle, defaultMaxOpenIdle)
	i.ctx, i.cancel = context.WithCancel(context.Background())
	pinned, err := i.store.Pin(environment.Default)
	if err != nil {
		return nil, err
	}
	if i.sysctls, err = openSysctls(); err != nil {
		config.Log("sockets of sandboxes with network access have the machine's buffer sizes: %v", err)
	}
	i.baseSpec = zygote.Spec{Without: config.Without, HashSeed: config.HashSeed}
	if i.baseSpec.Files, i.extensions, err = guestFiles(config.Python); err != nil {
		pinned.Release()
		return nil, err
	}
	env, err := i.newEnvironment(pinned)
	if err == nil {
		err = i.chooseLevel(env)
	}
	if err != nil {
		i.cancel()
		pinned.Release()
		i.removeFiles()
		return nil, err
	}
	i.activate(env)
	if err = i.Refresh(i.ctx); err != nil { // reads the other environments, without starting a zygote for them
		config.Log("%v", err)
	}
	return i, nil
}

// guestFiles returns the Python files that run in the guest, and the C extensions that
// scripts/setup has built into the packages of an interpreter. Every environment gets
// the extensions. An interpreter of another version ignores them. extensions has the paths of the extensions.
func guestFiles(interpreter string) (files map[string][]byte, extensions map[string]string, err error) {
	files, err = python.Guest()
	if err != nil {
		return nil, nil, err
	}
	extensions = map[string]string{}
	py, err := environment.Inspect(interpreter)
	for _, folder := range py.Packages {
		for _, name := range []string{"recorder_fast", "syscall_batch"} {
			found, _ := filepath.Glob(filepath.Join(folder, name+".*.so"))
			for _, path := range found {
				body, readErr := os.ReadFile(path)
				files[filepath.Base(path)], err = body, errors.Join(err, readErr)
				extensions[filepath.Base(path)] = path
			}
		}
	}
	return files, extensions, err
}

// Ready returns an error while a zygote of the default environment is missing: it died,
// or its packages are still being imported.
func (i *Isolator) Ready() error {
	i.mu.Lock()
	env := i.current[environment.Default]
	i.mu.Unlock()
	for _, pool := range env.pools {
		if err := pool.checkZygote(); err != nil {
			return err
		}
	}
	return nil
}

// Waiting returns the number of guests that wait for code, by the name of their warm set.
func (i *Isolator) Waiting() map[string]int {
	waiting := map[string]int{}
	for _, pool := range i.Pools() {
		waiting[pool.Name] += pool.Waiting.Now
	}
	return waiting
}

// LateCleanups returns how many processes, folders and control groups of ended sandboxes could not be removed in time
// and are removed later, by kind.
func (i *Isolator) LateCleanups() map[string]int {
	all := map[string]int{"control_group": 0}
	for kind, n := range i.late.counts() {
		all[string(kind)] = n
	}
	if i.cgroups != nil {
		all["control_group"] = i.cgroups.Late()
	}
	return all
}

// Pools describes the warm interpreters of the environments that a sandbox may choose, the default environment first.
func (i *Isolator) Pools() []sandbox.WarmPool {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := []sandbox.WarmPool{}
	for _, name := range i.environmentNames() {
		for _, pool := range i.current[name].pools {
			all = append(all, pool.status())
		}
	}
	return all
}

// Full returns FaultFull, with the reason, if Start in the default environment would find no waiting child for code and
// could not make one.
func (i *Isolator) Full(code string) error {
	i.mu.Lock()
	env := i.current[environment.Default]
	i.mu.Unlock()
	pool := env.pools[smallestSet(env.warmSets, code)]
	if last := pool.shortage.last.Load(); last != nil && len(pool.ready)+len(pool.reserved) == 0 {
		return last
	}
	return nil
}

// maxStartAttempts is how often Start tries another child after a child died with its zygote
// before it was assigned.
const maxStartAttempts = 5

// Start starts a process; the caller closes it. Usually it takes a waiting child. It makes a
// new child for a process with a SessionDir, with a network, or with another size of
// /session than the default. Start returns FaultFull if ctx ends first or something of the
// machine has run out, and FaultForbidden if the level can't give the process a network.
func (i *Isolator) Start(ctx context.Context, spec ProcessSpec) (*Process, error) {
	if spec.Policy.EnableNetworkAccess && !i.level.namespaces {
		return nil, &sandbox.Error{Fault: sandbox.FaultForbidden, Field: "enable_network_access",
			Detail: "no sandbox on this machine can use the network: the isolation level is " + i.level.name +
				", which has no network namespaces; create the sandbox without enable_network_access"}
	}
	for attempt := 1; ; attempt++ {
		p, err := i.startOnce(ctx, spec)
		if err == nil {
			return p, nil
		}
		var known *sandbox.Error
		if errors.As(err, &known) || attempt == maxStartAttempts || ctx.Err() != nil {
			return nil, err
		}
	}
}

func (i *Isolator) startOnce(ctx context.Context, spec ProcessSpec) (*Process, error) {
	env, err := i.leaseEnvironment(spec)
	if err != nil {
		return nil, err
	}
	defer env.release()
	pool := env.pools[smallestSet(env.warmSets, spec.Code)]
	p, err := i.takeChild(ctx, pool, spec)
	if err == nil {
		err = env.assign(p, spec.Policy)
	}
	if err != nil {
		return nil, err
	}
	env.lease()
	p.env, p.pool, p.sharing, p.user = env, pool, &i.sharing, spec.User
	pool.inUse.Add(1)
	p.Rest()
	if p.SessionDir.env == nil && !spec.Unpinned {
		env.lease()
		p.SessionDir.env = env
	}
	return p, nil
}

var errRetired = errors.New("the environment was replaced while the process waited for a child")

// takeChild returns a waiting child, or a new child for spec.
func (i *Isolator) takeChild(ctx context.Context, pool *zygotePool, spec ProcessSpec) (*Process, error) {
	hasOtherSize := i.level.namespaces && spec.Policy.WorkspaceMaxBytes != i.config.DefaultPolicy.WorkspaceMaxBytes
	if spec.SessionDir != nil || hasOtherSize || spec.Policy.EnableNetworkAccess {
		i.config.PoolMissed()
		return pool.makeChildNow(ctx, spec)
	}
	reserved := pool.reserved
	if !spec.First {
		reserved = nil
	}
	hit := true
	for {
		pool.requestZygote()
		var p *Process
		select {
		case p = <-pool.ready:
		default:
			begins := pool.shortage.begins()
			last := pool.shortage.last.Load()
			select {
			case p = <-reserved:
			default:
				if last != nil {
					return nil, last // at once: nobody knows when the shortage ends
				}
			}
			if p != nil {
				break
			}
			if hit {
				i.config.PoolMissed()
			}
			hit = false
			select {
			case p = <-pool.ready:
			case p = <-reserved:
			case <-begins:
				continue
			case <-ctx.Done():
				return nil, FullError(ctx.Err())
			case <-i.ctx.Done():
				return nil, &sandbox.Error{Fault: sandbox.FaultFull, Detail: "the service is stopping", RetryAfter: 5}
			case <-pool.env.active.Done():
				return nil, errRetired
			}
		}
		if p.hasExited() { // the waiting child died with its zygote
			p.Close()
			continue
		}
		p.FromPool = hit
		return p, nil
	}
}

// FullError returns the error for a start that waited too long.
func FullError(cause error) error {
	return &sandbox.Error{
		Fault:      sandbox.FaultFull,
		Detail:     "no sandbox became free in time; try again",
		RetryAfter: 1,
		Cause:      cause,
	}
}

// assign sets the limits of a locked-down child and sends the child its policy. It closes the
// child if that fails.
func (env *warmEnvironment) assign(p *Process, pol policy.Policy) (err error) {
	defer func() {
		if err != nil {
			p.Close()
			err = fmt.Errorf("assign a child to a sandbox: %w", err)
		}
	}()
	var a protocol.Assign
	if a.Limits, err = env.isolator.setLimits(p, pol); err != nil {
		return err
	}
	if !reflect.DeepEqual(pol, env.policy) {
		if a.Policy, a.Rules, err = env.encodePolicy(pol); err != nil {
			return err
		}
	} else if a.Limits == nil {
		return nil // the child was prepared for this policy
	}
	return p.Conn.Write(protocol.KindAssign, a)
}

// encodePolicy returns a policy, and the code rules that it implies, as JSON.
func (env *warmEnvironment) encodePolicy(p policy.Policy) (pol, rules json.RawMessage, err error) {
	if pol, err = json.Marshal(p); err == nil {
		rules, err = json.Marshal(policy.Rules(p, env.pinned.Modules))
	}
	return pol, rules, err
}

// Close ends all zygotes and all children, and removes their files.
func (i *Isolator) Close() {
	i.cancel()
	i.refreshMu.Lock()
	defer i.refreshMu.Unlock()
	i.mu.Lock()
	environments := slices.Collect(maps.Keys(i.running))
	clear(i.running)
	i.mu.Unlock()
	for _, env := range environments {
		env.close()
	}
	i.closing.Wait()
	i.late.close() // the processes have ended with their zygotes
	i.removeFiles()
}

// removeFiles removes the control groups and the working folder, and closes files.
func (i *Isolator) removeFiles() {
	if i.sysctls != nil {
		_ = i.sysctls.Close()
	}
	if i.cgroups != nil {
		i.cgroups.Close()
	}
	if i.workDir != "" {
		if err := filetree.RemoveAll(i.workDir); err != nil {
			i.config.Log("remove %s: %v", i.workDir, err)
		}
	}
}
