package limit

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// maxLargeBodies is the number of large bodies of one key that may arrive at the same time.
	maxLargeBodies = 8
	// smallBody is the size of the largest body that needs no slot.
	smallBody = 64 << 10
	// bodyWait is how long a large body waits for a slot.
	bodyWait = 10 * time.Second
)

// Bodies bounds, for each key, how many large request bodies arrive at the same time. A body is kept in memory until
// the client has sent all of it, which may take long. The zero value has no bound.
type Bodies struct{ slots *Keyed }

// NewBodies returns a limit of maxLargeBodies for each key.
func NewBodies() Bodies { return Bodies{NewKeyed(maxLargeBodies)} }

// Reader returns a reader of a body that takes one of the key's slots if the body is large, until it is read or ctx
// ends. Read returns full if no slot becomes free in time.
func (b Bodies) Reader(ctx context.Context, key string, body io.Reader, full error) io.Reader {
	if b.slots == nil {
		return body
	}
	return &bodyReader{Reader: body, acquire: func() (func(), error) {
		release, err := b.slots.Acquire(ctx, key, bodyWait)
		if errors.Is(err, ErrFull) {
			return nil, full
		}
		if err != nil {
			return nil, err
		}
		release = sync.OnceFunc(release)
		context.AfterFunc(ctx, release)
		return release, nil
	}}
}

// bodyReader is a reader of one body. One goroutine uses it.
type bodyReader struct {
	io.Reader
	acquire func() (release func(), err error)
	bytes   int
	release func() // nil: no slot
}

func (r *bodyReader) Read(p []byte) (n int, err error) {
	if r.bytes > smallBody && r.release == nil {
		if r.release, err = r.acquire(); err != nil {
			return 0, err
		}
	}
	n, err = r.Reader.Read(p)
	r.bytes += n
	if err != nil && r.release != nil {
		r.release()
	}
	return n, err
}
