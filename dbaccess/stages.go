package dbaccess

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"glasshouse/dbaccess/parse"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// Budgets of the counts of a statement.
const (
	stageTimeFactor = 10 // times the statement's own time
	// endMargin is the part of stageBudget.most in which the last derived statement is cancelled, and the transaction
	// ends.
	endMargin = 250 * time.Millisecond
	// lateStageTime is the time for the stages of a statement that takes stageBudget.most alone.
	lateStageTime = time.Second
	// A stage is estimated if the planner's cost of its count is maxStageCost times that of the statement, and not
	// small. The planner is asked only if a table has largeTable rows.
	maxStageCost   = 20
	smallStageCost = 5000
	largeTable     = 100_000
	// From smallStageCost on, and unless all is asked for, how joins match, what may be wrong and what is in the stages
	// is computed only within moreTimeFactor times the statement's own time, or slowStatement. The planner gives the
	// cost of a statement that takes longer than slowStatement, because a small one is slow on a busy machine. The rows
	// of a slow statement are those of its last stage.
	slowStatement  = 100 * time.Millisecond
	moreTimeFactor = 2
	maxStageSets   = 2 // transactions for stages at the same time
	maxStageSQL    = 200
)

// stageBudget is the time for the statements that are derived from one. The time that the statement itself takes gives
// more than the least.
type stageBudget struct {
	least time.Duration // unless all is asked for
	most  time.Duration // with the statement itself
}

var defaultStageBudget = stageBudget{least: 2 * time.Second, most: 10 * time.Second}

