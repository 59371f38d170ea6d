package parse

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// The kinds of probes about times.
const (
	ProbeIntervalPart = "part-of-interval"
	ProbeTwoZones     = "two-time-zones"
	ProbeDayEquality  = "date-equals-timestamp"
	ProbeMonthJoin    = "month-join-without-year"
	ProbeDayOfZone    = "day-of-zone"
	ProbeEmptyPeriods = "periods-without-rows"
	ProbeTwiceZoned   = "time-zone-twice"
	ProbeReadAsZone   = "read-as-time-zone"
	ProbeZoneColumn   = "zone-of-the-row"
)

// timePart is a call that takes a part of a time: EXTRACT, date_part, date_trunc or to_char.
type timePart struct {
	field    string // upper case; the format of to_char
	argument *pg_query.Node
	isFormat bool
	isTrunc  bool
}

// partOf returns the part that a call takes, or ok == false.
func partOf(n *pg_query.Node) (p timePart, ok bool) {
	f := n.GetFuncCall()
	if f == nil || len(f.Args) < 2 {
		return p, false
	}
	switch functionName(f) {
	case "extract", "date_part":
		p = timePart{strings.ToUpper(f.Args[0].GetAConst().GetSval().GetSval()), f.Args[1], false, false}
	case "date_trunc":
		p = timePart{strings.ToUpper(f.Args[0].GetAConst().GetSval().GetSval()), f.Args[1], false, true}
	case "to_char":
		p = timePart{strings.ToUpper(f.Args[1].GetAConst().GetSval().GetSval()), f.Args[0], true, false}
	default:
		return p, false
	}
	return p, p.field != ""
}

// unitSeconds has the seconds of a unit of an interval.
var unitSeconds = map[string]string{
	"DAY": "86400", "HOUR": "3600", "MINUTE": "60", "SECOND": "1", "MONTH": "2592000", "DAYS": "86400", "HOURS": "3600",
	"MINUTES": "60", "SECONDS": "1", "MONTHS": "2592000",
}

// findIntervalParts finds EXTRACT of a field of an interval that has larger fields, which are left out.
func findIntervalParts(d *stageDeriver, parts *blockParts) {
	taken := map[string][]string{}
	each := func(visit func(n *pg_query.Node, p timePart, h hole)) {
		parts.visit(func(n *pg_query.Node, at place) {
			p, ok := partOf(n)
			if !ok || p.isFormat || p.isTrunc || at == inHaving {
				return
			}
			if h, ok := d.expression(p.argument); ok {
				visit(n, p, h)
			}
		})
	}
	each(func(_ *pg_query.Node, p timePart, h hole) { taken[h.text] = append(taken[h.text], p.field) })
	each(func(n *pg_query.Node, p timePart, h hole) {
		seconds := unitSeconds[p.field]
		if seconds == "" || len(taken[h.text]) > 1 || p.argument.GetColumnRef() != nil &&
			d.columnOf(parts, p.argument) != nil && d.columnOf(parts, p.argument).Type != "interval" {
			return
		}
		var f filler
		m := f.put(h)
		source := d.source(&f, parts)
		isAggregated := callsIn([]*pg_query.Node{p.argument}, isAggregate)
		if isAggregated {
			ok := false
			if source, ok = d.rows(&f, parts); !ok {
				return
			}
		}
		inner := fill("SELECT "+m+` AS "i"`+source, f.holes...)
		if callsIn([]*pg_query.Node{p.argument}, func(c *pg_query.FuncCall) bool { return c.Over != nil }) &&
			parts.isGrouped() {
			return
		}
		d.addProbe(parts, ProbeIntervalPart, -1, d.spanOr(n, parts.clause.targets),
			[]string{strings.ToLower(p.field), p.argumentText(d)},
			fill(`SELECT coalesce(min(pg_typeof("i")::text), '') FROM (@0) AS "q"`, queryHole(inner)),
			fill(`SELECT count("i"), count(*) FILTER (WHERE abs(extract(epoch FROM "i") / `+seconds+
				` - extract(`+strings.ToLower(p.field)+` FROM "i")) >= 1) FROM (@0) AS "q"`, queryHole(inner)))
	})
}

func (p timePart) argumentText(d *stageDeriver) string { return d.textOf(p.argument) }

// zoneOf returns the time and the zone of AT TIME ZONE, or ok == false.
func zoneOf(n *pg_query.Node) (time, zone *pg_query.Node, ok bool) {
	f := n.GetFuncCall()
	if functionName(f) != "timezone" || len(f.Args) != 2 {
		return nil, nil, false
	}
	return f.Args[1], f.Args[0], true
}

