package dbaccess

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"glasshouse/dbaccess/parse"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// maxTraceSQL bounds the rows of a derived statement that a trace keeps.
const maxTraceSQL = 100

// traceRun runs the statements that follow rows through one statement.
type traceRun struct {
	reader     *Reader
	itself     *checkedQuery
	params     map[string]any
	values     map[string]any // of the parameters that the derivation has added
	limits     sandbox.QueryLimits
	set        *QuerySet
	own        time.Duration // of the statement itself
	until      time.Time     // the end of the budget
	statements int
	summary    sandbox.QuerySummary // of the statement itself
}

// tracer answers one question about a statement.
type tracer interface {
	// prepare checks the derived statements: a check may need a connection, so none is open yet.
	prepare(ctx context.Context, t traceRun, derived *parse.Result) error
	// execute runs the statement itself and the derived statements.
	execute(ctx context.Context, set *QuerySet) error
}

// trace derives the statements for a question about a statement, and has a tracer run them on one snapshot.
func (r *Reader) trace(
	ctx context.Context, sql string, params map[string]any, l sandbox.QueryLimits, question parse.Request, t tracer,
) error {
	return r.withStageSlot(ctx, l.User, func() error {
		itself, derived, err := r.deriveTrace(ctx, sql, params, l, question)
		if err != nil {
			return err
		}
		run := traceRun{reader: r, itself: itself, params: params, values: map[string]any{}, limits: l}
		if err := t.prepare(ctx, run, &derived); err != nil {
			return err
		}
		return r.runSet(ctx, l, func(set *QuerySet) error { return t.execute(ctx, set) })
	})
}

// withStageSlot calls use in the user's turn: the statements of one question take a connection for long.
func (r *Reader) withStageSlot(ctx context.Context, user string, use func() error) error {
	if err := r.ensureAudited(ctx); err != nil {
		return err
	}
	releaseUser, err := r.stageUsers.Acquire(ctx, user, limit.Forever)
	if err != nil {
		return errCancelledWaiting()
	}
	defer releaseUser()
	release, err := r.stageSets.Acquire(ctx, "all", limit.Forever)
	if err != nil {
		return errCancelledWaiting()
	}
	defer release()
	return use()
}

// deriveTrace checks a statement, and derives those that follow its rows.
func (r *Reader) deriveTrace(
	ctx context.Context, sql string, params map[string]any, l sandbox.QueryLimits, q parse.Request,
) (itself *checkedQuery, out parse.Result, err error) {
	if itself, err = r.checkQuery(ctx, sql, params, l.User); err != nil {
		return nil, out, err
	}
	tables, _, err := r.tablesIn(ctx, sql, l)
	if err != nil {
		return nil, out, err
	}
	itself.copy = l.Copy
	q.SQL, q.Names, q.Tables = sql, slices.Collect(maps.Keys(params)), tables
	out, err = r.checker.Derive(ctx, q)
	return itself, out, err
}

// check checks a derived statement. Values that are not known yet are NULL until bind.
func (run *traceRun) check(ctx context.Context, s *parse.DerivedStatement) (*checkedQuery, error) {
	return run.reader.checkQuery(ctx, s.SQL, run.valuesOf(s.Names), run.limits.User)
}

// bind gives a checked statement the values of its parameters as they are known now.
func (run *traceRun) bind(q *checkedQuery, s *parse.DerivedStatement) error {
	bound, err := bindParameters(q.statement, run.valuesOf(s.Names))
	if err == nil {
		q.bound = bound
	}
	return err
}

func (run *traceRun) valuesOf(names []string) map[string]any {
	values := make(map[string]any, len(names))
	for _, name := range names {
		if value, ok := run.params[name]; ok {
			values[name] = value
		} else {
			values[name] = run.values[name]
		}
	}
	return values
}

// begin runs the statement itself and sets the budget of the others.
func (run *traceRun) begin(ctx context.Context, q *checkedQuery) (sandbox.QuerySummary, error) {
	began := time.Now()
	rows, err := run.set.query(ctx, q, run.set.limits.Timeout, run.set.limits.MaxRows, false)
	run.setBudget(ctx, began)
	return rows.QuerySummary, err
}

func (run *traceRun) setBudget(ctx context.Context, began time.Time) {
	run.own = time.Since(began)
	run.until = run.reader.budget.end(ctx, began, run.own)
}

// deadlineMargin is the time that an answer needs between its last statement and the deadline of its caller.
const deadlineMargin = 100 * time.Millisecond

// end returns the time at which derived statements must end. began is when work on the statement began, and own how
// long the statement itself took. They get at least b.least, unless all of it would take longer than b.most, or their
// caller stops waiting earlier.
func (b stageBudget) end(ctx context.Context, began time.Time, own time.Duration) time.Time {
	now := time.Now()
	until := now.Add(max((stageTimeFactor-1)*own, b.least))
	last := began.Add(b.most - endMargin)
	if last.Before(now) { // the statement alone takes as long
		last = now.Add(lateStageTime)
	}
	if last.Before(until) {
		until = last
	}
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-deadlineMargin).Before(until) {
		return deadline.Add(-deadlineMargin)
	}
	return until
}

func (run *traceRun) remaining() time.Duration { return time.Until(run.until) }

// isOver reports whether no further statement may run.
func (run *traceRun) isOver(ctx context.Context) bool {
	return run.remaining() <= 0 || run.set.isEnded() || ctx.Err() != nil
}

// query runs a derived statement.
func (run *traceRun) query(ctx context.Context, q *checkedQuery) (textRows, error) {
	run.statements++
	return run.set.query(ctx, q, max(run.remaining()/2, time.Millisecond), maxTraceSQL, true)
}

// failure returns the state of what a statement was to find, with the reason and the message.
func failure(err error) (state, reason, message string) {
	no, isRefusal := errors.AsType[*sandbox.Refusal](err)
	switch {
	case !isRefusal:
		return stages.Failed, "failed", "the derived statement failed"
	case no.Reason == "timeout":
		return stages.Skipped, stages.ReasonOverBudget, "it took too long"
	case no.Failed:
		return stages.Failed, no.Reason, no.Message
	}
	return stages.Refused, no.Reason, no.Message
}

// countsOf returns the counts of a row.
func countsOf(rows textRows) (list []int64, err error) {
	if len(rows.Rows) != 1 {
		return nil, errNoCounts
	}
	for _, text := range rows.Rows[0] {
		n, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			return nil, errNoCounts
		}
		list = append(list, n)
	}
	return list, nil
}

// valueText returns a value of JSON as PostgreSQL's text, or nil for NULL. The server infers its type.
func valueText(name string, v any) (any, error) {
	switch v := v.(type) {
	case nil, string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case json.Number:
		return string(v), nil
	}
	return nil, sandbox.Refusef("invalid-value", "the value of %s is a list or an object: give a text, a number, "+
		"true, false or null", name)
}
