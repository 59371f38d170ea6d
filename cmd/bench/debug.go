package main

import (
	"context"
	_ "embed" // of the analysis
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// The goals of the debugger, which are absolute.
var (
	goalStep = goal{p50: 2, p99: 10, absolute: true}
	goalBack = goal{p50: 2, absolute: true}
	goalGoto = goal{p50: 10, absolute: true}
	goalPage = goal{p50: 5, absolute: true}
)

// script is an ordinary analysis of some 70 000 steps.
//
//go:embed script.py
var script string

const (
	goalStored = 3.0 // bytes a step
	goalSlower = 3   // times as long as the same run that is not debugged
	scriptRuns = 5
)

const (
	stepping  = "def work(n):\n    t = 0\n    for i in range(n):\n        t += i\n        half = t // 2\n    return t\nwork(100000)"
	longLoop  = "big = list(range(1000000))\ntotal = 0\nfor i in range(%d):\n    total += i\nlast = total"
	lastLine  = 5
	fullTurns = 450_000 // two steps each: the budget is a million
)

// debugging is one debug session.
type debugging struct {
	*client
	Session   string `json:"session_id"`
	Execution string `json:"execution_id"`
	Where     struct {
		State string `json:"state"`
		Frame int    `json:"frame"`
		Steps int    `json:"total_steps"`
	} `json:"where"`
}

func (d *debugging) do(ctx context.Context, command string, arguments map[string]any, into any) error {
	return d.client.do(ctx, "POST", "/debug/sessions/"+d.Session+"/"+command, arguments, into)
}

func (d *debugging) close(ctx context.Context) {
	_ = d.remove(ctx) // the service that it is of ends next
}

func (d *debugging) remove(ctx context.Context) error {
	return d.client.do(ctx, "DELETE", "/debug/sessions/"+d.Session, nil, nil)
}

func (b *bench) opened(ctx context.Context, body map[string]any) (*debugging, error) {
	id, err := b.client.create(ctx, map[string]any{"max_execution_time": 300, "cpu_percent": 100})
	if err != nil {
		return nil, err
	}
	d := &debugging{client: b.client}
	return d, b.client.do(ctx, "POST", "/sandbox/"+id+"/debug/sessions", body, d)
}

// debug measures stepping over HTTP, and looks into a long recording, live and from
// history.
func (b *bench) debug(ctx context.Context) {
	d, err := b.opened(ctx, map[string]any{"code": stepping, "breakpoints": []int{4}})
	if err != nil {
		b.report.failed("a debug session", err)
		return
	}
	b.latency(ctx, "next, with what changed and all variables", b.size.latency, goalStep, timed(func() error { return d.do(ctx, "next", nil, nil) }))
	d.close(ctx)
	b.script(ctx)

	turns := fullTurns
	if b.size.latency < full.latency {
		turns /= 10
	}
	progress("a run of %d steps", 2*turns)
	begun := time.Now()
	d, err = b.opened(ctx, map[string]any{"code": fmt.Sprintf(longLoop, turns), "breakpoints": []int{lastLine}})
	for err == nil && d.Where.State == "running" && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
		err = b.client.do(ctx, "GET", "/debug/sessions/"+d.Session, nil, d)
	}
	if err == nil && d.Where.Steps < turns {
		err = errors.New("it was ended early")
	}
	if err != nil {
		b.report.failed("a long recording", err)
		return
	}
	perStep := float64(time.Since(begun).Nanoseconds()) / float64(d.Where.Steps)
	b.report.add(row{Name: fmt.Sprintf("a tight loop of %d steps with a breakpoint behind it, µs a step in all", d.Where.Steps), Value: fmt.Sprintf("%.1f", perStep/1000)})
	b.page(ctx, d)
	b.look(ctx, d, "live")
	if err = d.do(ctx, "goto", map[string]any{"step": d.Where.Steps}, nil); err == nil {
		err = d.do(ctx, "continue", nil, nil)
	}
	d.close(ctx)
	if err != nil {
		b.report.failed("the recording from history", err)
		return
	}
	past := &debugging{client: b.client}
	if err := b.client.do(ctx, "POST", "/executions/"+d.Execution+"/debug/sessions", nil, past); err != nil {
		b.report.failed("the recording from history", err)
		return
	}
	past.Execution = d.Execution
	b.stored(ctx, "the tight loop", d.Execution)
	b.look(ctx, past, "from history")
	past.close(ctx)
}

// stored tells what history keeps of a recording, its index included.
func (b *bench) stored(ctx context.Context, of, execution string) {
	name := "bytes a step in PostgreSQL, " + of
	var kept struct {
		Steps int   `json:"total_steps"`
		Bytes int64 `json:"stored_bytes"`
	}
	err := b.client.do(ctx, "GET", "/executions/"+execution+"/steps?limit=1", nil, &kept)
	if err == nil && (kept.Bytes == 0 || kept.Steps < 10_000) {
		err = fmt.Errorf("%d steps in %d bytes", kept.Steps, kept.Bytes)
	}
	if err != nil {
		b.report.failed(name, err)
		return
	}
	perStep := float64(kept.Bytes) / float64(kept.Steps)
	b.report.add(row{Name: name, Value: fmt.Sprintf("%.2f of %d steps", perStep, kept.Steps), Goal: fmt.Sprintf("%g bytes", goalStored), Met: new(perStep <= goalStored)})
}

