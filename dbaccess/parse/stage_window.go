package parse

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/sandbox/stages"
)

// window is a definition of a window, with those that it is based on.
type window struct {
	partition, order []*pg_query.Node
}

// addWindows adds a part for each window: its partitions, and the rows whose order is not decided.
func (d *stageDeriver) addWindows(parts *blockParts) {
	last := d.lastOf(parts, stages.KindFrom, stages.KindJoin, stages.KindWhere, stages.KindGroup, stages.KindHaving,
		stages.KindProject)
	if last < 0 {
		return
	}
	type use struct {
		window
		text      span
		needsTies bool
	}
	var uses []*use
	parts.visit(func(n *pg_query.Node, at place) {
		call := n.GetFuncCall()
		if call == nil || call.Over == nil || at != inTarget && at != inOrder {
			return
		}
		s, ok := d.spanOf(n)
		if !ok {
			return
		}
		w := parts.window(call.Over)
		i := slices.IndexFunc(uses, func(u *use) bool {
			return slices.EqualFunc(u.partition, w.partition, equalNodes) &&
				slices.EqualFunc(u.order, w.order, equalNodes)
		})
		if i < 0 {
			i = len(uses)
			uses = append(uses, &use{window: w, text: s})
		}
		uses[i].needsTies = uses[i].needsTies || dependsOnTies(functionName(call), len(w.order) > 0)
	})
	for _, u := range uses {
		stage := d.addPart(parts, stages.KindWindow, "", u.text, last)
		if stage < 0 {
			return
		}
		q, ok := d.windowCounts(parts, u.window, u.needsTies)
		if !ok {
			d.stage(stage).Reason = stages.ReasonNotTraceable
			continue
		}
		values := []CountValue{{stage, CountPartitions}, {stage, CountOut}, {stage, CountLargest}}
		if u.needsTies {
			values = append(values, CountValue{stage, CountTied})
		}
		d.countPart(q, parts.scope, values...)
	}
}

// rankFunctions give rows that are equal in the order the same value by definition.
var rankFunctions = words("rank dense_rank percent_rank cume_dist")

// orderFunctions give a row a value by its place among the others, whether there is an order or not.
var orderFunctions = words("row_number ntile lag lead first_value last_value nth_value")

// dependsOnTies reports whether the values of a window function depend on rows that are equal in its order.
func dependsOnTies(function string, hasOrder bool) bool {
	return orderFunctions[function] || hasOrder && !rankFunctions[function]
}

// window returns the partition and the order of a window, with those of the window that it names.
func (p *blockParts) window(def *pg_query.WindowDef) (w window) {
	for depth := 0; def != nil && depth < 10; depth++ {
		if len(w.partition) == 0 {
			w.partition = def.PartitionClause
		}
		if len(w.order) == 0 {
			for _, s := range def.OrderClause {
				w.order = append(w.order, s.GetSortBy().GetNode())
			}
		}
		name := def.Refname
		if name == "" && def.PartitionClause == nil && def.OrderClause == nil {
			name = def.Name // OVER w
		}
		def = nil
		for _, n := range p.node.WindowClause {
			if name != "" && n.GetWindowDef().GetName() == name {
				def = n.GetWindowDef()
			}
		}
	}
	return w
}

// windowCounts returns a query for the partitions of a window, all rows, the largest partition, and rows that are equal
// to others of their partition in the order.
func (d *stageDeriver) windowCounts(parts *blockParts, w window, needsTies bool) (q derivedQuery, ok bool) {
	var f filler
	columns, partition, order := []string{}, []string{}, []string{}
	for prefix, list := range map[string][]*pg_query.Node{"p": w.partition, "o": w.order} {
		for i, n := range list {
			h, ok := d.expression(n)
			if !ok {
				return q, false
			}
			name := quoteName("stage " + prefix + strconv.Itoa(i))
			columns = append(columns, f.put(h)+" AS "+name)
			if prefix == "p" {
				partition = append(partition, name)
			} else {
				order = append(order, name)
			}
		}
	}
	if len(columns) == 0 {
		columns = []string{`true AS "stage p0"`}
	}
	from := ""
	if parts.isGrouped() {
		if from, ok = d.groups(&f, parts); !ok {
			return q, false
		}
		if parts.node.HavingClause != nil {
			from += " HAVING " + f.put(exprHole(d.text(parts.clause.having), parts.node.HavingClause))
		}
	} else {
		from = d.source(&f, parts)
	}
	by := func(names []string) string {
		if len(names) == 0 {
			return ""
		}
		return " GROUP BY " + strings.Join(names, ", ")
	}
	peers := `SELECT ` + strings.Join(append(slices.Clone(partition), `count(*) AS "rows"`), ", ") + ` FROM (SELECT ` +
		strings.Join(columns, ", ") + from + `) AS "stage rows"` + by(slices.Concat(partition, order))
	tied := ""
	if needsTies {
		tied = `, coalesce(sum("tied"), 0)::bigint`
	}
	return fill(`SELECT count(*) FILTER (WHERE "rows" > 0), coalesce(sum("rows"), 0)::bigint, `+
		`coalesce(max("rows"), 0)::bigint`+tied+` FROM (SELECT sum("rows") AS "rows", `+
		`sum("rows") FILTER (WHERE "rows" > 1) AS "tied" FROM (`+peers+`) AS "stage peers"`+by(partition)+
		`) AS "stage partitions"`, f.holes...), true
}
