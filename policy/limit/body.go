package limit

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// maxLargeBodies is the number of large bodies of one key that may be in memory at the same time.
	maxLargeBodies = 8
	// smallBody is the size of the largest body that needs no slot.
	smallBody = 64 << 10
	// bodyWait is how long a large body waits for a slot.
	bodyWait = 10 * time.Second
)

// Bodies bounds, for each key, how many large request bodies are in memory before their work begins. A body is kept
// until the client has sent all of it, which may take long, and while its decoded request waits for its turn. The zero
// value has no bound.
type Bodies struct{ slots *Keyed }

// NewBodies returns a limit of maxLargeBodies for each key.
func NewBodies() Bodies { return Bodies{NewKeyed(maxLargeBodies)} }

type bodySlotKey struct{}

// Begin returns the context of a request of a key, and a function that the caller calls when the request was handled.
// If the request has a large body, it holds one of the key's slots from BodyReader to BodyDone, or to that call.
func (b Bodies) Begin(ctx context.Context, key string) (_ context.Context, end func()) {
	if b.slots == nil {
		return ctx, func() {}
	}
	s := &bodySlot{slots: b.slots, key: key}
	return context.WithValue(ctx, bodySlotKey{}, s), s.end
}

// WithBodyOf returns ctx for work of the request that has the context request: BodyDone finds the request's slot.
func WithBodyOf(ctx, request context.Context) context.Context {
	if s := bodySlotOf(request); s != nil {
		return context.WithValue(ctx, bodySlotKey{}, s)
	}
	return ctx
}

// BodyDone releases the slot of the context's request, if it holds one. The caller is about to begin the work for which
// the body was sent, and has another limit for the memory of that work.
func BodyDone(ctx context.Context) {
	if s := bodySlotOf(ctx); s != nil {
		s.end()
	}
}

func bodySlotOf(ctx context.Context) *bodySlot {
	s, _ := ctx.Value(bodySlotKey{}).(*bodySlot)
	return s
}

// BodyReader returns a reader of the body of the request that Begin began. Read returns full if the body is large, and
// no slot becomes free in time.
func BodyReader(ctx context.Context, body io.Reader, full error) io.Reader {
	if s := bodySlotOf(ctx); s != nil {
		return &bodyReader{Reader: body, acquire: func() error { return s.acquire(ctx, full) }}
	}
	return body
}

// bodySlot is the slot of one request, which it holds if it has a large body.
type bodySlot struct {
	slots *Keyed
	key   string

	mu       sync.Mutex
	release  func() // nil: not held
	hasEnded bool
}

// acquire takes the slot. It returns full if none becomes free in time, and the error of ctx.
func (s *bodySlot) acquire(ctx context.Context, full error) error {
	release, err := s.slots.Acquire(ctx, s.key, bodyWait)
	if errors.Is(err, ErrFull) {
		return full
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasEnded {
		release()
		return nil
	}
	s.release = release
	return nil
}

// end releases the slot if it is held. It may be called several times.
func (s *bodySlot) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hasEnded = true
	if s.release != nil {
		s.release()
		s.release = nil
	}
}

// bodyReader is a reader of one body. One goroutine uses it.
type bodyReader struct {
	io.Reader
	acquire func() error
	bytes   int
	hasSlot bool
}

func (r *bodyReader) Read(p []byte) (n int, err error) {
	if r.bytes > smallBody && !r.hasSlot {
		if err := r.acquire(); err != nil {
			return 0, err
		}
		r.hasSlot = true
	}
	if !r.hasSlot {
		p = p[:min(len(p), smallBody+1-r.bytes)]
	}
	n, err = r.Reader.Read(p)
	r.bytes += n
	return n, err
}
