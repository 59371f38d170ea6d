package isolate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"glasshouse/sandbox"
	"glasshouse/sandbox/environment"
)

// leaseEnvironment returns the environment for a start: the version that its SessionDir pins,
// or else the current version of the environment that its policy names. The caller releases
// it.
func (i *Isolator) leaseEnvironment(spec ProcessSpec) (*warmEnvironment, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var env *warmEnvironment
	if spec.SessionDir != nil {
		env = spec.SessionDir.env
	}
	if env == nil {
		name := spec.Policy.Environment
		if name == "" {
			name = environment.Default
		}
		if env = i.current[name]; env == nil {
			unknown := &environment.NotFoundError{Name: name, Have: i.environmentNames()}
			return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "environment", Detail: unknown.Error()}
		}
	}
	env.leases++
	return env, nil
}

// environmentNames returns the names of the environments, the default one first. The
// caller holds mu.
func (i *Isolator) environmentNames() []string {
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

// Refresh reads the environments again. If an environment has changed, new sandboxes get its
// new version as soon as the zygotes of that version run. Existing sandboxes keep the old
// version, which ends with the last of them. If a new version can't start, the old version
// stays current, and the error says why.
func (i *Isolator) Refresh(context.Context) error {
	i.refreshMu.Lock()
	defer i.refreshMu.Unlock()
	if err := i.ctx.Err(); err != nil {
		return err
	}
	names, err := i.store.Names()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if err := i.refreshEnvironment(name); err != nil {
			errs = append(errs, fmt.Errorf("environment %s: %w", name, err))
		}
	}
	i.mu.Lock()
	var removed []*warmEnvironment
	for name, env := range i.current {
		if !slices.Contains(names, name) {
			delete(i.current, name)
			removed = append(removed, env)
		}
	}
	i.mu.Unlock()
	for _, env := range removed {
		i.retire(env)
	}
	return errors.Join(errs...)
}

// refreshEnvironment makes the stored version of an environment the current one.
func (i *Isolator) refreshEnvironment(name string) error {
	i.mu.Lock()
	old := i.current[name]
	i.mu.Unlock()
	if old != nil && old.pinned.Current() {
		return nil
	}
	pinned, err := i.store.Pin(name)
	if err != nil {
		return err
	}
	env, err := i.newEnvironment(pinned)
	if err != nil {
		pinned.Release()
		return err
	}
	err = env.prepareSpec()
	if err == nil && env.alwaysWarm {
		err = env.startZygotes()
	}
	if err != nil {
		env.close()
		return err
	}
	i.activate(env)
	if old != nil {
		i.retire(old)
	}
	return nil
}

// activate starts an environment and makes it the current version.
func (i *Isolator) activate(env *warmEnvironment) {
	env.start()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.current[env.pinned.Name], i.running[env] = env, true
}

// retire closes an environment's waiting children. It closes the environment when nothing
// uses it any more.
func (i *Isolator) retire(env *warmEnvironment) {
	env.deactivate()
	env.fillers.Wait()
	for _, pool := range env.pools {
		pool.discardReady(func(*Process) bool { return true }, 0)
		pool.dropChildlessZygote()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	env.closeIfUnused()
}

// Environments returns the environments that a sandbox may choose, the default one
// first.
func (i *Isolator) Environments() []sandbox.Environment {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []sandbox.Environment
	for _, name := range i.environmentNames() {
		all = append(all, i.current[name].pinned.Environment)
	}
	return all
}

// Packages returns the packages of an environment. It returns FaultNotFound if no environment
// has that name.
func (i *Isolator) Packages(name string) ([]sandbox.Package, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	env := i.current[name]
	if env == nil {
		unknown := &environment.NotFoundError{Name: name, Have: i.environmentNames()}
		return nil, sandbox.Errorf(sandbox.FaultNotFound, "%s", unknown.Error())
	}
	return env.pinned.Packages, nil
}
