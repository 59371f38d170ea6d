package dbaccess

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"glasshouse/dbaccess/parse"
	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// Why finds the rows of tables behind a cell of a query's result: the row with an index, from 0, and a column. All of
// it runs on one snapshot and counts as one statement of the limits, like Stages. The summary is that of the query
// itself. The error is that of Query for it, or a *sandbox.Refusal if there is no such cell or its rows cannot be
// found.
func (r *Reader) Why(
	ctx context.Context, sql string, params map[string]any, row int, column string, l sandbox.QueryLimits,
) (out *stages.Why, summary sandbox.QuerySummary, err error) {
	began := time.Now()
	run := &whyRun{out: stages.Why{Row: row, Column: column, Tables: []stages.TableRows{}, NotLooked: []string{}}}
	if err = r.trace(ctx, sql, params, l, parse.Request{Derive: parse.Why}, run); err != nil {
		return nil, run.summary, err
	}
	run.out.TotalMS = milliseconds(time.Since(began))
	run.out.Text = run.out.Render("")
	return &run.out, run.summary, nil
}

// whyRun finds the rows behind one cell.
type whyRun struct {
	traceRun
	plan    *parse.WhyPlan
	keyed   *checkedQuery
	counts  []*checkedQuery // by table; nil: it may not run
	rows    []*checkedQuery
	control *checkedQuery // plan.Check
	at      int           // the column
	isFloat bool
	out     stages.Why
}

func (run *whyRun) prepare(ctx context.Context, t traceRun, derived *parse.Result) (err error) {
	run.traceRun, run.plan = t, derived.Why
	if run.keyed, err = run.check(ctx, &run.plan.Keyed); err != nil {
		state, reason, message := failure(err)
		if state == stages.Failed {
			return err
		}
		return sandbox.Refusef(reason, "the keys of the row: %s", message)
	}
	for i := range run.plan.Tables {
		t := &run.plan.Tables[i]
		out := stages.TableRows{
			Table: t.Name, Items: t.Items, Lines: t.Lines, Key: t.Key, IsPrimaryKey: t.IsPrimaryKey,
			State: stages.Skipped, Reason: t.Reason, Message: t.Message,
		}
		var queries [2]*checkedQuery
		for j, s := range []*parse.DerivedStatement{t.Count, t.Rows} {
			if s == nil {
				out.State = stages.Refused
				continue
			}
			if queries[j], err = run.check(ctx, s); err != nil {
				out.State, out.Reason, out.Message = failure(err)
				queries[j] = nil
			}
		}
		run.counts, run.rows = append(run.counts, queries[0]), append(run.rows, queries[1])
		run.out.Tables = append(run.out.Tables, out)
	}
	run.out.Check = stages.Check{State: stages.CheckNotChecked, Message: run.plan.CheckReason}
	if run.plan.Check != nil {
		if run.control, err = run.check(ctx, run.plan.Check); err != nil {
			_, _, run.out.Check.Message = failure(err)
			run.control = nil
		}
	}
	run.out.Lines = run.plan.Lines
	run.out.NotLooked = append(run.out.NotLooked, run.plan.NotLooked...)
	return nil
}

func (run *whyRun) execute(ctx context.Context, set *QuerySet) error {
	run.set = set
	began := time.Now()
	cell, err := run.findRow(ctx)
	if err != nil {
		return err
	}
	run.setBudget(ctx, began)
	run.out.MS = milliseconds(run.own)
	keyed, err := run.findKeys(ctx, cell)
	if err != nil {
		return err
	}
	run.setKeys(cell, keyed)
	for i := range run.out.Tables {
		run.readTable(ctx, i)
	}
	run.verify(ctx, cell)
	run.out.Statements = run.statements
	if ctx.Err() != nil {
		return errCancelledWaiting()
	}
	return nil
}

// findRow runs the statement itself and returns the row that is asked for.
func (run *whyRun) findRow(ctx context.Context) (cell [][]byte, err error) {
	n := 0
	rows, err := run.set.scan(ctx, run.itself, run.set.limits.Timeout, run.set.limits.MaxRows, func(row [][]byte) {
		if n == run.out.Row {
			cell = cloneRow(row)
		}
		n++
	})
	if err != nil {
		return nil, err
	}
	run.summary = rows.QuerySummary
	if cell == nil {
		return nil, sandbox.Refusef("unknown-row", "the statement returns %d rows, and no row %d: rows count from 0",
			rows.QuerySummary.Rows, run.out.Row)
	}
	run.at = slices.IndexFunc(rows.Columns, func(c sandbox.Column) bool { return c.Name == run.out.Column })
	if run.at < 0 {
		var names []string
		for _, c := range rows.Columns {
			names = append(names, c.Name)
		}
		no := sandbox.Refusef("unknown-column", "the result has no column %q; it has %s", run.out.Column,
			strings.Join(names, ", "))
		no.Nearest = policy.Nearest(run.out.Column, slices.Values(names))
		return nil, no
	}
	run.isFloat = rows.Columns[run.at].Kind == "float"
	run.out.Value = textOf(cell[run.at])
	return cell, nil
}

func textOf(value []byte) *string {
	if value == nil {
		return nil
	}
	return new(sandbox.Shorten(string(value), stages.MaxSampleChars))
}

