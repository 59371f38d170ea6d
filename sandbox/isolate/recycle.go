package isolate

import (
	"context"
	"errors"
	"time"
)

// RecyclePolicy says when a zygote has served enough: what children of one zygote share,
// their address layout and hash seed above all, should not be shared for long. Zero
// is the default.
type RecyclePolicy struct {
	MaxAge      time.Duration // since it was started; an hour
	MaxForks    int           // children that it had; ten thousand
	IdleTimeout time.Duration // since it was last used, where it need not be there; ten minutes
}

func (r RecyclePolicy) orDefault() RecyclePolicy {
	if r.MaxAge == 0 {
		r.MaxAge = time.Hour
	}
	if r.MaxForks == 0 {
		r.MaxForks = 10_000
	}
	if r.IdleTimeout == 0 {
		r.IdleTimeout = 10 * time.Minute
	}
	return r
}

// start starts a zygote for the set, and waits until it is warm.
func (n *nursery) start() (*zygote, error) {
	spec := n.of.spec
	spec.Warm = append([]string{}, n.set.Modules...)
	if n.of.eager && n == n.of.nurseries[len(n.of.nurseries)-1] {
		spec.Shared = n.in.config.SharedDir
	}
	z, err := startZygote(spec, n.in.ids, func(line string) { n.in.config.Log("zygote: %s", line) })
	if err == nil {
		z.setMost(n.in.config.Recycle.MaxForks)
	}
	return z, err
}

// keep keeps a living zygote until the edition ends: an eager one's always, else from when
// it is wanted until nobody has used it for a while. One that is worn serves on
// until another is warm, and then lives as long as its children: no request waits.
func (n *nursery) keep() {
	defer n.of.work.Done()
	for n.of.life.Err() == nil {
		z, _ := n.now()
		if z == nil && !n.called() || z != nil && !n.serve(z) {
			continue
		}
		fresh, err := n.start()
		if err != nil {
			n.in.config.Log("cannot start a %s zygote: %v", n.set.Name, err)
			n.of.pause(time.Second)
			continue
		}
		n.turn(fresh)
		select {
		case <-n.wanted: // it is there
		default:
		}
		if z != nil {
			n.discard(func(p *Process) bool { return p.from == z }, 2*unhurried)
		}
	}
}

// called waits until a zygote is wanted; where one should always be there, that is now.
func (n *nursery) called() bool {
	if n.of.eager && n.of.ageing.Err() == nil {
		return true
	}
	select {
	case <-n.wanted:
		return true
	case <-n.of.life.Done():
		return false
	}
}

// serve returns when the zygote is to be followed by another (true), or by none for now.
func (n *nursery) serve(z *zygote) bool {
	age := time.NewTimer(time.Until(z.started.Add(n.in.config.Recycle.MaxAge)))
	defer age.Stop()
	idle := time.NewTicker(n.in.config.Recycle.IdleTimeout)
	defer idle.Stop()
	for {
		select {
		case <-n.of.life.Done():
			return false
		case <-z.dead:
			if now, _ := n.now(); now != z { // it was let go
				return false
			}
			n.in.config.Log("the %s zygote died", n.set.Name)
			n.turn(nil)
			n.discard(func(p *Process) bool { return p.over() }, 0)
			return n.of.eager && n.of.ageing.Err() == nil
		case <-z.worn:
			return true
		case <-age.C:
			return true
		case <-idle.C:
			if n.idle() {
				n.discard(func(*Process) bool { return true }, 0)
				return false
			}
		}
	}
}

// rest takes the zygote away where it has no child left.
func (n *nursery) rest() {
	if z, _ := n.now(); z != nil && z.childless() {
		n.turn(nil)
	}
}

// idle takes the zygote away where it need not be there and nobody has used it for a while.
func (n *nursery) idle() bool {
	n.mu.Lock()
	away := (!n.of.eager || n.of.ageing.Err() != nil) && time.Since(n.used) >= n.in.config.Recycle.IdleTimeout
	n.mu.Unlock()
	if away {
		n.turn(nil)
	}
	return away
}

// turn makes z the zygote that forks, or nil where there is none; the one before
// retires.
func (n *nursery) turn(z *zygote) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var living []*zygote
	for _, o := range append(n.old, n.current) {
		if o != nil {
			n.in.dropShared(o)
		}
		if o != nil && o.alive() {
			living = append(living, o)
			o.retire()
		}
	}
	n.old, n.current = living, z
	close(n.turned)
	n.turned = make(chan struct{})
}

// discard closes those of the waiting children that are worn, each after a while in
// which the pool is filled again.
func (n *nursery) discard(worn func(*Process) bool, each time.Duration) {
	for range cap(n.ready) + 2 { // two more in the hands of fill
		select {
		case p := <-n.ready:
			if !worn(p) {
				select {
				case n.ready <- p:
					continue
				default:
				}
			}
			_ = p.Close()
			n.of.pause(each)
		default:
			return
		}
	}
}

// parent returns the living zygote; where there is none it waits for one.
func (n *nursery) parent(ctx context.Context) (*zygote, error) {
	for {
		n.want()
		z, turned := n.now()
		if z != nil && z.alive() {
			return z, nil
		}
		select {
		case <-turned:
		case <-ctx.Done():
			return nil, full(ctx.Err())
		case <-n.of.life.Done():
			return nil, errors.New("closed")
		}
	}
}
