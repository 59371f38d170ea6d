package dbaccess

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox/stages"
)

// evidence is what the statements of a probe have returned: one row each.
type evidence struct {
	*parse.Probe
	rows [][]string
	run  *stageRun
}

// n returns a number of a row, or 0.
func (e *evidence) n(row, column int) int64 {
	if row >= len(e.rows) || column >= len(e.rows[row]) {
		return 0
	}
	n, _ := strconv.ParseInt(e.rows[row][column], 10, 64)
	return n
}

func (e *evidence) name(i int) string {
	if i >= len(e.Names) {
		return ""
	}
	return stages.Clip(e.Names[i])
}

// judgement is a finding without its place.
type judgement struct {
	score    int
	text     string
	evidence map[string]int64
}

// judge says what the evidence of a probe means. ok is false if it shows nothing.
type judge func(e *evidence) (j judgement, ok bool)

// facts makes the evidence of a finding from names and numbers.
func facts(pairs ...any) map[string]int64 {
	out := map[string]int64{}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i].(string)] = pairs[i+1].(int64)
	}
	return out
}

// judges has a judge for each kind of probe. A judge finds nothing unless the numbers show that the clause changes the
// result on this data.
var judges = map[string]judge{
	parse.ProbeNullList: func(e *evidence) (judgement, bool) {
		rows, nulls := e.n(0, 0), e.n(0, 1)
		return judgement{95, fmt.Sprintf("%s: the list has %d NULL of %d values, so the condition is never true: x "+
			"<> NULL "+
			"is NULL. Leave the NULLs out of the list, or use NOT EXISTS.", stages.Clip(e.Clause), nulls, rows),
			facts("nulls", nulls, "values", rows)}, nulls > 0
	},
	parse.ProbeScopeCapture: func(e *evidence) (judgement, bool) {
		rows, pass := e.n(0, 0), e.n(0, 1)
		return judgement{95, fmt.Sprintf("%s has no column %s, so %s in the subquery is %s.%s of the query around "+
			"it. The "+
			"condition then compares a row with itself: %d of %d rows pass.", e.name(2), e.name(0), e.name(0),
			e.name(1),
			e.name(0), pass, rows), facts("rows", rows, "pass", pass)}, rows > 0
	},
	parse.ProbeSelfComparison: func(e *evidence) (judgement, bool) {
		rows, pass := e.n(0, 0), e.n(0, 1)
		return judgement{90, fmt.Sprintf("%s compares a column with itself: it is true for all %d rows without NULL, "+
			"and "+
			"relates nothing.", stages.Clip(e.Clause), pass), facts("rows", rows, "pass", pass)}, pass > 0
	},
	parse.ProbeCrossJoin: func(e *evidence) (judgement, bool) {
		left, right := e.n(0, 0), e.n(1, 0)
		return judgement{92, fmt.Sprintf("no condition connects %s with the other tables of FROM: each of %d rows is "+
				"combined with each of its %d rows.", e.name(0), left, right), facts("left", left, "right", right)},
			left > 1 && right > 1
	},
	parse.ProbeDeadBranch:      judgeDeadBranch,
	parse.ProbeFrame:           judgeFrame,
	parse.ProbeRunningTies:     judgeRunningTies,
	parse.ProbeFanOut:          judgeFanOut,
	parse.ProbeCountAll:        judgeFanOut,
	parse.ProbeNullableSide:    judgeNullableSide,
	parse.ProbeArbitraryRow:    judgeArbitraryRow,
	parse.ProbeIntegerDivision: judgeIntegerDivision,
	parse.ProbeTextNumber:      judgeTextNumber,
	parse.ProbeMixedUnits:      judgeMixedUnits,
	parse.ProbeISOWeek: func(e *evidence) (judgement, bool) {
		rows, differ := e.n(0, 0), e.n(0, 1)
		return judgement{92, fmt.Sprintf("%s is an ISO week next to a calendar year: for %d of %d rows the ISO year "+
			"is "+
			"another, so days around New Year get a week of the wrong year. Use the ISO year (IYYY, isoyear).",
			stages.Clip(e.Clause), differ, rows), facts("rows", rows, "differ", differ)}, differ > 0
	},
	parse.ProbeConditionInWhere: func(e *evidence) (judgement, bool) {
		before, after := e.n(0, 0), e.n(1, 0)
		return judgement{90, fmt.Sprintf("%s needs a column of %s, the nullable side of the %s. It removes all %d "+
			"unmatched rows, so that join works as an inner join. A LEFT JOIN here would keep them.",
			stages.Clip(e.Clause),
			e.name(0),
			e.name(1), before), facts("unmatched", before, "survive", after)}, before > 0 && after == 0
	},
	parse.ProbeFineGroups: func(e *evidence) (judgement, bool) {
		groups, labels := e.n(0, 0), e.n(0, 1)
		return judgement{88, fmt.Sprintf("GROUP BY %s makes %d groups, but the SELECT list shows only %d different "+
			"values "+
			"of them: %s is repeated. Group by what is shown.", e.name(0), groups, labels, e.name(1)),
			facts("groups", groups, "labels", labels)}, labels < groups
	},
	parse.ProbeAliasShadow: func(e *evidence) (judgement, bool) {
		groups, labels := e.n(0, 0), e.n(0, 1)
		return judgement{91, fmt.Sprintf("GROUP BY %s means the column %s, not the expression of the SELECT list "+
			"with this "+
			"name: %d groups for %d different values. Group by the expression, or by its number.", e.name(0),
			e.name(0), groups,
			labels), facts("groups", groups, "labels", labels)}, labels < groups
	},
	parse.ProbeLastDay: func(e *evidence) (judgement, bool) {
		rows, score := e.n(0, 0), 80
		switch {
		case e.Flags["exclusive"]:
			return judgement{76, fmt.Sprintf("%s leaves out the last day of the month, because the bound is that day "+
				"and is exclusive: %d rows of that day pass all other conditions. Use < the first day of the next "+
				"month.", stages.Clip(e.Clause), rows), facts("rows_of_last_day", rows)}, rows > 0
		case e.Flags["between"]:
			score = 89
		}
		return judgement{score, fmt.Sprintf("%s ends at midnight, when the last day begins: %d rows of that day are "+
			"left "+
			"out. Use < the next day.", stages.Clip(e.Clause), rows), facts("rows_of_last_day", rows)}, rows > 0
	},
	parse.ProbeWrongKey: func(e *evidence) (judgement, bool) {
		got, by := e.n(0, 0), e.n(1, 0)
		return judgement{88, fmt.Sprintf("%s.%s and %s.%s are not a foreign key: %d pairs match by chance. The "+
			"foreign key "+
			"is %s.%s = %s.%s, with %d pairs.", e.name(4), e.name(0), e.name(5), e.name(1), got, e.name(4), e.name(2),
			e.name(5),
			e.name(3), by), facts("pairs", got, "pairs_of_key", by)}, got != by
	},
	parse.ProbeNatural: func(e *evidence) (judgement, bool) {
		got, by := e.n(0, 0), e.n(1, 0)
		return judgement{88, fmt.Sprintf("NATURAL JOIN compares all columns with the same name (%s): %d rows. The "+
			"foreign "+
			"key alone, %s.%s = %s.%s, matches %d.", e.name(0), got, e.name(3), e.name(1), e.name(4), e.name(2), by),
			facts("rows", got, "pairs_of_key", by)}, got != by
	},
	parse.ProbePairs: func(e *evidence) (judgement, bool) {
		a, b := e.n(0, 0), e.n(0, 1)
		return judgement{69, fmt.Sprintf("%s keeps each pair of %s in both orders: %d rows with %s < %s, and %d the "+
			"other "+
			"way round. < would keep each pair once.", stages.Clip(e.Clause), e.name(0), a, e.name(1), e.name(2), b),
			facts("one_order", a, "other_order", b)}, a > 0 && a == b
	},
	parse.ProbeEmptyCount: func(e *evidence) (judgement, bool) {
		groups, empty, score := e.n(0, 0), e.n(0, 1), 65
		if e.n(0, 2) == 1 { // each group is one row of the other side, which nobody needs to count
			score = 88
		}
		return judgement{score, fmt.Sprintf("%s counts the row without a match of the %s as 1: %d of %d groups have "+
			"no row "+
			"of %s. Count a column of %s.", stages.Clip(e.Clause), e.name(1), empty, groups, e.name(0), e.name(0)),
			facts("groups", groups, "groups_without_match", empty)}, empty > 0
	},
	parse.ProbeTextKey: func(e *evidence) (judgement, bool) {
		normal, exact := e.n(0, 0), e.n(0, 1)
		return judgement{85, fmt.Sprintf("%s compares texts as they are: %d pairs match, and %d without regard to "+
				"upper "+
				"case and blanks.", stages.Clip(e.Clause), exact, normal), facts("pairs", exact, "pairs_normalised",
				normal)},
			normal > exact
	},
	parse.ProbeRemovedRows: func(e *evidence) (judgement, bool) {
		all, kept := e.n(0, 0), e.n(0, 1)
		if e.Flags["listed"] { // a list without repeats may be meant
			return judgement{60, fmt.Sprintf("UNION removes %d of %d rows because an equal one is in the same query. "+
				"UNION ALL keeps them.", all-kept, all), facts("rows", all, "kept", kept)}, kept < all
		}
		return judgement{84, fmt.Sprintf("UNION removes %d of %d rows because they are equal, before they are added "+
			"up. "+
			"UNION ALL keeps them.", all-kept, all), facts("rows", all, "kept", kept)}, kept < all
	},
	parse.ProbeWildcard: func(e *evidence) (judgement, bool) {
		got, literal := e.n(0, 0), e.n(0, 1)
		return judgement{83, fmt.Sprintf("_ in %s stands for any character: %d rows match, and %d have _ itself. "+
				"Write \\_ "+
				"for the character.", stages.Clip(e.Clause), got, literal), facts("matches", got, "literal_matches",
				literal)},
			literal > 0 && literal < got
	},
	parse.ProbeNullArithmetic: judgeNullArithmetic,
	parse.ProbeCountedColumn: func(e *evidence) (judgement, bool) {
		rows, nulls := e.n(0, 0), e.n(0, 1)
		return judgement{82, fmt.Sprintf("%s counts rows whose %s is not NULL, and leaves %d of %d rows out. COUNT(*) "+
				"counts all %s.", stages.Clip(e.Clause), e.name(0), nulls, rows, e.name(1)), facts("rows", rows,
				"null_rows",
				nulls)},
			nulls > 0
	},
	parse.ProbeTies: func(e *evidence) (judgement, bool) {
		with, kept := e.n(0, 0), e.n(1, 0)
		return judgement{76, fmt.Sprintf("%s leaves out %d rows with the same values as its last row: which ones are "+
				"shown "+
				"is by chance. Sort by a key, too, or use WITH TIES.", stages.Clip(e.Clause), with-kept), facts("ties",
				with-kept)},
			with > kept
	},
	parse.ProbeSumOfDistinct: func(e *evidence) (judgement, bool) {
		sum, distinct := e.n(0, 0), e.n(1, 0)
		return judgement{84, fmt.Sprintf("%s adds up distinct counts of groups: %d, but there are %d distinct values, "+
				"because some are in several groups.", stages.Clip(e.Clause), sum, distinct), facts("sum", sum,
				"distinct",
				distinct)},
			sum > distinct
	},
	parse.ProbePrecedence: func(e *evidence) (judgement, bool) {
		got, other, score := e.n(0, 0), e.n(0, 1), 67
		if e.Flags["same"] {
			score = 86
		}
		if e.Flags["not"] {
			return judgement{score, fmt.Sprintf("NOT binds stronger than OR, so it is of the first condition alone: "+
				"%d rows pass. With parentheses around the OR, %d.", got, other),
				facts("rows", got, "grouped", other)}, got != other
		}
		return judgement{score, fmt.Sprintf("AND binds stronger than OR, so %s counts without the conditions before "+
				"it: "+
				"%d "+
				"rows pass. With parentheses around the OR, %d.", stages.Clip(e.Clause), got, other), facts("rows",
				got, "grouped",
				other)},
			got != other
	},
	parse.ProbeLostNulls: func(e *evidence) (judgement, bool) {
		pass, nulls := e.n(0, 0), e.n(0, 1)
		score, what := 53, "coalesce"
		if e.Flags["negated"] {
			score, what = 62, "IS DISTINCT FROM"
		}
		return judgement{score, fmt.Sprintf("%s is NULL (unknown) for %d rows, which do not pass (%d do). "+what+" "+
			"would keep them.",
			stages.Clip(e.Clause), nulls, pass), facts("null_rows", nulls, "rows", pass)}, nulls > 0
	},
	parse.ProbeMeanOfMeans: func(e *evidence) (judgement, bool) {
		groups, least, most := e.n(0, 0), e.n(0, 1), e.n(0, 2)
		return judgement{67, fmt.Sprintf("%s is an average of the averages of %d groups with %d to %d rows: each "+
			"group has the same weight, however many rows it has.", stages.Clip(e.Clause), groups, least, most),
			facts("groups", groups, "least_rows", least, "most_rows", most)}, groups > 1 && least < most
	},
	parse.ProbeDenominator: func(e *evidence) (judgement, bool) {
		rows, removed := e.n(0, 0), e.n(0, 1)
		return judgement{65, fmt.Sprintf("%s removes %d of %d rows by the column %s, by which the numerator of the "+
			"share "+
			"is chosen: the share is of the rest only.", stages.Clip(e.Clause), removed, rows, e.name(0)),
			facts("rows", rows, "removed", removed)}, removed > 0
	},
	parse.ProbeMonths: func(e *evidence) (judgement, bool) {
		rows, years := e.n(0, 0), e.n(0, 1)
		return judgement{67, fmt.Sprintf("the month of %s stands without its year, and the rows are of %d years: the "+
				"same "+
				"month of several years is one.", stages.Clip(e.Clause), years), facts("rows", rows, "years", years)},
			years > 1
	},
	parse.ProbeSoftDelete: func(e *evidence) (judgement, bool) {
		rows, marked := e.n(0, 0), e.n(0, 1)
		return judgement{51, fmt.Sprintf("%d of %d rows of %s have %s, such as deleted ones: the view %s reads this "+
				"column to "+
				"leave rows out, and no condition here does.", marked, rows, e.name(0), e.name(1), e.name(2)),
				facts("rows", rows, "marked", marked)},
			marked > 0 && marked*2 < rows
	},
	parse.ProbeDayOfZone: func(e *evidence) (judgement, bool) {
		rows, late := e.n(0, 0), e.n(0, 1)
		return judgement{50, fmt.Sprintf("%s cuts days in the time zone of the session, UTC: %d of %d rows are after "+
			"22:00 "+
			"and belong to the next day two hours further east. Use AT TIME ZONE if days of a place are meant.",
			stages.Clip(e.Clause), late, rows), facts("rows", rows, "rows_after_22", late)}, late > 0
	},
	parse.ProbeDuplicates: func(e *evidence) (judgement, bool) {
		rows, distinct := e.n(0, 0), e.n(0, 1)
		return judgement{60, fmt.Sprintf("UNION ALL keeps rows with the same %s: %d rows for %d different values, and "+
				"COUNT counts each.", e.name(0), rows, distinct), facts("rows", rows, "distinct", distinct)},
			distinct < rows
	},
}

