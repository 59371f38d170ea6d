package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// analysis is an ordinary script of about 70 000 steps.
//
//go:embed analysis.py
var analysis string

const (
	stepping = "def work(n):\n    t = 0\n    for i in range(n):\n        t += i\n        half = t // 2\n    return t\nwork(100000)"
	// countingLoop has two steps per iteration, and its last line is lastLine.
	countingLoop = "big = list(range(1000000))\ntotal = 0\nfor i in range(%d):\n    total += i\nlast = total"
	lastLine     = 5

	recordingSteps = 90_000 // length of the recordings in which rows move
	minSteps       = 10_000 // minimum length of a recording for a figure of bytes per step
)

// analysisOf returns the analysis with more rows, for about as many steps.
func analysisOf(steps int) string {
	const rows, stepsPerRow = "N = 6000\n", 11.18
	return strings.Replace(analysis, rows, fmt.Sprintf("N = %d\n", int(float64(steps)/stepsPerRow)), 1)
}

const (
	longSteps  = 700_000
	mostSteps  = 990_000 // a recording keeps all steps of a run up to a million
	stepMargin = 0.02    // of these
)

// slowSandbox is the configuration of the sandboxes of debug sessions.
var slowSandbox = map[string]any{"max_execution_time": 300, "cpu_percent": 100, "max_memory_mb": 1024}

func debugRows(options) []measurement {
	rows := []measurement{
		{name: "next, with variables and what has changed", unit: milliseconds, goal: absolute(2, 10), samples: manySamples,
			open: openNext},
		{name: "recording of a tight loop", unit: microsPerStep, samples: fewSamples,
			open: openRecording},
		{name: "an analysis in a debug session, compared with the same run without", unit: times,
			goal: absolute(2, 0), samples: 5, open: openSlowdown(analysis)},
		{name: "an analysis of 700 000 steps in a debug session, compared with the same run without", unit: times,
			goal: absolute(2, 0), samples: 5, open: openSlowdown(analysisOf(longSteps))},
		{name: "stored bytes of a tight loop", unit: bytesPerStep, goal: absolute(3, 0), samples: oneSample,
			open: openStored(fmt.Sprintf(countingLoop, recordingSteps/2))},
		{name: "stored bytes of an analysis", unit: bytesPerStep, goal: absolute(3, 0), samples: oneSample,
			open: openStored(analysis)},
		{name: "stored bytes of an analysis of 700 000 steps", unit: bytesPerStep, goal: absolute(3, 0),
			samples: oneSample, open: openStored(analysisOf(longSteps))},
		{name: "why a value of an analysis is so, at a million steps", unit: milliseconds, goal: absolute(20, 0),
			samples: someSamples, open: openLongWhy},
		{name: "why with facts, minus the replay, an analysis of 700 000 steps", unit: milliseconds,
			goal: absolute(100, 0), samples: 5, open: openFacts},
		{name: "10 items of a list of a million", unit: milliseconds, goal: absolute(5, 0), samples: manySamples,
			open: openPage},
		{name: "open a past recording", unit: milliseconds, samples: someSamples, open: openPast},
	}
	for _, from := range []string{"live", "past"} {
		move := func(name string, goal goal, move func(context.Context, *debugSession) (sampleFunc, error)) {
			rows = append(rows, measurement{name: name + ", " + from + " recording", unit: milliseconds, goal: goal, samples: manySamples,
				open: inRecording(from == "past", move)})
		}
		move("step back", absolute(2, 0), func(ctx context.Context, d *debugSession) (sampleFunc, error) {
			return d.timeRequest(ctx, "stepBack", nil), nil
		})
		move("back to a condition, 200 steps", absolute(2, 0), func(ctx context.Context, d *debugSession) (sampleFunc, error) {
			return d.timeRequest(ctx, "reverseContinue", nil), d.setBreakpoint(ctx, lastLine-1, "i % 100 == 7")
		})
		move("go to any step", absolute(10, 0), func(ctx context.Context, d *debugSession) (sampleFunc, error) {
			return func() (float64, error) {
				return d.timeRequest(ctx, "goto", map[string]any{"step": 1 + rand.IntN(d.Where.Steps)})()
			}, nil
		})
		move("why a value is so, at any step", absolute(20, 0), timeWhy)
		move("last change of a variable before any step", absolute(10, 0), func(ctx context.Context, d *debugSession) (sampleFunc, error) {
			return func() (float64, error) {
				before := 10 + rand.IntN(d.Where.Steps-10)
				return d.timeCall(ctx, "GET", fmt.Sprintf("/executions/%s/variables/total/changes?before=%d", d.Execution, before), nil)()
			}, nil
		})
	}
	return rows
}

