package dbaccess

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// timeoutOf returns how long one derived statement may take: half of what remains, and for what is not the rows of a
// stage about the time of the statement itself.
func (run *stageRun) timeoutOf(class parse.CountClass) time.Duration {
	half := run.remaining() / 2
	if class == parse.CountsRows {
		return half
	}
	return min(half, max(time.Until(run.more), run.own, slowStatement))
}

// take keeps the values of a row of counts from a column on.
func (run *stageRun) take(values []parse.CountValue, row [][]byte, took time.Duration) error {
	if len(row) < len(values) {
		return errNoCounts
	}
	for i, v := range values {
		n, err := strconv.ParseInt(string(row[i]), 10, 64)
		if err != nil {
			return errNoCounts
		}
		run.values[v.Stage][v.What] = n
		run.stages[v.Stage].MS = max(run.stages[v.Stage].MS, milliseconds(took))
	}
	return nil
}

// isCounted reports whether all values of a statement of counts are known.
func (run *stageRun) isCounted(c *parse.CountStatement) bool {
	return !slices.ContainsFunc(c.Values, func(v parse.CountValue) bool {
		_, has := run.values[v.Stage][v.What]
		return !has
	})
}

// runCounts runs the statements of counts of a class.
func (run *stageRun) runCounts(ctx context.Context, class parse.CountClass) {
	run.runShared(ctx, class)
	for i := range run.plan.Counts {
		if run.plan.Counts[i].Class == class {
			run.runCount(ctx, i)
		}
	}
}

// isLate reports whether the time for counts of a class is used up, which is less than the whole time for those that
// are not the rows of a stage.
func (run *stageRun) isLate(class parse.CountClass) bool {
	return class != parse.CountsRows && time.Now().After(run.more)
}

// runShared runs the statements that compute several counts at once. Where one fails, each count is computed alone.
func (run *stageRun) runShared(ctx context.Context, class parse.CountClass) {
	for _, shared := range run.plan.Shared {
		first := &run.plan.Counts[shared.Counts[0]]
		if first.Class != class || run.remaining() <= 0 || run.isLate(class) {
			continue
		}
		q, err := run.reader.checkQuery(ctx, shared.SQL, run.valuesOf(shared.Names), run.limits.User)
		if err != nil {
			continue
		}
		began := time.Now()
		rows, err := run.query(ctx, q, run.timeoutOf(class))
		if err != nil || len(rows.Rows) != 1 {
			continue
		}
		row := rows.Rows[0]
		for _, i := range shared.Counts {
			values := run.plan.Counts[i].Values
			if run.take(values, row, time.Since(began)) != nil {
				break
			}
			row = row[len(values):]
		}
	}
}

// query runs a derived statement.
func (run *stageRun) query(ctx context.Context, q *checkedQuery, timeout time.Duration) (textRows, error) {
	run.out.Statements++
	return run.set.query(ctx, q, max(timeout, time.Millisecond), maxStageSQL, true)
}

// runCount runs a statement of counts.
func (run *stageRun) runCount(ctx context.Context, i int) {
	c, q := &run.plan.Counts[i], run.counts[i]
	if q == nil || run.isCounted(c) || run.set.isEnded() || ctx.Err() != nil {
		return
	}
	if run.remaining() <= 0 {
		run.end(c.Values, stages.Skipped, stages.ReasonOverBudget, "the time for the stages of a statement is used up")
		return
	}
	if run.isLate(c.Class) {
		run.tooSlow = run.tooSlow || c.Class == parse.CountsMatches
		if c.Class == parse.CountsPart {
			run.end(c.Values, stages.Skipped, stages.ReasonOverBudget, "the time for parts of stages is used up")
		}
		return
	}
	if run.ownCost > 0 {
		cost, rows, ok := run.explain(ctx, c.SQL, run.valuesOf(c.Names))
		if ok && run.isTooCostly(cost) {
			run.estimate(c, rows)
			return
		}
	}
	began := time.Now()
	rows, err := run.query(ctx, q, run.timeoutOf(c.Class))
	if err == nil && len(rows.Rows) == 1 {
		err = run.take(c.Values, rows.Rows[0], time.Since(began))
	}
	if err == nil || c.Class == parse.CountsMatches {
		return
	}
	no, isRefusal := errors.AsType[*sandbox.Refusal](err)
	switch {
	case !isRefusal:
		run.end(c.Values, stages.Failed, "failed", "the derived statement failed")
	case no.Reason == "timeout":
		if _, rows, ok := run.explain(ctx, c.SQL, run.valuesOf(c.Names)); ok {
			run.estimate(c, rows)
		} else {
			run.end(c.Values, stages.Skipped, stages.ReasonOverBudget, "the count took too long")
		}
	case no.Failed:
		run.end(c.Values, stages.Failed, no.Reason, no.Message)
	default:
		run.end(c.Values, stages.Refused, no.Reason, no.Message)
	}
}

