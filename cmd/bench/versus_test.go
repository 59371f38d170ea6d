package main

import (
	"context"
	"errors"
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
	b := &bench{report: &report{}}
	b.versus(t.Context())
	if len(b.report.Rows) != 0 || len(b.report.Peers) != 1 || !strings.HasPrefix(b.report.Peers[0].Value, "not run") {
		t.Errorf("%+v", b.report)
	}
	b.servers = "/nowhere/python"
	b.versus(t.Context())
	if len(b.report.Rows) != 4 || *b.report.Rows[0].Met {
		t.Errorf("%+v", b.report.Rows)
	}
}
