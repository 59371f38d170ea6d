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

// Large bodies of one key take turns. Small ones and those of another key do not wait.
func TestLargeBodiesTakeSlots(t *testing.T) {
	bodies, large := NewBodies(), 2*smallBody
	var held []*io.PipeWriter
	read := func(key string, from io.Reader) <-chan int {
		done := make(chan int, 1)
		go func() {
			text, err := io.ReadAll(bodies.Reader(t.Context(), key, from, ErrFull))
			if err != nil {
				t.Error(err)
			}
			done <- len(text)
		}()
		return done
	}
	var waiting []<-chan int
	for range maxLargeBodies {
		r, w := io.Pipe()
		waiting = append(waiting, read("ada", r))
		if _, err := w.Write(make([]byte, large)); err != nil { // it returns when a slot was taken and all is read
			t.Fatal(err)
		}
		held = append(held, w)
	}
	next := read("ada", bytes.NewReader(make([]byte, large)))
	if n := <-read("ada", bytes.NewReader(make([]byte, smallBody))); n != smallBody {
		t.Errorf("got %d bytes of a small body, want %d", n, smallBody)
	}
	if n := <-read("bob", bytes.NewReader(make([]byte, large))); n != large {
		t.Errorf("got %d bytes for another key, want %d", n, large)
	}
	select {
	case n := <-next:
		t.Errorf("got %d bytes of a body beyond the limit, want it to wait", n)
	default:
	}
	_ = held[0].Close()
	if n := <-next; n != large {
		t.Errorf("got %d bytes after a slot was released, want %d", n, large)
	}
	for n, w := range held {
		_ = w.Close()
		<-waiting[n]
	}
	if len(bodies.slots.inUse) != 0 {
		t.Errorf("got slots of %d keys at the end, want none", len(bodies.slots.inUse))
	}
}

// A body whose request ends before it is read holds no slot.
func TestSlotOfABodyEndsWithItsRequest(t *testing.T) {
	bodies := NewBodies()
	for range 2 * maxLargeBodies {
		ctx, cancel := context.WithCancel(t.Context())
		r := bodies.Reader(ctx, "ada", bytes.NewReader(make([]byte, 4*smallBody)), ErrFull)
		for range 3 { // the third piece is beyond a small body
			if _, err := io.ReadFull(r, make([]byte, smallBody)); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
	}
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
			_, err := io.ReadAll(bodies.Reader(ctx, "ada", bytes.NewReader(make([]byte, 4*smallBody)), full))
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
	unbounded := Bodies{}.Reader(t.Context(), "ada", bytes.NewReader(make([]byte, 4*smallBody)), ErrFull)
	if text, err := io.ReadAll(unbounded); err != nil || len(text) != 4*smallBody {
		t.Errorf("without a bound: got %d bytes, %v; want all", len(text), err)
	}
}
