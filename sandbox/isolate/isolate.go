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
	"glasshouse/sandbox/protocol"
	"glasshouse/sandbox/python"
)

// Config says how to raise the wall.
type Config struct {
	Python          string                           // the interpreter that the default environment is, or was made from
	EnvironmentsDir string                           // folder of the environments; "" where there is the default one alone
	WarmSets        []WarmSet                        // warm sets, from small to large; at least one
	DataSets        map[string]string                // data sets, seen read-only as /data/NAME: NAME to a path on the host
	Level           string                           // force a level; "" is the best that the machine has
	MinLevel        string                           // refuse a weaker one; "" is LevelLandlock
	WorkDir         string                           // emptied and used where there are no private mounts; "" is a temporary one
	SharedDir       string                           // a folder of the host's, for a Home that many children have; "" where there is none
	DefaultPolicy   policy.Policy                    // of most sandboxes: what waits ready is ready for it
	CABundle        string                           // certificates that code trusts, a PEM file; "" is the machine's
	Recycle         RecyclePolicy                    // when a zygote has served enough
	Log             func(format string, args ...any) // never nil
	Without         []Layer                          // left out by the tests of the wall, and by nobody else
}

// ProcessSpec is what one child is started with.
type ProcessSpec struct {
	SandboxID  string
	Policy     policy.Policy
	SessionDir *SessionDir // of an earlier child of the sandbox, or nil
	Code       string      // what it will run, where that is all: it chooses the warm set
	Unpinned   bool        // the Home is not held to the environment as it is now: its next child has the one of then
}

// Isolator owns the zygotes and the pools of waiting children.
type Isolator struct {
	config    Config
	rung      rung              // the level taken
	isolation sandbox.Isolation // which is told of it
	tried     []Attempt
	spec      stageSpec // what all editions have in common
	ids       identities
	groups    *cgroups // nil on levels without
	folder    string   // of homes, on levels without private mounts
	shelf     environment.Store

	sessionPath bool // "/session" is the session's folder

	refreshing sync.Mutex
	mu         sync.Mutex
	current    map[string]*edition // by the environment's name; guarded by mu
	editions   map[*edition]bool   // all that run; guarded by mu
	ending     sync.WaitGroup      // of those that have been let go

	serial  atomic.Int64    // of cgroups
	uids    atomic.Int64    // given so far
	sharing sync.Mutex      // guards the zygotes' shared
	life    context.Context // of what runs in the background; close ends it
	close   context.CancelFunc
}

// Open raises the strongest wall that the machine has, by doing it with the smallest
// warm set, warms the others and fills the pools in the background, and returns. *NoWall says what the
// machine lacks.
func Open(config Config) (*Isolator, error) {
	config.Recycle = config.Recycle.orDefault()
	i := &Isolator{config: config, ids: findIdentities(), shelf: environment.Store{Dir: config.EnvironmentsDir, Base: config.Python},
		current: map[string]*edition{}, editions: map[*edition]bool{}}
	if i.ids.count > 1 {
		// Not from the first on: two services of a machine would have the same uids, and
		// share what the kernel counts by uid.
		i.uids.Store(rand.Int64N(int64(i.ids.count)))
	}
	i.life, i.close = context.WithCancel(context.Background())
	held, err := i.shelf.Pin(environment.Default)
	if err != nil {
		return nil, err
	}
	i.spec = stageSpec{Without: config.Without}
	if i.spec.Files, err = inside(config.Python); err != nil {
		held.Release()
		return nil, err
	}
	first, err := i.open(held)
	if err == nil {
		err = i.climb(first)
	}
	if err != nil {
		i.close()
		held.Release()
		i.clear()
		return nil, err
	}
	i.admit(first)
	if err = i.Refresh(i.life); err != nil { // the others, which cost nothing yet
		config.Log("%v", err)
	}
	return i, nil
}