// findTwoZones finds a time that a query takes to two time zones, or once to one and once not, so that its days and
// hours are of different clocks.
func findTwoZones(d *stageDeriver, parts *blockParts) {
	type use struct {
		node, zone *pg_query.Node // zone: nil is that of the session
		text       string
	}
	uses := map[string][]use{}
	var order []string
	add := func(n, time, zone *pg_query.Node) {
		c := d.columnOf(parts, time)
		if c == nil || c.Type != "timestamp with time zone" {
			return
		}
		key := d.textOf(time)
		if len(uses[key]) == 0 {
			order = append(order, key)
		}
		text := ""
		if zone != nil {
			text = d.textOf(zone)
		}
		uses[key] = append(uses[key], use{n, zone, text})
	}
	var nested []*pg_query.Node // times of AT TIME ZONE, which do not use the session's zone
	parts.visit(func(n *pg_query.Node, _ place) {
		if time, zone, ok := zoneOf(n); ok {
			nested = append(nested, time)
			add(n, time, zone)
		}
	})
	parts.visit(func(n *pg_query.Node, at place) {
		if p, ok := partOf(n); ok && at != inHaving && p.field != "EPOCH" && !slices.Contains(nested, p.argument) &&
			len(n.GetFuncCall().Args) == 2 {
			add(n, p.argument, nil)
		}
		if c := n.GetTypeCast(); c != nil && c.TypeName != nil && isDateName(c.TypeName) &&
			!slices.Contains(nested, c.Arg) {
			add(n, c.Arg, nil)
		}
	})
	for _, key := range order {
		list := uses[key]
		fixed := slices.IndexFunc(list, func(u use) bool { return u.zone == nil || len(columnsOf(u.zone)) == 0 })
		local := slices.IndexFunc(list, func(u use) bool { return u.zone != nil && len(columnsOf(u.zone)) > 0 })
		if fixed < 0 {
			continue
		}
		if local < 0 {
			local = slices.IndexFunc(list, func(u use) bool { return u.zone != nil && u.text != list[fixed].text })
		}
		if local < 0 {
			continue
		}
		odd, other := list[fixed], list[local]
		if odd.zone != nil && len(columnsOf(other.zone)) == 0 { // two constants: the later one
			odd, other = other, odd
		}
		var f filler
		time, ok := d.expression(mustTime(odd.node))
		if !ok {
			continue
		}
		t := f.put(time)
		zoned := func(u use) (string, bool) {
			if u.zone == nil {
				return "timezone('UTC', " + t + ")", true
			}
			h, ok := d.expression(u.zone)
			return "timezone(" + f.put(h) + ", " + t + ")", ok
		}
		a, ok1 := zoned(odd)
		b, ok2 := zoned(other)
		if !ok1 || !ok2 {
			continue
		}
		name := odd.text
		if name == "" {
			name = "the session"
		}
		d.addProbe(parts, ProbeTwoZones, -1, d.spanOr(odd.node, parts.clause.all), []string{key, name, other.text},
			fill("SELECT count(*), count(*) FILTER (WHERE "+a+" <> "+b+"), count(*) FILTER (WHERE "+a+"::date <> "+b+
				"::date)"+d.source(&f, parts), f.holes...))
	}
}

// mustTime returns the time in AT TIME ZONE, a cast or a call that takes a part.
func mustTime(n *pg_query.Node) *pg_query.Node {
	if time, _, ok := zoneOf(n); ok {
		return time
	}
	if c := n.GetTypeCast(); c != nil {
		return c.Arg
	}
	p, _ := partOf(n)
	return p.argument
}

func isDateName(t *pg_query.TypeName) bool {
	return len(t.Names) > 0 && t.Names[len(t.Names)-1].GetString_().GetSval() == "date"
}

// findDayEqualities finds a time that is compared with a day by =, and IN: only midnight is equal.
func findDayEqualities(d *stageDeriver, parts *blockParts) {
	for _, c := range parts.conjuncts {
		left, right, _, ok := operator(c.node, "=")
		if e := c.node.GetAExpr(); e != nil && e.Kind == pg_query.A_Expr_Kind_AEXPR_IN &&
			len(e.Rexpr.GetList().GetItems()) > 0 {
			left, right, ok = e.Lexpr, e.Rexpr.GetList().Items[0], true
		}
		column := d.columnOf(parts, left)
		if !ok || column == nil || !strings.HasPrefix(column.Type, "timestamp") || len(columnsOf(right)) > 0 ||
			c.stage < 0 {
			continue
		}
		var f filler
		list, ok := d.marks(&f, []*pg_query.Node{left, right})
		if !ok {
			continue
		}
		const midnight = "date_trunc('day', CAST(%v AS timestamp))"
		bound := strings.ReplaceAll(midnight, "%v", list[1])
		d.addProbe(parts, ProbeDayEquality, c.stage, c.span, []string{d.textOf(left)},
			fill("SELECT count(*) FILTER (WHERE "+list[0]+" = "+list[1]+"), count(*) FILTER (WHERE CAST("+list[0]+
				" AS timestamp) >= "+bound+" AND CAST("+list[0]+" AS timestamp) < "+bound+
				" + interval '1 day' AND CAST("+list[1]+" AS timestamp) = "+bound+")"+d.from(&f, parts), f.holes...))
	}
}

