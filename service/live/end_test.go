package live_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"glasshouse/dbaccess/history"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/servicetest"
)

// Sandboxes end side by side: the end of one mostly waits for the kernel and for the disk. Others can then be opened.
func TestSandboxesEndSideBySide(t *testing.T) {
	t.Parallel()
	const sandboxes = 20
	create := func(t *testing.T, s *servicetest.Fixture) {
		t.Helper()
		if _, err := s.Live.Create(t.Context(), ada, nil); err != nil {
			t.Errorf("create a sandbox: %v", err)
		}
	}
	for name, end := range map[string]func(*testing.T, *servicetest.Fixture){
		"delete all": func(t *testing.T, s *servicetest.Fixture) {
			if n, err := s.Live.DeleteAll(t.Context(), ada); n != sandboxes || err != nil {
				t.Errorf("got %d, %v; want %d deleted", n, err, sandboxes)
			}
			create(t, s)
		},
		"expire": func(t *testing.T, s *servicetest.Fixture) {
			s.Clock.Move(24 * time.Hour)
			s.Live.Expire()
			create(t, s)
		},
		"stop": func(_ *testing.T, s *servicetest.Fixture) { s.Live.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			together := make(chan struct{}) // closed when all of them are being closed
			var closing atomic.Int64
			f := servicetest.Start(t, func(c *servicetest.Config) {
				c.Live.PerUser, c.Live.InAll = sandboxes, sandboxes
				c.Live.Supervisor = supervisor.NewStub(c.Code.Run, func() {
					if closing.Add(1) == sandboxes {
						close(together)
					}
					select {
					case <-together:
					case <-time.After(20 * time.Second):
						t.Errorf("got %d sandboxes that end at once, want %d", closing.Load(), sandboxes)
					}
				})
			})
			for range sandboxes {
				create(t, f)
			}
			end(t, f)
			f.Live.Close()
			if states := f.Live.SandboxStates(); states["idle"]+states["busy"] > 0 {
				t.Errorf("after the stop: got %v, want none", states)
			}
		})
	}
}

// slowEnds records the end of a sandbox when the test allows it.
type slowEnds struct {
	*history.Store
	begun, record chan struct{}
}

func (h slowEnds) EndSandbox(ctx context.Context, id, owner string, state sandbox.State, at time.Time) error {
	h.begun <- struct{}{}
	<-h.record
	return h.Store.EndSandbox(ctx, id, owner, state, at)
}

// A request that meets the end of a sandbox, and one that comes later, are told why it ended.
func TestRequestsToAnEndingSandboxAreToldWhy(t *testing.T) {
	t.Parallel()
	h := slowEnds{begun: make(chan struct{}), record: make(chan struct{})}
	f := servicetest.Start(t, servicetest.WithHistory(func(store *history.Store) servicetest.History {
		h.Store = store
		return h
	}))
	for reason, end := range map[string]func(sandboxID string){
		"it was deleted": func(sandboxID string) {
			if err := f.Live.Delete(t.Context(), ada, sandboxID); err != nil {
				t.Error(err)
			}
		},
		"its lifetime or idle time ended": func(string) {
			f.Clock.Move(48 * time.Hour)
			f.Live.Expire()
		},
	} {
		sb, ended := f.Create(t, ada, ""), make(chan struct{})
		go func() { end(sb.ID); close(ended) }()
		<-h.begun
		want := func(when string) {
			t.Helper()
			_, err := f.Execute(sb.ID, "1")
			var known *sandbox.Error
			if !errors.As(err, &known) || known.Fault != sandbox.FaultGone || !strings.Contains(known.Detail, reason) {
				t.Errorf("%s the end is on record: got %v, want a text with %q", when, err, reason)
			}
		}
		want("before")
		h.record <- struct{}{}
		<-ended
		want("when")
	}
	f.Live.Close()
}
