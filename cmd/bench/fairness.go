package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// probe is a request of an ordinary user, which is measured alone and while another user floods the service.
type probe struct {
	name string
	open openFunc
}

const smallQuery = "SELECT count(*) FROM documents WHERE id < 100"

var probes = []probe{
	{"1+1, fresh sandbox", fresh("1+1", isTwo.check)},
	{"1+1, live sandbox", inSandbox(nil, "1+1", isTwo.check, false)},
	{"small query", openRequest("POST", "database/query", map[string]any{"query": smallQuery})},
	{"GET /executions", func(ctx context.Context, g *glasshouse) (sampler, error) {
		return only(g.timeCall(ctx, "GET", "/executions?limit=20", nil)), nil
	}},
}

var stagesProbe = probe{"stages of a small statement", func(ctx context.Context, g *glasshouse) (sampler, error) {
	return only(g.timeCall(ctx, "POST", "/database/stages", map[string]any{"sql": smallQuery})), nil
}}

// openRequest measures a request to a live sandbox.
func openRequest(method, path string, body any) openFunc {
	return func(ctx context.Context, g *glasshouse) (sampler, error) {
		id, err := g.create(ctx, nil)
		return sampler{g.timeCall(ctx, method, "/sandbox/"+id+"/"+path, body), g.removal(ctx, id)}, err
	}
}

// maxSlowdown is the goal of each row: the ratio of a request's time during a flood to its time without one.
const maxSlowdown = 2

// fairnessRows returns a row for each flood and probe. The row of 60 endless loops comes first.
func fairnessRows(options) (rows []measurement) {
	for _, f := range floods {
		for _, p := range probes {
			rows = append(rows, besideFlood(p, f))
		}
		if f.name == stagesFlood { // others who ask for stages share the transactions for them
			rows = append(rows, besideFlood(stagesProbe, f))
		}
	}
	return rows
}

// thinkTime is the pause of the ordinary user before each request.
const thinkTime = 20 * time.Millisecond

// withPauses returns a sample after a pause, which is not part of the sample.
func withPauses(sample sampleFunc) sampleFunc {
	return func() (float64, error) {
		time.Sleep(thinkTime)
		return sample()
	}
}

// floodSettleTime is the time from the start of a flood to the first sample.
const floodSettleTime = 1500 * time.Millisecond

// besideFlood measures a probe of one user while another user floods the service. Its peer is the same probe
// before the flood.
func besideFlood(p probe, f flood) measurement {
	var idle []float64
	next := 0
	return measurement{
		name: p.name + "; another user: " + f.name, unit: unit{label: "ms", digits: 2}, samples: 2 * someSamples,
		goal: ofPeer(maxSlowdown, 0), peerName: "the same, alone",
		open: func(ctx context.Context, g *glasshouse) (sampler, error) {
			quiet, err := g.newUser(ctx, "quiet", "agent")
			if err != nil {
				return sampler{}, err
			}
			s, err := p.open(ctx, &glasshouse{client: quiet})
			if err != nil {
				return s, err
			}
			s.sample = withPauses(s.sample)
			if idle, err = idleSamples(ctx, s.sample); err != nil {
				return s, err
			}
			stop, err := g.startFlood(ctx, f)
			return sampler{s.sample, func() {
				stop()
				s.end()
			}}, err
		},
		peer: func(context.Context, *bench) (sampler, error) {
			return only(func() (float64, error) {
				next++
				return idle[next%len(idle)], nil
			}), nil
		},
	}
}

// idleSamples takes samples without other load, after some that are not counted.
func idleSamples(ctx context.Context, sample sampleFunc) (samples []float64, err error) {
	for n := range someSamples + 10 {
		took, err := sample()
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		if n >= 10 {
			samples = append(samples, took)
		}
	}
	return samples, nil
}

// newUser returns a client with a new key.
func (c *client) newUser(ctx context.Context, user, role string) (*client, error) {
	var key struct {
		Secret string `json:"key"`
	}
	err := c.call(ctx, "POST", "/keys", map[string]any{"name": user, "user_id": user, "role": role}, &key)
	return newClient(c.base, key.Secret), err
}

// startFlood starts a flood in a process of its own, and returns after floodSettleTime. The process has a
// lower priority, because the clients of a real user run on another machine. stop ends the flood and waits
// until nothing of it runs.
func (g *glasshouse) startFlood(ctx context.Context, f flood) (stop func(), err error) {
	nothing := func() {}
	noisy, err := g.newUser(ctx, "noisy", "admin") // an admin may send frames of its own, and has no request limit
	if err != nil {
		return nothing, err
	}
	cmd := exec.Command("nice", "-n", "10", os.Args[0], floodCommand, f.name)
	cmd.Env = append(os.Environ(), floodURL+"="+noisy.base, floodKey+"="+noisy.key)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nothing, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		g.endFlood(noisy)
	}
	select {
	case <-time.After(floodSettleTime):
		return stop, nil
	case <-ctx.Done():
		return stop, ctx.Err()
	}
}