// Stages runs a query and counts the rows after each of its stages: tables, joins, conditions, groups and so on. All of
// it runs on one snapshot and counts as one statement of the limits. Each derived statement is checked as a statement
// of a user. The error is that of Query for the statement itself, or a *sandbox.Refusal if it has no stages.
func (r *Reader) Stages(
	ctx context.Context, sql string, params map[string]any, l sandbox.QueryLimits, o stages.Options,
) (*stages.Stages, error) {
	began := time.Now()
	if err := r.ensureAudited(ctx); err != nil {
		return nil, err
	}
	releaseUser, err := r.stageUsers.Acquire(ctx, l.User, limit.Forever)
	if err != nil {
		return nil, errCancelledWaiting()
	}
	defer releaseUser()
	release, err := r.stageSets.Acquire(ctx, "all", limit.Forever)
	if err != nil {
		return nil, errCancelledWaiting()
	}
	defer release()
	planBegan := time.Now()
	run, err := r.planStages(ctx, sql, params, l, o)
	if err != nil {
		return nil, err
	}
	run.planTime = time.Since(planBegan)
	if err := r.runSet(ctx, l, func(s *QuerySet) error { return run.execute(ctx, s) }); err != nil {
		return nil, err
	}
	out := run.answer()
	out.TotalMS = milliseconds(time.Since(began))
	out.Text = out.Render(o)
	return out, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// stageRun computes the stages of one statement.
type stageRun struct {
	reader  *Reader
	plan    *parse.StagePlan
	params  map[string]any
	limits  sandbox.QueryLimits
	options stages.Options
	set     *QuerySet

	itself   *checkedQuery
	planTime time.Duration // of the derivation and the checks
	own      time.Duration // of the statement itself
	ownCost  float64       // of the planner; 0: not known
	until    time.Time     // the end of the budget
	more     time.Time     // the end of the time for what is not a count of rows
	isLarge  bool          // a table has many rows
	out      stages.Stages

	counts    []*checkedQuery // by index of plan.Counts; nil: it may not run
	stages    []*stages.Stage // by ID
	values    []map[parse.CountKind]int64
	estimates map[int]int64 // of rows after a stage
	notLooked []string
	tooSlow   bool // how sides of joins match was left out
}

// isRefused reports whether an error says that a statement may not run because of a masked column.
func isRefused(err error) bool {
	no, ok := errors.AsType[*sandbox.Refusal](err)
	return ok && no.Reason == stages.ReasonMasked
}

// planStages checks a statement and derives those that count its rows.
func (r *Reader) planStages(
	ctx context.Context, sql string, params map[string]any, l sandbox.QueryLimits, o stages.Options,
) (*stageRun, error) {
	itself, err := r.checkQuery(ctx, sql, params, l.User)
	if err != nil {
		return nil, err
	}
	itself.copy = l.Copy
	tables, isLarge, err := r.tablesIn(ctx, sql, l)
	if err != nil {
		return nil, err
	}
	derived, err := r.checker.Derive(ctx, parse.Request{
		SQL: sql, Names: slices.Collect(maps.Keys(params)), Derive: parse.Stages, Tables: tables, Samples: o.Samples,
	})
	if err != nil {
		return nil, err
	}
	run := &stageRun{
		reader: r, plan: derived.Stages, params: params, limits: l, options: o, itself: itself, isLarge: isLarge,
		estimates: map[int]int64{},
	}
	run.stages = make([]*stages.Stage, len(run.plan.Stages))
	run.values = make([]map[parse.CountKind]int64, len(run.plan.Stages))
	for i, p := range run.plan.Stages {
		run.values[i] = map[parse.CountKind]int64{}
		s := &stages.Stage{
			ID: i, Block: p.Block, Kind: p.Kind, Name: p.Name, Text: p.Text, FromLine: p.From, ToLine: p.To,
			Reads: p.Reads, PartOf: p.PartOf, ViewLine: p.ViewLine, JoinKind: p.JoinKind,
			State: stages.Skipped, Reason: p.Reason, Message: p.Message,
		}
		if p.Reason != "" {
			s.State = stages.Refused
		}
		run.stages[i] = s
	}
	for _, c := range run.plan.Counts {
		q, err := r.checkQuery(ctx, c.SQL, run.valuesOf(c.Names), l.User)
		no, isRefused := errors.AsType[*sandbox.Refusal](err)
		if err != nil && !isRefused {
			return nil, err
		}
		if isRefused && c.Class != parse.CountsMatches {
			run.end(c.Values, stages.Refused, no.Reason, no.Message)
		}
		run.counts = append(run.counts, q)
	}
	return run, nil
}

// valuesOf returns the values of parameters.
func (run *stageRun) valuesOf(names []string) map[string]any {
	values := make(map[string]any, len(names))
	for _, name := range names {
		values[name] = run.params[name]
	}
	return values
}

// end sets the state of stages without a value.
func (run *stageRun) end(values []parse.CountValue, state, reason, message string) {
	for _, v := range values {
		if s := run.stages[v.Stage]; s.State == stages.Skipped {
			s.State, s.Reason, s.Message = state, reason, message
		}
	}
}

// tablesIn returns the tables whose names a statement may have in it, and whether one of them has many rows.
func (r *Reader) tablesIn(
	ctx context.Context, sql string, l sandbox.QueryLimits,
) (tables []parse.Table, isLarge bool, err error) {
	release, err := r.acquire(ctx, l)
	if err != nil {
		return nil, false, err
	}
	defer release()
	all, err := r.tables(ctx)
	if err != nil {
		return nil, false, err
	}
	text := strings.ToLower(sql)
	all = slices.DeleteFunc(all, func(t catalogTable) bool {
		return !strings.Contains(text,
			strings.ToLower(t.relname))
	})
	if err := r.describe(ctx, all); err != nil {
		return nil, false, r.unavailable(err)
	}
	definitions, err := r.definitions(ctx, all)
	if err != nil {
		return nil, false, r.unavailable(err)
	}
	filters, err := r.filteredColumns(ctx, all)
	if err != nil {
		return nil, false, r.unavailable(err)
	}
	for _, t := range all {
		isLarge = isLarge || t.Kind == "view" || t.RowEstimate != nil && *t.RowEstimate >= largeTable
		one := parse.Table{
			Schema: t.schema, Name: t.relname, PrimaryKey: t.PrimaryKey, IsView: strings.HasSuffix(t.Kind, "view"),
			IsVisible: t.isVisible, Definition: definitions[t.oid],
		}
		for _, c := range t.Columns {
			one.Columns = append(one.Columns, parse.Column{
				Name: c.Name, Type: c.Type, IsNullable: c.IsNullable == "YES", IsMasked: c.Masked,
				FilteredBy: filters[filteredColumn{t.oid, c.Name}],
			})
			if c.Unique {
				one.Unique = append(one.Unique, c.Name)
			}
		}
		for _, k := range t.ForeignKeys {
			one.ForeignKeys = append(one.ForeignKeys, parse.ForeignKey{
				Columns: k.Columns, Table: k.Table, ReferencedColumns: k.ReferencedColumns,
			})
		}
		tables = append(tables, one)
	}
	return tables, isLarge, nil
}

// filteredColumn is a column of a table.
type filteredColumn struct {
	oid  int64
	name string
}

const filteredColumnsSQL = `
SELECT DISTINCT ON (1, 2) d.refobjid::int8, a.attname, r.ev_class::regclass::text
FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid 
JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0
  AND d.refobjid = ANY ($1::int8[]::oid[]) AND r.ev_class <> d.refobjid AND has_table_privilege(r.ev_class, 'SELECT')
  AND NOT EXISTS (SELECT FROM pg_attribute v WHERE v.attrelid = r.ev_class AND v.attname = a.attname)
ORDER BY 1, 2, 3`

// filteredColumns returns the columns that a view over a table reads and does not show, with the name of such a view:
// the view may leave rows out by them.
func (r *Reader) filteredColumns(ctx context.Context, tables []catalogTable) (map[filteredColumn]string, error) {
	oids := make([]int64, len(tables))
	for i := range tables {
		oids[i] = tables[i].oid
	}
	out := map[filteredColumn]string{}
	var c filteredColumn
	var view string
	err := r.forEachRow(ctx, filteredColumnsSQL, []any{&c.oid, &c.name, &view}, func() { out[c] = view }, oids)
	return out, err
}

// execute runs the statement itself and those that count its rows.
func (run *stageRun) execute(ctx context.Context, set *QuerySet) error {
	run.set = set
	began := time.Now()
	rows, err := set.query(ctx, run.itself, set.limits.Timeout, set.limits.MaxRows, false)
	if err != nil {
		return err
	}
	run.own = time.Since(began)
	budget := run.reader.budget
	if run.options.All {
		budget.least = budget.most
	}
	run.until = budget.end(ctx, began.Add(-run.planTime), run.own)
	run.out.Fingerprint, run.out.Ran = rows.QuerySummary.Fingerprint, rows.Ran
	run.out.Schema, run.out.ReadsClock, run.out.Tables = rows.Schema, rows.ReadsClock, rows.Tables
	run.out.Rows, run.out.Truncated, run.out.MS = int64(rows.QuerySummary.Rows), rows.Truncated, milliseconds(run.own)
	if run.own > slowStatement && !rows.Truncated {
		main := run.plan.Blocks[run.plan.Order[len(run.plan.Order)-1]]
		if main.Last >= 0 && run.plan.Stages[main.Last].Follows < 0 {
			run.values[main.Last][parse.CountOut] = run.out.Rows
		} else if main.Last >= 0 {
			run.values[run.plan.Stages[main.Last].Follows][parse.CountOut] = run.out.Rows
		}
	}
	var cost float64
	isKnown, isSlow := false, run.own > slowStatement
	if run.isLarge || isSlow {
		cost, _, isKnown = run.explain(ctx, run.itself.statement.Original, run.params)
	}
	if run.isLarge {
		run.ownCost = cost
	}
	isLong := cost > smallStageCost || isSlow && !isKnown
	if run.more = run.until; isLong && !run.options.All {
		run.more = began.Add(moreTimeFactor * max(run.own, slowStatement))
	}
	run.runCounts(ctx, parse.CountsRows)
	run.runCounts(ctx, parse.CountsMatches)
	run.settle()
	run.find(ctx)
	run.runCounts(ctx, parse.CountsPart)
	run.settle()
	run.settleParts()
	run.runSamples(ctx)
	if ctx.Err() != nil {
		return errCancelledWaiting()
	}
	return nil
}

// remaining returns how long all derived statements together may take.
func (run *stageRun) remaining() time.Duration { return time.Until(run.until) }

// settle computes the values of the stages from the counts.
func (run *stageRun) settle() {
	for i, s := range run.stages {
		if n, ok := run.values[i][parse.CountOut]; ok {
			s.RowsOut, s.State, s.Reason, s.Message = &n, stages.Counted, "", ""
		} else if n, ok := run.estimates[i]; ok {
			s.EstimatedOut, s.State, s.Reason, s.Message = &n, stages.Estimated, stages.ReasonOverBudget, ""
		}
	}
	for i := range run.stages {
		run.follow(i)
	}
	for i, s := range run.stages {
		p := run.plan.Stages[i]
		if n, ok := run.values[i][parse.CountIn]; ok {
			s.RowsIn = &n
		} else if p.Left >= 0 {
			s.RowsIn = run.stages[p.Left].RowsOut
		}
		if p.Right >= 0 {
			s.RowsRight = run.stages[p.Right].RowsOut
		}
		if n, ok := run.values[i][parse.CountNull]; ok && s.RowsOut != nil {
			s.Null = &n
		}
		switch s.Kind {
		case stages.KindJoin:
			run.settleJoin(i, s)
		case stages.KindWhere, stages.KindHaving, stages.KindDistinct, stages.KindLimit:
			if s.RowsIn != nil && s.RowsOut != nil {
				s.Lost = new(*s.RowsIn - *s.RowsOut)
			}
		}
	}
}

// follow gives a stage the rows of the one that it follows.
func (run *stageRun) follow(i int) {
	to := run.plan.Stages[i].Follows
	s := run.stages[i]
	if to < 0 || s.RowsOut != nil {
		return
	}
	run.follow(to)
	from := run.stages[to]
	s.RowsOut, s.EstimatedOut, s.State, s.Reason, s.Message = from.RowsOut, from.EstimatedOut, from.State, from.Reason,
		""
}

// settleJoin computes how the sides of a join match.
func (run *stageRun) settleJoin(i int, s *stages.Stage) {
	v := run.values[i]
	get := func(kind parse.CountKind) *int64 {
		if n, ok := v[kind]; ok {
			return &n
		}
		return nil
	}
	m := &stages.Matches{Pairs: get(parse.CountPairs)}
	withLeft, withRight := get(parse.CountWithLeft), get(parse.CountWithRight)
	switch s.JoinKind {
	case "cross":
		return
	case "inner":
		m.Pairs = s.RowsOut
	case "left":
		withLeft = s.RowsOut
	case "right":
		withRight = s.RowsOut
	}
	m.LeftUnmatched, m.RightUnmatched = difference(withLeft, m.Pairs), difference(withRight, m.Pairs)
	m.MaxLeft, m.MaxRight = get(parse.CountMaxLeft), get(parse.CountMaxRight)
	left, right := get(parse.CountNullLeft), get(parse.CountNullRight)
	if left != nil && right != nil {
		m.NullKeys = new(*left + *right)
	}
	if *m != (stages.Matches{}) {
		s.Multiplied = m
	}
	if s.JoinKind == "inner" || s.JoinKind == "right" {
		s.Lost = m.LeftUnmatched
	} else if s.RowsOut != nil {
		s.Lost = new(int64(0))
	}
}

// difference returns a - b, or nil if one of them is not known.
func difference(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a - *b)
}

