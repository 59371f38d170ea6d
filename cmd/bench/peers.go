package main

import (
	"context"
	"fmt"
	"os/exec"
)

// peers measures what has no server: a plain subprocess, and bubblewrap.
func (b *bench) peers(ctx context.Context, python string) {
	defer b.asPeers()()
	command := func(want string, args ...string) func() error {
		return func() error { return output(ctx, want, args...) }
	}

	b.latency(ctx, "CPython subprocess, hello", b.size.latency, goal{}, timed(command("hello\n", baseline, "-c", hello)))
	b.latency(ctx, "CPython subprocess, pandas groupby", max(3, b.size.heavy/5), goal{}, timed(command(groupbyOut, python, "-c", groupby)))
	b.throughput(ctx, "CPython subprocess, hello, at a time: 4", 4, 0, 0, func(ctx context.Context, _ int) error {
		return output(ctx, "hello\n", baseline, "-c", hello)
	})

	if wrap, err := exec.LookPath("bwrap"); err != nil {
		b.report.add(row{Name: "bubblewrap, hello", Value: "not run: not installed", Note: "quoted from another machine: 22.7 ms, 1.3 B"})
	} else {
		jail := []string{wrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--ro-bind-try", "/lib", "/lib",
			"--ro-bind-try", "/lib64", "/lib64", "--tmpfs", "/tmp", baseline, "-c", hello}
		b.latency(ctx, "bubblewrap, hello", b.size.latency, goal{}, timed(command("hello\n", jail...)))
		b.throughput(ctx, "bubblewrap, hello, at a time: 4", 4, 0, 0, func(ctx context.Context, _ int) error {
			return output(ctx, "hello\n", jail...)
		})
	}
}

// asPeers makes what is measured until its end, which it returns, rows of peers.
func (b *bench) asPeers() (end func()) {
	own := b.report
	b.report = &report{}
	return func() {
		own.Peers = append(own.Peers, b.report.Rows...)
		b.report = own
	}
}

func output(ctx context.Context, want string, args ...string) error {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).Output()
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	if string(out) != want {
		return fmt.Errorf("%s said %.80q", args[0], out)
	}
	return nil
}

// quoted adds the peers that are not run here, in B, as they were measured on a
// machine with 2 shared virtual CPUs where B was 17 ms.
func (b *bench) quoted() {
	for _, q := range []struct {
		name  string
		ratio float64
		note  string
	}{
		{"forking server of others (Flask, uWSGI; no wall), hello", 0.43, "groupby 15 B, PNG 27 B; 151, 283, 276 requests/s with 1, 4, 16 clients"},
		{"go-judge, hello", 1.4, "groupby 22 B; 36, 73, 81 requests/s with 1, 4, 16 clients"},
		{"runc, hello (a lower bound for Docker)", 2.5, ""},
		{"gVisor, hello", 11.7, ""},
		{"Jupyter kernel start", 44.5, "then 1+1 in 7.4 ms"},
		{"Pyodide under Deno, hello", 147, ""},
	} {
		b.report.Peers = append(b.report.Peers, row{Name: q.name, Ratio: new(q.ratio), Value: "not run, quoted", Note: q.note})
	}
}