// ran returns how long an execution has taken.
func (b *bench) ran(ctx context.Context, execution string) (time.Duration, error) {
	var e struct {
		Status string `json:"status"`
		Usage  struct {
			WallMS float64 `json:"wall_ms"`
		} `json:"usage"`
	}
	err := b.client.do(ctx, "GET", "/executions/"+execution, nil, &e)
	if err == nil && e.Status != "completed" {
		err = errors.New("it is " + e.Status)
	}
	return time.Duration(e.Usage.WallMS * float64(time.Millisecond)), err
}

// ended waits until a debug session's program has.
func (d *debugging) ended(ctx context.Context) error {
	for d.Where.State != "ended" {
		if err := d.client.do(ctx, "GET", "/debug/sessions/"+d.Session, nil, d); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// script runs an ordinary analysis, debugged and not, in turn: how much longer it takes,
// and what its recording takes up. What is given is the least of some runs.
func (b *bench) script(ctx context.Context) {
	progress("an analysis, debugged and not")
	var plain, debugged time.Duration
	var execution string
	for i := range scriptRuns {
		id, err := b.client.create(ctx, map[string]any{"max_execution_time": 300, "cpu_percent": 100, "max_memory_mb": 1024})
		var e struct {
			ID string `json:"execution_id"`
		}
		if err == nil {
			err = b.client.do(ctx, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": script}, &e)
		}
		var alone, slower time.Duration
		if err == nil {
			alone, err = b.ran(ctx, e.ID)
		}
		var d *debugging
		if err == nil {
			d, err = b.opened(ctx, map[string]any{"code": script})
		}
		if err == nil {
			err = d.ended(ctx)
			d.close(ctx)
		}
		if err == nil {
			slower, err = b.ran(ctx, d.Execution)
		}
		if err != nil {
			b.report.failed("an analysis", err)
			return
		}
		execution = d.Execution
		if i == 0 || alone < plain {
			plain = alone
		}
		if i == 0 || slower < debugged {
			debugged = slower
		}
	}
	times := float64(debugged) / float64(plain)
	b.report.add(row{Name: fmt.Sprintf("an analysis of %.0f ms, debugged, in times", float64(plain.Microseconds())/1000),
		Value: fmt.Sprintf("%.1f", times), Goal: fmt.Sprint(goalSlower), Met: new(times <= goalSlower)})
	b.stored(ctx, "the analysis", execution)
}

// page opens ten items in the middle of a long list of the program that stands.
func (b *bench) page(ctx context.Context, d *debugging) {
	var scopes struct {
		Scopes []struct {
			Ref int `json:"variablesReference"`
		} `json:"scopes"`
	}
	var values struct {
		Variables []struct {
			Name string `json:"name"`
			Ref  int    `json:"variablesReference"`
		} `json:"variables"`
	}
	err := d.do(ctx, "scopes", map[string]any{"frameId": d.Where.Frame}, &scopes)
	if err == nil && len(scopes.Scopes) > 0 {
		err = d.do(ctx, "variables", map[string]any{"variablesReference": scopes.Scopes[0].Ref}, &values)
	}
	if err != nil || len(values.Variables) == 0 {
		b.report.failed("a page of a long list", errors.Join(err, errors.New("there is no variable")))
		return
	}
	b.latency(ctx, "10 items of a list of 10^6", b.size.latency, goalPage, timed(func() error {
		return d.do(ctx, "variables", map[string]any{"variablesReference": values.Variables[0].Ref, "start": 500_000, "count": 10}, nil)
	}))
}

func (b *bench) look(ctx context.Context, d *debugging, where string) {
	if err := d.do(ctx, "goto", map[string]any{"step": d.Where.Steps}, nil); err != nil { // ahead of the first there is nothing
		b.report.failed("step back, "+where, err)
		return
	}
	b.latency(ctx, "step back, "+where, b.size.latency, goalBack, timed(func() error { return d.do(ctx, "stepBack", nil, nil) }))
	if err := d.do(ctx, "setBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"line": lastLine - 1, "condition": "i % 100 == 7"}}}, nil); err != nil {
		b.report.failed("back to a condition, "+where, err)
		return
	}
	b.latency(ctx, "back to where a condition held, 200 steps before, "+where, b.size.latency, goalBack, timed(func() error { return d.do(ctx, "reverseContinue", nil, nil) }))
	if err := d.do(ctx, "setBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"line": lastLine}}}, nil); err != nil {
		b.report.failed("back to a condition, "+where, err)
		return
	}
	b.latency(ctx, "go to any step, "+where, b.size.latency, goalGoto, timed(func() error {
		return d.do(ctx, "goto", map[string]any{"step": 1 + rand.IntN(d.Where.Steps)}, nil)
	}))
	b.latency(ctx, "who last changed it before a step, "+where, b.size.latency, goalGoto, timed(func() error {
		return d.client.do(ctx, "GET", fmt.Sprintf("/executions/%s/variables/total/changes?before=%d", d.Execution, 10+rand.IntN(d.Where.Steps-10)), nil, nil)
	}))
}