// inside are our files that run inside, with the extensions that scripts/setup has built into
// the packages of the interpreter at base. They serve every environment of its version,
// and an interpreter of another does not see them.
func inside(base string) (map[string][]byte, error) {
	files, err := python.Guest()
	if err != nil {
		return nil, err
	}
	py, err := environment.Inspect(base)
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

// Ready says why no child could be started now: its zygote has died, and another
// is not there yet.
func (i *Isolator) Ready() error {
	i.mu.Lock()
	first := i.current[environment.Default]
	i.mu.Unlock()
	for _, n := range first.nurseries {
		if err := n.alive(); err != nil {
			return err
		}
	}
	return nil
}

// tries is how often Start takes another child where one died before it was given,
// with its zygote.
const tries = 5

// Start gives a locked child to a sandbox. Most wait ready; one with a Home, or with
// a /session of another size than the default, or with a network, is made. Where ctx
// ends first it is FaultFull; where the wall has no place for a network, FaultForbidden.
func (i *Isolator) Start(ctx context.Context, spec ProcessSpec) (*Process, error) {
	if spec.Policy.EnableNetworkAccess && !i.rung.private {
		return nil, &sandbox.Error{Fault: sandbox.FaultForbidden, Field: "enable_network_access",
			Detail: "on this machine no sandbox can have a network: the wall is of level " + i.rung.level + ", which has no network namespaces"}
	}
	for try := 1; ; try++ {
		p, err := i.attempt(ctx, spec)
		if err == nil {
			return p, nil
		}
		var refused *sandbox.Error
		if errors.As(err, &refused) || try == tries || ctx.Err() != nil {
			return nil, err
		}
	}
}

// attempt is one attempt to start a child.
func (i *Isolator) attempt(ctx context.Context, spec ProcessSpec) (*Process, error) {
	e, err := i.enter(spec)
	if err != nil {
		return nil, err
	}
	defer e.leave()
	p, err := i.take(ctx, e.nurseries[smallest(e.sets, spec.Code)], spec)
	if err == nil {
		err = e.assign(p, spec.Policy)
	}
	if err != nil {
		return nil, err
	}
	e.stay()
	p.edition = e
	if p.SessionDir.edition == nil && !spec.Unpinned {
		e.stay()
		p.SessionDir.edition = e
	}
	return p, nil
}

// errRetired is why a child did not come: its environment has changed while it was waited for.
var errRetired = errors.New("the environment has changed")

// take is a child that waits, or one made for spec.
func (i *Isolator) take(ctx context.Context, n *nursery, spec ProcessSpec) (*Process, error) {
	if spec.SessionDir != nil || i.rung.private && spec.Policy.WorkspaceMaxBytes != i.config.DefaultPolicy.WorkspaceMaxBytes || spec.Policy.EnableNetworkAccess {
		return n.birthAtOnce(ctx, spec)
	}
	for {
		n.want()
		var p *Process
		select {
		case p = <-n.ready:
		default:
			select {
			case p = <-n.ready:
			case <-ctx.Done():
				return nil, full(ctx.Err())
			case <-i.life.Done():
				return nil, &sandbox.Error{Fault: sandbox.FaultFull, Detail: "the service is stopping", RetryAfter: 5}
			case <-n.of.ageing.Done():
				return nil, errRetired
			}
		}
		if p.over() { // died while it waited, with its zygote
			_ = p.Close()
			continue
		}
		return p, nil
	}
}

// full is what a start ends with that waited for too long.
func full(cause error) error {
	return &sandbox.Error{Fault: sandbox.FaultFull, Detail: "no sandbox became free in time; try again", RetryAfter: 1, Cause: cause}
}

// assign sets a locked child's limits, and tells it what it is to be. The child is
// closed where that fails.
func (e *edition) assign(p *Process, pol policy.Policy) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("assign: %w", err), p.Close())
		}
	}()
	var a protocol.Assign
	if a.Limits, err = e.in.limit(p, pol); err != nil {
		return err
	}
	if !reflect.DeepEqual(pol, e.policy) {
		if a.Policy, a.Rules, err = e.encode(pol); err != nil {
			return err
		}
	} else if a.Limits == nil {
		return nil // it is what it is to be
	}
	return p.Conn.Write(protocol.KindAssign, a)
}

// encode is a policy, and the rules for code that come of it, as JSON.
func (e *edition) encode(p policy.Policy) (pol, rules json.RawMessage, err error) {
	if pol, err = json.Marshal(p); err == nil {
		rules, err = json.Marshal(policy.Rules(p, e.held.Modules))
	}
	return pol, rules, err
}

// Close ends the zygotes, and with them every child, and removes what is left of them.
func (i *Isolator) Close() {
	i.close()
	i.refreshing.Lock() // nothing is to come any more
	defer i.refreshing.Unlock()
	i.mu.Lock()
	all := slices.Collect(maps.Keys(i.editions))
	clear(i.editions)
	i.mu.Unlock()
	for _, e := range all {
		e.over()
	}
	i.ending.Wait()
	i.clear()
}

// clear removes what is not a process.
func (i *Isolator) clear() {
	if i.groups != nil {
		i.groups.remove()
	}
	if i.folder != "" {
		if err := raze(i.folder); err != nil {
			i.config.Log("remove %s: %v", i.folder, err)
		}
	}
}