// isTooCostly reports whether a derived statement with a cost of the planner runs only on request.
func (run *stageRun) isTooCostly(cost float64) bool {
	return !run.options.All && cost > max(maxStageCost*run.ownCost, smallStageCost)
}

// estimate sets the planner's estimate of the first count of a statement.
func (run *stageRun) estimate(c *parse.CountStatement, rows int64) {
	if c.Class == parse.CountsMatches {
		return
	}
	if first := c.Values[0]; first.What == parse.CountOut { // the others are parts of it
		run.estimates[first.Stage] = rows
	}
	run.end(c.Values, stages.Skipped, stages.ReasonOverBudget, "the count would take too long")
}

// explain returns the planner's cost of a statement, and the estimated rows that its aggregate reads.
func (run *stageRun) explain(
	ctx context.Context, sql string, params map[string]any,
) (cost float64, rows int64, ok bool) {
	if run.reader.config.MaxConns <= maxStageSets { // a check may need a connection
		return 0, 0, false
	}
	q, err := run.reader.checkQuery(ctx, "EXPLAIN (FORMAT JSON) "+sql, params, run.limits.User)
	if err != nil {
		return 0, 0, false
	}
	result, err := run.set.query(ctx, q, min(run.reader.budget.least/2, max(run.remaining(), deadlineMargin)), 1, true)
	if err != nil || len(result.Rows) != 1 || len(result.Rows[0]) != 1 {
		return 0, 0, false
	}
	type node struct {
		Cost  float64 `json:"Total Cost"`
		Rows  float64 `json:"Plan Rows"`
		Role  string  `json:"Parent Relationship"`
		Plans []json.RawMessage
	}
	var plans []struct{ Plan node }
	if json.Unmarshal(result.Rows[0][0], &plans) != nil || len(plans) != 1 {
		return 0, 0, false
	}
	rows = int64(plans[0].Plan.Rows)
	for _, raw := range plans[0].Plan.Plans {
		var inner node
		if json.Unmarshal(raw, &inner) == nil && inner.Role == "Outer" {
			rows = int64(inner.Rows)
		}
	}
	return plans[0].Plan.Cost, rows, true
}

// runSamples reads a few rows of each stage.
func (run *stageRun) runSamples(ctx context.Context) {
	for i, p := range run.plan.Stages {
		if p.Sample == nil || run.remaining() <= 0 || run.set.isEnded() || ctx.Err() != nil {
			continue
		}
		q, err := run.reader.checkQuery(ctx, p.Sample.SQL, run.valuesOf(p.Sample.Names), run.limits.User)
		if err != nil {
			continue
		}
		if rows, err := run.query(ctx, q, run.remaining()/2); err == nil {
			run.stages[i].Sample = sampleOf(rows, stages.MaxSampleRows)
		}
	}
	for i, p := range run.plan.Stages {
		for j := range p.Keys {
			run.runKeys(ctx, run.stages[i], &p.Keys[j])
		}
	}
}

// runKeys reads a few keys of a join, if there are such keys.
func (run *stageRun) runKeys(ctx context.Context, s *stages.Stage, k *parse.KeySample) {
	if !hasKeys(s.Multiplied, k) || time.Now().After(run.more) || run.set.isEnded() || ctx.Err() != nil {
		return
	}
	q, err := run.reader.checkQuery(ctx, k.SQL, run.valuesOf(k.Names), run.limits.User)
	if err != nil {
		return
	}
	if rows, err := run.query(ctx, q, run.remaining()/2); err == nil && len(rows.Rows) > 0 {
		s.Keys = append(s.Keys, stages.Keys{
			Kind: k.Kind, Side: k.Side, Sample: *sampleOf(rows, stages.MaxSampleRows),
		})
	}
}

// hasKeys reports whether a join is known to have keys of a kind.
func hasKeys(m *stages.Matches, k *parse.KeySample) bool {
	if m == nil {
		return false
	}
	n, least := m.RightUnmatched, int64(0)
	switch {
	case k.Kind == stages.KeysRepeated && k.Side == "left":
		n, least = m.MaxLeft, 1
	case k.Kind == stages.KeysRepeated:
		n, least = m.MaxRight, 1
	case k.Side == "left":
		n = m.LeftUnmatched
	}
	return n != nil && *n > least
}

// sampleOf returns the first rows and columns as short texts.
func sampleOf(rows textRows, most int) *stages.Sample {
	out := &stages.Sample{Columns: []string{}, Rows: [][]any{}}
	shown := min(len(rows.Columns), stages.MaxSampleColumns)
	out.MoreColumns = len(rows.Columns) - shown
	for _, c := range rows.Columns[:shown] {
		out.Columns = append(out.Columns, c.Name)
	}
	for _, row := range rows.Rows[:min(len(rows.Rows), most)] {
		values := make([]any, shown)
		for i := range shown {
			if row[i] != nil {
				values[i] = sandbox.Shorten(string(row[i]), stages.MaxSampleChars)
			}
		}
		out.Rows = append(out.Rows, values)
	}
	return out
}
