package isolate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/hatch"
	"glasshouse/sandbox/python"
)

// Config says how to raise the wall.
type Config struct {
	Python   string                           // the interpreter of the environment
	Sets     []Set                            // warm sets, from small to large; at least one
	Data     map[string]string                // data sets, seen read-only as /data/NAME: NAME to a path on the host
	Level    string                           // force a level; "" is the best that the machine has
	MinLevel string                           // refuse a weaker one; "" is LevelLandlock
	Folder   string                           // emptied and used where there are no private mounts; "" is a temporary one
	Shared   string                           // a folder of the host's, for a Home that many children have; "" where there is none
	Default  policy.Policy                    // of most sandboxes: what waits ready is ready for it
	CABundle string                           // certificates that code trusts, a PEM file; "" is the machine's
	Recycle  Recycle                          // when a zygote has served enough
	Log      func(format string, args ...any) // never nil
	Without  []Wall                           // left out by the tests of the wall, and by nobody else
}

// Spec is what one child is started with.
type Spec struct {
	SandboxID string
	Policy    policy.Policy
	Home      *Home  // of an earlier child of the sandbox, or nil
	Code      string // what it will run, where that is all: it chooses the warm set
}

// Isolator owns the zygotes and the pools of waiting children.
type Isolator struct {
	config    Config
	rung      rung // the level taken
	tried     []Attempt
	spec      stageSpec
	ids       identities
	groups    *cgroups // nil on levels without
	folder    string   // of homes, on levels without private mounts
	python    interpreter
	nurseries []*nursery // one for each warm set

	bundle      string // certificates that code trusts; "" where there are none
	sessionPath bool   // "/session" is the session's folder

	serial  atomic.Int64 // of children
	sharing sync.Mutex   // guards the zygotes' shared
	closing <-chan struct{}
	life    context.Context // of what runs in the background; close ends it
	close   context.CancelFunc
	over    sync.WaitGroup
}

// Open raises the strongest wall that the machine has, by doing it with the smallest
// warm set, warms the others and fills the pools in the background, and returns. *NoWall says what the
// machine lacks.
func Open(config Config) (*Isolator, error) {
	py, err := inspectPython(config.Python)
	if err != nil {
		return nil, err
	}
	config.Recycle = config.Recycle.orDefault()
	i := &Isolator{config: config, python: py, ids: findIdentities()}
	i.life, i.close = context.WithCancel(context.Background())
	i.closing = i.life.Done()
	i.spec = stageSpec{Python: py.Executable, Without: config.Without}
	if i.spec.Files, err = python.Inside(); err != nil {
		return nil, err
	}
	if i.bundle, err = certificates(config.CABundle, py.Packages); err != nil {
		return nil, err
	}
	if i.spec.Policy, i.spec.Rules, err = encode(config.Default); err != nil {
		return nil, err
	}
	for _, set := range config.Sets {
		i.nurseries = append(i.nurseries, newNursery(i, set))
	}
	if err = i.climb(); err != nil {
		i.close()
		i.clear()
		return nil, err
	}
	for n := len(i.nurseries) - 1; n >= 0; n-- {
		i.over.Add(3)
		go i.nurseries[n].keep()
		go i.nurseries[n].fill()
		go i.nurseries[n].fill()
	}
	return i, nil
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
func (i *Isolator) Python() []int { return i.python.Version }

// tries is how often Start takes another child where one died before it was given,
// with its zygote.
const tries = 5

// Start gives a locked child to a sandbox. Most wait ready; one with a Home, or with
// a /session of another size than the default, or with a network, is made. Where ctx
// ends first it is FaultFull; where the wall has no place for a network, FaultForbidden.
func (i *Isolator) Start(ctx context.Context, spec Spec) (*Process, error) {
	if spec.Policy.EnableNetworkAccess && !i.rung.private {
		return nil, &sandbox.Error{Fault: sandbox.FaultForbidden, Field: "enable_network_access",
			Detail: "on this machine no sandbox can have a network: the wall is of level " + i.rung.level + ", which has no network namespaces"}
	}
	n := i.nurseries[smallest(i.config.Sets, spec.Code)]
	for try := 1; ; try++ {
		p, err := i.take(ctx, n, spec)
		if err == nil {
			err = i.assign(p, spec.Policy)
		}
		if err == nil {
			return p, nil
		}
		var refused *sandbox.Error
		if errors.As(err, &refused) || try == tries || ctx.Err() != nil {
			return nil, err
		}
	}
}

// take is a child that waits, or one made for spec.
func (i *Isolator) take(ctx context.Context, n *nursery, spec Spec) (*Process, error) {
	if spec.Home != nil || i.rung.private && spec.Policy.WorkspaceMaxBytes != i.config.Default.WorkspaceMaxBytes || spec.Policy.EnableNetworkAccess {
		return n.birth(ctx, spec)
	}
	for {
		var p *Process
		select {
		case p = <-n.ready:
		default:
			select {
			case p = <-n.ready:
			case <-ctx.Done():
				return nil, full(ctx.Err())
			case <-i.closing:
				return nil, &sandbox.Error{Fault: sandbox.FaultFull, Detail: "the service is stopping", RetryAfter: 5}
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
func (i *Isolator) assign(p *Process, pol policy.Policy) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("assign: %w", err), p.Close())
		}
	}()
	var a hatch.Assign
	if a.Limits, err = i.limit(p, pol); err != nil {
		return err
	}
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

// Close ends the zygotes, and with them every child, and removes what is left of them.
func (i *Isolator) Close() {
	i.close()
	i.over.Wait()
	for _, n := range i.nurseries {
		n.close()
	}
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