func judgeDeadBranch(e *evidence) (judgement, bool) {
	for i := 0; i*2 < len(e.Names); i++ {
		matches, reached := e.n(0, 1+2*i), e.n(0, 2+2*i)
		if matches > 0 && reached == 0 {
			if line, err := strconv.Atoi(e.Names[2*i]); err == nil {
				e.Line = line
			}
			return judgement{92, fmt.Sprintf("WHEN %s is never reached: it is true for %d rows, which all go to a "+
					"branch "+
					"before it. Put it first.", e.name(2*i+1), matches), facts("matches", matches, "reached", reached)},
				true
		}
	}
	return judgement{}, false
}

func judgeFrame(e *evidence) (judgement, bool) {
	rows, differ := e.n(0, 0), e.n(0, 1)
	return judgement{92, fmt.Sprintf("%s sees the rows up to the current one only, the default frame: for %d of %d "+
		"rows "+
		"the whole partition has another value. Add ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING.",
		stages.Clip(e.Clause), differ, rows), facts("rows", rows, "differ", differ)}, differ > 0
}

func judgeRunningTies(e *evidence) (judgement, bool) {
	rows, differ := e.n(0, 0), e.n(0, 1)
	return judgement{69, fmt.Sprintf("%s has the default frame RANGE, which takes all rows with the same value of "+
		"ORDER BY at once: %d of %d rows differ from a running value by ROWS.", stages.Clip(e.Clause), differ, rows),
		facts("rows", rows, "differ", differ)}, differ > 0
}

