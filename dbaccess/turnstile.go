package dbaccess

import (
	"context"
	"sync"

	"glasshouse/sandbox"
)

// turnstile lets so many of one owner's statements through at a time; the others
// wait. Its zero value lets everybody through.
type turnstile struct {
	most int

	mu    sync.Mutex
	inUse map[string]*gate
}

type gate struct {
	places chan struct{}
	users  int // at the gate or through it
}

func (t *turnstile) enter(ctx context.Context, owner string) (leave func(), err error) {
	if t.most <= 0 || owner == "" {
		return func() {}, nil
	}
	t.mu.Lock()
	if t.inUse == nil {
		t.inUse = map[string]*gate{}
	}
	g := t.inUse[owner]
	if g == nil {
		g = &gate{places: make(chan struct{}, t.most)}
		t.inUse[owner] = g
	}
	g.users++
	t.mu.Unlock()
	forget := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if g.users--; g.users == 0 {
			delete(t.inUse, owner)
		}
	}
	select {
	case g.places <- struct{}{}:
		return func() { <-g.places; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
}

// enter waits for a place of the sandbox's and one of the user's.
func (r *Reader) enter(ctx context.Context, l sandbox.QueryLimits) (leave func(), err error) {
	box, err := r.boxes.enter(ctx, l.Sandbox)
	if err != nil {
		return nil, err
	}
	user, err := r.users.enter(ctx, l.User)
	if err != nil {
		box()
		return nil, err
	}
	return func() { user(); box() }, nil
}
