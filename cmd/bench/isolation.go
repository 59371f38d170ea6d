package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The goals of the wall, which are absolute.
var (
	goalHit  = goal{p50: 1, p99: 5, absolute: true}
	goalMiss = goal{p50: 6, absolute: true}
	goalKill = goal{p50: 50, p99: 50, absolute: true}
)

const (
	goalIdleMB = 1.5
	goalUsedMB = 8.0
	goalJailed = 200.0

	// firstLine says when it ran, by the clock that both sides of the wall share.
	firstLine   = "import time\nstr(time.time_ns())"
	pandasHello = "import pandas as pd\nprint('hello')"
	// aSize is no sandbox's default, so none of the waiting children has it.
	aSize = 32 << 20
)

// isolation measures the wall: from the request to the user's first line, with a
// child that waits and with one that must be made; memory; rate; and the end.
func (b *bench) isolation(ctx context.Context, s *service) {
	first := func(config map[string]any) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			begun := time.Now()
			var e execution
			err := b.client.alone().do(ctx, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": firstLine, "config": config}, &e)
			if err != nil {
				return 0, err
			}
			ran, err := strconv.ParseInt(strings.Trim(string(e.Result), `"`), 10, 64)
			return time.Unix(0, ran).Sub(begun), err
		}
	}
	b.latency(ctx, "request to first line, a child waits", b.size.latency, goalHit, first(map[string]any{}))
	b.latency(ctx, "request to first line, none waits", b.size.latency, goalMiss, first(map[string]any{"workspace_max_bytes": aSize}))
	b.idleMemory(ctx, s)
	b.usedMemory(ctx, s)
	for _, clients := range []int{2, 4} {
		b.throughput(ctx, fmt.Sprintf("with pandas loaded, a fresh jail each, clients: %d", clients), clients, 0, goalJailed, func(ctx context.Context, _ int) error {
			return expect{status: "completed", stdout: "hello\n"}.glance(b.client.run(ctx, quickly, pandasHello, nil))
		})
	}
	b.latency(ctx, "kill to empty: DELETE of an endless loop", b.size.heavy, goalKill, func() (time.Duration, error) { return b.killToEmpty(ctx, s) })
}

// idleMemory adds a row with the memory that waiting children have for themselves.
func (b *bench) idleMemory(ctx context.Context, s *service) {
	const name = "private memory of a waiting child, MB: median, largest"
	if ctx.Err() != nil {
		return
	}
	progress("%s", name)
	time.Sleep(time.Second) // until the pool is full again
	sizes := slices.Collect(maps.Values(privateMB(s.children())))
	if len(sizes) == 0 {
		b.report.failed(name, errors.New("no child is seen in /proc"))
		return
	}
	half, most := median(sizes), quantile(sizes, 1)
	b.report.add(row{Name: name, Samples: len(sizes), Value: fmt.Sprintf("%.2f, %.2f", half, most), Goal: fmt.Sprint(goalIdleMB), Met: new(half <= goalIdleMB)})
}

// usedMemory adds a row with the memory that children have for themselves which have grouped a
// table, in a sandbox that goes on.
func (b *bench) usedMemory(ctx context.Context, s *service) {
	const name = "private memory after a pandas groupby, MB: median, largest"
	if ctx.Err() != nil {
		return
	}
	progress("%s", name)
	var sizes []float64
	for range 5 {
		b.inSandbox(ctx, name, nil, func(id string) {
			before := privateMB(s.children())
			err := expect{status: "completed", stdout: groupbyOut}.check(b.client.execute(ctx, id, groupby, nil))
			size, grown := 0.0, 0.0
			for pid, now := range privateMB(s.children()) { // the one that ran has grown most
				if was, waited := before[pid]; waited && now-was > grown {
					size, grown = now, now-was
				}
			}
			if err == nil && size == 0 {
				err = errors.New("the child that ran had not waited")
			}
			if err != nil {
				b.report.failed(name, err)
				return
			}
			sizes = append(sizes, size)
		})
	}
	if len(sizes) > 0 {
		half, most := median(sizes), quantile(sizes, 1)
		b.report.add(row{Name: name, Samples: len(sizes), Value: fmt.Sprintf("%.2f, %.2f", half, most), Goal: fmt.Sprint(goalUsedMB), Met: new(half <= goalUsedMB)})
	}
}