// timeWhy asks where a value of a random step comes from.
func timeWhy(ctx context.Context, d *debugSession) (sampleFunc, error) {
	path := d.whyPath(ctx, "total")
	return func() (float64, error) {
		step := 10 + rand.IntN(d.Where.Steps-10)
		return d.timeCall(ctx, "GET", fmt.Sprintf("%stotal&step=%d", path, step), nil)()
	}, nil
}

// whyPath returns the path of a question why, up to the name of the variable. The recording alone answers it: without
// facts, unless an older revision, asked about variable, refuses the parameter for that.
func (d *debugSession) whyPath(ctx context.Context, variable string) string {
	path := "/executions/" + d.Execution + "/why?"
	if _, err := d.send(ctx, d.alone, "GET", path+"facts=false&name="+variable, nil); err != nil {
		return path + "name="
	}
	return path + "facts=false&name="
}

// openLongWhy asks why of values of an analysis: of each variable at the end, and of early ones at any step.
func openLongWhy(ctx context.Context, g *glasshouse) (sampler, error) {
	d, err := g.recordPast(ctx, analysisOf(mostSteps))
	if err == nil && float64(d.Where.Steps) < (1-stepMargin)*mostSteps {
		err = fmt.Errorf("got a recording of %d steps, want %d", d.Where.Steps, mostSteps)
	}
	if err != nil {
		return sampler{}, err
	}
	to := d.whyPath(ctx, "out")
	early := []string{"amount", "name", "stats", "log", "row"}
	late := []string{"out", "report", "merged", "scores", "best", "words", "share", "top", "smooth"}
	return only(func() (float64, error) {
		path := to
		if rand.IntN(2) == 0 {
			path += fmt.Sprintf("%s&step=%d", early[rand.IntN(len(early))], 1000+rand.IntN(d.Where.Steps-1000))
		} else {
			path += late[rand.IntN(len(late))]
		}
		return d.timeCall(ctx, "GET", path, nil)()
	}), nil
}

// openFacts measures how much longer why with facts takes than a replay of the run.
func openFacts(ctx context.Context, g *glasshouse) (sampler, error) {
	d, err := g.recordPast(ctx, analysisOf(longSteps))
	path := "/executions/" + d.Execution
	return only(func() (float64, error) {
		replay, err := g.timeAnswer(ctx, "POST", path+"/replay", map[string]any{}, `"grade":"identical"`)
		if err != nil {
			return 0, err
		}
		why, err := g.timeAnswer(ctx, "GET", path+"/why?name=best", nil, `"facts":[{`)
		return why - replay, err
	}), err
}

// debugSession is a session on a running program or on a past execution.
type debugSession struct {
	*client
	sandbox   string // deleted by end; "" for a past execution
	Session   string `json:"session_id"`
	Execution string `json:"execution_id"`
	Where     struct {
		State string `json:"state"`
		Frame int    `json:"frame"`
		Steps int    `json:"total_steps"`
	} `json:"where"`
}

// debug opens a session in a new sandbox.
func (g *glasshouse) debug(ctx context.Context, body map[string]any) (*debugSession, error) {
	id, err := g.create(ctx, slowSandbox)
	if err != nil {
		return nil, err
	}
	d := &debugSession{client: g.client, sandbox: id}
	if err := g.call(ctx, "POST", "/sandbox/"+id+"/debug/sessions", body, d); err != nil {
		g.removal(ctx, id)()
		return nil, err
	}
	return d, nil
}

