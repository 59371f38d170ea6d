package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"glasshouse/sandbox"
)

const (
	maxQueries    = 1000     // kept with one execution; beyond it those whose text is new, and the rest is counted
	maxStatements = 2000     // kept in all: what would be more is not run
	maxQueryBytes = 16 << 20 // of their texts and parameters, likewise
	maxQueryError = 16 << 10 // characters that are kept of one's error
	maxCaptured   = 100      // writes of one execution
)

// desk answers what one execution's code asks, and records it.
type desk struct {
	service   *Service
	box       sandbox.Sandbox
	execution *sandbox.Execution
	captured  int
	texts     map[string]bool // of the statements that are kept, where there are many
	bytes     int             // of them and their parameters
	feed      *EventLog       // nil: nobody follows it
}

// Query records the statement before it runs, and the time that it took without that of
// its taker, for which it waits.
func (d *desk) Query(ctx context.Context, sql string, params map[string]any, sink sandbox.RowSink) (sandbox.QuerySummary, error) {
	q := sandbox.Query{SQL: sql, Status: sandbox.QueryRunning, StartedAt: d.service.Clock()}
	if len(params) > 0 {
		q.Parameters, _ = json.Marshal(d.service.masked(params))
	}
	if no := d.room(&q); no != nil {
		return sandbox.QuerySummary{}, no
	}
	var waited time.Duration
	timed := func(rows sandbox.RowBatch) error {
		began := time.Now()
		defer func() { waited += time.Since(began) }()
		return sink(rows)
	}
	total, captured, kept, err := d.ask(ctx, &q, params, timed)
	var no *sandbox.Refusal
	q.DurationMS = max(0, q.DurationMS-float64(waited.Microseconds())/1000)
	q.Status, q.Rows, q.Bytes, q.Truncated, q.Fingerprint = "ok", total.Rows, total.Bytes, total.Truncated, total.Fingerprint
	switch {
	case captured:
		q.Status = "captured"
	case errors.As(err, &no):
		q.Status, q.Reason, q.Error = "refused", no.Reason, sandbox.Shorten(no.Message, maxQueryError)
		if no.Failed {
			q.Status = "failed"
		}
		if no.Reason == "cancelled" {
			q.Status = "cancelled"
		}
	case err != nil:
		q.Status, q.Error = "failed", sandbox.Shorten(err.Error(), maxQueryError)
	}
	if d.counted(&q) {
		d.execution.Truncated["queries"]++
		return total, err
	}
	d.bytes += len(q.Error)
	if kept { // else history may have no room now, and has it at the run's end
		if err := d.progress(context.WithoutCancel(ctx), &q); err != nil {
			d.service.Log.WithError(err).WithField("execution_id", d.execution.ID).Warn("how a statement ended could not be kept")
		}
	}
	d.execution.Queries = append(d.execution.Queries, q)
	if d.texts[q.SQL] = true; d.feed != nil {
		d.feed.query(q)
	}
	return total, err
}

// ask has a statement on record, and runs it; kept says that it is there.
func (d *desk) ask(ctx context.Context, q *sandbox.Query, params map[string]any, sink sandbox.RowSink) (total sandbox.QuerySummary, captured, kept bool, err error) {
	if sandbox.JSONDepth(q.Parameters) > maxDepth {
		q.Parameters = nil
		return total, false, false, &sandbox.Refusal{Reason: "invalid-parameter", Message: fmt.Sprintf("the parameters nest deeper than %d lists and objects", maxDepth)}
	}
	if err = d.progress(ctx, q); err != nil {
		return total, false, false, err
	}
	began := time.Now()
	defer func() { q.DurationMS = float64(time.Since(began).Microseconds()) / 1000 }()
	total, err = d.service.Reader.Query(ctx, q.SQL, params, sandbox.QueryLimits{
		MaxRows: d.box.Policy.MaxRows, Timeout: time.Duration(d.box.Policy.MaxExecutionTime) * time.Second, User: d.box.Owner, Sandbox: d.box.ID,
	}, sink)
	var no *sandbox.Refusal
	if errors.As(err, &no) {
		written, ok, wrong := d.capture(ctx, q.SQL, params, no, sink)
		switch {
		case ok:
			return written, true, true, nil
		case wrong != nil:
			err = wrong
		}
	}
	return total, false, true, err
}

// counted says of a statement that is one of many that it is not kept, but counted.
func (d *desk) counted(q *sandbox.Query) bool {
	return len(d.execution.Queries) >= maxQueries && d.texts[q.SQL]
}

// progress keeps the statement that comes next, for the case that the service ends first.
func (d *desk) progress(ctx context.Context, q *sandbox.Query) error {
	if d.counted(q) {
		return nil
	}
	return d.service.History.Progress(ctx, sandbox.Progress{Execution: d.execution.ID, Number: int64(len(d.execution.Queries)), Query: q})
}