// answer returns all that is known.
func (run *stageRun) answer() *stages.Stages {
	out := &run.out
	out.Lines, out.Blocks, out.NotLooked = run.plan.Lines, []stages.Block{}, []string{}
	if run.tooSlow {
		out.NotLooked = append(out.NotLooked, "how the sides of some joins match, because the statement is slow")
	}
	if run.plan.HasMoreParts {
		out.NotLooked = append(out.NotLooked, "some views, subqueries, filters or windows: the statement has too many")
	}
	out.NotLooked = append(out.NotLooked, run.notLooked...)
	if out.Findings == nil {
		out.Findings = []stages.Finding{}
	}
	for _, id := range run.plan.Order {
		p := run.plan.Blocks[id]
		b := stages.Block{
			ID: id, Parent: p.Parent, Kind: p.Kind, Name: p.Name, FromLine: p.From, ToLine: p.To, Reason: p.Reason,
			Definition: p.Definition, Stages: []*stages.Stage{},
		}
		for _, s := range run.stages {
			if s.Block == id {
				b.Stages = append(b.Stages, s)
			}
		}
		if p.Last >= 0 {
			b.Rows = run.stages[p.Last].RowsOut
		}
		out.Blocks = append(out.Blocks, b)
	}
	run.checkRows()
	run.checkViews()
	return out
}

// checkRows takes the values of the statement's last block back if they contradict the rows of the statement: then
// something in it has a meaning that the derivation does not know.
func (run *stageRun) checkRows() {
	main := &run.out.Blocks[len(run.out.Blocks)-1]
	if main.Rows == nil || run.out.Truncated || *main.Rows == run.out.Rows {
		return
	}
	refuseBlock(main, "the derived counts do not fit to the number of rows of the statement")
}
