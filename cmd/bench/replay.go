package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"
)

const (
	// frameAnalysis reads rows and groups them.
	frameAnalysis = `import pandas as pd
df = await db_frame("SELECT n % 10 AS team, n AS points FROM generate_series(1, 1000) n")
print(df.groupby('team')['points'].agg(['sum', 'mean', 'max']).shape)`

	sessionRuns = 10
	inputLogOff = "--input-log=off"
	inputLogOn  = "--input-log=rows" // the default; a row with it has a service of its own, which it may kill

	maxStoreTime = 30 * time.Second // until a run is in PostgreSQL
)

var (
	storedBytes = unit{label: "bytes"}
	part        = unit{label: "of the rows' bytes", digits: 3}
)

// replayRows returns the rows of replays, restored sessions, and of what the logs of inputs cost. The peer of a replay
// is the same code in a fresh sandbox, as the original ran; that of a restored session is its runs in a new session.
func replayRows(options) []measurement {
	large := map[string]any{"cpu_percent": 100, "max_memory_mb": 1024, "max_execution_time": 60}
	rows := []measurement{
		replayRow("1+1", "1+1", isTwo.check),
		replayRow("a query of one row", "rows = await db_query('SELECT 1 AS n')\nrows[0]['n'] + 1", isTwo.check),
		replayRow("a pandas analysis of 1 000 rows", frameAnalysis, printedDim.check),
		whyRow(),
		{name: "1+1 in a loop, live sandbox", unit: milliseconds, samples: manySamples, peerName: inputLogOff,
			open: inSandbox(nil, "1+1", isTwo.check, true),
			peer: onService(inputLogOff, inSandbox(nil, "1+1", isTwo.check, true))},
		sessionRow("restore a session of %d runs after kill -9", inputLogOn, openRestore),
		sessionRow("fork a session of %d runs", "", openFork),
		sessionRow("roll back a session of %d runs", "", openRollback),
		{name: "history of 1+1", unit: storedBytes, samples: 3, peerName: inputLogOff,
			open: openHistoryBytes(nil, "1+1", false),
			peer: onService(inputLogOff, openHistoryBytes(nil, "1+1", false))},
		{name: "log of 100 000 rows", unit: part, samples: 3,
			open: openHistoryBytes(large, fmt.Sprintf("len(await db_query(%q))", rowsSQL), true)},
	}
	return rows
}

// onService measures the same on a service with other settings.
func onService(settings string, open openFunc) peerFunc {
	return func(ctx context.Context, b *bench) (sampler, error) {
		g, err := b.service(ctx, settings)
		if err != nil {
			return sampler{}, err
		}
		return open(ctx, g)
	}
}

// replayRow measures a replay of code, and the run of the code as its peer.
func replayRow(name, code string, check func(*execution) error) measurement {
	return measurement{name: "replay of " + name, unit: milliseconds, samples: someSamples, peerName: "its original",
		peer: onService("", fresh(code, check)),
		open: func(ctx context.Context, g *glasshouse) (sampler, error) {
			e, err := g.run(ctx, quickPath, code, nil)
			if err == nil {
				err = check(e)
			}
			return only(func() (float64, error) {
				return g.timeAnswer(ctx, "POST", "/executions/"+e.ID+"/replay", map[string]any{}, `"grade":"identical"`)
			}), err
		}}
}

// whyRow measures why with the facts of a replay. Its peer is the replay alone.
func whyRow() measurement {
	record := func(ctx context.Context, g *glasshouse) (*execution, error) {
		e := &execution{}
		return e, g.call(ctx, "POST", quickPath, map[string]any{"code": frameAnalysis, "record": true}, e)
	}
	return measurement{
		name: "why, with facts, of a pandas analysis of 1 000 rows", unit: milliseconds, samples: someSamples,
		peerName: "its replay", peer: onService("", func(ctx context.Context, g *glasshouse) (sampler, error) {
			e, err := record(ctx, g)
			return only(func() (float64, error) {
				return g.timeAnswer(ctx, "POST", "/executions/"+e.ID+"/replay", map[string]any{}, `"grade":"identical"`)
			}), err
		}),
		open: func(ctx context.Context, g *glasshouse) (sampler, error) {
			e, err := record(ctx, g)
			return only(func() (float64, error) {
				return g.timeAnswer(ctx, "GET", "/executions/"+e.ID+"/why?name=df", nil, `"facts":[{`)
			}), err
		},
	}
}

// sessionRow measures what restores a session of ten runs. Its peer is the sum of such runs in a new session.
func sessionRow(name, settings string, open openFunc) measurement {
	return measurement{name: fmt.Sprintf(name, sessionRuns), unit: milliseconds, samples: fewSamples,
		settings: settings, peerName: "its runs", open: open,
		peer: onService(settings, func(ctx context.Context, g *glasshouse) (sampler, error) {
			return only(func() (took float64, err error) {
				id, err := g.create(ctx, nil)
				if err != nil {
					return 0, err
				}
				defer g.removal(ctx, id)()
				return timeIt(func() error {
					_, err := g.fillSession(ctx, id)
					return err
				})
			}), nil
		})}
}

