package parse

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
)

// Probe is a part of a statement that may be wrong, with the statements that show what it does to the data. Package
// dbaccess judges their rows.
type Probe struct {
	Kind       string
	Line       int
	Block      int
	Stage      int // -1: none
	Clause     string
	Names      []string // tables, columns and expressions that the words of the finding have
	Flags      map[string]bool
	Statements []DerivedStatement // each returns one row
}

// maxProbes bounds the probes of a statement.
const maxProbes = 120

// place is the clause in which an expression is.
type place int

const (
	inTarget place = iota
	inWhere
	inJoin
	inGroup
	inHaving
	inOrder
)

// findProbes looks in all blocks for what may be wrong.
func (d *stageDeriver) findProbes() {
	for _, parts := range d.parts {
		for _, find := range finders {
			find(d, parts)
		}
	}
}

// finders look in a block for one kind of finding each, or for several that have the same evidence.
var finders = []func(*stageDeriver, *blockParts){
	findNullLists, findScopeCaptures, findSelfComparisons, findCrossJoins, findDeadBranches, findFrames, findISOWeeks,
	findFanOuts, findNullableSides, findArbitraryRows, findFineGroups, findIntegerDivisions, findLastDays,
	findTextNumbers, findWrongKeys, findPairs, findEmptyCounts, findTextKeys, findMixedUnits, findRemovedRows,
	findWildcards, findNullArithmetic, findTies, findPrecedence, findLostNulls, findMeansOfMeans, findCountedColumns,
	findDenominators, findMonths, findSoftDeletes, findDays, findDuplicates, findDistinctSums, findUnpartitioned,
	findNeighbourTies, findGaps, findRowTies, findLateFilters, findNullsFirst, findLoneRows, findNumberedDistinct,
	findCountedCases, findDistinctAmounts, findApartMaxima, findRoundedParts, findZerosForNull, findProductCounts,
	findMissingZeros, findMeansOfRatios, findSharedLabels, findDoubleKeys, findPartialKeys, findPeriods,
	findOuterFilters,
	findNullableMarks, findLostRows, findSelfPairs, findOtherMaxima, findContradictions, findNullEquals,
	findLiteralForms,
	findUncorrelated, findUnordered, findSwappedColumns, findCaseGaps, findOrsInJoins, findLabelOrders,
	findNullsInTexts,
	findCaseRemainders, findOtherTotals, findIntervalParts, findTwoZones, findDayEqualities, findMonthJoins,
	findRunningShares, findJoinedMaxima, findEmptyPeriods, findTwiceZoned, findZoneColumns, findKeptGroups,
	findListedUnions, findNegatedFirst, findSetPrecedence, findEarliest, findMonthEnds,
	findSharedBounds, findUnknownCases, findMeansOfAllRows,
}

// add adds a probe about a part of the text, unless one of its statements cannot be derived.
func (d *stageDeriver) addProbe(parts *blockParts, kind string, stage int, s span, names []string,
	queries ...derivedQuery) {
	d.addFlagged(parts, kind, stage, s, names, nil, queries...)
}

func (d *stageDeriver) addFlagged(
	parts *blockParts, kind string, stage int, s span, names []string, flags map[string]bool, queries ...derivedQuery,
) {
	if len(d.plan.Probes) >= maxProbes {
		return
	}
	p := Probe{Kind: kind, Block: parts.id, Stage: stage, Names: names, Flags: flags}
	p.Line, _ = d.lines(s)
	p.Clause = d.named(d.text(s))
	for i, name := range p.Names {
		p.Names[i] = d.named(name)
	}
	for _, q := range queries {
		statement, err := d.derive(d.inScope(q, parts.scope, false))
		if err != nil {
			return
		}
		p.Statements = append(p.Statements, statement)
	}
	d.plan.Probes = append(d.plan.Probes, p)
}

// named returns a part of the text with :name in place of $n.
func (d *stageDeriver) named(text string) string {
	named, err := nameParameters(text, d.names)
	if err != nil {
		return text
	}
	return named
}