// Connection is called from goroutines of its own.
func (d *desk) Connection(number int64, c sandbox.Connection) error {
	return d.service.History.Progress(context.Background(), sandbox.Progress{Execution: d.execution.ID, Number: number, Connection: &c})
}

// room refuses a statement that there would be no room for in the execution: none runs whose
// text history does not have.
func (d *desk) room(q *sandbox.Query) error {
	if d.texts == nil {
		d.texts = map[string]bool{}
	}
	if d.counted(q) {
		return nil
	}
	if d.bytes += len(q.SQL) + len(q.Parameters); len(d.execution.Queries) < maxStatements && d.bytes <= maxQueryBytes {
		return nil
	}
	d.execution.Truncated["queries"]++
	return &sandbox.Refusal{
		Reason: "too-many-statements", Message: fmt.Sprintf("a run may have %d different statements, of %d MiB with their parameters, and this one is beyond that", maxStatements, maxQueryBytes>>20),
		Hint: "read more rows with each, or pass what differs as parameters", Failed: true,
	}
}

// masked are the parameters as history keeps them.
func (s *Service) masked(params map[string]any) map[string]any {
	out := make(map[string]any, len(params))
	for name, value := range params {
		if slices.ContainsFunc(s.Mask, func(m string) bool { return m == "*" || strings.EqualFold(m, name) }) {
			value = "***"
		}
		out[name] = value
	}
	return out
}

func (d *desk) Schema(ctx context.Context, table string) (sandbox.Table, error) {
	tables, err := d.service.Reader.Schema(ctx, table)
	if err != nil {
		return sandbox.Table{}, err
	}
	return tables[0], nil
}

func (d *desk) Tables(ctx context.Context) ([]string, error) {
	return d.service.Reader.Tables(ctx)
}

// History is the sandbox's last executions, without this one and without their bulk.
func (d *desk) History(ctx context.Context) ([]sandbox.Execution, error) {
	list, _, err := d.service.History.Executions(ctx, sandbox.ExecutionFilter{SandboxID: d.box.ID, Limit: 50})
	out := make([]sandbox.Execution, 0, len(list))
	for _, e := range list {
		if e.ID != d.execution.ID {
			e.Stdout, e.Stderr, e.Outputs, e.Queries, e.Connections, e.Context = "", "", nil, nil, nil, nil
			out = append(out, e)
		}
	}
	return out, err
}

// Query runs one statement for who in the name of a sandbox; it is in history as
// an execution of its own. The rows are void where there is an error.
func (s *Service) Query(ctx context.Context, caller sandbox.Key, id, sql string, params map[string]any, sink sandbox.RowSink) (sandbox.QuerySummary, error) {
	l, err := s.find(ctx, caller, id)
	if err != nil {
		return sandbox.QuerySummary{}, err
	}
	e, err := s.newExecution(l.box, caller, Job{Code: sql, Kind: sandbox.KindQuery})
	if err != nil {
		return sandbox.QuerySummary{}, err
	}
	if err := s.History.Begin(context.WithoutCancel(ctx), e); err != nil {
		return sandbox.QuerySummary{}, err
	}
	began := time.Now()
	total, err := (&desk{service: s, box: l.box, execution: e}).Query(ctx, sql, params, sink)
	e.Status, e.ExecutionTime = sandbox.StatusCompleted, time.Since(began).Seconds()
	e.Usage.WallMS = e.ExecutionTime * 1000
	if err != nil {
		why := sandbox.Shorten(err.Error(), maxQueryError)
		e.Status, e.Error = sandbox.StatusFailed, &why
	}
	s.mu.Lock()
	l.used = s.Clock()
	s.mu.Unlock()
	return total, errors.Join(err, s.finish(e, true))
}

// Schema lists every table that may be read, with its columns.
func (s *Service) Schema(ctx context.Context, caller sandbox.Key, id string) ([]sandbox.Table, error) {
	if _, err := s.find(ctx, caller, id); err != nil {
		return nil, err
	}
	return s.Reader.Schema(ctx)
}

// What a failure is told with of the queries before it.
const (
	lastQueries = 3
	lastSQL     = 500 // bytes
)

// explain adds the last queries to a failure, which often come before a column that is
// not there; what the child says of them is not believed.
func explain(e *sandbox.Execution) {
	if e.Exception == nil {
		return
	}
	e.Exception.Queries = nil
	for _, q := range e.Queries[max(0, len(e.Queries)-lastQueries):] {
		q.Parameters, q.Fingerprint = nil, ""
		if len(q.SQL) > lastSQL {
			q.SQL = strings.ToValidUTF8(q.SQL[:lastSQL], "") + "..."
		}
		e.Exception.Queries = append(e.Exception.Queries, q)
	}
}
