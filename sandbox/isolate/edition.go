package isolate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/environment"
	"glasshouse/sandbox/protocol"
)

// edition is one environment at one time, at work: a nursery for each warm set that it
// has the packages of.
//
// The default environment's is eager: its zygotes are always there, and its pools full.
// Others start a zygote when they need one, have one child waiting, and let go what
// nobody has used for a while. One that is retired, because its environment has changed
// or is gone, does likewise, with no child waiting: it is there for the sandboxes that
// began in it, and ends with the last of them.
type edition struct {
	in        *Isolator
	held      *environment.Pinned
	policy    policy.Policy // of most of its sandboxes: what waits ready is ready for it
	spec      stageSpec
	bundle    string    // certificates that code trusts; "" where there are none
	sets      []WarmSet // from small to large
	nurseries []*nursery
	eager     bool

	life context.Context // of all that runs in it; end ends it
	end  context.CancelFunc
	work sync.WaitGroup

	ageing  context.Context // until it is retired
	retire  context.CancelFunc
	filling sync.WaitGroup

	users int // processes, Homes and starts that it has; guarded by Isolator.mu
}

// open makes an edition of an environment; nothing of it runs yet. It takes held over.
func (i *Isolator) open(held *environment.Pinned) (e *edition, err error) {
	e = &edition{in: i, held: held, policy: i.config.DefaultPolicy, eager: held.Name == environment.Default}
	e.policy.Environment = held.Name
	if e.bundle, err = certificates(i.config.CABundle, held.Interpreter.Packages); err != nil {
		return nil, err
	}
	e.life, e.end = context.WithCancel(i.life)
	e.ageing, e.retire = context.WithCancel(e.life)
	for _, set := range present(i.config.WarmSets, held.Interpreter.Packages) {
		if !e.eager {
			set.Pool = 1
		}
		e.sets = append(e.sets, set)
		e.nurseries = append(e.nurseries, newNursery(e, set))
	}
	return e, nil
}

// The births of a stageSpec, by their index.
const (
	untold = iota // how it locks itself down comes over the hatch
	usual         // it knows, as it is for a sandbox of the edition's policy
)

// isUsual says whether a child that is to lock itself down so knows how from its birth.
func (e *edition) isUsual(enter protocol.Enter) bool {
	if len(e.spec.Births) <= usual {
		return false
	}
	same := *e.spec.Births[usual]
	same.UID = enter.UID
	return same == enter
}

// dress fills in what the stage needs for the edition, when the level is laid.
func (e *edition) dress() (err error) {
	i, py := e.in, e.held.Interpreter
	e.spec = i.spec
	e.spec.Python, e.spec.Before = py.Executable, batchFor(py, e.spec.Files)
	e.spec.Binds, e.spec.Links, e.spec.Path = rootOf(py)
	for name, path := range i.config.DataSets {
		e.spec.Binds["/data/"+name] = path
	}
	if e.bundle != "" {
		e.spec.Binds[bundleInside] = e.bundle
	}
	if !i.rung.private {
		e.spec.Readable = slices.AppendSeq(slices.Clip(e.spec.Readable), maps.Values(e.spec.Binds))
		e.spec.Path = py.Packages
	}
	e.spec.Births = []*protocol.Enter{untold: nil}
	if enter := e.enter(ProcessSpec{Policy: e.policy}); i.rung.private && enter.Network == nil {
		e.spec.Births = append(e.spec.Births, &enter)
	}
	e.spec.Policy, e.spec.Rules, err = e.encode(e.policy)
	return err
}

// batchFor is the file that has the extension syscall_batch for an interpreter, "" where
// there is none. Loaded before that, it also places Python's memory from the first object on.
func batchFor(py environment.Interpreter, files map[string][]byte) string {
	want := fmt.Sprintf("syscall_batch.cpython-%d%d-", py.Version[0], py.Version[1])
	for name := range files {
		if strings.HasPrefix(name, want) {
			return name
		}
	}
	return ""
}

// start starts what is to run in it.
func (e *edition) start() {
	for _, n := range slices.Backward(e.nurseries) {
		fillers := min(2, n.set.Pool)
		e.work.Add(1)
		e.filling.Add(fillers + 1)
		go n.keep()
		go n.forkSpares()
		for range fillers {
			go n.fill()
		}
	}
}

