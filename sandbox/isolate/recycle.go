package isolate

import (
	"context"
	"errors"
	"time"
)

// Recycle says when a zygote has served enough: what children of one zygote share,
// their address layout and hash seed above all, should not be shared for long. Zero
// is the default.
type Recycle struct {
	Age   time.Duration // since it was started; an hour
	Forks int           // children that it had; ten thousand
}

func (r Recycle) orDefault() Recycle {
	if r.Age == 0 {
		r.Age = time.Hour
	}
	if r.Forks == 0 {
		r.Forks = 10_000
	}
	return r
}

// start starts a zygote for the set, and waits until it is warm.
func (n *nursery) start() (*zygote, error) {
	spec := n.in.spec
	spec.Warm = append([]string{}, n.set.Modules...)
	if n == n.in.nurseries[len(n.in.nurseries)-1] {
		spec.Shared = n.in.config.Shared
	}
	z, err := startZygote(spec, n.in.ids, func(line string) { n.in.config.Log("zygote: %s", line) })
	if err == nil {
		z.setMost(n.in.config.Recycle.Forks)
	}
	return z, err
}

// keep keeps a living zygote until the isolator closes. One that is worn serves on
// until another is warm, and then lives as long as its children: no request waits.
func (n *nursery) keep() {
	defer n.in.over.Done()
	for !n.in.isClosing() {
		n.mu.Lock()
		z := n.current
		n.mu.Unlock()
		if z != nil {
			age := time.NewTimer(time.Until(z.started.Add(n.in.config.Recycle.Age)))
			select {
			case <-n.in.closing:
				age.Stop()
				return
			case <-z.dead:
				n.in.config.Log("the %s zygote died; starting another", n.set.Name)
				n.turn(nil)
				n.discard(func(p *Process) bool { return p.over() }, 0)
			case <-z.worn:
			case <-age.C:
			}
			age.Stop()
		}
		fresh, err := n.start()
		if err != nil {
			n.in.config.Log("cannot start a %s zygote: %v", n.set.Name, err)
			n.in.pause(time.Second)
			continue
		}
		n.turn(fresh)
		if z != nil {
			n.discard(func(p *Process) bool { return p.from == z }, 2*unhurried)
		}
	}
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
			n.in.pause(each)
		default:
			return
		}
	}
}

// parent returns the living zygote; where there is none it waits for one.
func (n *nursery) parent(ctx context.Context) (*zygote, error) {
	for {
		n.mu.Lock()
		z, turned := n.current, n.turned
		n.mu.Unlock()
		if z != nil && z.alive() {
			return z, nil
		}
		select {
		case <-turned:
		case <-ctx.Done():
			return nil, full(ctx.Err())
		case <-n.in.closing:
			return nil, errors.New("closed")
		}
	}
}
