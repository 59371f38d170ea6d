package dbaccess

import (
	"fmt"
	"strings"

	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox/stages"
)

// keyJudges judge the probes about keys and joins.
var keyJudges = map[string]judge{
	parse.ProbeSharedLabel: func(e *evidence) (judgement, bool) {
		labels, shared, most, rows, score := e.n(0, 0), e.n(0, 1), e.n(0, 2), e.n(0, 3), 86
		if shared*4 > labels { // a property that many rows have may be what is grouped by
			score = 66
		}
		return judgement{score, fmt.Sprintf("%s is not unique: %d of %d values are the same for up to %d rows of %s, "+
				"which become one group (merged). Group by the key, %s, too.", e.name(0), shared, labels, most,
				e.name(1), e.name(2)), facts("values", labels, "shared", shared, "most_rows", most)},
			labels >= 5 && shared > 0 && (score == 86 || rows <= 2*labels)
	},
	parse.ProbeDoubleKey: func(e *evidence) (judgement, bool) {
		keys, double, more := e.n(0, 0), e.n(0, 1), e.n(0, 2)
		leftDouble := e.n(1, 1)
		return judgement{85, fmt.Sprintf("%s is almost a key: %d of %d values are duplicated in %s, and each repeats "+
				"the rows that "+
				"match it (%d rows more, counted several times).", e.name(1), double, keys, e.name(0), more),
				facts("values", keys, "duplicated", double, "more_rows", more)},
			keys >= 5 && double > 0 && double*5 <= keys && leftDouble > 0
	},
	parse.ProbePartialKey: func(e *evidence) (judgement, bool) {
		rows, full := e.n(0, 0), e.n(0, 1)
		return judgement{89, fmt.Sprintf("the key of %s is (%s), and the join lacks %s: %d rows match, of which %d "+
				"have the same %s as "+
				"%s. The others are repeats with the values of another %s.", e.name(0), e.name(3), e.name(1), rows,
				full,
				e.name(1), e.name(2), e.name(1)), facts("rows", rows, "rows_of_full_key", full)},
			full > 0 && full < rows
	},
	parse.ProbePeriod: func(e *evidence) (judgement, bool) {
		rows, followed, reversed, overlaps, keys := e.n(0, 0), e.n(0, 1), e.n(0, 2), e.n(0, 3), e.n(0, 4)
		joined, before := e.n(1, 0), e.n(2, 0)
		// The rows with periods are the subject if the join repeats none of them: not the rows of the other side.
		isOnce := e.n(2, 1) == e.n(2, 2)
		if isOnce && (e.Flags["measured"] || e.Flags["counted"] && e.n(3, 0) == 1) ||
			e.Flags["finer"] && e.n(3, 0) == e.n(3, 1) {
			return judgement{}, false
		}
		return judgement{86, fmt.Sprintf("%s has %d rows of %d keys, each for a period from %s to %s that do not "+
				"overlap, and "+
				"no condition chooses the valid period: the join makes %d rows of %d, and rows are counted several "+
				"times.", e.name(0),
				rows, keys, e.name(1), e.name(2), joined, before), facts("rows", rows, "keys", keys, "joined", joined)},
			followed > 0 && reversed == 0 && overlaps == 0 && joined > before
	},
	parse.ProbeSharedBound: func(e *evidence) (judgement, bool) {
		rows, both := e.n(0, 0), e.n(0, 1)
		return judgement{84, fmt.Sprintf("BETWEEN includes both bounds, and a period of %s begins where another one "+
			"ends: for %d of %d rows of %s, %s is on such a bound and matches two periods (repeated, counted twice). "+
			"Use >= the begin and < the end.", e.name(0), both, rows, e.name(2), e.name(1)),
			facts("rows", rows, "of_two_periods", both)}, both > 0
	},
	parse.ProbeOuterFilter: func(e *evidence) (judgement, bool) {
		rows, kept, score := e.n(0, 0), e.n(0, 1), 60
		if e.Flags["only"] {
			score = 78
		}
		return judgement{score, fmt.Sprintf("%s stands in ON and is on %s, the preserved side of the %s, so it does "+
				"not filter: %d of "+
				"%d rows do not pass and stay, without a match. In WHERE it would remove them.",
				stages.Clip(e.Clause), e.name(1),
				e.name(0), kept, rows), facts("rows", rows, "stay", kept)},
			kept > 0 && kept < rows
	},
	parse.ProbeNullableMark: func(e *evidence) (judgement, bool) {
		without, with, score := e.n(0, 0), e.n(0, 1), 66
		// The join serves this test alone, and the test is not whether the row refers to another one.
		if e.Flags["unread"] && !e.Flags["reference"] {
			score = 80
		}
		return judgement{score, fmt.Sprintf("%s is true for %d rows without a match in %s, and for %d rows with a "+
				"match whose %s is NULL. "+
				"Test the key to find the rows without a match.", stages.Clip(e.Clause), without, e.name(0), with,
				e.name(1)),
				facts("without_match", without, "with_match", with)},
			without > 0 && with > 0
	},
	parse.ProbeLostRows: func(e *evidence) (judgement, bool) {
		rows, nulls, unmatched := e.n(0, 0), e.n(0, 1), e.n(0, 2)
		score := 54
		if e.Flags["grouped"] && (nulls > 0 || e.Flags["group"]) {
			score = 57
		}
		among, keep := "", "A LEFT JOIN would keep them."
		if e.Flags["conditions"] {
			among = fmt.Sprintf(" among the rows of %s that pass the conditions", e.name(1))
			keep = "A LEFT JOIN with these conditions in ON would keep them."
		}
		return judgement{score, fmt.Sprintf("the inner join with %s leaves out %d of %d rows of %s: %s is NULL for "+
			"%d, and %d have no match%s (unmatched). %s", e.name(1), nulls+unmatched, rows, e.name(0), e.name(2), nulls,
			unmatched, among, keep),
			facts("rows", rows, "null_keys", nulls, "unmatched", unmatched)}, nulls+unmatched > 0
	},
	parse.ProbeSelfPairs: func(e *evidence) (judgement, bool) {
		rows, self, score := e.n(0, 0), e.n(0, 1), 76
		if e.Flags["grouped"] { // a row may be compared with the mean of its group, and is one of the group
			score = 66
		}
		return judgement{score, fmt.Sprintf("the join also pairs each row of %s with itself: %d of %d rows. Add %s.%s "+
			"<> %s.%s, or < to "+
			"have each pair once.", e.name(0), self, rows, e.name(1), e.name(3), e.name(2), e.name(3)),
			facts("rows", rows, "with_itself", self)}, self > 0 && self < rows
	},
	parse.ProbeOtherMaximum: func(e *evidence) (judgement, bool) {
		rows, other := e.n(0, 0), e.n(0, 1)
		return judgement{90, fmt.Sprintf("the subquery gives the %s of each %s, and the condition does not compare "+
			"%s: %d of %d rows "+
			"pass by the %s of another %s. Compare both columns.", e.name(0), e.name(1), e.name(1), other, rows,
			e.name(0),
			e.name(1)), facts("rows", rows, "of_another", other)}, other > 0
	},
}

