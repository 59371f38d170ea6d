package main

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Faster than a peer is more than once as fast, and what is asked for is of that.
func TestVersusAPeer(t *testing.T) {
	b := &bench{report: &report{}, size: size{latency: 5, limit: time.Minute, rate: 200 * time.Millisecond}}
	takes := func(d time.Duration) once { return func() (time.Duration, error) { return d, nil } }
	b.against(t.Context(), "a run", "a peer", 3, takes(2*time.Millisecond), takes(6*time.Millisecond))
	b.against(t.Context(), "a run", "a peer", 3.1, takes(2*time.Millisecond), takes(6*time.Millisecond))
	b.against(t.Context(), "a run", "a peer", 0, takes(2*time.Millisecond), takes(time.Millisecond))
	sleeps := func(d time.Duration) func(context.Context, int) error {
		return func(context.Context, int) error { time.Sleep(d); return nil }
	}
	b.ratesAgainst(t.Context(), "runs", "a peer", 2, 1.3, sleeps(time.Millisecond), sleeps(20*time.Millisecond))
	b.ratesAgainst(t.Context(), "runs", "a peer", 2, 1.3, sleeps(20*time.Millisecond), sleeps(time.Millisecond))
	broken := errors.New("broken")
	b.ratesAgainst(t.Context(), "runs", "a peer", 2, 1.3, sleeps(time.Millisecond), func(context.Context, int) error { return broken })

	rows := b.report.Rows
	for n, want := range []string{"3.00 times as fast", "3.00 times as fast", "0.50 times as fast"} {
		if !strings.HasPrefix(rows[n].Value, want) || rows[n].Samples != 5 {
			t.Errorf("%d: %+v", n, rows[n])
		}
	}
	for n, want := range map[int]bool{0: true, 1: false, 3: true, 4: false, 5: false} {
		if rows[n].Met == nil || *rows[n].Met != want {
			t.Errorf("%d: %+v", n, rows[n])
		}
	}
	if rows[2].Met != nil || rows[0].Goal != "3x" || rows[0].Note != "the peer took 6.00 ms" || rows[5].Note != "broken" {
		t.Errorf("%+v", rows)
	}
}

// Where the servers of others can't be had, the report says so, and measures the rest.
func TestWithoutPeers(t *testing.T) {
	b := &bench{report: &report{}, start: func(context.Context, ...string) (*service, error) { return nil, errors.New("no service") }}
	b.versus(t.Context())
	if len(b.report.Rows) != 0 || len(b.report.Peers) != 1 || !strings.HasPrefix(b.report.Peers[0].Value, "not run") {
		t.Errorf("%+v", b.report)
	}
	b.servers = "/nowhere/python"
	b.versus(t.Context())
	if len(b.report.Rows) != 5 || *b.report.Rows[0].Met {
		t.Errorf("%+v", b.report.Rows)
	}
}

// Rows of another service are told by its setting, those that come after are not; where it does
// not start that is a row.
func TestAsynchronously(t *testing.T) {
	var started []string
	own := &client{}
	b := &bench{report: &report{}, client: own, start: func(_ context.Context, settings ...string) (*service, error) {
		started = settings
		return &service{client: &client{}, cmd: &exec.Cmd{}}, nil
	}}
	b.asynchronously(t.Context(), func() {
		if b.client == own {
			t.Error("the rows are of the same service")
		}
		b.report.add(row{Name: "a"})
	})
	b.report.add(row{Name: "b"})
	if len(b.report.Rows) != 2 || b.report.Rows[0].Name != "a, "+unflushed || b.report.Rows[1].Name != "b" || b.client != own || len(started) != 1 || started[0] != unflushed {
		t.Errorf("%+v, started with %q", b.report.Rows, started)
	}
	b.start = func(context.Context, ...string) (*service, error) { return nil, errors.New("no") }
	b.asynchronously(t.Context(), func() { t.Error("there is no service to measure") })
	if last := b.report.Rows[len(b.report.Rows)-1]; last.Met == nil || *last.Met || last.Note != "no" {
		t.Errorf("%+v", last)
	}
}