// killToEmpty is the time from the request that deletes a sandbox, in which an
// endless loop runs, until its process is gone.
func (b *bench) killToEmpty(ctx context.Context, s *service) (time.Duration, error) {
	id, err := b.client.create(ctx, nil)
	if err != nil {
		return 0, err
	}
	before := cpuTicks(s.children())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = b.client.execute(ctx, id, "while True: pass", nil) // it is cut off
	}()
	pid := 0
	for end := time.Now().Add(5 * time.Second); pid == 0; {
		if time.Now().After(end) || ctx.Err() != nil {
			return 0, errors.New("the loop's process is not seen in /proc")
		}
		for child, ticks := range cpuTicks(s.children()) {
			if had, there := before[child]; there && ticks > had+5 {
				pid = child
			}
		}
	}
	begun := time.Now()
	err = b.client.remove(ctx, id)
	for alive(pid) {
		if time.Since(begun) > 5*time.Second {
			return 0, errors.New("the process outlives its sandbox")
		}
	}
	took := time.Since(begun)
	<-over
	return took, err
}

//go:embed plainfork.py
var plainFork string

// isolationPeers measures what a wall is compared with: a new interpreter, one in
// bubblewrap, and the bare fork of a warm one.
func (b *bench) isolationPeers(ctx context.Context, python string) {
	defer b.asPeers()()
	command := func(want string, args ...string) func() error {
		return func() error { return output(ctx, want, args...) }
	}
	b.latency(ctx, "python3 -c", b.size.latency, goal{}, timed(command("", baseline, "-c", "pass")))
	b.latency(ctx, "python3 -c, pandas groupby", max(3, b.size.heavy/5), goal{}, timed(command(groupbyOut, python, "-c", groupby)))
	if wrap, err := exec.LookPath("bwrap"); err != nil {
		b.report.add(row{Name: "bubblewrap", Value: "not run: not installed", Note: "quoted from another machine: 12.5 / 18 ms bare, 375 / 451 with pandas"})
	} else {
		packages := filepath.Dir(filepath.Dir(python)) // which may be in /tmp
		jail := []string{wrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--ro-bind", packages, packages}
		b.latency(ctx, "bubblewrap, python3 -c", b.size.latency, goal{}, timed(command("", append(jail, baseline, "-I", "-S", "-c", "pass")...)))
		b.latency(ctx, "bubblewrap, pandas groupby", max(3, b.size.heavy/5), goal{}, timed(command(groupbyOut, append(jail, python, "-c", groupby)...)))
	}
	b.plainForks(ctx, python)
}

// plainForks adds rows of fork, exit and wait of interpreters that have imported
// more and more, with no wall at all.
func (b *bench) plainForks(ctx context.Context, python string) {
	for _, modules := range []string{"", "numpy", "pandas", "pandas,matplotlib.pyplot"} {
		name := strings.TrimSuffix("plain fork and exit, no wall: "+modules, ": ")
		if ctx.Err() != nil {
			return
		}
		progress("%s", name)
		out, err := exec.CommandContext(ctx, python, "-c", plainFork, fmt.Sprint(b.size.latency), modules).Output()
		if err != nil {
			b.report.failed(name, err)
			continue
		}
		var took []float64
		for _, field := range strings.Fields(string(out)) {
			if one, err := strconv.ParseFloat(field, 64); err == nil {
				took = append(took, one)
			}
		}
		b.report.add(row{Name: name, Samples: len(took), P50: new(median(took)), P99: new(quantile(took, 0.99))})
	}
}

func alive(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}
