package isolate

import (
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

	"glasshouse/policy"
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
	EnvironmentsDir string                           // folder of the environments; "" if there is only the default one
	WarmSets        []WarmSet                        // from small to large; at least one
	DataSets        map[string]string                // read-only as /data/NAME: NAME to a path on the machine
	Level           string                           // the only level to try; "" is the strongest that the machine has
	MinLevel        string                           // refuse a weaker one; "" is LevelLandlock
	WorkDir         string                           // emptied, and used on levels without private mounts; "" is a temporary folder
	SharedDir       string                           // a folder of the machine for SharedSessionDir; "" for none
	DefaultPolicy   policy.Policy                    // of most sandboxes: waiting children are prepared for it
	CABundle        string                           // PEM file of the certificates that user code trusts; "" is the machine's
	Recycle         RecyclePolicy                    // when a zygote is replaced
	Log             func(format string, args ...any) // required
	Without         layer.Set                        // layers to leave out; only tests of the layers set it
}

// ProcessSpec describes a process to start.
type ProcessSpec struct {
	Policy     policy.Policy
	SessionDir *SessionDir // of an earlier process of the sandbox, or nil for a new one
	Code       string      // the code that will run, if known: it chooses the warm set
	Unpinned   bool        // the new SessionDir does not pin the environment's version: its next process has the current one
}

// Isolator starts processes. It owns the zygotes and the children that wait.
type Isolator struct {
	config    Config
	level     levelSpec         // the level taken
	isolation sandbox.Isolation // what executions report about it
	rejected  []Attempt         // stronger levels that this machine lacks
	baseSpec  zygote.Spec       // what all environments have in common
	uids      zygote.UIDRange
	cgroups   *cgroup.Tree // nil on levels without
	workDir   string       // of guest code and session directories, on levels without private mounts
	store     environment.Store

	hasSessionPath bool // the path /session leads to the session directory

	refreshMu sync.Mutex // held by Refresh and Close
	mu        sync.Mutex
	current   map[string]*warmEnvironment // by the environment's name; guarded by mu
	running   map[*warmEnvironment]bool   // current and retired ones; guarded by mu
	closing   sync.WaitGroup              // of retired ones

	uidCount atomic.Int64    // uids given to children so far
	ctx      context.Context // of all background work
	cancel   context.CancelFunc
}

// Open takes the strongest level that the machine has, after it has started and tested
// it with the smallest warm set. It returns before the other warm sets are imported and
// the pools filled. *IsolationError says what the machine lacks.
func Open(config Config) (*Isolator, error) {
	config.Recycle = config.Recycle.withDefaults()
	i := &Isolator{config: config, uids: zygote.FindUIDRange(),
		store:   environment.Store{Dir: config.EnvironmentsDir, Base: config.Python},
		current: map[string]*warmEnvironment{}, running: map[*warmEnvironment]bool{}}
	if i.uids.Count > 1 {
		// Two services on one machine must not start with the same uids, because they would
		// share what the kernel counts by uid.
		i.uidCount.Store(rand.Int64N(int64(i.uids.Count)))
	}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	pinned, err := i.store.Pin(environment.Default)
	if err != nil {
		return nil, err
	}
	i.baseSpec = zygote.Spec{Without: config.Without}
	if i.baseSpec.Files, err = guestFiles(config.Python); err != nil {
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
	if err = i.Refresh(i.ctx); err != nil { // the other environments, which start no zygote yet
		config.Log("%v", err)
	}
	return i, nil
}

// guestFiles returns the Python files that run in the guest, and the C extensions that
// scripts/setup has built into the packages of an interpreter. Every environment gets
// the extensions, and an interpreter of another version ignores them.
func guestFiles(interpreter string) (map[string][]byte, error) {
	files, err := python.Guest()
	if err != nil {
		return nil, err
	}
	py, err := environment.Inspect(interpreter)
	for _, folder := range py.Packages {
		for _, name := range []string{"recorder_fast", "syscall_batch"} {
			found, _ := filepath.Glob(filepath.Join(folder, name+".*.so"))
			for _, path := range found {
				body, readErr := os.ReadFile(path)
				files[filepath.Base(path)], err = body, errors.Join(err, readErr)
			}
		}
	}
	return files, err
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

// maxStartAttempts is how often Start takes another child if one died, with its zygote,
// before it was assigned.
const maxStartAttempts = 5

// Start starts a process; the caller closes it. Usually a child waits for it. A child is
// made for a process with a SessionDir, with a network, or with another size of /session
// than the default. Start returns FaultFull if ctx ends first, and FaultForbidden if the
// level can't give the process a network.
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
	p, err := i.takeChild(ctx, env.pools[smallestSet(env.warmSets, spec.Code)], spec)
	if err == nil {
		err = env.assign(p, spec.Policy)
	}
	if err != nil {
		return nil, err
	}
	env.lease()
	p.env = env
	if p.SessionDir.env == nil && !spec.Unpinned {
		env.lease()
		p.SessionDir.env = env
	}
	return p, nil
}

var errRetired = errors.New("the environment was replaced while the process waited for a child")

// takeChild returns a child that waits, or one that is made for spec.
func (i *Isolator) takeChild(ctx context.Context, pool *zygotePool, spec ProcessSpec) (*Process, error) {
	hasOtherSize := i.level.namespaces && spec.Policy.WorkspaceMaxBytes != i.config.DefaultPolicy.WorkspaceMaxBytes
	if spec.SessionDir != nil || hasOtherSize || spec.Policy.EnableNetworkAccess {
		return pool.makeChildNow(ctx, spec)
	}
	for {
		pool.requestZygote()
		var p *Process
		select {
		case p = <-pool.ready:
		default:
			select {
			case p = <-pool.ready:
			case <-ctx.Done():
				return nil, fullError(ctx.Err())
			case <-i.ctx.Done():
				return nil, &sandbox.Error{Fault: sandbox.FaultFull, Detail: "the service is stopping", RetryAfter: 5}
			case <-pool.env.active.Done():
				return nil, errRetired
			}
		}
		if p.hasExited() { // it died with its zygote while it waited
			_ = p.Close()
			continue
		}
		return p, nil
	}
}

// fullError returns the error for a start that waited too long.
func fullError(cause error) error {
	return &sandbox.Error{
		Fault:      sandbox.FaultFull,
		Detail:     "no sandbox became free in time; try again",
		RetryAfter: 1,
		Cause:      cause,
	}
}

// assign sets a locked child's limits and tells it its policy. It closes the child if
// that fails.
func (env *warmEnvironment) assign(p *Process, pol policy.Policy) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("assign a child to a sandbox: %w", err), p.Close())
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

// encodePolicy returns a policy, and the rules for code that follow from it, as JSON.
func (env *warmEnvironment) encodePolicy(p policy.Policy) (pol, rules json.RawMessage, err error) {
	if pol, err = json.Marshal(p); err == nil {
		rules, err = json.Marshal(policy.Rules(p, env.pinned.Modules))
	}
	return pol, rules, err
}

// Close ends the zygotes, and with them every child, and removes their files.
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
	i.removeFiles()
}

// removeFiles removes the control groups and the working folder.
func (i *Isolator) removeFiles() {
	if i.cgroups != nil {
		i.cgroups.Close()
	}
	if i.workDir != "" {
		if err := filetree.RemoveAll(i.workDir); err != nil {
			i.config.Log("remove %s: %v", i.workDir, err)
		}
	}
}