// filler collects holes for a template.
type filler struct{ holes []hole }

// put adds a hole and returns its mark.
func (f *filler) put(h hole) string {
	f.holes = append(f.holes, h)
	return "@" + strconv.Itoa(len(f.holes)-1)
}

// source returns FROM and WHERE of a block as a part of a template.
func (d *stageDeriver) source(f *filler, parts *blockParts) string {
	out := d.from(f, parts)
	if parts.node.WhereClause != nil {
		out += " WHERE " + f.put(exprHole(d.text(parts.clause.where), parts.node.WhereClause))
	}
	return out
}

func (d *stageDeriver) from(f *filler, parts *blockParts) string {
	if len(parts.node.FromClause) == 0 {
		return ""
	}
	return " FROM " + f.put(listHole(d.text(parts.clause.from), parts.node.FromClause))
}

// groups returns FROM, WHERE and GROUP BY of a block. ok is false if a group is one of several sets.
func (d *stageDeriver) groups(f *filler, parts *blockParts) (out string, ok bool) {
	keys, ok := d.groupKeys(parts)
	if !ok {
		return "", false
	}
	out = d.source(f, parts)
	for i, key := range keys {
		if i == 0 {
			out += " GROUP BY "
		} else {
			out += ", "
		}
		h, ok := d.expression(key)
		if !ok {
			return "", false
		}
		out += f.put(h)
	}
	return out, true
}

// groupKeys returns the expressions of GROUP BY: those of the columns that it names by their number or their alias.
func (d *stageDeriver) groupKeys(parts *blockParts) (keys []*pg_query.Node, ok bool) {
	for _, n := range parts.node.GroupClause {
		if n.GetGroupingSet() != nil {
			return nil, false
		}
		key := d.groupKey(parts, n)
		if key == nil {
			return nil, false
		}
		keys = append(keys, key)
	}
	return keys, true
}

// groupKey returns the expression of an item of GROUP BY, or nil if there is none.
func (d *stageDeriver) groupKey(parts *blockParts, n *pg_query.Node) *pg_query.Node {
	if c := n.GetAConst(); c != nil {
		i := int(c.GetIval().GetIval()) - 1
		if i < 0 || i >= len(parts.node.TargetList) {
			return nil
		}
		return parts.node.TargetList[i].GetResTarget().GetVal()
	}
	if target := d.aliased(parts, n); target != nil {
		return target
	}
	return n
}

// aliased returns the expression that a name of GROUP BY means by its alias, or nil if it means a column.
func (d *stageDeriver) aliased(parts *blockParts, n *pg_query.Node) *pg_query.Node {
	ref := n.GetColumnRef()
	qualifier, name := columnName(ref)
	if ref == nil || qualifier != "" {
		return nil
	}
	for _, item := range parts.tables() {
		for _, c := range item.columns {
			if c == name {
				return nil // a column comes first
			}
		}
	}
	for _, t := range parts.node.TargetList {
		if target := t.GetResTarget(); target.Name == name {
			return target.Val
		}
	}
	return nil
}

// tables returns the items of FROM that are not joins.
func (p *blockParts) tables() (list []*fromItem) {
	for _, item := range p.items {
		list = append(list, item.tables()...)
	}
	return list
}

// isGrouped reports whether the rows of a block are groups.
func (p *blockParts) isGrouped() bool {
	return len(p.node.GroupClause) > 0 || p.node.HavingClause != nil || callsIn(p.node.TargetList, isAggregate)
}

// visit calls f with each node of the expressions of a block, without those of subqueries.
func (p *blockParts) visit(f func(n *pg_query.Node, at place)) {
	each := func(n proto.Message, at place) {
		forEachNode(n, func(n *pg_query.Node) bool {
			f(n, at)
			return n.GetSelectStmt() == nil
		})
	}
	for _, t := range p.node.TargetList {
		each(t, inTarget)
	}
	if p.node.WhereClause != nil {
		each(p.node.WhereClause, inWhere)
	}
	for _, j := range p.joins {
		if q := j.node.GetJoinExpr().GetQuals(); q != nil {
			each(q, inJoin)
		}
	}
	for _, n := range p.node.GroupClause {
		each(n, inGroup)
	}
	if p.node.HavingClause != nil {
		each(p.node.HavingClause, inHaving)
	}
	for _, n := range p.node.SortClause {
		each(n, inOrder)
	}
}

