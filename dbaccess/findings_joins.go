package dbaccess

import (
	"fmt"
	"strconv"

	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox/stages"
)

// judgeFanOut finds that rows of a table were repeated. An expression over several tables is right if the rows of one
// of them are not.
func judgeFanOut(e *evidence) (judgement, bool) {
	worst, statement := -1, 1
	for i := range e.Names[1:] {
		rows, distinct := e.n(0, 1+2*i), e.n(0, 2+2*i)
		if e.Flags["no-key-"+strconv.Itoa(i)] {
			own, ownDistinct := e.n(statement, 0), e.n(statement, 1)
			statement++
			if own != ownDistinct { // its own rows are not different
				return judgement{}, false
			}
		}
		if rows <= distinct {
			return judgement{}, false
		}
		if worst < 0 {
			worst = i
		}
	}
	if worst < 0 {
		return judgement{}, false
	}
	rows, distinct, table := e.n(0, 1+2*worst), e.n(0, 2+2*worst), e.name(1+worst)
	if e.Flags["reference"] {
		score := 66
		if e.Flags["alone"] {
			score = 82
		}
		return judgement{score, fmt.Sprintf("%s counts a row of %s as often as it is referred to: %d references, "+
			"to %d different rows (several times). Count DISTINCT.", stages.Clip(e.Clause), table, rows, distinct),
			facts("references", rows, "distinct_rows", distinct)}, true
	}
	by, stage := "", e.Stage
	if join, before := e.run.multiplying(e.Stage); join != nil && e.Kind == parse.ProbeFanOut {
		by = fmt.Sprintf(" by %s in line %d", stages.Clip(join.Text), join.FromLine)
		if before != nil {
			by += fmt.Sprintf(", because the join in line %d has repeated the rows that it matches", before.FromLine)
		}
		e.Line, e.Stage = join.FromLine, join.ID
	}
	score := 92
	// A value that is looked up for each row may be added up for each row.
	if e.Flags["lookup"] || e.Kind == parse.ProbeFanOut && len(e.Names) == 2 && e.run.looksUp(stage) {
		score = 69
	}
	return judgement{score, fmt.Sprintf("%s counts rows of %s several times: its %d rows are multiplied to %d%s "+
		"(fan-out). Aggregate before the join, or count distinct keys.", stages.Clip(e.Clause), table, distinct, rows,
		by),
		facts("rows", rows, "distinct_rows", distinct)}, true
}

// looksUp reports whether a join finds at most one row of a stage for each row before it.
func (run *stageRun) looksUp(stage int) bool {
	for i, p := range run.plan.Stages {
		if p.Kind == stages.KindJoin && p.Right == stage {
			in, m := run.stages[i].RowsIn, run.stages[i].Multiplied
			return in != nil && m != nil && m.Pairs != nil && m.LeftUnmatched != nil && *m.Pairs == *in-*m.LeftUnmatched
		}
	}
	return false
}

// multiplying returns the first join that repeats the rows that come from a stage, or nil, and the join before it that
// has repeated the key which they match, or nil.
func (run *stageRun) multiplying(stage int) (join, before *stages.Stage) {
	if stage < 0 {
		return nil, nil
	}
	inside := map[int]bool{stage: true}
	for i, p := range run.plan.Stages {
		if p.Kind != stages.KindJoin || !inside[p.Left] && !inside[p.Right] {
			continue
		}
		s := run.stages[i]
		most := (*int64)(nil)
		if m := s.Multiplied; m != nil {
			if most = m.MaxRight; inside[p.Right] {
				most = m.MaxLeft
			}
		}
		if most == nil && s.RowsOut != nil && s.RowsIn != nil && inside[p.Left] && *s.RowsOut > *s.RowsIn ||
			most != nil &&
				*most > 1 {
			if p.LeftIsKey && inside[p.Right] {
				before = run.repeatingKey(p.Left)
			}
			return s, before
		}
		inside[i] = true
	}
	return nil, nil
}

// repeatingKey returns the last join of those up to a stage that repeats its left rows, or nil.
func (run *stageRun) repeatingKey(stage int) *stages.Stage {
	for stage >= 0 && run.plan.Stages[stage].Kind == stages.KindJoin {
		if m := run.stages[stage].Multiplied; m != nil && m.MaxRight != nil && *m.MaxRight > 1 {
			return run.stages[stage]
		}
		stage = run.plan.Stages[stage].Left
	}
	return nil
}

func judgeNullableSide(e *evidence) (judgement, bool) {
	unmatched, survive, before, after := e.n(0, 0), e.n(0, 1), e.n(0, 3), e.n(0, 4)
	if unmatched == 0 && before > after && e.Flags["strict"] {
		return judgement{76, fmt.Sprintf("%s is on %s, the nullable side of the %s. It removes all rows of %d of %d "+
			"rows "+
			"of the other side, as an inner join does. In ON it would keep them, unmatched.", stages.Clip(e.Clause),
			e.name(0), e.name(1), before-after, before), facts("before", before, "after", after)}, true
	}
	return judgement{91, fmt.Sprintf("%s is on %s, the nullable side of the %s. It removes all %d unmatched rows, so "+
		"the join works as an inner join. In ON it would keep them.", stages.Clip(e.Clause), e.name(0), e.name(1),
		unmatched),
		facts("unmatched", unmatched, "survive", survive)}, unmatched > 0 && survive == 0
}
