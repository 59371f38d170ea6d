package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// The programs that are measured.
const (
	hello   = `print('hello')`
	groupby = `import pandas as pd
df = pd.DataFrame({'team': ['abcdefghij'[i % 10] for i in range(1000)], 'points': range(1000)})
print(df.groupby('team')['points'].agg(['sum', 'mean', 'max']).shape)`
	plot = `import matplotlib.pyplot as plt
fig, ax = plt.subplots()
ax.plot([1, 2, 3], [3, 1, 2])
ax.set_title('bench')`
	megabyteOutput = "for _ in range(1000):\n    print('x' * 999)"
	manyPrints     = "for n in range(200):\n    print(n, flush=True)"
)

var (
	saidHello  = expectation{status: "completed", stdout: "hello\n"}
	printedDim = expectation{status: "completed", stdout: "(10, 3)\n"}
	isTwo      = expectation{status: "completed", result: "2"}
	completed  = expectation{status: "completed"}
)

// wholeCPU is the configuration of a sandbox for rows that are all CPU time. The default share is half a CPU.
var wholeCPU = map[string]any{"cpu_percent": 100}

// unflushed is the setting with which an answer does not wait until its record is on disk.
const unflushed = "--synchronous-commit=false"

// apiRows returns the rows of the API. The goals of the rates with several clients are 1.3 times the rate of
// the fastest peer, a server without isolation that forks a warm interpreter: it makes 283 and 276 runs per
// second with 4 and 16 clients where B is 17 ms.
func apiRows(o options) []measurement {
	rows := []measurement{
		{name: "hello, fresh sandbox", unit: milliseconds, goal: ofPeer(0.12, 0.5), samples: manySamples,
			open: fresh(hello, saidHello.check)},
		{name: "1+1, fresh sandbox", unit: milliseconds, samples: manySamples, open: fresh("1+1", isTwo.check)},
		{name: "pandas groupby, fresh sandbox", unit: milliseconds, goal: ofPeer(1, 0), samples: manySamples,
			open: fresh(groupby, printedDim.check)},
		{name: "plot to PNG, fresh sandbox", unit: milliseconds, goal: ofPeer(6.7, 0), samples: someSamples,
			open: fresh(plot, hasPNG)},
		{name: "plot to PNG, live sandbox", unit: milliseconds, goal: ofPeer(5, 0), samples: someSamples,
			open: inSandbox(wholeCPU, plot, hasPNG, false)},
		{name: "1 MB of output, fresh sandbox", unit: milliseconds, samples: someSamples,
			open: fresh(megabyteOutput, hasMegabyte)},
		{name: "200 lines as events, fresh sandbox", unit: milliseconds, samples: someSamples, open: openEvents},
		{name: "create a sandbox", unit: milliseconds, goal: ofPeer(0.25, 0), samples: manySamples, open: openCreate},
		{name: "upload of 32 MiB", unit: megabytesPerSecond, samples: fewSamples, open: openFile(upload)},
		{name: "download of 32 MiB", unit: megabytesPerSecond, samples: fewSamples, open: openFile(download)},
		{name: "hello, fresh sandbox, 1 client", unit: perSecond, samples: 4, open: freshRate(1)},
		{name: "hello, fresh sandbox, 4 clients", unit: perSecond, goal: ofPeer(1.3*283*0.017, 0), samples: 4,
			open: freshRate(4)},
		{name: "hello, fresh sandbox, 16 clients", unit: perSecond, goal: ofPeer(1.3*276*0.017, 0), samples: 4,
			open: freshRate(16)},
		{name: "wrong answers of 16 clients", unit: wrongAnswers, goal: absolute(0, 0), samples: oneSample,
			open: countWrongAnswers(o)},
	}
	for _, settings := range []string{"", unflushed} {
		rows = append(rows,
			measurement{name: "1+1 in a loop, live sandbox", unit: milliseconds, goal: ofPeer(0.02, 0), samples: manySamples, settings: settings,
				open: inSandbox(nil, "1+1", isTwo.check, true)},
			measurement{name: "1+1 after a pause, live sandbox", unit: milliseconds, samples: manySamples, settings: settings,
				open: inSandbox(nil, "1+1", isTwo.check, false)},
			measurement{name: "1+1, 16 live sandboxes", unit: perSecond, goal: absolute(3000, 0), samples: 4, settings: settings,
				open: openSessionsRate})
	}
	return rows
}