// aggregates returns the aggregates of a block without those of window functions, each with the alias of its column:
// those of the SELECT list first.
func (p *blockParts) aggregates() (list []aggregate) {
	for _, t := range p.node.TargetList {
		alias := t.GetResTarget().GetName()
		forEachNode(t, func(n *pg_query.Node) bool {
			if f := n.GetFuncCall(); isAggregate(f) {
				list = append(list, aggregate{f, n, alias, n == t.GetResTarget().GetVal()})
			}
			return n.GetSelectStmt() == nil
		})
	}
	for _, n := range append(slices.Clone(p.node.SortClause), p.node.HavingClause) {
		if n == nil {
			continue
		}
		forEachNode(n, func(n *pg_query.Node) bool {
			if f := n.GetFuncCall(); isAggregate(f) {
				list = append(list, aggregate{f, n, "", false})
			}
			return n.GetSelectStmt() == nil
		})
	}
	return list
}

// aggregate is a call of an aggregate.
type aggregate struct {
	call    *pg_query.FuncCall
	node    *pg_query.Node
	alias   string
	isWhole bool // the column is the call, and no expression around it
}

// columnType returns the type of a column of a table that is known, or "".
func (d *stageDeriver) columnOf(parts *blockParts, n *pg_query.Node) *Column {
	ref := n.GetColumnRef()
	if ref == nil {
		return nil
	}
	item := d.tableOf(parts.tables(), ref)
	if item == nil || item.table == nil {
		return nil
	}
	_, name := columnName(ref)
	return item.table.column(name)
}

func (t *Table) column(name string) *Column {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i]
		}
	}
	return nil
}

// lineSpan returns the span of a node, or that of the whole block.
func (d *stageDeriver) spanOr(n *pg_query.Node, other span) span {
	if s, ok := d.spanOf(n); ok {
		return s
	}
	return other
}

// conjunctStage returns the stage of the condition of WHERE that has a node, or -1.
func (p *blockParts) stageWith(n *pg_query.Node) int {
	for _, c := range p.conjuncts {
		found := false
		forEachNode(c.node, func(x *pg_query.Node) bool {
			found = found || x == n
			return !found
		})
		if found {
			return c.stage
		}
	}
	return -1
}

// quoteText returns a text as a literal of SQL.
func quoteText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// namesTable reports whether an alias, such as customers or active_customers, ends with the name of a table.
func namesTable(alias, table string) bool {
	words, name := nameWords(alias), nameWords(table)
	return len(name) > 0 && len(words) >= len(name) && slices.Equal(words[len(words)-len(name):], name)
}

// nameWords returns the words of a name without the endings of plurals.
func nameWords(name string) (words []string) {
	for _, w := range strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == ' ' }) {
		words = append(words, singular(w))
	}
	return words
}

// sharesWord reports whether two names have a word in common.
func sharesWord(a, b string) bool {
	words := strings.Split(strings.ToLower(b), "_")
	return slices.ContainsFunc(strings.Split(strings.ToLower(a), "_"), func(w string) bool {
		return slices.Contains(words,
			w)
	})
}

// singular returns a word without the endings of an English plural.
func singular(word string) string {
	switch {
	case strings.HasSuffix(word, "ies"):
		return strings.TrimSuffix(word, "ies") + "y"
	case strings.HasSuffix(word, "sses"), strings.HasSuffix(word, "xes"), strings.HasSuffix(word, "ches"):
		return strings.TrimSuffix(word, "es")
	case strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss"):
		return strings.TrimSuffix(word, "s")
	}
	return word
}