// logicJudges judge the probes about conditions, texts and lists.
var logicJudges = map[string]judge{
	parse.ProbeNeverTrue: func(e *evidence) (judgement, bool) {
		a, b, both := e.n(0, 0), e.n(0, 1), e.n(0, 2)
		if e.name(1) == "" {
			return judgement{94, fmt.Sprintf("%s has the larger bound first, so it is never true. With the bounds in "+
				"order, %d of %d rows "+
				"pass.", stages.Clip(e.Clause), a, b), facts("rows", b, "in_order", a)}, a > 0 && both == 0
		}
		return judgement{93, fmt.Sprintf("%s and %s are never both true of one row: %d and %d rows pass one of them. "+
				"Use OR or IN, or "+
				"look for two rows.", e.name(1), stages.Clip(e.Clause), a, b), facts("first", a, "second", b)},
			both == 0 && a+b > 0
	},
	parse.ProbeAlwaysTrue: func(e *evidence) (judgement, bool) {
		known, fails, and := e.n(0, 0), e.n(0, 1), e.n(0, 2)
		return judgement{93, fmt.Sprintf("%s is always true: each value of %s differs from one of the two. All %d "+
			"rows pass; with AND, "+
			"%d would not.", stages.Clip(e.Clause), e.name(0), known, and), facts("rows", known, "and_removes",
			and)}, fails == 0 && and > 0
	},
	parse.ProbeNullEquals: func(e *evidence) (judgement, bool) {
		rows, nulls := e.n(0, 0), e.n(0, 1)
		return judgement{95, fmt.Sprintf("a comparison with NULL is never true: %s is NULL for %d of %d rows, and "+
			"none of them is "+
			"found. Use IS NULL.", e.name(0), nulls, rows), facts("rows", rows, "null_rows", nulls)}, nulls > 0
	},
	parse.ProbeLiteralForm: func(e *evidence) (judgement, bool) {
		exact, loose := e.n(0, 0), e.n(0, 1)
		return judgement{83, fmt.Sprintf("%s compares texts as they are, with upper case and blanks: %d rows are "+
			"equal, and %d without "+
			"regard to case and blanks.", stages.Clip(e.Clause), exact, loose), facts("rows", exact,
			"rows_normalised", loose)}, loose > exact
	},
	parse.ProbeUncorrelated: func(e *evidence) (judgement, bool) {
		inner, rows, what := e.n(0, 0), e.n(1, 0), "EXISTS is always true"
		if e.Flags["negated"] {
			what = "NOT EXISTS is always false"
		}
		return judgement{90, fmt.Sprintf("the subquery of EXISTS reads no column of the outer query: it has %d "+
			"rows, so %s, the same for all %d rows. Correlate it with the outer row.", inner, what, rows),
			facts("rows_of_subquery", inner, "rows", rows)}, inner > 0 && rows > 1
	},
	parse.ProbeNoOrder: func(e *evidence) (judgement, bool) {
		kept, all, score := e.n(0, 0), e.n(1, 0), 80
		if e.Flags["result"] { // a look at some rows
			score = 62
		}
		return judgement{score, fmt.Sprintf("LIMIT without ORDER BY keeps %d of %d rows by chance.", kept, all),
			facts("rows", all, "kept", kept)}, kept < all
	},
	parse.ProbeSwapped: func(e *evidence) (judgement, bool) {
		rows := e.n(0, 0)
		return judgement{93, fmt.Sprintf("set operations go by position, not by name: the column %s of the first "+
			"query takes %s of the "+
			"second one. Write the columns in the same order.", e.name(0), e.name(1)), facts("rows", rows)}, rows > 0
	},
	parse.ProbeSetPrecedence: func(e *evidence) (judgement, bool) {
		got, other, score := e.n(0, 0), e.n(1, 0), 66
		if e.Flags["same"] { // both queries differ in a constant only, so INTERSECT was probably meant for both
			score = 78
		}
		return judgement{score, fmt.Sprintf("INTERSECT binds stronger than %s, so it is of the last two queries "+
			"alone, and the rows before %s need not be in it: %d rows. With parentheses around the %s, %d.", e.name(0),
			e.name(0), got, e.name(0), other), facts("rows", got, "grouped", other)}, got != other
	},
	parse.ProbeCaseGap: func(e *evidence) (judgement, bool) {
		rows, gap := e.n(0, 0), e.n(0, 1)
		return judgement{86, fmt.Sprintf("the ranges of CASE have a gap: %d of %d rows have a %s between two of "+
				"them, and go to ELSE or "+
				"are NULL. Use < the next bound.", gap, rows, e.name(0)), facts("rows", rows, "in_gaps", gap)},
			gap > 0 && gap*4 < rows
	},
	parse.ProbeOrInJoin: func(e *evidence) (judgement, bool) {
		rows, alone := e.n(0, 0), e.n(0, 1)
		return judgement{88, fmt.Sprintf("AND binds stronger than OR, so %s joins rows without the other conditions "+
			"of ON: %d of %d rows. "+
			"Use parentheses around the OR.", stages.Clip(e.Clause), alone, rows), facts("rows", rows,
			"by_or_alone", alone)}, alone > 0
	},
	parse.ProbeLabelOrder: judgeLabelOrder,
	parse.ProbeConcatNull: func(e *evidence) (judgement, bool) {
		rows, nulls, score := e.n(0, 0), e.n(0, 1), 78
		if e.Flags["one"] { // no other column is lost
			score = 66
		}
		return judgement{score, fmt.Sprintf("%s is NULL for %d of %d rows, because a part of it (%s) is NULL. Use "+
				"coalesce, or concat.",
				stages.Clip(e.Clause), nulls, rows, e.name(0)), facts("rows", rows, "null_rows", nulls)}, nulls > 0 &&
				nulls < rows
	},
	parse.ProbeCaseRemainder: func(e *evidence) (judgement, bool) {
		rows, nulls := e.n(0, 0), e.n(0, 1)
		if e.Flags["else"] {
			return judgement{63, fmt.Sprintf("ELSE gives %s to %d of %d rows because a value that WHEN compares is "+
				"NULL, so the condition is unknown, not false. Test for NULL first.", e.name(0), nulls, rows),
				facts("rows_of_else", rows, "null_rows", nulls)}, nulls > 0
		}
		return judgement{54, fmt.Sprintf("CASE without ELSE gives NULL to %d of %d rows.", nulls, rows),
			facts("rows", rows, "null_rows", nulls)}, nulls > 0 && nulls < rows
	},
	parse.ProbeOtherTotal: func(e *evidence) (judgement, bool) {
		rows, kept := e.n(0, 0), e.n(0, 1)
		return judgement{64, fmt.Sprintf("the denominator %s is of all %d rows of %s, and the conditions of WHERE "+
			"leave %d: the shares "+
			"are of another total and do not add up to 100 %%.", stages.Clip(e.Clause), rows, e.name(0), kept),
			facts("rows", rows, "kept", kept)}, kept < rows
	},
}

