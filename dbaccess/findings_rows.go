package dbaccess

import (
	"fmt"
	"strings"

	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox/stages"
)

// windowJudges judge the probes about windows and the first rows of an order.
var windowJudges = map[string]judge{
	parse.ProbeNoPartition: judgeNoPartition,
	parse.ProbeRunningShare: func(e *evidence) (judgement, bool) {
		rows, differ := e.n(0, 0), e.n(0, 1)
		return judgement{86, fmt.Sprintf("%s has ORDER BY and no frame, so it is a running total up to the current "+
			"row: for %d of %d "+
			"rows the share is not of the whole. Leave ORDER BY out.", stages.Clip(e.Clause), differ, rows),
			facts("rows", rows, "differ", differ)}, differ > 0
	},
	parse.ProbeNeighbours: func(e *evidence) (judgement, bool) {
		rows, tied := e.n(0, 0), e.n(0, 1)
		return judgement{78, fmt.Sprintf("%s takes the row before or after by %s, but %d of %d rows share this order "+
			"with "+
			"rows of another value: which one comes before is by chance. PARTITION BY the group, or order by a key, "+
			"too.",
			stages.Clip(e.Clause), e.name(1), tied, rows), facts("rows", rows, "tied", tied)}, tied > 0
	},
	parse.ProbeGaps: judgeGaps,
	parse.ProbeRowTies: func(e *evidence) (judgement, bool) {
		rows, cut := e.n(0, 0), e.n(0, 1)
		return judgement{74, fmt.Sprintf("%s numbers rows with the same values of ORDER BY by chance: %d of %d rows "+
			"are tied "+
			"with a kept one and left out. Order by a key, too, or use RANK.", stages.Clip(e.Clause), cut, rows),
			facts("rows", rows, "ties", cut)}, cut > 0
	},
	parse.ProbeRankGap: func(e *evidence) (judgement, bool) {
		groups, without := e.n(0, 0), e.n(0, 1)
		return judgement{84, fmt.Sprintf("RANK skips numbers after ties: in %d of %d partitions no row passes %s, "+
			"although "+
			"there is a next value. DENSE_RANK does not skip.", without, groups, stages.Clip(e.Clause)),
			facts("partitions", groups, "without_row", without)}, without > 0
	},
	parse.ProbeLateFilter: func(e *evidence) (judgement, bool) {
		groups, lost := e.n(0, 0), e.n(0, 1)
		return judgement{68, fmt.Sprintf("%s is tested after %s has numbered all rows (%s): %d of %d partitions of "+
			"%s have a "+
			"row that passes, and fall out because the chosen one, the latest or the first of all, does not. Filter "+
			"before "+
			"the numbering to choose among the rows that pass.", stages.Clip(e.Clause), strings.ToUpper(e.name(1)),
			e.name(0), lost, groups, e.name(2)), facts("partitions", groups, "fall_out", lost)}, lost > 0
	},
	parse.ProbeNullFirst: func(e *evidence) (judgement, bool) {
		rows, nulls, score := e.n(0, 0), e.n(0, 1), 86
		if e.Flags["time"] { // a time that is absent may be one that is still to come, and the latest
			score = 66
		}
		if e.Flags["limit"] {
			if nulls == rows && !e.Flags["time"] { // nothing is sorted at all
				score = 90
			}
			return judgement{score, fmt.Sprintf("DESC puts NULL first: %d of the %d rows that LIMIT keeps have no "+
				"%s. Use DESC "+
				"NULLS LAST, or leave the NULLs out.", nulls, rows, e.name(0)), facts("rows", rows, "null_rows",
				nulls)}, nulls > 0
		}
		return judgement{score, fmt.Sprintf("DESC puts NULL first: in %d of %d groups the first row has no %s, "+
			"although others "+
			"do. Use DESC NULLS LAST, or leave the NULLs out.", nulls, rows, e.name(0)),
			facts("groups", rows, "null_first", nulls)}, nulls > 0
	},
	parse.ProbeEarliest: func(e *evidence) (judgement, bool) {
		groups, later := e.n(0, 0), e.n(0, 1)
		isTime := len(e.rows) > 0 && len(e.rows[0]) > 2 && isTemporal(e.rows[0][2])
		return judgement{58, fmt.Sprintf("ORDER BY %s is ascending, so the earliest row of each %s is kept: %d of %d "+
			"groups have a later one. DESC would keep the latest.", e.name(0), e.name(1), later, groups),
			facts("groups", groups, "with_later_row", later)}, isTime && later > 0
	},
	parse.ProbeLoneRows: func(e *evidence) (judgement, bool) {
		rows, several := e.n(0, 0), e.n(0, 1)
		return judgement{80, fmt.Sprintf("each of the %d partitions of %s has one row, so %s sees that row alone. "+
				"The partition "+
				"is too fine.", rows, stages.Clip(e.Clause), strings.ToUpper(e.name(0))), facts("rows", rows)},
			rows > 2 && several == 0
	},
	parse.ProbeDistinctRows: func(e *evidence) (judgement, bool) {
		rows, distinct := e.n(0, 0), e.n(0, 1)
		return judgement{80, fmt.Sprintf("DISTINCT removes nothing, because %s gives each row another number: %d "+
			"rows, %d "+
			"different ones without it. Windows are computed before DISTINCT.", stages.Clip(e.Clause), rows, distinct),
			facts("rows", rows, "distinct", distinct)}, distinct < rows
	},
}