// debugPast opens a session on an execution in history.
func (g *glasshouse) debugPast(ctx context.Context, execution string) (*debugSession, error) {
	d := &debugSession{client: g.client}
	err := g.call(ctx, "POST", "/executions/"+execution+"/debug/sessions", nil, d)
	d.Execution = execution
	return d, err
}

// end closes the session. It ignores errors, since a session expires, and the session of an ended program may
// already be removed.
func (d *debugSession) end() {
	ctx := context.Background()
	_ = d.call(ctx, "DELETE", "/debug/sessions/"+d.Session, nil, nil)
	if d.sandbox != "" {
		_ = d.remove(ctx, d.sandbox)
	}
}

func (d *debugSession) request(ctx context.Context, name string, arguments map[string]any, out any) error {
	return d.call(ctx, "POST", "/debug/sessions/"+d.Session+"/"+name, arguments, out)
}

func (d *debugSession) timeRequest(ctx context.Context, name string, arguments map[string]any) sampleFunc {
	return d.timeCall(ctx, "POST", "/debug/sessions/"+d.Session+"/"+name, arguments)
}

func (d *debugSession) setBreakpoint(ctx context.Context, line int, condition string) error {
	breakpoint := map[string]any{"line": line, "condition": condition}
	return d.request(ctx, "setBreakpoints", map[string]any{"breakpoints": []any{breakpoint}}, nil)
}

// waitFor waits until the program is in a state: stopped or ended.
func (d *debugSession) waitFor(ctx context.Context, state string) error {
	for d.Where.State != state {
		if d.Where.State == "ended" {
			return errors.New("the program ended before it stopped")
		}
		if err := errors.Join(ctx.Err(), d.call(ctx, "GET", "/debug/sessions/"+d.Session, nil, d)); err != nil {
			return err
		}
		if d.Where.State != state {
			time.Sleep(5 * time.Millisecond)
		}
	}
	return nil
}

// recordLoop runs a loop until a breakpoint behind it.
func (g *glasshouse) recordLoop(ctx context.Context) (*debugSession, error) {
	d, err := g.debug(ctx, map[string]any{"code": fmt.Sprintf(countingLoop, recordingSteps/2), "breakpoints": []int{lastLine}})
	if err != nil {
		return nil, err
	}
	if err = d.waitFor(ctx, "stopped"); err == nil && d.Where.Steps < recordingSteps/2 {
		err = fmt.Errorf("got a recording of %d steps, want %d", d.Where.Steps, recordingSteps)
	}
	if err != nil {
		d.end()
		return nil, err
	}
	return d, nil
}

// recordPast records a program until its end and returns the closed session, whose execution is in history.
func (g *glasshouse) recordPast(ctx context.Context, code string) (*debugSession, error) {
	d, err := g.debug(ctx, map[string]any{"code": code})
	if err != nil {
		return nil, err
	}
	defer d.end()
	return d, d.waitFor(ctx, "ended")
}

func openNext(ctx context.Context, g *glasshouse) (sampler, error) {
	d, err := g.debug(ctx, map[string]any{"code": stepping, "breakpoints": []int{4}})
	if err == nil {
		err = d.waitFor(ctx, "stopped")
	}
	if err != nil {
		return sampler{}, err
	}
	return sampler{d.timeRequest(ctx, "next", nil), d.end}, nil
}

func openRecording(ctx context.Context, g *glasshouse) (sampler, error) {
	return only(func() (float64, error) {
		var d *debugSession
		took, err := timeIt(func() (err error) {
			d, err = g.recordLoop(ctx)
			return err
		})
		if err != nil {
			return 0, err
		}
		defer d.end()
		return 1000 * took / float64(d.Where.Steps), nil
	}), nil
}