// judgeLabelOrder finds texts whose order is not that of the times which they stand for.
func judgeLabelOrder(e *evidence) (judgement, bool) {
	labels, differ := e.n(0, 0), e.n(0, 1)
	if e.name(3) != "" {
		isPair := len(e.rows) > 0 && len(e.rows[0]) > 4 && isTextual(e.rows[0][3]) && isTemporal(e.rows[0][4])
		return judgement{85, fmt.Sprintf("%s takes rows in the order of %s, which is a text and sorted as one, "+
			"alphabetically: %d of %d values are at another place than by %s, the order of the result (not "+
			"chronological). Use the time in the window, too.", strings.ToUpper(e.name(2)), e.name(0), differ, labels,
			e.name(3)), facts("labels", labels, "displaced", differ)}, isPair && differ > 0 && e.n(0, 2) == 0
	}
	return judgement{85, fmt.Sprintf("%s is a text and %s as one, alphabetically: %d of %d labels are at another "+
			"place than their dates.", e.name(0), e.name(1), differ, labels),
			facts("labels", labels, "displaced", differ)},
		differ > 0 && (e.n(0, 3) == 0 || e.n(0, 2) > 0) // numbers of months or hours have the order of the clock
}

// timeJudges judge the probes about times.
var timeJudges = map[string]judge{
	parse.ProbeIntervalPart: func(e *evidence) (judgement, bool) {
		if len(e.rows) < 2 || e.rows[0][0] != "interval" {
			return judgement{}, false
		}
		rows, differ := e.n(1, 0), e.n(1, 1)
		return judgement{91, fmt.Sprintf("%s is the %s field alone, not the whole interval: for %d of %d rows larger "+
			"fields, such as "+
			"months or days, are left out. Subtract dates, or use EXTRACT(epoch FROM ...).", stages.Clip(e.Clause),
			e.name(0),
			differ, rows), facts("rows", rows, "differ", differ)}, differ > 0
	},
	parse.ProbeTwoZones: func(e *evidence) (judgement, bool) {
		rows, differ, days := e.n(0, 0), e.n(0, 1), e.n(0, 2)
		return judgement{84, fmt.Sprintf("%s is taken in the time zone %s here and in %s elsewhere: the local time "+
			"differs for %d of %d "+
			"rows, and the day for %d.", e.name(0), e.name(1), e.name(2), differ, rows, days),
			facts("rows", rows, "differ", differ, "other_day", days)}, differ > 0
	},
	parse.ProbeEmptyPeriods: func(e *evidence) (judgement, bool) {
		groups, all := e.n(0, 0), e.n(0, 1)
		return judgement{56, fmt.Sprintf("a %s without rows has no group: %d of %d between the first and the last "+
			"are absent, not 0. Join "+
			"a generated series to show them.", e.name(0), all-groups, all), facts("groups", groups, "periods",
			all)}, all > groups && groups > 1
	},
	parse.ProbeTwiceZoned: func(e *evidence) (judgement, bool) {
		rows, differ := e.n(0, 0), e.n(0, 1)
		return judgement{92, fmt.Sprintf("%s has a time zone already: the second AT TIME ZONE reads the local time "+
			"as one of %s, and "+
			"shifts it the wrong way, for %d of %d rows. One AT TIME ZONE is enough.", e.name(0), e.name(1), differ,
			rows),
			facts("rows", rows, "differ", differ)}, differ > 0
	},
	parse.ProbeReadAsZone: func(e *evidence) (judgement, bool) {
		rows, differ := e.n(0, 0), e.n(0, 1)
		return judgement{76, fmt.Sprintf("%s has no time zone, so AT TIME ZONE reads it as a local time of that zone "+
			"and gives the time in "+
			"the zone of the session: for %d of %d rows the day changes.", e.name(0), differ, rows),
			facts("rows", rows, "differ", differ)}, differ > 0
	},
	parse.ProbeZoneColumn: func(e *evidence) (judgement, bool) {
		rows, zones, distinct := e.n(0, 0), e.n(0, 1), e.n(0, 2)
		return judgement{61, fmt.Sprintf("%s.%s has the time zone of each row (%d different ones), and this takes "+
				"the local day or hour in "+
				"one zone for all.", e.name(0), e.name(1), distinct), facts("rows", rows, "zones", distinct)},
			rows > 0 && zones == rows && distinct > 1
	},
	parse.ProbeDayEquality: func(e *evidence) (judgement, bool) {
		equal, day := e.n(0, 0), e.n(0, 1)
		return judgement{90, fmt.Sprintf("%s is true at midnight only: %d rows, and %d are of that day. Use >= the "+
			"day and < the next one.",
			stages.Clip(e.Clause), equal, day), facts("equal", equal, "of_the_day", day)}, day > equal
	},
	parse.ProbeMonthJoin: func(e *evidence) (judgement, bool) {
		rows, left, right := e.n(0, 0), e.n(0, 1), e.n(0, 2)
		return judgement{84, fmt.Sprintf("%s compares months without their year: the same month of several years "+
			"matches, and the join "+
			"makes %d rows.", stages.Clip(e.Clause), rows), facts("rows", rows, "left_repeats", left,
			"right_repeats", right)}, left > 0 && right > 0
	},
}

// judgeOf returns the judge of a kind of probes, or nil.
func judgeOf(kind string) judge {
	for _, list := range []map[string]judge{judges, windowJudges, countJudges, keyJudges, logicJudges, timeJudges} {
		if j := list[kind]; j != nil {
			return j
		}
	}
	return nil
}
