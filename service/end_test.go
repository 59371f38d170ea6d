package service_test

import (
	"sync/atomic"
	"testing"
	"time"

	"glasshouse/sandbox/supervisor"
	"glasshouse/service"
)

// Sandboxes end side by side: the end of one mostly waits for the kernel and for the disk. Others can then be opened.
func TestSandboxesEndSideBySide(t *testing.T) {
	t.Parallel()
	const sandboxes = 20
	create := func(t *testing.T, s *service.Service) {
		t.Helper()
		if _, err := s.Create(t.Context(), ada, nil); err != nil {
			t.Errorf("create a sandbox: %v", err)
		}
	}
	for name, end := range map[string]func(*testing.T, *service.Service, *clock){
		"delete all": func(t *testing.T, s *service.Service, _ *clock) {
			if n, err := s.DeleteAll(t.Context(), ada); n != sandboxes || err != nil {
				t.Errorf("got %d, %v; want %d deleted", n, err, sandboxes)
			}
			create(t, s)
		},
		"expire": func(t *testing.T, s *service.Service, c *clock) {
			c.move(24 * time.Hour)
			s.Expire()
			create(t, s)
		},
		"stop": func(t *testing.T, s *service.Service, _ *clock) { s.Drain(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t)
			together := make(chan struct{}) // closed when all of them are being closed
			var closing atomic.Int64
			config := f.Config
			config.PerUser, config.InAll = sandboxes, sandboxes
			config.Supervisor = supervisor.NewStub(f.runs.run, func() {
				if closing.Add(1) == sandboxes {
					close(together)
				}
				select {
				case <-together:
				case <-time.After(20 * time.Second):
					t.Errorf("got %d sandboxes that end at once, want %d", closing.Load(), sandboxes)
				}
			})
			s := service.New(config)
			for range sandboxes {
				create(t, s)
			}
			end(t, s, f.clock)
			s.Drain(t.Context())
			if states := s.SandboxStates(); states["idle"]+states["busy"] > 0 {
				t.Errorf("after the stop: got %v, want none", states)
			}
		})
	}
}