// endFlood deletes the sandboxes of a user and cancels the user's executions until none is left.
func (g *glasshouse) endFlood(noisy *client) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = noisy.call(ctx, "POST", "/sandbox/cleanup-all", nil, nil)
	for ctx.Err() == nil {
		var list struct {
			Executions []execution `json:"executions"`
		}
		if err := noisy.call(ctx, "GET", "/executions?status=running&limit=50", nil, &list); err == nil &&
			len(list.Executions) == 0 {
			return
		}
		for _, e := range list.Executions {
			_ = noisy.call(ctx, "POST", "/executions/"+e.ID+"/cancel", nil, nil)
		}
		time.Sleep(50 * time.Millisecond)
	}
	progress("a flood did not end within a minute")
}

// The hidden command that runs a flood, and its environment variables.
const (
	floodCommand = "flood"
	floodURL     = "BENCH_FLOOD_URL"
	floodKey     = "BENCH_FLOOD_KEY"
)

// runFlood runs a flood until the process is killed.
func runFlood(ctx context.Context, name string) error {
	n := slices.IndexFunc(floods, func(f flood) bool { return f.name == name })
	if n < 0 {
		return fmt.Errorf("there is no flood %q", name)
	}
	c := newClient(os.Getenv(floodURL), os.Getenv(floodKey))
	var wg sync.WaitGroup
	for worker := range floods[n].workers {
		wg.Go(func() {
			step, err := floods[n].open(ctx, c, worker)
			for ctx.Err() == nil {
				if err == nil {
					err = step()
				}
				if err != nil { // the service refuses; a real flood tries again
					time.Sleep(100 * time.Millisecond)
					if step == nil {
						step, err = floods[n].open(ctx, c, worker)
					} else {
						err = nil
					}
				}
			}
		})
	}
	wg.Wait()
	return nil
}

// flood is what one user does to the service without end, with many clients.
type flood struct {
	name    string
	workers int
	open    func(ctx context.Context, c *client, worker int) (step func() error, err error)
}

const (
	endlessLoop   = "while True: pass"
	endlessOutput = "import sys\nwhile True: sys.stdout.write('x' * 65536)"
	endlessNotes  = "while True: debug('x' * 900_000)"
	slowQuery     = "SELECT count(*) FROM generate_series(1, 40000000) n"
	largeSort     = "SELECT n FROM generate_series(1, 5000000) n ORDER BY md5(n::text) LIMIT 1"
	endlessAsks   = `import os, struct
body = b'{"id":1,"what":"query","sql":"' + b"x" * 900_000 + b'"}'
frame = struct.pack(">IB", len(body), ord("A")) + body
import threading
def drain():
    while True: os.read(3, 65536)
threading.Thread(target=drain, daemon=True).start()
while True: os.write(3, frame)`
	endlessOutputs = `import os, struct
body = b'{"data":{"text/plain":"' + b"x" * 900_000 + b'"}}'
frame = struct.pack(">IB", len(body), ord("O")) + body
while True: os.write(3, frame)`
	printLarge     = "print('x' * 900_000)"
	endlessQueries = "while True: await db_query(\"SELECT 1\")"
)

// stagesFlood is the flood of pairsOfOrders, whose stages take as long as they may.
const (
	stagesFlood   = "8 clients that ask for stages"
	pairsOfOrders = `SELECT a.status, count(*), sum(i.quantity) FROM orders a JOIN orders b ON b.customer_id =
		a.customer_id
		JOIN order_items i ON i.order_id = b.id WHERE a.total > 10 AND EXISTS (SELECT 1 FROM order_items x
		WHERE x.order_id = a.id AND x.quantity > b.id % 5) GROUP BY a.status ORDER BY 2 DESC`
)

// largeValue has 60 MB as PostgreSQL sends it, and six times as many as JSON.
const largeValue = "SELECT repeat(chr(1), 60000000) AS a"

// longStatement has a parameter that is not given, and many long names that might be meant.
var longStatement = map[string]any{"query": "SELECT :" + strings.Repeat("x", 15_000), "parameters": longNames(200)}

// largeContext has nearly as many bytes as a body may have.
var largeContext = map[string]any{"code": "1", "context": map[string]any{"text": strings.Repeat("x", 3_900_000)}}

func longNames(count int) map[string]any {
	names := map[string]any{}
	for n := range count {
		names[fmt.Sprintf("%s%d", strings.Repeat("y", 15_000), n)] = 1
	}
	return names
}

