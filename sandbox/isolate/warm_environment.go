package isolate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox/environment"
	"glasshouse/sandbox/isolate/filetree"
	"glasshouse/sandbox/isolate/zygote"
	"glasshouse/sandbox/protocol"
)

// warmEnvironment is one version of an environment with its zygotes: a zygotePool for
// each warm set whose packages it has.
//
// The default environment is always warm: its zygotes run and its pools are full. Other
// environments start a zygote when they need one, keep one child waiting, and stop the
// zygote when they have not used it for RecyclePolicy.IdleTimeout. An environment is retired
// when a newer version replaces it or it is removed. A retired environment has no waiting
// child. It serves the sandboxes that were created with it, and ends with the last of them.
type warmEnvironment struct {
	isolator   *Isolator
	pinned     *environment.Version
	policy     policy.Policy // the policy of most of its sandboxes; waiting children are prepared for it
	spec       zygote.Spec
	tempDir    sync.Mutex // held while the spec's TempDir is made
	caBundle   string     // certificates that user code trusts; "" if there are none
	warmSets   []WarmSet  // from small to large
	pools      []*zygotePool
	alwaysWarm bool

	ctx     context.Context // ends with close
	cancel  context.CancelFunc
	keepers sync.WaitGroup // goroutines that run until close

	active     context.Context // ends when the environment is retired
	deactivate context.CancelFunc
	fillers    sync.WaitGroup // goroutines that run until it is retired

	leases int // processes, session directories and starts that use it; guarded by Isolator.mu
}

// newEnvironment makes a warmEnvironment without starting a process. Unless it fails, it takes
// over pinned and releases it later.
func (i *Isolator) newEnvironment(pinned *environment.Version) (env *warmEnvironment, err error) {
	env = &warmEnvironment{
		isolator:   i,
		pinned:     pinned,
		policy:     i.config.DefaultPolicy,
		alwaysWarm: pinned.Name == environment.Default,
	}
	env.policy.Environment = pinned.Name
	if env.caBundle, err = findCABundle(i.config.CABundle, pinned.Interpreter.Packages); err != nil {
		return nil, err
	}
	env.ctx, env.cancel = context.WithCancel(i.ctx)
	env.active, env.deactivate = context.WithCancel(env.ctx)
	for _, set := range availableSets(i.config.WarmSets, pinned.Interpreter.Packages) {
		if !env.alwaysWarm {
			set.Pool = 1
		}
		env.warmSets = append(env.warmSets, set)
		env.pools = append(env.pools, newZygotePool(env, set))
	}
	return env, nil
}

// availableSets returns the warm sets without the modules that an environment lacks. It merges
// sets that then have the same modules.
func availableSets(sets []WarmSet, packageFolders []string) (available []WarmSet) {
	for _, set := range sets {
		set.Modules = slices.DeleteFunc(slices.Clone(set.Modules), func(module string) bool {
			top, _, _ := strings.Cut(module, ".")
			return !slices.ContainsFunc(packageFolders, func(folder string) bool {
				_, err := os.Stat(filepath.Join(folder, top))
				return err == nil
			})
		})
		if len(available) == 0 || len(available[len(available)-1].Modules) != len(set.Modules) {
			available = append(available, set)
		} else {
			available[len(available)-1].Pool = max(available[len(available)-1].Pool, set.Pool)
		}
	}
	return available
}

// The indexes of a spec's Births.
const (
	birthToldLater = iota // the child gets its Enter later, over its socket
	birthNetwork          // it also has a network namespace
	birthDefault          // the child locks itself down for the environment's policy
)

// isDefaultBirth reports whether a child of birthDefault locks itself down as enter says.
func (env *warmEnvironment) isDefaultBirth(enter protocol.Enter) bool {
	if len(env.spec.Births) <= birthDefault {
		return false
	}
	same := *env.spec.Births[birthDefault].Enter
	same.UID = enter.UID
	return same == enter
}