func judgeArbitraryRow(e *evidence) (judgement, bool) {
	groups, several, differ := e.n(0, 0), e.n(0, 1), e.n(0, 2)
	return judgement{91, fmt.Sprintf("DISTINCT ON takes one row of each group, and ORDER BY does not say which: %d of "+
		"%d groups have several rows, %d of them with other values. Sort by what decides.", several, groups, differ),
		facts("groups", groups, "groups_with_several_rows", several, "groups_that_differ", differ)}, differ > 0
}

func judgeIntegerDivision(e *evidence) (judgement, bool) {
	isInteger := func(s string) bool { return s == "integer" || s == "bigint" || s == "smallint" }
	if len(e.rows) != 2 || !isInteger(e.rows[0][0]) || !isInteger(e.rows[0][1]) {
		return judgement{}, false
	}
	rows, cut, zero := e.n(1, 0), e.n(1, 1), e.n(1, 2)
	score := 65
	if !e.Flags["constant"] && (zero > 0 || e.Flags["rounded"]) {
		score = 88
	}
	return judgement{score, fmt.Sprintf("%s divides integers, which cuts the fraction off: %d of %d values have one, "+
		"and %d become 0. Make one side numeric.", stages.Clip(e.Clause), cut, rows, zero),
		facts("values", rows, "with_fraction", cut, "become_zero", zero)}, cut > 0
}