// fillSession makes the runs of a session, which count n from 1. It returns the id of the last one.
func (g *glasshouse) fillSession(ctx context.Context, id string) (last string, err error) {
	for n := range sessionRuns {
		code := "n += 1\nn"
		if n == 0 {
			code = "n = 1\nn"
		}
		e, err := g.run(ctx, executePath(id), code, nil)
		if err == nil {
			err = expectation{status: "completed", result: strconv.Itoa(n + 1)}.check(e)
		}
		if err != nil {
			return "", err
		}
		last = e.ID
	}
	return last, nil
}

// newSession creates a session with its runs.
func (g *glasshouse) newSession(ctx context.Context) (id, last string, err error) {
	if id, err = g.create(ctx, nil); err == nil {
		last, err = g.fillSession(ctx, id)
	}
	return id, last, err
}

// timeAnswer returns the milliseconds of a request, whose answer must have a text.
func (g *glasshouse) timeAnswer(ctx context.Context, method, path string, body any, want string) (float64, error) {
	var answer []byte
	took, err := timeIt(func() (err error) {
		answer, err = g.send(ctx, g.alone, method, path, body)
		return err
	})
	if err == nil && !bytes.Contains(answer, []byte(want)) {
		err = fmt.Errorf("%s %s: got %.300s, want it to contain %s", method, path, answer, want)
	}
	return took, err
}

// openRestore measures the first run of a session after the service was killed and started again.
func openRestore(ctx context.Context, g *glasshouse) (sampler, error) {
	return only(func() (float64, error) {
		id, _, err := g.newSession(ctx)
		if err == nil {
			err = g.killAndStart(ctx)
		}
		if err != nil {
			return 0, err
		}
		defer g.removal(ctx, id)()
		want := fmt.Sprintf(`"result":%d,`, sessionRuns)
		return g.timeAnswer(ctx, "POST", executePath(id), map[string]any{"code": "n"}, want)
	}), nil
}

// openFork measures one fork, which is deleted afterwards.
func openFork(ctx context.Context, g *glasshouse) (sampler, error) {
	id, _, err := g.newSession(ctx)
	return sampler{func() (float64, error) {
		var answer struct {
			Sandboxes []struct {
				ID       string `json:"sandbox_id"`
				Restored struct {
					IsExact bool `json:"exact"`
				} `json:"restored"`
			} `json:"sandboxes"`
		}
		took, err := timeIt(func() error { return g.call(ctx, "POST", "/sandbox/"+id+"/fork", nil, &answer) })
		if err != nil {
			return 0, err
		}
		if len(answer.Sandboxes) != 1 || !answer.Sandboxes[0].Restored.IsExact {
			return 0, fmt.Errorf("got the forks %+v, want one that is exact", answer)
		}
		return took, g.remove(ctx, answer.Sandboxes[0].ID)
	}, g.removal(ctx, id)}, err
}

// openRollback measures the rollback of the last run, which then runs again.
func openRollback(ctx context.Context, g *glasshouse) (sampler, error) {
	id, last, err := g.newSession(ctx)
	return sampler{func() (float64, error) {
		body := map[string]any{"before": last}
		took, err := g.timeAnswer(ctx, "POST", "/sandbox/"+id+"/rollback", body, `"exact":true`)
		if err != nil {
			return 0, err
		}
		e, err := g.run(ctx, executePath(id), "n += 1\nn", nil)
		if err == nil {
			err = expectation{status: "completed", result: strconv.Itoa(sessionRuns)}.check(e)
			last = e.ID
		}
		return took, err
	}, g.removal(ctx, id)}, err
}

// openHistoryBytes measures the bytes of a run in history, its record and its log; with perRow, the bytes of the log as
// a part of those of the rows.
func openHistoryBytes(config map[string]any, code string, perRow bool) openFunc {
	return func(ctx context.Context, g *glasshouse) (sampler, error) {
		id, err := g.create(ctx, config)
		return sampler{func() (float64, error) {
			e, err := g.run(ctx, executePath(id), code, nil)
			if err == nil && e.Status != "completed" {
				err = fmt.Errorf("got the status %s, want completed", e.Status)
			}
			if err != nil {
				return 0, err
			}
			sql := `SELECT length(e.record) + coalesce(length(l.log), 0) FROM executions e
				LEFT JOIN input_logs l ON l.execution_id = e.id WHERE e.completed_at IS NOT NULL AND e.id = '%s'`
			if perRow {
				sql = `SELECT length(l.log)::float / q.bytes FROM input_logs l JOIN queries q USING (execution_id)
					WHERE execution_id = '%s'`
			}
			return g.awaitNumber(ctx, fmt.Sprintf(sql, e.ID))
		}, g.removal(ctx, id)}, err
	}
}

// awaitNumber returns the number that a statement on history selects, as soon as it selects one.
func (g *glasshouse) awaitNumber(ctx context.Context, sql string) (float64, error) {
	for end := time.Now().Add(maxStoreTime); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		text, err := g.psql(ctx, sql)
		if err != nil {
			return 0, err
		}
		if text != "" {
			return strconv.ParseFloat(text, 64)
		}
	}
	return 0, fmt.Errorf("history has no row within %s of %s", maxStoreTime, sql)
}