func isTextual(typ string) bool { return typ == "text" || strings.HasPrefix(typ, "character") }

func isTemporal(typ string) bool { return typ == "date" || strings.HasPrefix(typ, "timestamp") }

// judgeNoPartition finds that a time begins again where the first key of the order changes.
func judgeNoPartition(e *evidence) (judgement, bool) {
	rows, changes, restarts := e.n(0, 0), e.n(0, 1), e.n(0, 2)
	if len(e.rows) == 0 || len(e.rows[0]) < 5 {
		return judgement{}, false
	}
	first, second := e.rows[0][3], e.rows[0][4]
	isGroup := isTextual(first) || isTemporal(second) && !isTemporal(first)
	score := 66
	if e.Flags["neighbour"] {
		score = 88
	}
	return judgement{score, fmt.Sprintf("%s has no PARTITION BY: %d of %d rows are the first ones of another %s, and "+
			"%s "+
			"takes them on from the last row of the one before. Use PARTITION BY %s.", stages.Clip(e.Clause),
			changes, rows,
			e.name(1), strings.ToUpper(e.name(0)), e.name(1)), facts("rows", rows, "changes", changes, "restarts",
			restarts)},
		changes > 0 && restarts*10 >= changes*8 && (isGroup && changes*2 < rows || e.Flags["reference"])
}

// judgeGaps finds that the row before is not of the day or the month before.
func judgeGaps(e *evidence) (judgement, bool) {
	if len(e.rows) < 2 || !isTemporal(e.rows[0][0]) {
		return judgement{}, false
	}
	rows, inMonth, inDay := e.n(1, 0), e.n(1, 1), e.n(1, 2)
	monthStep, monthGaps, dayStep, dayGaps, same := e.n(1, 3), e.n(1, 4), e.n(1, 5), e.n(1, 6), e.n(1, 7)
	unit, gaps := "", int64(0)
	switch {
	case inDay > 0 || same > 0: // times of events
		return judgement{}, false
	case inMonth == 0 && (monthStep == 1 || e.Flags["MONTH"]):
		unit, gaps = "month", monthGaps
	case inMonth > 0 && (dayStep == 86400 || e.Flags["DAY"]):
		unit, gaps = "day", dayGaps
	default:
		return judgement{}, false
	}
	score := 72
	switch {
	case !e.Flags["MONTH"] && !e.Flags["DAY"]: // the days of the table itself, whose row before may be meant
		score = 64
	case !e.Flags["neighbour"]:
		score = 78
	}
	return judgement{score, fmt.Sprintf("%s goes by rows, and %s has gaps: for %d of %d rows the row before is not "+
		"of the %s "+
		"before, because a %s without rows is absent. Join a generated series of all %ss first.", stages.Clip(e.Clause),
		e.name(1), gaps, rows, unit, unit, unit), facts("rows", rows, "gaps", gaps)}, gaps > 0
}

// manyToMany returns the first join of a block that repeats the rows of both sides, or nil.
func (run *stageRun) manyToMany(block int) *stages.Stage {
	for i, p := range run.plan.Stages {
		m := run.stages[i].Multiplied
		if p.Block == block && p.Kind == stages.KindJoin && m != nil && m.MaxLeft != nil && m.MaxRight != nil &&
			*m.MaxLeft > 1 && *m.MaxRight > 1 {
			return run.stages[i]
		}
	}
	return nil
}