func judgeTextNumber(e *evidence) (judgement, bool) {
	values, digits, lengths, zeros := e.n(0, 0), e.n(0, 1), e.n(0, 2), e.n(0, 3)
	score := 87
	if e.Flags["shown"] { // the result has the same rows in any order
		score = 66
	}
	return judgement{score, fmt.Sprintf("%s is a text and %s as one: all %d values are numbers of %d lengths, and '9' "+
		"comes after '10'. Cast it to a number.", e.name(0), e.name(1), digits, lengths), facts("values", values,
		"numbers",
		digits,
		"lengths", lengths)}, values > 0 && digits == values && lengths > 1 && zeros == 0
}

// judgeNullArithmetic finds an expression that is NULL because one operand is. A time that is absent is not known, so
// that a difference of times has no value either. The scores are below stages.ScoreLikely, because a question may ask
// for the NULL: the change from a month without a value is unknown, not 0.
func judgeNullArithmetic(e *evidence) (judgement, bool) {
	rows, left, right := e.n(0, 0), e.n(0, 1), e.n(0, 2)
	lost, operand := left, e.name(1)
	if right > left {
		lost, operand = right, e.name(0)
	}
	what, score := "which the result shows as NULL", 66
	switch {
	case e.Flags["aggregated"]:
		what, score = "and the aggregate leaves these rows out", 69
	case e.Flags["tested"]:
		what, score = "and these rows do not pass", 68
	}
	if e.Flags["time"] || len(e.rows) > 0 && len(e.rows[0]) > 3 && !isNumber(e.rows[0][3]) {
		score = 60
	}
	unit := "rows"
	if e.Flags["groups"] {
		unit, what = "groups", strings.Replace(what, "these rows", "these groups", 1)
	}
	return judgement{score, fmt.Sprintf("%s is NULL for %d of %d %s, because %s is NULL there, %s. Use "+
			"coalesce(..., 0).",
			stages.Clip(e.Clause), lost, rows, unit, operand, what), facts("rows", rows, "null_rows", lost)},
		lost > 0 && (lost < rows || e.Flags["groups"])
}

