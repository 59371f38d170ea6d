package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// once is one sample: it says itself how long it took.
type once = func() (time.Duration, error)

// versus measures Glasshouse and servers of others in turn, in the same minutes: what
// holds for one pair holds for a slow machine and for a fast one.
func (b *bench) versus(ctx context.Context) {
	if b.servers == "" {
		b.report.Peers = append(b.report.Peers, row{Name: "servers of others", Value: "not run: not installed", Note: "scripts/bench installs them, where a package index can be reached"})
		return
	}
	b.versusForking(ctx)
	stateful := func() { b.versusREPL(ctx); b.versusKernel(ctx) }
	stateful()
	b.asynchronously(ctx, stateful)
}

func (b *bench) versusForking(ctx context.Context) {
	b.besideForking(ctx, "a server that forks (Flask, uWSGI)", "forking.py", goalFork, goalForkGroupby, goalForkRate)
	b.besideForking(ctx, "the least that forks (Flask, uWSGI)", "leanest.py", 0, 0, 0)
}

func (b *bench) besideForking(ctx context.Context, name, program string, fast, groupbyFast, many float64) {
	server, err := startForking(ctx, b.servers, program)
	if err != nil {
		b.report.failed(name, err)
		return
	}
	defer server.stop()
	printed := expect{status: "completed", stdout: "hello\n"}
	b.against(ctx, "hello", name, fast, b.client.timed(ctx, quickly, hello, printed.check), server.timed(ctx, "/execute", hello, printed.check))
	frame := expect{status: "completed", stdout: groupbyOut}
	b.against(ctx, "pandas groupby", name, groupbyFast, b.client.timed(ctx, quickly, groupby, frame.check), server.timed(ctx, "/execute", groupby, frame.check))
	for _, clients := range []int{4, 16} {
		b.ratesAgainst(ctx, "hello", name, clients, many,
			func(ctx context.Context, _ int) error { return printed.glance(b.client.run(ctx, quickly, hello, nil)) },
			func(ctx context.Context, _ int) error { return printed.glance(server.run(ctx, "/execute", hello, nil)) })
	}
}

func (b *bench) versusREPL(ctx context.Context) {
	const name = "a REPL server (FastAPI, uvloop)"
	server, err := startREPL(ctx, b.servers)
	if err != nil {
		b.report.failed(name, err)
		return
	}
	defer server.stop()
	two := expect{status: "completed", result: "2"}
	const sessions = 16
	b.inSandboxes(ctx, sessions, name, nil, func(ids []string) {
		for _, way := range []string{"thread", "loop"} {
			path := func(client int) string { return fmt.Sprintf("/%s/%d", way, client) }
			name := name + ", code in its " + way
			ours, theirs := b.client.timed(ctx, in(ids[0]), "1+1", two.check), server.timed(ctx, path(0), "1+1", two.check)
			b.against(ctx, "stateful 1+1", name, goalREPL, loop(ours), loop(theirs))
			b.against(ctx, "stateful 1+1 after an idle gap", name, goalREPL, rested(ctx, ours), rested(ctx, theirs))
			b.ratesAgainst(ctx, "stateful 1+1", name, sessions, 0,
				func(ctx context.Context, n int) error {
					return two.glance(b.client.run(ctx, in(ids[n]), "1+1", nil))
				},
				func(ctx context.Context, n int) error {
					return two.glance(server.run(ctx, path(n), "1+1", nil))
				})
		}
	})
}

func (b *bench) versusKernel(ctx context.Context) {
	const name = "a Jupyter kernel"
	kernel, err := startKernel(ctx, b.servers)
	if err != nil {
		b.report.failed(name, err)
		return
	}
	defer kernel.stop()
	b.inSandbox(ctx, name, nil, func(id string) {
		ours := b.client.timed(ctx, in(id), "1+1", expect{status: "completed", result: "2"}.check)
		b.against(ctx, "stateful 1+1", name, goalKernel, loop(ours), loop(kernel.once))
	})
}

// rested has each sample follow B, as the samples of the rows above do.
func rested(ctx context.Context, one once) once {
	return func() (time.Duration, error) {
		if _, err := takeB(ctx); err != nil {
			return 0, err
		}
		return one()
	}
}

// loop makes one sample of many in a row: their median.
func loop(one once) once {
	return func() (time.Duration, error) {
		times := make([]float64, inARow)
		for n := range times {
			took, err := one()
			if err != nil {
				return 0, err
			}
			times[n] = float64(took)
		}
		return time.Duration(median(times)), nil
	}
}

// against adds a row with how many times as fast as a peer Glasshouse is.
func (b *bench) against(ctx context.Context, what, peer string, goal float64, ours, theirs once) {
	name := what + ", beside " + peer
	if ctx.Err() != nil {
		return
	}
	progress("%s", name)
	took, ratios, err := inTurn(ctx, b.size.latency, b.size.limit, theirs, ours)
	if err != nil {
		b.report.failed(name, err)
		return
	}
	b.report.add(timesAs("fast", name, goal, ratios, row{Samples: len(ratios), Note: fmt.Sprintf("the peer took %.2f ms", median(took))}))
}

// ratesAgainst adds a row with how many times as many runs as a peer Glasshouse makes with so many
// clients, in rounds: the peer's, ours, ours, the peer's.
func (b *bench) ratesAgainst(ctx context.Context, what, peer string, clients int, goal float64, ours, theirs func(context.Context, int) error) {
	name := fmt.Sprintf("%s, clients: %d, beside %s", what, clients, peer)
	if ctx.Err() != nil {
		return
	}
	progress("%s", name)
	const rounds = 4
	// A round's sample is the time of one run, so that a ratio is of the same kind as any other.
	one := func(f func(context.Context, int) error) once {
		return func() (time.Duration, error) {
			perSecond, err := rate(ctx, clients, b.size.rate/2, f)
			return time.Duration(float64(time.Second) / perSecond), err
		}
	}
	took, ratios, err := inTurn(ctx, rounds, time.Hour, one(theirs), one(ours))
	if err != nil {
		b.report.failed(name, err)
		return
	}
	b.report.add(timesAs("many", name, goal, ratios, row{Samples: len(ratios), Note: fmt.Sprintf("the peer made %.0f a second", 1000/median(took))}))
}

// timesAs finishes the row of a comparison. No goal is 0.
func timesAs(what, name string, goal float64, ratios []float64, r row) row {
	r.Name = name
	r.Value = fmt.Sprintf("%.2f times as %s (%.2f to %.2f)", median(ratios), what, quantile(ratios, 0.25), quantile(ratios, 0.75))
	if goal > 0 {
		r.Goal, r.Met = fmt.Sprintf("%gx", goal), new(median(ratios) >= goal)
	}
	return r
}

// ready waits until the server answers at all.
func (s *server) ready(ctx context.Context, path string) error {
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if _, err = s.send(ctx, http.MethodPost, path, map[string]any{"code": "1+1"}); err == nil {
			return nil
		}
	}
	return fmt.Errorf("it does not answer: %w", err)
}
