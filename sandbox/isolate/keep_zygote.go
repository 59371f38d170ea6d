package isolate

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"glasshouse/sandbox/isolate/procfs"
	"glasshouse/sandbox/isolate/zygote"
)

// RecyclePolicy says when a zygote is replaced. The children of one zygote have the same
// address layout and hash seed, which should not be used for long: an hour is longer than an
// attack needs to be interactive, and 10000 forks at the highest rate take minutes, so that a
// replacement, which costs seconds of CPU time, stays rare. A zero field means the default.
type RecyclePolicy struct {
	MaxAge      time.Duration // since it was started; default an hour
	MaxForks    int           // default 10000
	IdleTimeout time.Duration // since the last start, if the environment is not always warm; default 10 minutes
}

func (r RecyclePolicy) withDefaults() RecyclePolicy {
	return RecyclePolicy{
		MaxAge:      cmp.Or(r.MaxAge, time.Hour),
		MaxForks:    cmp.Or(r.MaxForks, 10_000),
		IdleTimeout: cmp.Or(r.IdleTimeout, 10*time.Minute),
	}
}

// startZygote starts a zygote of the pool's warm set and waits until it is warm.
func (p *zygotePool) startZygote() (*zygote.Zygote, error) {
	spec := p.env.spec
	spec.WarmModules = append([]string{}, p.set.Modules...)
	spec.HasSessions = p == p.env.pools[len(p.env.pools)-1] // the code of sessions is not known: smallestSet
	if p.env.alwaysWarm && p == p.env.pools[len(p.env.pools)-1] {
		spec.SharedDir = p.isolator.config.SharedDir
	}
	config := &p.isolator.config
	if spec.TempDir != "" {
		if err := p.env.makeTempDir(); err != nil {
			return nil, err
		}
	}
	z, err := zygote.Start(p.env.ctx, spec, config.Recycle.MaxForks,
		func(line string) { config.Log("zygote: %s", line) })
	if err == nil {
		if shared := procfs.SharedWritable(z.PID); len(shared) > 0 {
			config.Log("a package of the environment %s maps memory that all of its sandboxes share and can write (%s): "+
				"users can pass on data with it", p.env.pinned.Name, strings.Join(shared, ", "))
		}
	}
	return z, err
}

// makeTempDir makes the folder that the zygotes of the environment may write to, unless there is one. They start in
// parallel.
func (env *warmEnvironment) makeTempDir() error {
	env.tempDir.Lock()
	defer env.tempDir.Unlock()
	path := env.spec.TempDir
	err := os.Mkdir(path, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = os.Chmod(path, 0o755) // independent of the umask
	}
	if uid := env.isolator.uids.Zygote(); err == nil && uid != 0 {
		err = os.Chown(path, uid, uid)
	}
	return err
}

// keepZygote keeps a zygote alive until the environment ends. If the environment is not
// always warm, it starts a zygote on request and ends it after IdleTimeout without use. A
// worn zygote forks until its successor is warm, so that no start waits. Then it lives as
// long as its children.
func (p *zygotePool) keepZygote() {
	for p.env.ctx.Err() == nil {
		z, _ := p.currentZygote()
		if z == nil && !p.waitUntilWanted() || z != nil && !p.watchZygote(z) {
			continue
		}
		fresh, err := p.startZygote()
		if err != nil && p.env.ctx.Err() == nil {
			p.isolator.config.Log("cannot start a %s zygote: %v", p.set.Name, err)
		}
		if err != nil {
			p.env.sleep(time.Second)
			continue
		}
		p.replaceZygote(fresh)
		select {
		case <-p.wanted: // this request is fulfilled
		default:
		}
		if z != nil {
			p.discardReady(func(child *Process) bool { return child.zygote == z }, 2*refillDelay)
		}
	}
}

func (p *zygotePool) mustHaveZygote() bool { return p.env.alwaysWarm && p.env.active.Err() == nil }

// waitUntilWanted waits until a zygote is needed. It reports false if the environment
// ends first.
func (p *zygotePool) waitUntilWanted() bool {
	if p.mustHaveZygote() {
		return true
	}
	select {
	case <-p.wanted:
		return true
	case <-p.env.ctx.Done():
		return false
	}
}

// watchZygote returns when the zygote must not fork any more. It reports whether another
// zygote must replace it at once.
func (p *zygotePool) watchZygote(z *zygote.Zygote) bool {
	tooOld := time.NewTimer(time.Until(z.StartedAt.Add(p.isolator.config.Recycle.MaxAge)))
	defer tooOld.Stop()
	idle := time.NewTicker(p.isolator.config.Recycle.IdleTimeout)
	defer idle.Stop()
	for {
		select {
		case <-p.env.ctx.Done():
			return false
		case <-z.Dead():
			if current, _ := p.currentZygote(); current != z { // it was retired
				return false
			}
			p.isolator.config.Log("the %s zygote died", p.set.Name)
			p.replaceZygote(nil)
			p.discardReady((*Process).hasExited, 0)
			return p.mustHaveZygote()
		case <-z.Worn():
			return true
		case <-tooOld.C:
			return true
		case <-idle.C:
			if p.dropIdleZygote() {
				p.discardReady(func(*Process) bool { return true }, 0)
				return false
			}
		}
	}
}

// dropChildlessZygote retires the zygote if it has no child.
func (p *zygotePool) dropChildlessZygote() {
	if z, _ := p.currentZygote(); z != nil && z.Childless() {
		p.replaceZygote(nil)
	}
}

// dropIdleZygote retires the zygote if the environment is not always warm and has not used
// the zygote for IdleTimeout. It reports whether it retired the zygote.
func (p *zygotePool) dropIdleZygote() bool {
	p.mu.Lock()
	isIdle := !p.mustHaveZygote() && time.Since(p.lastUsed) >= p.isolator.config.Recycle.IdleTimeout
	p.mu.Unlock()
	if isIdle {
		p.replaceZygote(nil)
	}
	return isIdle
}

// replaceZygote makes z, which may be nil, the current zygote, and retires the previous one.
func (p *zygotePool) replaceZygote(z *zygote.Zygote) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var living []*zygote.Zygote
	for _, old := range append(p.retired, p.current) {
		if old == nil {
			continue
		}
		old.CloseSharedMount()
		if old.Alive() {
			living = append(living, old)
			old.Retire()
		}
	}
	p.retired, p.current = living, z
	close(p.changed)
	p.changed = make(chan struct{})
}