// findKeys runs the statement with its keys, and returns the row with the same values.
func (run *whyRun) findKeys(ctx context.Context, cell [][]byte) (keyed [][]byte, err error) {
	n := 0
	run.statements++
	_, err = run.set.scan(ctx, run.keyed, run.remaining(), run.set.limits.MaxRows, func(row [][]byte) {
		isBetter := keyed == nil || n == run.out.Row // rows with equal sort keys may come in another order
		if isBetter && len(row) >= len(cell) && slices.EqualFunc(row[:len(cell)], cell, equalValues) {
			keyed = cloneRow(row)
		}
		n++
	})
	if err != nil {
		_, reason, message := failure(err)
		return nil, sandbox.Refusef(stages.ReasonNotTraceable, "the keys of the row: %s (%s)", message, reason)
	}
	if keyed == nil {
		return nil, sandbox.Refusef(stages.ReasonNotTraceable, "the statement with its keys does not return the row")
	}
	return keyed, nil
}

// equalValues reports whether two values in PostgreSQL's text format are equal, or both NULL.
func equalValues(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// keysOf returns the values of the keys of a row. columns is the number of columns of the result.
func (run *whyRun) keysOf(row [][]byte, columns int) (keys [][]byte) {
	next := columns
	for _, key := range run.plan.Keys {
		at := key.Output
		if at < 0 {
			at = next
			next++
		}
		if at >= len(row) {
			return nil
		}
		keys = append(keys, row[at])
	}
	return keys
}

// setKeys sets the values of the keys.
func (run *whyRun) setKeys(cell, keyed [][]byte) {
	var predicate []string
	for i, value := range run.keysOf(keyed, len(cell)) {
		key := run.plan.Keys[i]
		text := "NULL"
		if run.values[key.Parameter] = nil; value != nil {
			run.values[key.Parameter] = string(value)
			text = "'" + strings.ReplaceAll(sandbox.Shorten(string(value), stages.MaxSampleChars), "'", "''") + "'"
		}
		predicate = append(predicate, key.Text+" IS NOT DISTINCT FROM "+text)
	}
	run.out.Predicate = strings.Join(predicate, " AND ")
	if run.at < len(run.plan.Reads) && run.plan.Reads[run.at] != nil && len(run.plan.Columns) == len(cell) {
		for i := range run.out.Tables {
			run.out.Tables[i].IsRead = new(slices.Contains(run.plan.Reads[run.at], i))
		}
	}
}

// readTable counts the rows of a table and reads the first ones.
func (run *whyRun) readTable(ctx context.Context, i int) {
	out, t := &run.out.Tables[i], &run.plan.Tables[i]
	if run.counts[i] == nil {
		return
	}
	if run.isOver(ctx) {
		out.Reason, out.Message = stages.ReasonOverBudget, "the time for the statement is used up"
		return
	}
	rows, err := run.bound(ctx, run.counts[i], t.Count)
	if err == nil {
		var counts []int64
		if counts, err = countsOf(rows); err == nil {
			out.State, out.Rows = stages.Counted, &counts[0]
			if len(counts) > 1 {
				out.Distinct = &counts[1]
			}
		}
	}
	if err != nil {
		out.State, out.Reason, out.Message = failure(err)
		return
	}
	if run.rows[i] == nil || run.isOver(ctx) {
		return
	}
	if rows, err = run.bound(ctx, run.rows[i], t.Rows); err == nil {
		out.First = sampleOf(rows, stages.MaxTableRows)
	}
}

// bound runs a derived statement with the values of the keys.
func (run *whyRun) bound(ctx context.Context, q *checkedQuery, s *parse.DerivedStatement) (textRows, error) {
	if err := run.bind(q, s); err != nil {
		return textRows{}, err
	}
	return run.query(ctx, q)
}

// verify runs the statement over the rows that were found alone, and compares the cell.
func (run *whyRun) verify(ctx context.Context, cell [][]byte) {
	check := &run.out.Check
	if run.control == nil {
		return
	}
	if run.isOver(ctx) {
		check.Message = "the time for the statement is used up"
		return
	}
	if err := run.bind(run.control, run.plan.Check); err != nil {
		_, _, check.Message = failure(err)
		return
	}
	wanted := make([][]byte, len(run.plan.Keys))
	for i, key := range run.plan.Keys {
		if value, ok := run.values[key.Parameter].(string); ok {
			wanted[i] = []byte(value)
		}
	}
	var found [][]byte
	run.statements++
	_, err := run.set.scan(ctx, run.control, run.remaining(), run.set.limits.MaxRows, func(row [][]byte) {
		if found == nil && slices.EqualFunc(run.keysOf(row, len(cell)), wanted, equalValues) && run.at < len(row) {
			found = cloneRow(row)
		}
	})
	switch {
	case err != nil:
		_, _, check.Message = failure(err)
	case found == nil:
		check.State, check.Message = stages.CheckDiffers, "These rows alone make no such row of the result."
	case run.sameCell(found[run.at], cell[run.at]):
		check.State = stages.CheckSame
	default:
		check.State, check.Value = stages.CheckDiffers, textOf(found[run.at])
		check.Message = "Its expression reads other rows, too: a window function or a subquery does."
	}
}

// sameCell compares two values. Sums of floats in another order differ in their last digits.
func (run *whyRun) sameCell(a, b []byte) bool {
	if equalValues(a, b) {
		return true
	}
	if !run.isFloat || a == nil || b == nil {
		return false
	}
	x, errX := strconv.ParseFloat(string(a), 64)
	y, errY := strconv.ParseFloat(string(b), 64)
	return errX == nil && errY == nil && math.Abs(x-y) <= 1e-9*max(math.Abs(x), math.Abs(y))
}