func isNumber(typ string) bool {
	return slices.Contains([]string{"integer", "bigint", "smallint", "numeric", "double precision", "real",
		"money"}, typ)
}

func judgeMixedUnits(e *evidence) (judgement, bool) {
	units, values, own := e.n(0, 0), e.n(0, 1), e.n(0, 2)
	if units < 2 || units < values || own > 0 { // other values, or the name of the amount has its unit
		return judgement{}, false
	}
	groups, mixed, most := e.n(1, 0), e.n(1, 1), e.n(1, 2)
	return judgement{68, fmt.Sprintf("%s adds up amounts of several %s values of %s (units or currencies): up to %d "+
		"in one group, in %d of "+
		"%d "+
		"groups. Group by it, or convert first.", stages.Clip(e.Clause), e.name(0), e.name(1), most, mixed, groups),
		facts("groups", groups, "mixed_groups", mixed, "most_units", most)}, mixed > 0
}

// one finds the plural of what there is one of.
var one = regexp.MustCompile(`\b1 (row|group|value|pair)s\b`)

// find runs the statements of the probes and judges them.
func (run *stageRun) find(ctx context.Context) {
	late, refused := 0, 0
	for i := range run.plan.Probes {
		p := &run.plan.Probes[i]
		if !run.mayProbe(ctx, p) {
			late++
			continue
		}
		e := &evidence{Probe: p, run: run}
		isComplete := true
		for _, s := range p.Statements {
			row, err := run.probe(ctx, s)
			if err != nil {
				if isRefused(err) {
					refused++
				}
				isComplete = false
				break
			}
			e.rows = append(e.rows, row)
		}
		judge := judgeOf(p.Kind)
		if !isComplete || judge == nil {
			continue
		}
		if j, ok := judge(e); ok {
			run.out.Findings = append(run.out.Findings, stages.Finding{
				Kind: p.Kind, Score: j.score, Line: p.Line, Block: p.Block, Stage: p.Stage, Clause: p.Clause,
				Text:     one.ReplaceAllString(j.text, "1 $1"),
				Evidence: j.evidence,
			})
		}
	}
	slices.SortStableFunc(run.out.Findings, func(a, b stages.Finding) int { return cmp.Compare(b.Score, a.Score) })
	run.out.Findings = withoutRepeats(run.out.Findings)
	if late > 0 {
		run.notLooked = append(run.notLooked, fmt.Sprintf("%d possible faults, because the time for them was used up",
			late))
	}
	if refused > 0 {
		run.notLooked = append(run.notLooked, fmt.Sprintf("%d possible faults over masked columns", refused))
	}
}