// findMonthJoins finds joins that compare months, quarters or weeks without their year.
func findMonthJoins(d *stageDeriver, parts *blockParts) {
	for _, j := range parts.joins {
		quals := j.node.GetJoinExpr().Quals
		if quals == nil {
			continue
		}
		hasYear := false
		var found *equalPair
		var time *pg_query.Node
		for _, c := range d.splitWhere(quals, span{j.qual.start + 1, j.qual.end}) {
			pair, ok := d.equalPair(c, j.left.tables(), j.right.tables())
			if !ok {
				continue
			}
			for _, side := range []*pg_query.Node{pair.leftNode, pair.rightNode} {
				forEachNode(d.resolve(parts, side), func(n *pg_query.Node) bool {
					p, ok := partOf(n)
					if !ok {
						return true
					}
					isYear := p.isTrunc || p.field == "YEAR" || p.field == "ISOYEAR" || p.field == "EPOCH" ||
						p.isFormat && strings.Contains(p.field, "YY")
					hasYear = hasYear || isYear
					if !isYear && (slices.Contains([]string{"MONTH", "QUARTER", "WEEK", "DOY"}, p.field) ||
						p.isFormat && (strings.Contains(p.field, "MM") || strings.Contains(p.field, "MON") ||
							p.field == "Q")) {
						one := pair
						found, time = &one, p.argument
					}
					return false
				})
			}
		}
		if found == nil || hasYear || d.hasYearPair(parts, j) {
			continue
		}
		var f filler
		join := f.put(j.hole(d.clauseText))
		a, b := f.put(exprHole(d.text(found.left), found.leftNode)),
			f.put(exprHole(d.text(found.right), found.rightNode))
		left, right := f.put(j.left.hole(d.clauseText)), f.put(j.right.hole(d.clauseText))
		d.addProbe(parts, ProbeMonthJoin, j.stage, span{found.left.start, found.left.end}, []string{d.textOf(time)},
			fill("SELECT count(*), (SELECT count(*) - count(DISTINCT "+a+") FROM "+left+"), (SELECT count(*) - "+
				"count(DISTINCT "+
				b+") FROM "+right+") FROM "+join, f.holes...))
	}
}

// resolve returns the expression that a column of a subquery or a WITH query is, or the node itself.
func (d *stageDeriver) resolve(parts *blockParts, n *pg_query.Node) *pg_query.Node {
	ref := n.GetColumnRef()
	item := d.tableOf(parts.tables(), ref)
	if ref == nil || item == nil || item.child < 0 {
		return n
	}
	inner := d.partsOf(item.child)
	if inner == nil {
		return n
	}
	_, name := columnName(ref)
	if target := inner.targetOf(name); target != nil {
		return target
	}
	return n
}

// hasYearPair reports whether a join compares further columns than those of one pair, which may have the year.
func (d *stageDeriver) hasYearPair(parts *blockParts, j *fromItem) bool {
	for _, p := range d.equalPairs(j) {
		for _, side := range []*pg_query.Node{p.leftNode, p.rightNode} {
			if t, ok := partOf(d.resolve(parts, side)); ok && (t.field == "YEAR" || t.isTrunc || t.field == "ISOYEAR") {
				return true
			}
		}
	}
	return false
}

// findEmptyPeriods finds groups by month, week or day where some between the first and the last one have no rows.
func findEmptyPeriods(d *stageDeriver, parts *blockParts) {
	keys, ok := d.groupKeys(parts)
	if !ok || parts.id != 0 {
		return
	}
	for i, key := range keys {
		unit, time := "", (*pg_query.Node)(nil)
		inner := key
		for inner.GetTypeCast() != nil {
			inner = inner.GetTypeCast().Arg
		}
		switch p, ok := partOf(inner); {
		case ok && p.isTrunc:
			unit, time = p.field, inner
		case ok && p.isFormat && p.field == "YYYY-MM":
			unit, time = "MONTH", p.argument
		case key.GetTypeCast() != nil && isDateName(key.GetTypeCast().TypeName):
			unit, time = "DAY", key
		}
		if !slices.Contains([]string{"DAY", "WEEK", "MONTH"}, unit) {
			continue
		}
		h, ok := d.expression(time)
		if !ok {
			return
		}
		var f filler
		t := f.put(h)
		rows := fill("SELECT date_trunc("+quoteText(strings.ToLower(unit))+", "+t+`::timestamp) AS "t"`+d.source(&f,
			parts),
			f.holes...)
		span := map[string]string{
			"DAY":  `extract(epoch FROM max("t") - min("t")) / 86400 + 1`,
			"WEEK": `extract(epoch FROM max("t") - min("t")) / 604800 + 1`,
			"MONTH": `extract(year FROM max("t")) * 12 + extract(month FROM max("t")) - extract(year FROM min("t")) ` +
				`* 12 - ` +
				`extract(month FROM min("t")) + 1`,
		}[unit]
		d.addProbe(parts, ProbeEmptyPeriods, d.groupStage(parts), d.groupSpan(parts, i),
			[]string{strings.ToLower(unit)},
			fill(`SELECT count(DISTINCT "t"), coalesce(`+span+`, 0)::bigint FROM (@0) AS "q"`, queryHole(rows)))
		return
	}
}

