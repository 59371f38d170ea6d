package dbaccess

import (
	"context"
	"maps"
	"slices"
	"time"

	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// maxFollowedColumns bounds the columns of a question of WhyNot.
const maxFollowedColumns = 16

// WhyNot follows the rows whose columns have some values through the stages of a query, and finds the first stage
// without one. A column is one of a table or of the result; a value is one of JSON, with numbers as json.Number. All of
// it runs on one snapshot and counts as one statement of the limits, like Stages. The summary is that of the query
// itself. The error is that of Query for it, or a *sandbox.Refusal if the rows cannot be followed.
func (r *Reader) WhyNot(
	ctx context.Context, sql string, params, values map[string]any, l sandbox.QueryLimits,
) (out *stages.WhyNot, summary sandbox.QuerySummary, err error) {
	began := time.Now()
	names := slices.Sorted(maps.Keys(values))
	if len(names) == 0 || len(names) > maxFollowedColumns {
		return nil, summary, sandbox.Refusef("invalid-value", "give the values of 1 to %d columns", maxFollowedColumns)
	}
	question := parse.Request{Derive: parse.WhyNot, Columns: names}
	for _, name := range names {
		if values[name] == nil {
			question.Nulls = append(question.Nulls, name)
		}
	}
	run := &whyNotRun{asked: values, out: stages.WhyNot{Stages: []stages.FollowedStage{}, NotLooked: []string{}}}
	if err = r.trace(ctx, sql, params, l, question, run); err != nil {
		return nil, run.summary, err
	}
	run.out.TotalMS = milliseconds(time.Since(began))
	run.out.Text = run.out.Render("")
	return &run.out, run.summary, nil
}

// whyNotRun follows rows through one statement.
type whyNotRun struct {
	traceRun
	plan    *parse.WhyNotPlan
	asked   map[string]any  // the values, by column
	counts  []*checkedQuery // by index of the counts of the plan; nil: it may not run
	errors  []error
	byStage map[int]int // the index in out.Stages
	out     stages.WhyNot
}

// prepare also sets the values.
func (run *whyNotRun) prepare(ctx context.Context, t traceRun, derived *parse.Result) error {
	run.traceRun, run.plan = t, derived.WhyNot
	for _, c := range run.plan.Columns {
		text, err := valueText(c.Name, run.asked[c.Name])
		if err != nil {
			return err
		}
		run.values[c.Parameter] = text
		isSame := func(known stages.FollowedColumn) bool { return known.Name == c.Name } // in the sides of a UNION
		if !slices.ContainsFunc(run.out.Columns, isSame) {
			run.out.Columns = append(run.out.Columns, stages.FollowedColumn{
				Name: c.Name, Meaning: c.Meaning, Value: run.asked[c.Name],
			})
		}
	}
	for i := range run.plan.Stages.Counts {
		q, err := run.check(ctx, &run.plan.Stages.Counts[i].DerivedStatement)
		if err != nil {
			q = nil
		}
		run.counts, run.errors = append(run.counts, q), append(run.errors, err)
	}
	run.out.Lines, run.byStage = run.plan.Stages.Lines, map[int]int{}
	run.out.NotLooked = append(run.out.NotLooked, run.plan.NotLooked...)
	return nil
}

func (run *whyNotRun) execute(ctx context.Context, set *QuerySet) (err error) {
	run.set = set
	if run.summary, err = run.begin(ctx, run.itself); err != nil {
		return err
	}
	run.out.MS = milliseconds(run.own)
	lost := -1 // the index of the stage
	for i := range run.plan.Stages.Counts {
		c := &run.plan.Stages.Counts[i]
		if c.Class == parse.CountsMatches {
			continue
		}
		at := run.runCount(ctx, i)
		if i == 0 && run.out.Stages[at].Rows == nil && run.out.Stages[at].State != stages.Skipped {
			return run.firstError()
		}
		for j := at; j < len(run.out.Stages); j++ {
			n := run.out.Stages[j].Rows
			switch {
			case n == nil:
			case *n > 0:
				lost = -1 // another side of a set operation has the rows
			case lost < 0:
				lost = j
			}
			if lost >= 0 && !run.plan.HasSets {
				run.out.Stages = run.out.Stages[:lost+1]
				break
			}
		}
		if lost >= 0 && !run.plan.HasSets {
			break
		}
	}
	run.conclude(ctx, lost)
	run.out.Statements = run.statements
	if ctx.Err() != nil {
		return errCancelledWaiting()
	}
	return nil
}

// runCount runs a statement of counts, and adds its stages. It returns the index of the first one.
func (run *whyNotRun) runCount(ctx context.Context, i int) (first int) {
	c := &run.plan.Stages.Counts[i]
	first = len(run.out.Stages)
	counts, err := run.count(ctx, i)
	var state, reason, message string
	if err != nil {
		state, reason, message = failure(err)
	}
	for j, v := range c.Values {
		at, known := run.byStage[v.Stage]
		if !known {
			at = len(run.out.Stages)
			run.byStage[v.Stage] = at
			run.out.Stages = append(run.out.Stages, run.stage(v.Stage))
			s := &run.out.Stages[at]
			s.State, s.Reason, s.Message = stages.Counted, "", ""
			if err != nil {
				s.State, s.Reason, s.Message = state, reason, message
			} else if at > first {
				s.RowsIn = run.out.Stages[at-1].Rows
			}
		}
		if err != nil {
			continue
		}
		s, n := &run.out.Stages[at], counts[j]
		switch v.What {
		case parse.CountIn:
			s.RowsIn = &n
		case parse.CountOut:
			s.Rows = &n
		case parse.CountNull:
			s.Null = &n
		case parse.CountNullLeft, parse.CountNullRight:
			if s.NullKeys != nil {
				n += *s.NullKeys
			}
			s.NullKeys = &n
		}
	}
	return first
}

// firstError returns why the rows with the values cannot be looked for.
func (run *whyNotRun) firstError() error {
	s := run.out.Stages[0]
	return sandbox.Refusef(s.Reason, "the rows with these values: %s", s.Message)
}

// count returns the counts of a statement.
func (run *whyNotRun) count(ctx context.Context, i int) ([]int64, error) {
	c := &run.plan.Stages.Counts[i]
	if run.counts[i] == nil {
		return nil, run.errors[i]
	}
	if run.isOver(ctx) {
		return nil, &sandbox.Refusal{Reason: "timeout", Message: "the time for the statement is used up", Failed: true}
	}
	rows, err := run.query(ctx, run.counts[i])
	if err != nil {
		return nil, err
	}
	counts, err := countsOf(rows)
	if err == nil && len(counts) != len(c.Values) {
		err = errNoCounts
	}
	return counts, err
}

// stage returns a stage without its counts.
func (run *whyNotRun) stage(id int) stages.FollowedStage {
	p := run.plan.Stages.Stages[id]
	b := run.plan.Stages.Blocks[p.Block]
	name := b.Name
	if name == "" && b.Kind != stages.BlockMain {
		name = b.Kind
	}
	return stages.FollowedStage{
		ID: id, Block: name, Kind: p.Kind, JoinKind: p.JoinKind, Text: p.Text, FromLine: p.From, ToLine: p.To,
	}
}

// conclude says whether the rows are missing, and why.
func (run *whyNotRun) conclude(ctx context.Context, lost int) {
	if lost >= 0 {
		for i := range run.plan.Stages.Counts {
			c := &run.plan.Stages.Counts[i]
			if c.Class == parse.CountsMatches && c.Values[0].Stage == run.out.Stages[lost].ID {
				run.runCount(ctx, i)
			}
		}
		s := run.out.Stages[lost]
		run.out.Lost, run.out.Because = &s, because(&s)
		run.out.Missing = new(true)
		return
	}
	n := len(run.out.Stages)
	if !run.plan.IsInMain {
		run.out.NotLooked = append(run.out.NotLooked, "the result: nothing that FROM reads passes the rows on")
		return
	}
	if n > 0 && run.out.Stages[n-1].Rows != nil {
		run.out.Missing = new(false)
	}
}

// because says why a stage has none of the rows.
func because(s *stages.FollowedStage) string {
	switch s.Kind {
	case stages.KindFrom:
		return stages.BecauseNoRow
	case stages.KindJoin:
		if s.NullKeys != nil && *s.NullKeys > 0 {
			return stages.BecauseNullKey
		}
		return stages.BecauseNoPartner
	case stages.KindWhere, stages.KindHaving:
		switch {
		case s.Null == nil || s.RowsIn == nil:
			return ""
		case *s.Null == 0:
			return stages.BecauseFalse
		case *s.Null == *s.RowsIn:
			return stages.BecauseNull
		}
		return stages.BecauseFalseOrNull
	case stages.KindGroup:
		return stages.BecauseNoGroup
	case stages.KindLimit:
		return stages.BecauseLimit
	case stages.KindDistinct:
		return stages.BecauseDistinct
	case stages.KindSet:
		return stages.BecauseSet
	}
	return ""
}
