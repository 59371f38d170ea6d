package parse

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// findPeriods finds a join with a table that has several rows of a key, each for a period of time, where nothing
// chooses the period.
func findPeriods(d *stageDeriver, parts *blockParts) {
	for _, j := range parts.joins {
		pairs := d.equalPairs(j)
		if len(pairs) == 0 {
			continue
		}
		if !d.periodProbe(parts, j, periodSide{j.right, j.left, pairs, false}) {
			d.periodProbe(parts, j, periodSide{j.left, j.right, pairs, true})
		}
	}
}

// periodSide is a side of a join that may have periods, and the other one.
type periodSide struct {
	item, other *fromItem
	pairs       []equalPair
	isLeft      bool
}

// keys returns what the join compares: of the side, and of the other one.
func (s periodSide) keys(d *stageDeriver) (own, other []hole) {
	for _, p := range s.pairs {
		left, right := exprHole(d.text(p.left), p.leftNode), exprHole(d.text(p.right), p.rightNode)
		if s.isLeft {
			left, right = right, left
		}
		own, other = append(own, right), append(other, left)
	}
	return own, other
}

// row returns a row of expressions as a part of a template.
func (f *filler) row(holes []hole) string {
	out := "ROW("
	for i, h := range holes {
		if i > 0 {
			out += ", "
		}
		out += f.put(h)
	}
	return out + ")"
}

// periodProbe adds the probe of a side of a join. ok is false if the side is not a table with periods, or if the block
// uses the begin or the end of a period, or has each row of the table once.
func (d *stageDeriver) periodProbe(parts *blockParts, j *fromItem, side periodSide) (ok bool) {
	if len(side.item.tables()) != 1 || side.item.tables()[0].table == nil {
		return false
	}
	item := side.item.tables()[0]
	from, to := d.periodOf(item)
	if from == "" || d.mentions(parts, item, from) || d.mentions(parts, item, to) {
		return false
	}
	use, measured := d.periodUse(parts, item)
	if use == periodOnce {
		return false
	}
	keys, others := side.keys(d)
	var f filler
	table, key := f.put(side.item.hole(d.clauseText)), f.row(keys)
	a := f.put(ownHole(quoteName(item.name) + "." + quoteName(from)))
	b := f.put(ownHole(quoteName(item.name) + "." + quoteName(to)))
	inner := fill("SELECT "+key+` AS "key", `+a+` AS "a", `+b+` AS "b", lead(`+a+") OVER (PARTITION BY "+key+
		" ORDER BY "+a+`) AS "next" FROM `+table, f.holes...)
	var g filler
	other := g.row(others)
	queries := []derivedQuery{
		fill(`SELECT count(*), count(*) FILTER (WHERE "next" IS NOT NULL), count(*) FILTER (WHERE "b" < "a"), `+
			`count(*) FILTER (WHERE "next" IS NOT NULL AND ("b" IS NULL OR "b" > "next")), `+
			`count(DISTINCT "key") FROM (@0) AS "q"`, queryHole(inner)),
		fill("SELECT count(*) FROM @0", j.hole(d.clauseText)),
		fill("SELECT count(*), count(*) FILTER (WHERE "+other+" IS NOT NULL), count(DISTINCT "+other+
			") FILTER (WHERE "+other+" IS NOT NULL) FROM "+g.put(side.other.hole(d.clauseText)), g.holes...),
	}
	if how, ok := d.periodMeasure(parts, use, measured, others); ok {
		queries = append(queries, how)
	} else if use != periodMeasured {
		use = periodLookedUp
	}
	d.addFlagged(parts, ProbePeriod, j.stage, j.qual, []string{item.name, from, to},
		map[string]bool{"measured": use == periodMeasured, "counted": use == periodCounted,
			"finer": use == periodFiner}, queries...)
	return true
}

// periodMeasure returns the statement that shows whether a block counts rows of the table with periods: the largest
// number of keys of a group for COUNT(*), or the rows and the different rows of another table that is measured.
func (d *stageDeriver) periodMeasure(parts *blockParts, use int, measured *fromItem, others []hole) (
	q derivedQuery, ok bool,
) {
	var f filler
	switch use {
	case periodCounted:
		key := f.row(others)
		groups, ok := d.groups(&f, parts)
		each := fill("SELECT count(DISTINCT "+key+`) AS "n"`+groups, f.holes...)
		return fill(`SELECT coalesce(max("n"), 0) FROM (@0) AS "g"`, queryHole(each)), ok
	case periodFiner:
		identity, ok := d.rowIdentity(measured)
		if !ok {
			return q, false
		}
		id := f.put(identity)
		return fill("SELECT count("+id+"), count(DISTINCT "+id+")"+d.source(&f, parts), f.holes...), true
	}
	return q, false
}

// The uses of a table with periods in a block.
const (
	periodLookedUp = iota // for the rows of other tables
	periodMeasured        // all aggregates are of its own columns
	periodCounted         // as measured, with COUNT(*)
	periodFiner           // all aggregates are of the columns of one other table
	periodOnce            // no aggregate depends on how often a row occurs
)

// periodUse returns the use of a table in a block, and the table that is measured: rows with periods may be looked up
// for those of other tables, or they may be the subject, as the invoices of a customer are.
func (d *stageDeriver) periodUse(parts *blockParts, item *fromItem) (use int, measured *fromItem) {
	if !parts.isGrouped() {
		isDistinct := len(parts.node.DistinctClause) > 0 && parts.clause.distinctOn.isEmpty()
		isShown := d.readsAt(parts, item, nil, func(at place) bool { return at == inTarget })
		key := item.table.PrimaryKey
		switch {
		case isDistinct && !isShown && len(parts.windowCalls()) == 0:
			return periodOnce, nil
		case len(key) == 1 && d.shows(parts, item, key[0]): // a list of its rows
			return periodMeasured, item
		}
		return periodLookedUp, nil
	}
	isCounted := false
	for _, a := range parts.aggregates() {
		if name := functionName(a.call); a.call.AggDistinct || name == "min" || name == "max" {
			continue
		}
		isRow := true
		for _, arg := range a.call.Args {
			for _, ref := range columnsOf(arg) {
				isRow = false
				of := d.tableOf(parts.tables(), ref)
				if of == nil || measured != nil && of != measured {
					return periodLookedUp, nil
				}
				measured = of
			}
		}
		isCounted = isCounted || isRow
	}
	switch {
	case measured == nil && !isCounted:
		return periodOnce, nil
	case measured != nil && measured != item && isCounted:
		return periodLookedUp, nil
	case measured != nil && measured != item:
		return periodFiner, measured
	case isCounted:
		return periodCounted, item
	}
	return periodMeasured, item
}

// shows reports whether the SELECT list of a block has a column of an item.
func (d *stageDeriver) shows(parts *blockParts, item *fromItem, column string) bool {
	return slices.ContainsFunc(parts.node.TargetList, func(t *pg_query.Node) bool {
		return slices.ContainsFunc(columnsOf(t), func(ref *pg_query.ColumnRef) bool {
			_, name := columnName(ref)
			return name == column && d.tableOf(parts.tables(), ref) == item
		})
	})
}

// periodOf returns two columns of a table that may be the begin and the end of a period, or "": the end may be absent.
func (d *stageDeriver) periodOf(item *fromItem) (from, to string) {
	var times []Column
	for _, c := range item.table.Columns {
		if isTimeType(c.Type) {
			times = append(times, c)
		}
	}
	for i, a := range times {
		for _, b := range times[i+1:] {
			if a.Type == b.Type {
				return a.Name, b.Name
			}
		}
	}
	return "", ""
}