// findTwiceZoned finds a time with a zone that AT TIME ZONE takes to one zone, and then reads as one of another; and a
// time without a zone that is read as one of a zone where its day or hour is taken.
func findTwiceZoned(d *stageDeriver, parts *blockParts) {
	parts.visit(func(n *pg_query.Node, at place) {
		time, zone, ok := zoneOf(n)
		if !ok || len(columnsOf(zone)) > 0 {
			return
		}
		first, _, ok := zoneOf(time)
		column := d.columnOf(parts, first)
		if !ok || column == nil || column.Type != "timestamp with time zone" {
			return
		}
		var f filler
		list, ok := d.marks(&f, []*pg_query.Node{n, first})
		if !ok {
			return
		}
		z, ok := d.expression(zone)
		if !ok {
			return
		}
		d.addProbe(parts, ProbeTwiceZoned, -1, d.spanOr(n, parts.clause.all), []string{d.textOf(first), d.textOf(zone)},
			fill("SELECT count(*), count(*) FILTER (WHERE ("+list[0]+" AT TIME ZONE 'UTC') <> ("+list[1]+" AT TIME "+
				"ZONE "+
				f.put(z)+"))"+d.source(&f, parts), f.holes...))
	})
	parts.visit(func(n *pg_query.Node, at place) {
		p, ok := partOf(n)
		if c := n.GetTypeCast(); c != nil && c.TypeName != nil && isDateName(c.TypeName) {
			p, ok = timePart{argument: c.Arg}, true
		}
		if !ok {
			return
		}
		time, _, ok := zoneOf(p.argument)
		column := d.columnOf(parts, time)
		if !ok || column == nil || column.Type != "timestamp without time zone" {
			return
		}
		var f filler
		list, ok := d.marks(&f, []*pg_query.Node{p.argument, time})
		if !ok {
			return
		}
		d.addProbe(parts, ProbeReadAsZone, -1, d.spanOr(n, parts.clause.all), []string{d.textOf(time)},
			fill("SELECT count(*), count(*) FILTER (WHERE "+list[0]+"::date <> "+list[1]+"::date)"+d.source(&f, parts),
				f.holes...))
	})
}

// findZoneColumns finds days and hours of a time in one zone for all rows, where a table of the query has the zone of
// each row, as its values show, and nothing reads it.
func findZoneColumns(d *stageDeriver, parts *blockParts) {
	var used *pg_query.Node
	parts.visit(func(n *pg_query.Node, at place) {
		p, ok := partOf(n)
		if c := n.GetTypeCast(); c != nil && c.TypeName != nil && isDateName(c.TypeName) {
			p, ok = timePart{argument: c.Arg}, true
		}
		time := p.argument
		if inner, zone, isZoned := zoneOf(time); isZoned && len(columnsOf(zone)) == 0 {
			time = inner
		}
		c := d.columnOf(parts, time)
		if ok && used == nil && p.field != "EPOCH" && c != nil && c.Type == "timestamp with time zone" {
			used = n
		}
	})
	if used == nil {
		return
	}
	for _, item := range parts.tables() {
		if item.table == nil {
			continue
		}
		for _, c := range item.table.Columns {
			if !isTextType(c.Type) || c.IsMasked || d.mentions(parts, item, c.Name) {
				continue
			}
			var f filler
			m := f.put(ownHole(quoteName(item.name) + "." + quoteName(c.Name)))
			d.addProbe(parts, ProbeZoneColumn, -1, d.spanOr(used, parts.clause.all), []string{item.name, c.Name},
				fill("SELECT count("+m+"), count(*) FILTER (WHERE "+m+
					" ~ '^(Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific)/'), "+
					"count(DISTINCT "+m+
					") FROM "+f.put(item.hole(d.clauseText)), f.holes...))
		}
	}
}
