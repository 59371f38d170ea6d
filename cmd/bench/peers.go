package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// errPeersMissing is the error of a row whose peer is not installed. Such a row misses no goal.
var errPeersMissing = errors.New("not measured")

// peerRows returns the rows that compare with other servers:
//
//   - a fork server: Flask under uWSGI with two workers per core. A worker forks a warm interpreter for each
//     request. The server represents its kind: it creates the child by multiprocessing with a queue, has
//     limits of memory and time, and neither isolation nor history.
//   - a minimal fork: the same with a bare os.fork and a pipe, without limits. No fork server can be faster.
//   - a REPL server: FastAPI on uvicorn with uvloop and httptools, without isolation. Code runs in a thread,
//     or in the event loop, where a run blocks all others.
//   - a Jupyter kernel with its own client.
func peerRows(options) []measurement {
	var rows []measurement
	for _, p := range []struct {
		name, program          string
		hello, groupby, hellos goal
	}{
		{"fork server", "fork_server.py", ofPeer(1/3.0, 0), ofPeer(1/15.0, 0), ofPeer(1.3, 0)},
		{"minimal fork", "minimal_fork.py", goal{}, goal{}, goal{}},
	} {
		run := func(code string, check func(*execution) error) peerFunc {
			return onServer(forkServer(p.program), func(ctx context.Context, c *client) sampleFunc {
				return c.timeRun(ctx, "/execute", map[string]any{"code": code}, check)
			})
		}
		runs := func(clients int) peerFunc {
			return onServer(forkServer(p.program), func(ctx context.Context, c *client) sampleFunc {
				return c.runRate(ctx, repeat("/execute", clients), hello, saidHello)
			})
		}
		rows = append(rows,
			measurement{name: "hello", unit: milliseconds, goal: p.hello, samples: manySamples,
				peerName: p.name, peer: run(hello, saidHello.check), open: fresh(hello, saidHello.check)},
			measurement{name: "pandas groupby", unit: milliseconds, goal: p.groupby, samples: fewSamples,
				peerName: p.name, peer: run(groupby, printedDim.check), open: fresh(groupby, printedDim.check)},
			measurement{name: "hello, 4 clients", unit: perSecond, goal: p.hellos, samples: 4,
				peerName: p.name, peer: runs(4), open: freshRate(4)},
			measurement{name: "hello, 16 clients", unit: perSecond, goal: p.hellos, samples: 4,
				peerName: p.name, peer: runs(16), open: freshRate(16)})
	}
	for _, settings := range []string{"", unflushed} {
		for _, where := range []string{"thread", "loop"} {
			name := "REPL server, code in its " + where
			once := func(inLoop bool) peerFunc {
				return onServer(replServer, func(ctx context.Context, c *client) sampleFunc {
					sample := c.timeRun(ctx, "/"+where+"/0", map[string]any{"code": "1+1"}, isTwo.check)
					if inLoop {
						return loop(sample)
					}
					return afterBaseline(ctx, sample)
				})
			}
			paths := make([]string, sessions)
			for n := range paths {
				paths[n] = fmt.Sprintf("/%s/%d", where, n)
			}
			rows = append(rows,
				measurement{name: "1+1 in a loop", unit: milliseconds, goal: ofPeer(1, 0), samples: manySamples, settings: settings,
					peerName: name, peer: once(true), open: inSandbox(nil, "1+1", isTwo.check, true)},
				measurement{name: "1+1 after a pause", unit: milliseconds, goal: ofPeer(1, 0), samples: manySamples, settings: settings,
					peerName: name, peer: once(false), open: pausedRun},
				measurement{name: "1+1, 16 sessions", unit: perSecond, samples: 4, settings: settings,
					peerName: name, open: openSessionsRate,
					peer: onServer(replServer, func(ctx context.Context, c *client) sampleFunc {
						return c.runRate(ctx, paths, "1+1", isTwo)
					})})
		}
		rows = append(rows, measurement{name: "1+1 in a loop", unit: milliseconds, goal: ofPeer(1/15.0, 0), samples: fewSamples, settings: settings,
			peerName: "Jupyter kernel", peer: openKernel, open: inSandbox(nil, "1+1", isTwo.check, true)})
	}
	return rows
}

// afterBaseline runs the baseline program before each sample, so that the cores sleep when the sample begins.
func afterBaseline(ctx context.Context, sample sampleFunc) sampleFunc {
	return func() (float64, error) {
		if _, err := baselineMilliseconds(ctx); err != nil {
			return 0, err
		}
		return sample()
	}
}

func pausedRun(ctx context.Context, g *glasshouse) (sampler, error) {
	s, err := inSandbox(nil, "1+1", isTwo.check, false)(ctx, g)
	s.sample = afterBaseline(ctx, s.sample)
	return s, err
}

// serverCommand returns the command of a peer that listens on an address, and a path that it answers.
type serverCommand struct {
	name, readyPath string
	command         func(python, address string) []string
}

func forkServer(program string) serverCommand {
	return serverCommand{program, "/execute", func(python, address string) []string {
		return []string{
			python, filepath.Join(filepath.Dir(python), "uwsgi"), "--http-socket", address, "--add-header", "Connection: close", "--master",
			"--processes", strconv.Itoa(2 * runtime.NumCPU()), "--wsgi-file", program, "--callable", "app", "--disable-logging",
		}
	}}
}

// replServer has one process for all sessions.
var replServer = serverCommand{"repl_server.py", "/loop/none", func(python, address string) []string {
	host, port, _ := strings.Cut(address, ":")
	return []string{python, "-m", "uvicorn", "--host", host, "--port", port, "--log-level", "warning", "--no-access-log", "repl_server:app"}
}}

// onServer measures a server that is started when the first row needs it.
func onServer(command serverCommand, sample func(context.Context, *client) sampleFunc) peerFunc {
	return func(ctx context.Context, b *bench) (sampler, error) {
		if b.peers == "" {
			return sampler{}, fmt.Errorf("%w: the peers are not installed", errPeersMissing)
		}
		s := b.servers[command.name]
		if s == nil {
			var err error
			if s, err = startServer(ctx, b.peers, command); err != nil {
				return sampler{}, err
			}
			b.servers[command.name] = s
		}
		return only(sample(ctx, s.client)), nil
	}
}

func openKernel(ctx context.Context, b *bench) (sampler, error) {
	if b.peers == "" {
		return sampler{}, fmt.Errorf("%w: the peers are not installed", errPeersMissing)
	}
	k, err := startKernel(ctx, b.peers)
	if err != nil {
		return sampler{}, err
	}
	return sampler{loop(k.runOnce), k.stop}, nil
}
