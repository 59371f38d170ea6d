package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

// fewSessions is how many idle sessions the service has with which one with many is compared.
const fewSessions = 10

// makeFrame makes a table in a session, and useFrame uses it again.
const (
	makeFrame = "import pandas as pd\ndf = pd.DataFrame({'k': list('ab') * 500, 'v': range(1000)})\nlen(df)"
	useFrame  = "len(df)"
)

var hasFrame = expectation{status: "completed", result: "1000"}

// maxEndTime is the goal for the end of 1000 sessions.
const maxEndTime = 3000

// densityRows returns the rows of a service with many live idle sessions, each with a DataFrame. Those of time are
// compared with a service with fewSessions, in turn. The last row stops the service.
func densityRows(o options) []measurement {
	setting := func(sessions int) string { // with room for those that rows open
		return fmt.Sprintf("--max-sandboxes=%d --max-sandboxes-per-user=%[1]d", sessions+100)
	}
	many := &population{size: o.sessions}
	few := &population{size: fewSessions}
	compared := func(sample func(ctx context.Context, g *glasshouse, p *population) sampleFunc) (openFunc, peerFunc) {
		return func(ctx context.Context, g *glasshouse) (sampler, error) {
				err := many.fill(ctx, g)
				return only(sample(ctx, g, many)), err
			}, func(ctx context.Context, b *bench) (sampler, error) {
				g, err := b.service(ctx, setting(fewSessions))
				if err == nil {
					err = few.fill(ctx, g)
				}
				return only(sample(ctx, g, few)), err
			}
	}
	open, openFew := compared(timeOpening)
	use, useFew := compared(timeUse)
	once := func(
		name string, u unit, most float64, sample func(*population, context.Context, *glasshouse) (float64, error),
	) measurement {
		return measurement{
			name: name, unit: u, samples: oneSample, goal: absolute(most, 0), open: many.inService(sample),
		}
	}
	files, duration := unit{label: "files", digits: 1}, unit{label: "ms"}
	endTime := maxEndTime * max(1, float64(o.sessions)/1000)
	rows := []measurement{
		{name: "open a session with a DataFrame", unit: milliseconds, samples: someSamples, goal: ofPeer(1.5, 0),
			open: open, peer: openFew},
		{name: "thaw, len(df), freeze", unit: milliseconds, samples: manySamples, goal: absolute(5, 0), open: use,
			peer: useFew},
		once("private memory of a session", megabytes, 5, (*population).privateMemory),
		once("memory of the machine for a session", megabytes, 5, (*population).machineMemory),
		once("descriptors of the service for an idle session", files, 4, (*population).descriptors),
		once("delete all", duration, endTime, (*population).deleteAll),
		once("stop the service", duration, endTime, (*population).stop),
	}
	for n := range rows {
		rows[n].settings = setting(o.sessions)
		if rows[n].peer != nil {
			rows[n].peerName = fmt.Sprintf("with %d", fewSessions)
		}
		rows[n].name += fmt.Sprintf("; %d sessions", o.sessions)
	}
	return rows
}

// population is the idle sessions of a service.
type population struct {
	size              int
	ids               []string
	before, filled    int     // descriptors of the service with half of the sessions, and with all
	megabytesOfMemory float64 // that the machine has less of since the first session
}

// fill opens sessions until there are size of them.
func (p *population) fill(ctx context.Context, g *glasshouse) error {
	if len(p.ids) == p.size {
		return nil
	}
	progress("opening %d sessions", p.size-len(p.ids))
	g.restingResources() // the pool is full
	available := availableMegabytes()
	for len(p.ids) < p.size {
		if len(p.ids) == p.size/2 {
			p.before = g.restingResources().descriptors
		}
		id, err := openFrame(ctx, g)
		if err != nil {
			return err
		}
		p.ids = append(p.ids, id)
	}
	p.filled = g.restingResources().descriptors
	p.megabytesOfMemory = available - availableMegabytes()
	return nil
}

// inService returns the opening of a row that takes a sample of the population once it is full.
func (p *population) inService(sample func(*population, context.Context, *glasshouse) (float64, error)) openFunc {
	return func(ctx context.Context, g *glasshouse) (sampler, error) {
		err := p.fill(ctx, g)
		return only(func() (float64, error) { return sample(p, ctx, g) }), err
	}
}

// openFrame opens a session with a DataFrame that does not expire.
func openFrame(ctx context.Context, g *glasshouse) (id string, err error) {
	id, err = g.create(ctx, map[string]any{"lifetime": 86_400, "idle_timeout": 86_400})
	if err != nil {
		return "", err
	}
	e, err := g.run(ctx, executePath(id), makeFrame, nil)
	if err == nil {
		err = hasFrame.check(e)
	}
	return id, err
}

// timeOpening times the opening of one more session, which it deletes.
func timeOpening(ctx context.Context, g *glasshouse, _ *population) sampleFunc {
	return func() (float64, error) {
		var id string
		took, err := timeIt(func() (err error) {
			id, err = openFrame(ctx, g)
			return err
		})
		if err == nil {
			err = g.remove(ctx, id)
		}
		return took, err
	}
}

// timeUse times a run in one of the sessions after the other, so that each of them was idle for some time.
func timeUse(ctx context.Context, g *glasshouse, p *population) sampleFunc {
	next := 0
	return func() (float64, error) {
		next++
		return g.timeRun(ctx, executePath(p.ids[next%p.size]), map[string]any{"code": useFrame}, hasFrame.check)()
	}
}

// privateMemory returns the median of the memory that a session shares with no other process.
func (p *population) privateMemory(_ context.Context, g *glasshouse) (float64, error) {
	var sizes []float64
	for _, size := range privateMegabytes(g.children()) {
		sizes = append(sizes, size)
	}
	if len(sizes) < p.size {
		return 0, fmt.Errorf("got %d children of the service in /proc, want at least %d", len(sizes), p.size)
	}
	slices.Sort(sizes)
	return median(sizes[len(sizes)-p.size:]), nil // those that wait for code have less
}

// machineMemory returns what a session takes of the machine's memory, with that of the kernel and of the service. It is
// only right if nothing else runs.
func (p *population) machineMemory(context.Context, *glasshouse) (float64, error) {
	return p.megabytesOfMemory / float64(p.size), nil
}

func availableMegabytes() float64 {
	for line := range strings.Lines(readText("/proc/meminfo")) {
		var kb int
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kb); n == 1 {
			return float64(kb) / 1024
		}
	}
	return 0
}

// descriptors returns how many open files of the service each session of the second half has added.
func (p *population) descriptors(context.Context, *glasshouse) (float64, error) {
	return float64(p.filled-p.before) / float64(p.size-p.size/2), nil
}

// deleteAll times the deletion of all sessions.
func (p *population) deleteAll(ctx context.Context, g *glasshouse) (float64, error) {
	p.ids = nil
	return timeIt(func() error { return g.call(ctx, "POST", "/sandbox/cleanup-all", map[string]any{}, nil) })
}

// stop times the end of the service after SIGTERM.
func (p *population) stop(ctx context.Context, g *glasshouse) (float64, error) {
	p.ids = nil
	return timeIt(func() error {
		if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		select {
		case <-g.exited:
		case <-time.After(time.Minute):
			return errors.New("the service did not stop within a minute of SIGTERM")
		case <-ctx.Done():
			return ctx.Err()
		}
		return nil
	})
}