// prepareSpec fills in the spec of the environment's zygotes, after prepareLevel.
func (env *warmEnvironment) prepareSpec() (err error) {
	i, py := env.isolator, env.pinned.Interpreter
	env.spec = i.baseSpec
	env.spec.Python, env.spec.Preload = py.Executable, findPreload(py, env.spec.Files)
	env.spec.Binds, env.spec.Links, env.spec.Packages = zygote.MinimalRoot(py)
	for name, path := range i.config.DataSets {
		env.spec.Binds["/data/"+name] = path
	}
	if env.caBundle != "" {
		env.spec.Binds[innerCABundle] = env.caBundle
	}
	if !i.level.namespaces {
		env.spec.Readable = slices.AppendSeq(slices.Clip(env.spec.Readable), maps.Values(env.spec.Binds))
		env.spec.Packages = py.Packages
		env.spec.TempDir = filepath.Join(zygote.WarmDir(i.workDir), rand.Text())
	}
	env.spec.Births = []zygote.Birth{birthToldLater: {}, birthNetwork: {Network: true}}
	if enter := env.lockdownFor(ProcessSpec{Policy: env.policy}); i.level.namespaces && enter.Network == nil {
		env.spec.Births = append(env.spec.Births, zygote.Birth{Enter: &enter})
	}
	env.spec.Lock.Readable = env.spec.Readable
	if env.spec.TempDir != "" {
		env.spec.Lock.Writable = append(slices.Clip(env.spec.Lock.Writable), env.spec.TempDir)
	}
	if !i.level.landlock {
		env.spec.Lock.Readable = []string{"/"}
	}
	env.spec.Policy, env.spec.Rules, err = env.encodePolicy(env.policy)
	return err
}

// findPreload returns the file of the extension syscall_batch for an interpreter, or "".
func findPreload(py environment.Interpreter, files map[string][]byte) string {
	prefix := fmt.Sprintf("syscall_batch.cpython-%d%d-", py.Version[0], py.Version[1])
	for name := range files {
		if strings.HasPrefix(name, prefix) {
			return name
		}
	}
	return ""
}

// start starts the goroutines of the pools.
func (env *warmEnvironment) start() {
	for _, pool := range slices.Backward(env.pools) {
		env.keepers.Go(pool.keepZygote)
		env.fillers.Go(pool.keepSpare)
		for range pool.fillers() {
			env.fillers.Go(pool.fill)
		}
	}
}

// startZygotes starts all zygotes in parallel, and returns when they are warm.
func (env *warmEnvironment) startZygotes() error {
	errs := make([]error, len(env.pools))
	var all sync.WaitGroup
	for n, pool := range env.pools {
		all.Go(func() {
			z, err := pool.startZygote()
			if err == nil {
				pool.replaceZygote(z)
			}
			errs[n] = err
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// close ends the zygotes and releases the environment.
func (env *warmEnvironment) close() {
	env.cancel()
	env.fillers.Wait()
	env.keepers.Wait()
	for _, pool := range env.pools {
		pool.close()
	}
	if env.spec.TempDir != "" {
		if err := filetree.RemoveAll(env.spec.TempDir); err != nil {
			env.isolator.config.Log("remove the files of packages: %v", err)
		}
	}
	env.pinned.Release()
}

// lease increments the number of users of the environment.
func (env *warmEnvironment) lease() {
	env.isolator.mu.Lock()
	defer env.isolator.mu.Unlock()
	env.leases++
}

// release ends a lease. The last one ends a retired environment.
func (env *warmEnvironment) release() {
	env.isolator.mu.Lock()
	defer env.isolator.mu.Unlock()
	env.leases--
	env.closeIfUnused()
}

// closeIfUnused closes, in the background, a retired environment without leases. The
// caller holds Isolator.mu.
func (env *warmEnvironment) closeIfUnused() {
	if env.leases > 0 || env.active.Err() == nil || !env.isolator.running[env] {
		return
	}
	delete(env.isolator.running, env)
	env.isolator.closing.Go(env.close)
}

// sleep waits for d, or until the environment ends.
func (env *warmEnvironment) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-env.ctx.Done():
	}
}