// fresh measures a run in a fresh sandbox.
func fresh(code string, check func(*execution) error) openFunc {
	return func(ctx context.Context, g *glasshouse) (sampler, error) {
		return only(g.timeRun(ctx, quickPath, map[string]any{"code": code}, check)), nil
	}
}

// inSandbox measures a run in a live sandbox; with inLoop, 100 in a row.
func inSandbox(config map[string]any, code string, check func(*execution) error, inLoop bool) openFunc {
	return func(ctx context.Context, g *glasshouse) (sampler, error) {
		id, err := g.create(ctx, config)
		sample := g.timeRun(ctx, executePath(id), map[string]any{"code": code}, check)
		if inLoop {
			sample = loop(sample)
		}
		return sampler{sample, g.removal(ctx, id)}, err
	}
}

func freshRate(clients int) openFunc {
	return func(ctx context.Context, g *glasshouse) (sampler, error) {
		return only(g.runRate(ctx, repeat(quickPath, clients), hello, saidHello)), nil
	}
}

func repeat(text string, n int) []string { return slices.Repeat([]string{text}, n) }

func openCreate(ctx context.Context, g *glasshouse) (sampler, error) {
	return only(func() (float64, error) {
		id := ""
		took, err := timeIt(func() (err error) {
			id, err = g.create(ctx, nil)
			return err
		})
		if err != nil {
			return 0, err
		}
		return took, g.remove(ctx, id) // not timed
	}), nil
}

// openSessions creates sandboxes and returns their paths.
func openSessions(ctx context.Context, g *glasshouse, n int) (paths []string, end func(), err error) {
	var ids []string
	for range n {
		id, err := g.create(ctx, nil)
		if err != nil {
			g.removal(ctx, ids...)()
			return nil, nil, err
		}
		ids, paths = append(ids, id), append(paths, executePath(id))
	}
	return paths, g.removal(ctx, ids...), nil
}

const sessions = 16

func openSessionsRate(ctx context.Context, g *glasshouse) (sampler, error) {
	paths, end, err := openSessions(ctx, g, sessions)
	return sampler{g.runRate(ctx, paths, "1+1", isTwo), end}, err
}

// openEvents measures a run whose output is streamed, from the request to the last event.
func openEvents(ctx context.Context, g *glasshouse) (sampler, error) {
	body, err := json.Marshal(map[string]any{"code": manyPrints})
	return only(func() (float64, error) {
		var events strings.Builder
		took, err := timeIt(func() error {
			header := http.Header{"Accept": {"text/event-stream"}, "Content-Type": {"application/json"}}
			return g.stream(ctx, "POST", quickPath, header, strings.NewReader(string(body)), &events)
		})
		if err == nil && !strings.Contains(events.String(), "event: done") {
			err = fmt.Errorf("got events %.300q, want a last event done", events.String())
		}
		return took, err
	}), err
}

const fileBytes = 32 << 20

// openFile measures how fast a file of a sandbox is moved.
func openFile(move func(ctx context.Context, c *client, path string) error) openFunc {
	return func(ctx context.Context, g *glasshouse) (sampler, error) {
		id, err := g.create(ctx, map[string]any{"upload_max_bytes": 2 * fileBytes})
		if err != nil {
			return sampler{}, err
		}
		path := "/sandbox/" + id + "/files/data.bin"
		return sampler{func() (float64, error) {
			took, err := timeIt(func() error { return move(ctx, g.client, path) })
			return fileBytes / 1e3 / took, err
		}, g.removal(ctx, id)}, upload(ctx, g.client, path)
	}
}