// openSlowdown measures how many times as long an analysis runs in a debug session. Both runs have a fresh
// sandbox with the same limits, and their times are the service's own.
func openSlowdown(code string) openFunc {
	return func(ctx context.Context, g *glasshouse) (sampler, error) {
		return only(func() (float64, error) {
			id, err := g.create(ctx, slowSandbox)
			if err != nil {
				return 0, err
			}
			defer g.removal(ctx, id)()
			plain, err := g.run(ctx, executePath(id), code, nil)
			if err == nil {
				err = completed.check(plain)
			}
			if err != nil {
				return 0, err
			}
			d, err := g.recordPast(ctx, code)
			if err != nil {
				return 0, err
			}
			var recorded execution
			err = g.call(ctx, "GET", "/executions/"+d.Execution, nil, &recorded)
			if err == nil && recorded.Status != "completed" {
				err = fmt.Errorf("the recorded run is %s, want completed", recorded.Status)
			}
			return recorded.Usage.WallMS / plain.Usage.WallMS, err
		}), nil
	}
}

// openStored measures what history keeps of a recording, its index included.
func openStored(code string) openFunc {
	return func(ctx context.Context, g *glasshouse) (sampler, error) {
		return only(func() (float64, error) {
			d, err := g.recordPast(ctx, code)
			if err != nil {
				return 0, err
			}
			var kept struct {
				Steps int   `json:"total_steps"`
				Bytes int64 `json:"stored_bytes"`
			}
			err = g.call(ctx, "GET", "/executions/"+d.Execution+"/steps?limit=1", nil, &kept)
			if err == nil && (kept.Bytes == 0 || kept.Steps < minSteps) {
				err = fmt.Errorf("got %d steps in %d bytes, want at least %d steps", kept.Steps, kept.Bytes, minSteps)
			}
			return float64(kept.Bytes) / float64(kept.Steps), err
		}), nil
	}
}

// openPage measures how long it takes to show ten items in the middle of a list of a stopped program.
func openPage(ctx context.Context, g *glasshouse) (sampler, error) {
	d, err := g.recordLoop(ctx)
	if err != nil {
		return sampler{}, err
	}
	var scopes struct {
		Scopes []struct {
			Reference int `json:"variablesReference"`
		} `json:"scopes"`
	}
	var values struct {
		Variables []struct {
			Reference int `json:"variablesReference"`
		} `json:"variables"`
	}
	err = d.request(ctx, "scopes", map[string]any{"frameId": d.Where.Frame}, &scopes)
	if err == nil && len(scopes.Scopes) > 0 {
		err = d.request(ctx, "variables", map[string]any{"variablesReference": scopes.Scopes[0].Reference}, &values)
	}
	if err == nil && len(values.Variables) == 0 {
		err = errors.New("the stopped program has no variable")
	}
	if err != nil {
		d.end()
		return sampler{}, err
	}
	arguments := map[string]any{"variablesReference": values.Variables[0].Reference, "start": 500_000, "count": 10}
	return sampler{d.timeRequest(ctx, "variables", arguments), d.end}, nil
}

func openPast(ctx context.Context, g *glasshouse) (sampler, error) {
	recorded, err := g.recordPast(ctx, fmt.Sprintf(countingLoop, recordingSteps/2))
	if err != nil {
		return sampler{}, err
	}
	return only(func() (float64, error) {
		var d *debugSession
		took, err := timeIt(func() (err error) {
			d, err = g.debugPast(ctx, recorded.Execution)
			return err
		})
		if err == nil {
			d.end()
		}
		return took, err
	}), nil
}

// inRecording measures a move at the end of a long recording: of a stopped program, or of a past execution.
func inRecording(past bool, prepare func(context.Context, *debugSession) (sampleFunc, error)) openFunc {
	return func(ctx context.Context, g *glasshouse) (sampler, error) {
		var d *debugSession
		var err error
		if !past {
			d, err = g.recordLoop(ctx)
		} else if d, err = g.recordPast(ctx, fmt.Sprintf(countingLoop, recordingSteps/2)); err == nil {
			d, err = g.debugPast(ctx, d.Execution)
		}
		if err != nil {
			return sampler{}, err
		}
		err = d.request(ctx, "goto", map[string]any{"step": d.Where.Steps}, nil)
		var sample sampleFunc
		if err == nil {
			sample, err = prepare(ctx, d)
		}
		if err != nil {
			d.end()
			return sampler{}, err
		}
		return sampler{sample, d.end}, nil
	}
}
