package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
)

// hesitant is a watcher that takes records when it is told to.
type hesitant struct {
	begun, take chan struct{}
	got         []byte
}

func (h *hesitant) Begin(func()) json.RawMessage { return nil }
func (h *hesitant) Logged([]byte)                {}
func (h *hesitant) Stopped(context.Context, []byte, Command) (any, error) {
	return nil, nil
}

func (h *hesitant) Records(b []byte) error {
	h.begun <- struct{}{}
	<-h.take
	h.got = append(h.got, b...)
	return nil
}

// A child whose ring is full does not wait for the watcher, until much waits for that.
func TestAFullRingDoesNotWaitForTheWatcher(t *testing.T) {
	watch := &hesitant{begun: make(chan struct{}), take: make(chan struct{})}
	r, err := newReel(nil, watch)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{ring: r.ring}
	var wrote []byte
	write := func(i int) {
		part := bytes.Repeat([]byte{byte(i)}, ringSize)
		wrote = append(wrote, part...)
		c.write(part)
	}
	write(0)
	<-watch.begun // and there it stays
	for i := 1; i <= maxWaiting/ringSize; i++ {
		write(i)
		if err := r.makeRoom(); err != nil {
			t.Fatal(err)
		}
		if read := c.counter(ringRead).Load(); read != c.written {
			t.Fatalf("room is made up to %d of %d", read, c.written)
		}
	}
	write(100)
	waited := make(chan error)
	go func() { waited <- r.makeRoom() }()
	select {
	case <-waited:
		t.Error("more than maxWaiting waits for the watcher, and the child does not")
	case watch.take <- struct{}{}:
	}
	go func() {
		for range watch.begun {
			watch.take <- struct{}{}
		}
	}()
	if err := <-waited; err != nil {
		t.Error(err)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	close(watch.begun)
	if !bytes.Equal(watch.got, wrote) {
		t.Errorf("%d bytes of %d, or in another order", len(watch.got), len(wrote))
	}
}