func upload(ctx context.Context, c *client, path string) error {
	return c.stream(ctx, "PUT", path, nil, strings.NewReader(strings.Repeat("0123456789abcdef", fileBytes/16)), io.Discard)
}

func download(ctx context.Context, c *client, path string) error {
	return c.stream(ctx, "GET", path, nil, nil, io.Discard)
}

func hasPNG(e *execution) error {
	if err := completed.check(e); err != nil {
		return err
	}
	for _, o := range e.Outputs {
		var png string
		if json.Unmarshal(o.Data["image/png"], &png) == nil && len(png) > 1000 {
			return nil
		}
	}
	return fmt.Errorf("got %d outputs without image/png, want a picture", len(e.Outputs))
}

func hasMegabyte(e *execution) error {
	if e.Status != "completed" || len(e.Stdout) != 1_000_000 {
		return fmt.Errorf("got status %q and %d bytes, want completed and 1000000", e.Status, len(e.Stdout))
	}
	return nil
}

// countWrongAnswers measures how many answers of a mix of programs differ from what each must be: in status,
// result, output, or in state that is not the sandbox's own.
func countWrongAnswers(o options) openFunc {
	runs := o.wrongRuns
	if o.quick {
		runs /= 20
	}
	return func(ctx context.Context, g *glasshouse) (sampler, error) {
		paths, end, err := openSessions(ctx, g, sessions)
		return sampler{func() (float64, error) { return g.mixedRuns(ctx, runs, paths) }, end}, err
	}
}

// mixedRuns makes n runs, with one client for each path, and returns how many answers were wrong.
func (c *client) mixedRuns(ctx context.Context, n int, paths []string) (float64, error) {
	turns := make([]int, len(paths)) // the states that the sandboxes must have
	wrong := countWrong(ctx, 0, n, len(paths), func(i, client int) error {
		return c.mixedRun(ctx, i, client, paths[client], &turns[client])
	})
	return float64(wrong), ctx.Err()
}

// countWrong makes the runs from first to last with a number of clients, and returns how many returned an error.
func countWrong(ctx context.Context, first, last, clients int, run func(i, client int) error) int {
	var next, wrong atomic.Int64
	next.Store(int64(first))
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < last && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := run(i, client); err != nil && ctx.Err() == nil && wrong.Add(1) <= 3 {
					progress("a wrong answer: %v", err)
				}
			}
		})
	}
	wg.Wait()
	return int(wrong.Load())
}

func (c *client) mixedRun(ctx context.Context, i, client int, path string, turns *int) error {
	label := fmt.Sprintf("run-%d-client-%d", i, client)
	var code string
	var want expectation
	switch i % 5 {
	case 0:
		path, code, want = quickPath, "i * 7 + 1", expectation{status: "completed", result: fmt.Sprint(i*7 + 1)}
	case 1:
		path, code, want = quickPath, "print(label)", expectation{status: "completed", stdout: label + "\n"}
	case 2:
		path, code = quickPath, "print(label)\nraise ValueError(label)"
		want = expectation{status: "failed", stdout: label + "\n", errorText: "ValueError: " + label}
	case 3: // state that lasts
		code = "try:\n    turns += 1\nexcept NameError:\n    turns = 1\n[label, turns]"
		*turns++
		want = expectation{status: "completed", result: fmt.Sprintf("[%q, %d]", label, *turns)}
	default: // a failure, which the state survives
		code, want = "print(label)\n1 / 0", expectation{status: "failed", stdout: label + "\n", errorText: "ZeroDivisionError"}
	}
	e, err := c.run(ctx, path, code, map[string]any{"label": label, "i": i})
	if err != nil {
		return err
	}
	return want.check(e)
}
