package limit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// Requests of one key with large bodies take turns, from their bodies to their ends. Small ones and those of another
// key do not wait.
func TestLargeBodiesTakeSlots(t *testing.T) {
	bodies, large := NewBodies(), 2*smallBody
	read := func(key string, bytesOfBody int) <-chan func() {
		done := make(chan func(), 1)
		go func() {
			ctx, end := bodies.Begin(t.Context(), key)
			text, err := io.ReadAll(BodyReader(ctx, bytes.NewReader(make([]byte, bytesOfBody)), ErrFull))
			if err != nil || len(text) != bytesOfBody {
				t.Errorf("got %d bytes, %v; want %d", len(text), err, bytesOfBody)
			}
			done <- end
		}()
		return done
	}
	var ends []func()
	for range maxLargeBodies {
		ends = append(ends, <-read("ada", large))
	}
	next := read("ada", large)
	ends = append(ends, <-read("ada", smallBody), <-read("bob", large))
	select {
	case <-next:
		t.Error("a body beyond the limit was read, want it to wait")
	default:
	}
	ends[0]()
	ends = append(ends, <-next)
	for _, end := range ends {
		end()
	}
	if len(bodies.slots.inUse) != 0 {
		t.Errorf("got slots of %d keys at the end, want none", len(bodies.slots.inUse))
	}
}

// A body holds a slot while it arrives. When the work for which it was sent has begun, it holds none.
func TestSlotOfABodyEndsWhenItsWorkBegins(t *testing.T) {
	bodies := NewBodies()
	for range 2 * maxLargeBodies {
		ctx, end := bodies.Begin(t.Context(), "ada")
		defer end()
		body := bytes.NewReader(make([]byte, 4*smallBody))
		r := BodyReader(ctx, body, ErrFull)
		n, err := r.Read(make([]byte, body.Len()))
		if err != nil || n > smallBody+1 {
			t.Fatalf("got %d bytes, %v, before the body has a slot; want those of a small body", n, err)
		}
		if _, err := r.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if got := bodies.slots.inUse["ada"].users; got != 1 {
			t.Errorf("got %d slots for a body that arrives, want 1", got)
		}
		BodyDone(WithBodyOf(context.Background(), ctx)) // another context of the same request
		BodyDone(ctx)                                   // has no effect
	}
	BodyDone(WithBodyOf(t.Context(), t.Context())) // of no request
}

// A large body fails if no slot is free for bodyWait, or if its request ends while it waits.
func TestLargeBodyWithoutASlotFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bodies, full, began := NewBodies(), errors.New("full"), time.Now()
		for range maxLargeBodies {
			if _, err := bodies.slots.Acquire(t.Context(), "ada", 0); err != nil {
				t.Fatal(err)
			}
		}
		read := func(ctx context.Context) error {
			ctx, end := bodies.Begin(ctx, "ada")
			defer end()
			_, err := io.ReadAll(BodyReader(ctx, bytes.NewReader(make([]byte, 4*smallBody)), full))
			return err
		}
		if err := read(t.Context()); !errors.Is(err, full) || time.Since(began) != bodyWait {
			t.Errorf("got %v after %s, want %v after %s", err, time.Since(began), full, bodyWait)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := read(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("a request that ended: got %v, want %v", err, context.Canceled)
		}
	})
	ctx, end := Bodies{}.Begin(t.Context(), "ada")
	defer end()
	text, err := io.ReadAll(BodyReader(ctx, bytes.NewReader(make([]byte, 4*smallBody)), ErrFull))
	if err != nil || len(text) != 4*smallBody {
		t.Errorf("without a bound: got %d bytes, %v; want all", len(text), err)
	}
}