// cheapProbe is the part of the statement's own cost up to which a probe also runs when the time for probes is used up.
const cheapProbe = 0.1

// mayProbe reports whether there is time for a probe.
func (run *stageRun) mayProbe(ctx context.Context, p *parse.Probe) bool {
	if run.remaining() <= 0 || run.set.isEnded() || ctx.Err() != nil {
		return false
	}
	isLate := time.Now().After(run.more)
	if run.ownCost == 0 {
		return !isLate
	}
	total := 0.0
	for _, s := range p.Statements {
		cost, _, ok := run.explain(ctx, s.SQL, run.valuesOf(s.Names))
		if !ok {
			return !isLate
		}
		total += cost
	}
	return !run.isTooCostly(total) && (!isLate || total < cheapProbe*run.ownCost)
}

// withoutRepeats leaves out a finding of the same kind about the same line.
func withoutRepeats(list []stages.Finding) (out []stages.Finding) {
	for _, f := range list {
		if !slices.ContainsFunc(out, func(o stages.Finding) bool { return o.Kind == f.Kind && o.Line == f.Line }) {
			out = append(out, f)
		}
	}
	return out
}

// probe runs a statement of a probe and returns its row.
func (run *stageRun) probe(ctx context.Context, s parse.DerivedStatement) ([]string, error) {
	q, err := run.reader.checkQuery(ctx, s.SQL, run.valuesOf(s.Names), run.limits.User)
	if err != nil {
		return nil, err
	}
	rows, err := run.query(ctx, q, min(run.remaining()/4, run.timeoutOf(parse.CountsMatches)))
	if err != nil {
		return nil, err
	}
	if len(rows.Rows) != 1 {
		return nil, errNoCounts
	}
	row := make([]string, len(rows.Rows[0]))
	for i, text := range rows.Rows[0] {
		row[i] = string(text)
	}
	return row, nil
}