// countJudges judge the probes about aggregates.
var countJudges = map[string]judge{
	parse.ProbeCountedCase: func(e *evidence) (judgement, bool) {
		rows, is, not := e.n(0, 0), e.n(0, 1), e.n(0, 2)
		why := "false is not NULL"
		if e.name(0) != "" {
			why = "ELSE " + e.name(0) + " is not NULL"
		}
		return judgement{93, fmt.Sprintf("%s counts every row, because %s: the condition is true for %d of %d rows. "+
			"Use COUNT(*) "+
			"FILTER (WHERE ...), or SUM of 1 and 0.", stages.Clip(e.Clause), why, is, rows),
			facts("rows", rows, "true", is, "false", not)}, not > 0
	},
	parse.ProbeCountedElse: func(e *evidence) (judgement, bool) {
		rows, is := e.n(0, 0), e.n(0, 1)
		return judgement{90, fmt.Sprintf("%s counts the value of ELSE %s as one more: %d of %d rows get it. Leave "+
			"ELSE out.",
			stages.Clip(e.Clause), e.name(0), rows-is, rows), facts("rows", rows, "else", rows-is)}, is < rows
	},
	parse.ProbeSumDistinct: func(e *evidence) (judgement, bool) {
		groups, lossy, lost := e.n(0, 0), e.n(0, 1), e.n(0, 2)
		if kept, rows := e.n(0, 0), e.n(0, 1); e.Flags["rows"] {
			return judgement{84, fmt.Sprintf("%s adds up rows after SELECT DISTINCT, which takes rows of %s with "+
				"equal values for one: %d of %d different rows are left out. Select the key, too.",
				stages.Clip(e.Clause), e.name(1), rows-kept, rows), facts("rows", rows, "kept", kept)}, kept < rows
		}
		return judgement{88, fmt.Sprintf("%s takes each different value once: in %d of %d groups rows of %s have an "+
			"equal value by "+
			"chance, and %d of them are left out. Remove the repeated rows before, not the same amounts.",
			stages.Clip(e.Clause), lossy, groups, e.name(1), lost),
			facts("groups", groups, "groups_with_equal_values", lossy, "left_out", lost)}, lossy > 0
	},
	parse.ProbeApartMaxima: func(e *evidence) (judgement, bool) {
		groups, apart := e.n(0, 0), e.n(0, 1)
		return judgement{66, fmt.Sprintf("%s and %s are independent: in %d of %d groups they are of different rows, "+
			"so the value is "+
			"not that of the latest or first time. DISTINCT ON, or ROW_NUMBER, keeps one row together.", e.name(0),
			stages.Clip(e.Clause), apart, groups), facts("groups", groups, "of_different_rows", apart)}, apart > 0
	},
	parse.ProbeRoundedParts: func(e *evidence) (judgement, bool) {
		groups, differ := e.n(0, 0), e.n(0, 1)
		return judgement{66, fmt.Sprintf("%s adds up values after %s: in %d of %d groups the rounding of each row "+
			"changes the "+
			"sum. Round the sum.", stages.Clip(e.Clause), e.name(0), differ, groups),
			facts("groups", groups, "differ", differ)}, differ > 0
	},
	parse.ProbeZeroForNull: func(e *evidence) (judgement, bool) {
		rows, nulls := e.n(0, 0), e.n(0, 1)
		return judgement{64, fmt.Sprintf("%s takes a missing %s for %s: %d of %d rows are NULL, and change the result.",
				stages.Clip(e.Clause), e.name(0), e.name(1), nulls, rows), facts("rows", rows, "null_rows", nulls)},
			nulls > 0 && nulls < rows
	},
	parse.ProbeProductCount: func(e *evidence) (judgement, bool) {
		rows := e.n(0, 0)
		if join := e.run.manyToMany(e.Block); join != nil {
			e.Line, e.Stage = join.FromLine, join.ID
		}
		for i := range e.Names {
			if e.n(0, 1+i) <= 0 {
				return judgement{}, false
			}
		}
		return judgement{80, fmt.Sprintf("%s counts combinations: the joins repeat rows of each of %s, so none of "+
			"the %d rows "+
			"stands for one row of a table (many-to-many, rows are counted several times).", stages.Clip(e.Clause),
			strings.Join(e.Names, ", "), rows), facts("rows", rows)}, len(e.Names) > 1
	},
	parse.ProbeKeptGroups: func(e *evidence) (judgement, bool) {
		rows, pass := e.n(0, 0), e.n(0, 1)
		return judgement{60, fmt.Sprintf("HAVING keeps whole groups by %s: %d of the %d rows of these groups do not "+
			"pass it "+
			"themselves, and are counted. WHERE would leave them out.", stages.Clip(e.Clause), rows-pass, rows),
			facts("rows", rows, "pass", pass)}, pass > 0 && pass < rows
	},
	parse.ProbeMissingZero: func(e *evidence) (judgement, bool) {
		groups, all := e.n(0, 0), e.n(1, 0)
		return judgement{60, fmt.Sprintf("%s is over the %d groups that have rows of %s; %d of %d rows of %s have "+
			"none, and are left "+
			"out, not 0.", stages.Clip(e.Clause), groups, e.name(2), all-groups, all, e.name(1)),
			facts("groups", groups, "all", all)}, all > groups
	},
	parse.ProbeMeanOfRatio: func(e *evidence) (judgement, bool) {
		groups, differ := e.n(0, 0), e.n(0, 1)
		return judgement{62, fmt.Sprintf("%s is an average of ratios, in which each row has the same weight: in %d "+
			"of %d groups the "+
			"ratio of the sums is another.", stages.Clip(e.Clause), differ, groups),
			facts("groups", groups, "differ", differ)}, differ > 0
	},
}
