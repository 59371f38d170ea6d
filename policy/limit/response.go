package limit

import (
	"context"
	"errors"
	"sync"
	"time"
)

// MaxUnreadBytes is how many bytes of large responses one user may leave unread: the user then gets no other response.
// A response of a few megabytes takes several times its size while it is encoded, so this allows several at a time.
const MaxUnreadBytes = 64 << 20

// MaxLargeResponses is how many responses of one key hold HoldLarge at the same time. largeResponseWait is how long
// another one waits.
const (
	MaxLargeResponses = 4
	largeResponseWait = 10 * time.Second
)

// Responses counts, for each key, the bytes of responses that are written but not yet read. A response takes memory
// until its client has read it. The nil Responses has no bound.
type Responses struct {
	maxBytes int
	large    *Keyed // slots of HoldLarge

	mu     sync.Mutex
	unread map[string]int
}

// NewResponses returns a counter that reports a key as full above maxBytes.
func NewResponses(maxBytes int) *Responses {
	return &Responses{maxBytes: maxBytes, large: NewKeyed(MaxLargeResponses), unread: map[string]int{}}
}

// Begin counts the large writes of the response to a request of a key. ctx is that of the request, which runs under
// StallTimeout. Begin returns full if the key has more than the limit of unread bytes.
func (r *Responses) Begin(ctx context.Context, key string, full error) error {
	if r.Full(key) {
		return full
	}
	if t := TransferOf(ctx); t != nil {
		t.OnLargeWrite = func(n int) func() { return r.Add(key, n) }
	}
	return nil
}

// HoldLarge takes one of the key's slots for large responses, until the response of the request with this context is
// read. It is for responses that take much more than their size before the first byte is written, when they are not yet
// counted. It returns full if no slot becomes free in time.
func (r *Responses) HoldLarge(ctx context.Context, key string, full error) error {
	t := TransferOf(ctx)
	if r == nil || t == nil || t.OnEnd != nil {
		return nil
	}
	release, err := r.large.Acquire(ctx, key, largeResponseWait)
	if errors.Is(err, ErrFull) {
		return full
	}
	if err != nil {
		return err
	}
	t.OnEnd = release
	return nil
}

// Add counts n bytes as unread until the returned function is called, once.
func (r *Responses) Add(key string, n int) (done func()) {
	r.count(key, n)
	return func() { r.count(key, -n) }
}

func (r *Responses) count(key string, n int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unread[key] += n; r.unread[key] == 0 {
		delete(r.unread, key)
	}
}

// Full reports whether key has more than the limit of unread bytes.
func (r *Responses) Full(key string) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unread[key] > r.maxBytes
}