var floods = []flood{
	{"60 endless loops", 60, freshFlood(endlessLoop)},
	{"60 endless outputs", 60, freshFlood(endlessOutput)},
	{"60 runs that send asks of 900 kB", 60, freshFlood(endlessAsks)},
	{"60 runs that send notes of 900 kB", 60, freshFlood(endlessNotes)},
	{"60 runs that send outputs of 900 kB", 60, freshFlood(endlessOutputs)},
	{"60 runs that query without end", 60, freshFlood(endlessQueries)},
	{"60 runs of slow queries", 60, freshFlood("while True: await db_query(\"" + slowQuery + "\")")},
	{"60 runs of large sorts", 60, freshFlood("while True: await db_query(\"" + largeSort + "\")")},
	{"32 clients that query directly", 32, openFlood("POST", "database/query", map[string]any{"query": largeSort})},
	{stagesFlood, 8, requestFlood("POST", "/database/stages",
		map[string]any{"sql": pairsOfOrders, "all": true, "samples": true})},
	{"8 clients that query large values", 8, openFlood("POST", "database/query", map[string]any{"query": largeValue})},
	{"8 clients that send long statements", 8, openFlood("POST", "database/query", longStatement)},
	{"16 clients that send large contexts", 16, requestFlood("POST", quickPath, largeContext)},
	{"32 clients that run 1+1", 32, requestFlood("POST", quickPath, map[string]any{"code": "1+1"})},
	{"32 clients that create and delete", 32, func(ctx context.Context, c *client, _ int) (func() error, error) {
		return func() error {
			id, err := c.create(ctx, nil)
			if err == nil {
				err = c.remove(ctx, id)
			}
			return err
		}, nil
	}},
	{"16 clients that upload", 16, func(ctx context.Context, c *client, worker int) (func() error, error) {
		id, err := c.create(ctx, nil)
		body := strings.Repeat("x", 4<<20)
		return func() error {
			return c.stream(
				ctx,
				"PUT",
				fmt.Sprintf("/sandbox/%s/files/%d", id, worker),
				nil,
				strings.NewReader(body),
				io.Discard,
			)
		}, err
	}},
	{"16 clients that print 900 kB", 16, requestFlood("POST", quickPath, map[string]any{"code": printLarge})},
	{"16 clients that read history", 16, func(ctx context.Context, c *client, worker int) (func() error, error) {
		for range 10 { // large records to read
			_, _ = c.run(ctx, quickPath, printLarge, nil)
		}
		return func() error {
			return c.stream(ctx, "GET", "/executions?limit=1000&include=record", nil, nil, io.Discard)
		}, nil
	}},
	{
		"32 clients that complete",
		32,
		openFlood("POST", "complete", map[string]any{"code": "import pandas as pd\npd.DataFrame().gro"}),
	},
	{
		"32 clients that highlight",
		32,
		requestFlood("POST", "/sandbox/highlight", map[string]any{"code": strings.Repeat("x = 1\n", 2000)}),
	},
	{
		"32 clients that check",
		32,
		openFlood("POST", "check", map[string]any{"code": strings.Repeat("x = [1, 2, 3]\n", 5000)}),
	},
	{
		"18 debug sessions",
		18,
		openFlood("POST", "debug/sessions", map[string]any{"code": "while True:\n    x = 1\n    y = 2"}),
	},
	{"40 unread event streams", 40, func(ctx context.Context, c *client, _ int) (func() error, error) {
		return func() error { return c.ignoreEvents(ctx, endlessOutput) }, nil
	}},
}

// freshFlood runs code in fresh sandboxes, which have no import rules.
func freshFlood(code string) func(context.Context, *client, int) (func() error, error) {
	return requestFlood(
		"POST",
		quickPath,
		map[string]any{"code": code, "config": map[string]any{"profile": "unrestricted"}},
	)
}

// requestFlood repeats a request.
func requestFlood(method, path string, body any) func(context.Context, *client, int) (func() error, error) {
	return func(ctx context.Context, c *client, _ int) (func() error, error) {
		return func() error { return c.call(ctx, method, path, body, nil) }, nil
	}
}

// openFlood repeats a request to a sandbox of each client.
func openFlood(method, path string, body any) func(context.Context, *client, int) (func() error, error) {
	return func(ctx context.Context, c *client, _ int) (func() error, error) {
		id, err := c.create(ctx, nil)
		if err != nil {
			return nil, err
		}
		return func() error { return c.call(ctx, method, "/sandbox/"+id+"/"+path, body, nil) }, nil
	}
}

// ignoreEvents starts a run with a stream of events and reads none of it.
func (c *client) ignoreEvents(ctx context.Context, code string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", strings.TrimPrefix(c.base, "http://"))
	if err != nil {
		return err
	}
	defer conn.Close()
	body := fmt.Sprintf(`{"code":%q}`, code)
	if _, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\n"+
		"Authorization: Bearer %s\r\nAccept: text/event-stream\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", quickPath, c.key, len(body), body); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(exchangeTimeout):
	}
	return nil
}
