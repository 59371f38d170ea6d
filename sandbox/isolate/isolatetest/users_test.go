package isolatetest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/supervisor"
)

// Guests start for users in turn: a start does not wait until all starts of another user are done.
func TestStartsAreSharedAmongUsers(t *testing.T) {
	const many, most = 40, 12 // starts of one user, and how many of them may come first
	s := supervisor.New(Open(t, isolate.Config{}), time.Minute)
	open := func(user string) error {
		session, err := s.Open(context.Background(), sandbox.Sandbox{ID: "t", Owner: user, Policy: Policy()}, "")
		if err != nil {
			return err
		}
		t.Cleanup(session.Close)
		return nil
	}
	var done atomic.Int64
	first := make(chan struct{})
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			if err := open("many"); err != nil {
				t.Error(err)
			}
			if done.Add(1) == 1 {
				close(first)
			}
		})
	}
	<-first
	before := done.Load()
	Must(t, open("one"))
	if came := done.Load() - before; came > most {
		t.Errorf("%d of %d starts of another user came first, want at most %d", came, many, most)
	}
	all.Wait()
}