// warm starts the zygotes of an eager edition side by side, and returns when all are there.
func (e *edition) warm() error {
	errs := make([]error, len(e.nurseries))
	var all sync.WaitGroup
	for at, n := range e.nurseries {
		all.Go(func() {
			z, err := n.start()
			if err == nil {
				n.turn(z)
			}
			errs[at] = err
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// over ends all that runs in it, and lets its environment go.
func (e *edition) over() {
	e.end()
	e.filling.Wait()
	e.work.Wait()
	for _, n := range e.nurseries {
		n.close()
	}
	e.held.Release()
}

// present are sets with those of their modules that an environment has; sets that come to
// the same are one.
func present(sets []WarmSet, folders []string) (found []WarmSet) {
	for _, set := range sets {
		set.Modules = slices.DeleteFunc(slices.Clone(set.Modules), func(module string) bool {
			top, _, _ := strings.Cut(module, ".")
			return !slices.ContainsFunc(folders, func(folder string) bool {
				_, err := os.Stat(filepath.Join(folder, top))
				return err == nil
			})
		})
		if len(found) == 0 || len(found[len(found)-1].Modules) != len(set.Modules) {
			found = append(found, set)
		} else {
			found[len(found)-1].Pool = max(found[len(found)-1].Pool, set.Pool)
		}
	}
	return found
}

// enter is the edition that a start is for: the one that its Home is held to, or the
// current one of its policy's environment. Whoever gets it must leave it.
func (i *Isolator) enter(spec ProcessSpec) (*edition, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var e *edition
	if spec.SessionDir != nil {
		e = spec.SessionDir.edition
	}
	if e == nil {
		name := spec.Policy.Environment
		if name == "" {
			name = environment.Default
		}
		if e = i.current[name]; e == nil {
			return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "environment", Detail: (&environment.NotFoundError{Name: name, Have: i.names()}).Error()}
		}
	}
	e.users++
	return e, nil
}

// names are those of the environments, the default one first. The caller holds mu.
func (i *Isolator) names() []string {
	return slices.SortedFunc(maps.Keys(i.current), func(a, b string) int {
		if (a == environment.Default) != (b == environment.Default) {
			if a == environment.Default {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
}

// stay counts one more that has the edition, until it leaves.
func (e *edition) stay() {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	e.users++
}

// leave ends a retired edition with the last that has it.
func (e *edition) leave() {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	e.users--
	e.letGo()
}

// letGo ends it where it is retired and nobody has it. The caller holds Isolator.mu.
func (e *edition) letGo() {
	if e.users > 0 || e.ageing.Err() == nil || !e.in.editions[e] {
		return
	}
	delete(e.in.editions, e)
	e.in.ending.Go(e.over)
}

// Refresh reads the environments again. Of one that has changed a new edition is warmed,
// and then gets the sandboxes that come; those that are there stay where they are, and the
// old one is let go with the last of them. Where one can't be had the old one stays, and
// the error says why.
func (i *Isolator) Refresh(context.Context) error {
	i.refreshing.Lock()
	defer i.refreshing.Unlock()
	if err := i.life.Err(); err != nil {
		return err
	}
	names, err := i.shelf.Names()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if err := i.renew(name); err != nil {
			errs = append(errs, fmt.Errorf("environment %s: %w", name, err))
		}
	}
	i.mu.Lock()
	var gone []*edition
	for name, e := range i.current {
		if !slices.Contains(names, name) {
			delete(i.current, name)
			gone = append(gone, e)
		}
	}
	i.mu.Unlock()
	for _, e := range gone {
		i.dismiss(e)
	}
	return errors.Join(errs...)
}

// renew makes what is on the shelf under a name the current edition.
func (i *Isolator) renew(name string) error {
	i.mu.Lock()
	old := i.current[name]
	i.mu.Unlock()
	if old != nil && old.held.Current() {
		return nil
	}
	held, err := i.shelf.Pin(name)
	if err != nil {
		return err
	}
	e, err := i.open(held)
	if err == nil {
		err = e.dress()
	}
	if err == nil && e.eager {
		err = e.warm()
	}
	if err != nil {
		if e != nil {
			e.over()
		} else {
			held.Release()
		}
		return err
	}
	i.admit(e)
	if old != nil {
		i.dismiss(old)
	}
	return nil
}

// admit has an edition run, and makes it the current one of its environment.
func (i *Isolator) admit(e *edition) {
	e.start()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.current[e.held.Name], i.editions[e] = e, true
}

// dismiss retires an edition: nothing waits in it any more.
func (i *Isolator) dismiss(e *edition) {
	e.retire()
	e.filling.Wait()
	for _, n := range e.nurseries {
		n.discard(func(*Process) bool { return true }, 0)
		n.rest()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	e.letGo()
}

// Environments are those that a sandbox may choose, the default one first.
func (i *Isolator) Environments() []sandbox.Environment {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []sandbox.Environment
	for _, name := range i.names() {
		all = append(all, i.current[name].held.Environment)
	}
	return all
}

// Packages are what an environment has, by name. FaultNotFound where there is no such
// environment.
func (i *Isolator) Packages(name string) ([]sandbox.Package, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	e := i.current[name]
	if e == nil {
		return nil, sandbox.Errorf(sandbox.FaultNotFound, "%s", (&environment.NotFoundError{Name: name, Have: i.names()}).Error())
	}
	return e.held.Packages, nil
}
