package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// firstLine returns the time at which it runs, by the clock that guest and benchmark share.
	firstLine   = "import time\nstr(time.time_ns())"
	pandasHello = "import pandas as pd\nprint('hello')"
	// unusualSize is the workspace size of no waiting child, so that one must be forked for the request.
	unusualSize = 32 << 20
)

// isolationRows returns the rows of isolation: the start of a sandbox, its memory and its end.
func isolationRows(options) []measurement {
	return []measurement{
		{name: "request to first line, a child waits", unit: milliseconds, goal: absolute(1, 5), samples: manySamples,
			open: toFirstLine(map[string]any{})},
		{name: "request to first line, no child waits", unit: milliseconds, goal: absolute(6, 0), samples: manySamples,
			open: toFirstLine(map[string]any{"workspace_max_bytes": unusualSize})},
		{name: "private memory of a waiting child", unit: megabytes, goal: absolute(1.5, 0), samples: 3,
			open: openIdleMemory},
		{name: "private memory after a pandas groupby", unit: megabytes, goal: absolute(8, 0), samples: 5,
			open: openUsedMemory},
		{name: "import of pandas, fresh sandbox, 2 clients", unit: perSecond, goal: absolute(200, 0), samples: 4,
			open: pandasRate(2)},
		{name: "import of pandas, fresh sandbox, 4 clients", unit: perSecond, goal: absolute(200, 0), samples: 4,
			open: pandasRate(4)},
		{name: "DELETE of an endless loop until its process is gone", unit: milliseconds, goal: absolute(50, 50), samples: someSamples,
			open: openKill},
	}
}

// toFirstLine measures the time from the request until the first line of the code runs.
func toFirstLine(config map[string]any) openFunc {
	return func(ctx context.Context, g *glasshouse) (sampler, error) {
		var started time.Time
		run := g.timeRun(ctx, quickPath, map[string]any{"code": firstLine, "config": config}, func(e *execution) error {
			ns, err := strconv.ParseInt(strings.Trim(string(e.Result), `"`), 10, 64)
			started = time.Unix(0, ns)
			return err
		})
		return only(func() (float64, error) {
			begun := time.Now()
			_, err := run()
			return inMilliseconds(started.Sub(begun)), err
		}), nil
	}
}

func pandasRate(clients int) openFunc {
	return func(ctx context.Context, g *glasshouse) (sampler, error) {
		return only(g.runRate(ctx, repeat(quickPath, clients), pandasHello, saidHello)), nil
	}
}

// openIdleMemory measures the median private memory of the waiting children.
func openIdleMemory(_ context.Context, g *glasshouse) (sampler, error) {
	return only(func() (float64, error) {
		time.Sleep(time.Second) // until the pool is full
		sizes := slices.Collect(maps.Values(privateMegabytes(g.children())))
		if len(sizes) == 0 {
			return 0, errors.New("no child of the service is visible in /proc")
		}
		return median(sizes), nil
	}), nil
}

// openUsedMemory measures the private memory of a child that has grouped a table: the one that has grown most.
func openUsedMemory(ctx context.Context, g *glasshouse) (sampler, error) {
	return only(func() (float64, error) {
		id, err := g.create(ctx, nil)
		if err != nil {
			return 0, err
		}
		defer g.removal(ctx, id)()
		before := privateMegabytes(g.children())
		e, err := g.run(ctx, executePath(id), groupby, nil)
		if err == nil {
			err = printedDim.check(e)
		}
		size, growth := 0.0, 0.0
		for pid, now := range privateMegabytes(g.children()) {
			if was, waited := before[pid]; waited && now-was > growth {
				size, growth = now, now-was
			}
		}
		if err == nil && size == 0 {
			err = errors.New("no waiting child has grown: the run used another process")
		}
		return size, err
	}), nil
}

// openKill measures the time from the request that deletes a sandbox, in which an endless loop runs, until
// its process has ended.
func openKill(ctx context.Context, g *glasshouse) (sampler, error) {
	const timeout = 5 * time.Second
	return only(func() (float64, error) {
		id, err := g.create(ctx, nil)
		if err != nil {
			return 0, err
		}
		before := cpuTicks(g.children())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = g.run(ctx, executePath(id), "while True: pass", nil) // fails, as its sandbox is deleted
		}()
		pid := 0
		for end := time.Now().Add(timeout); pid == 0; {
			if time.Now().After(end) || ctx.Err() != nil {
				return 0, errors.New("the process of the loop is not visible in /proc")
			}
			for child, ticks := range cpuTicks(g.children()) {
				if had, waited := before[child]; waited && ticks > had+5 {
					pid = child
				}
			}
		}
		took, err := timeIt(func() error {
			err := g.remove(ctx, id)
			for end := time.Now().Add(timeout); processExists(pid); {
				if time.Now().After(end) {
					return errors.New("the process is alive 5 s after its sandbox was deleted")
				}
			}
			return err
		})
		<-ended
		return took, err
	}), nil
}

func processExists(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}
