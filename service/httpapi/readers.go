package httpapi

import (
	"context"
	"fmt"
	"sync"
	"time"

	"glasshouse/sandbox"
)

// An answer takes memory until its reader has it, and records take several times theirs
// while they become one. Both are bounded by account: who reads what was asked for never
// comes to the bounds.
const (
	maxReading   = 4        // answers of records that are made or on their way, at once
	maxUnread    = 64 << 20 // bytes of large answers on their way; who has more asks for nothing meanwhile
	largeAnswer  = 64 << 10
	readPatience = 10 * time.Second
)

// readers are the accounts that have answers on their way.
type readers struct {
	mu sync.Mutex
	of map[string]*reader
}

// reader is one of them.
type reader struct {
	turns  chan struct{}
	unread int
	there  int // what holds it; without, it goes
}

func (r *readers) hold(account string) *reader {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.of[account]
	if one == nil {
		if r.of == nil {
			r.of = map[string]*reader{}
		}
		one = &reader{turns: make(chan struct{}, maxReading)}
		r.of[account] = one
	}
	one.there++
	return one
}

// leave gives a hold back, and so many bytes that are taken.
func (r *readers) leave(account string, one *reader, taken int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one.unread -= taken
	if one.there--; one.there == 0 {
		delete(r.of, account)
	}
}

// turn waits until the account has room for one more answer of records; done gives it
// back. FaultLimit where there is none for long.
func (r *readers) turn(ctx context.Context, account string) (done func(), err error) {
	one := r.hold(account)
	enough := time.NewTimer(readPatience)
	defer enough.Stop()
	select {
	case one.turns <- struct{}{}:
		return func() { <-one.turns; r.leave(account, one, 0) }, nil
	case <-enough.C:
		err = &sandbox.Error{Fault: sandbox.FaultLimit, Detail: fmt.Sprintf("%d answers of records are on their way to you, and are not read: read them first", maxReading), RetryAfter: 2}
	case <-ctx.Done():
		err = ctx.Err()
	}
	r.leave(account, one, 0)
	return nil, err
}

// sending counts so many bytes as on their way, until done.
func (r *readers) sending(account string, n int) (done func()) {
	one := r.hold(account)
	r.mu.Lock()
	one.unread += n
	r.mu.Unlock()
	return func() { r.leave(account, one, n) }
}

// behind is FaultLimit for an account that has too much on its way.
func (r *readers) behind(account string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.of[account]; one == nil || one.unread <= maxUnread {
		return nil
	}
	return &sandbox.Error{Fault: sandbox.FaultLimit, Detail: fmt.Sprintf("more than %d MB of answers are on their way to you, and are not read: read them first", maxUnread>>20), RetryAfter: 2}
}

// reading takes a turn for a request that reads records, which it has until its answer is
// taken.
func (a *api) reading(ctx context.Context, caller sandbox.Key) error {
	p, _ := ctx.Value(ctxPace{}).(*pacing)
	if p == nil || p.done != nil {
		return nil
	}
	done, err := a.readers.turn(ctx, caller.Account)
	if err == nil {
		p.done = done
	}
	return err
}
