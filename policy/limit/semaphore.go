package limit

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrFull reports that no slot became free within the wait time.
var ErrFull = errors.New("all slots are in use")

// Forever is the wait time of a caller that is bounded by its context only.
const Forever = time.Duration(math.MaxInt64)

// Slots bounds the number of concurrent operations. Waiters are served first in, first out.
type Slots struct{ semaphore *semaphore.Weighted }

// NewSlots returns size slots, or one if size is less.
func NewSlots(size int) *Slots {
	return &Slots{semaphore.NewWeighted(int64(max(size, 1)))}
}

// Acquire takes a slot and returns the function that releases it, which must be called once.
// It waits at most wait for a slot, then returns ErrFull; a wait of 0 does not block.
// It returns the context's error if the context ends first.
func (s *Slots) Acquire(ctx context.Context, wait time.Duration) (release func(), err error) {
	if s.semaphore.TryAcquire(1) {
		return func() { s.semaphore.Release(1) }, nil
	}
	if wait <= 0 {
		return nil, ErrFull
	}
	waiting := ctx
	if wait != Forever {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	if err := s.semaphore.Acquire(waiting, 1); err == nil {
		return func() { s.semaphore.Release(1) }, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, ErrFull
}

// Keyed is a set of Slots of one size, one for each key. A key without users takes no memory.
type Keyed struct {
	size int

	mu    sync.Mutex
	inUse map[string]*keySlots
}

type keySlots struct {
	*Slots
	users int // callers that wait for a slot or hold one
}

// NewKeyed returns slots for any number of keys, size for each. A size of 0 or less means no limit.
func NewKeyed(size int) *Keyed {
	return &Keyed{size: size, inUse: map[string]*keySlots{}}
}

// Acquire takes a slot of key, as Slots.Acquire does. The empty key has no limit.
func (k *Keyed) Acquire(ctx context.Context, key string, wait time.Duration) (release func(), err error) {
	if k.size <= 0 || key == "" {
		return func() {}, nil
	}
	slots := k.enter(key)
	releaseSlot, err := slots.Acquire(ctx, wait)
	if err != nil {
		k.leave(key, slots)
		return nil, err
	}
	return func() { releaseSlot(); k.leave(key, slots) }, nil
}

func (k *Keyed) enter(key string) *keySlots {
	k.mu.Lock()
	defer k.mu.Unlock()
	slots := k.inUse[key]
	if slots == nil {
		slots = &keySlots{Slots: NewSlots(k.size)}
		k.inUse[key] = slots
	}
	slots.users++
	return slots
}

func (k *Keyed) leave(key string, slots *keySlots) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slots.users--; slots.users == 0 {
		delete(k.inUse, key)
	}
}
