package parse

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/sandbox/stages"
)

// WhyPlan has the statements that read the rows of tables behind a row of a result.
type WhyPlan struct {
	Lines int
	// Keyed is the statement itself. The values of the keys that the result does not have are further columns.
	Keyed     DerivedStatement
	Keys      []TraceKey
	Tables    []TraceTable
	Columns   []string // names of the columns of the result; nil: they are not known
	Reads     [][]int  // by column of the result: the indexes of Tables that it reads; nil: not known
	NotLooked []string
	// Check is the statement over the rows of Tables alone, with the values of the keys as further columns. If it is
	// nil, CheckReason says why.
	Check       *DerivedStatement
	CheckReason string
}

// TraceKey is an expression whose value identifies a row of the result: a part of its group's key, or a column of a
// table's key.
type TraceKey struct {
	Text      string
	Output    int    // the column of the result that has the value; -1: one of the further columns
	Parameter string // that has the value in the statements
}

// TraceTable is a table with the statements for its rows.
type TraceTable struct {
	Name         string // as a statement writes it
	Items        []string
	Lines        []int // of the items
	Key          []string
	IsPrimaryKey bool
	// Count returns the number of rows and, without a primary key, the number of those with different values.
	Count *DerivedStatement
	Rows  *DerivedStatement
	// Reason is set if there are no statements.
	Reason, Message string
}

// maxTracedRows bounds the rows of TraceTable.Rows.
const maxTracedRows = 20

// useOfTable is an item of FROM with the rows of it that are wanted.
type useOfTable struct {
	parts *blockParts
	item  *fromItem
	keys  derivedQuery // the keys of these rows
}

// whyTracer follows a row of the result to the tables.
type whyTracer struct {
	*tracer
	plan   *WhyPlan
	tables []*Table // of plan.Tables
	uses   [][]useOfTable
	// keySets has the keys of the wanted rows by table
	keySets []rowSet
	depth   int
}

// deriveWhy returns the statements that read the rows behind a row of a query's result. The query has $n in place of
// :name.
func deriveWhy(numbered string, names []string, tables []Table) (*WhyPlan, *Fault) {
	t, bad := newTracer(numbered, names, tables)
	if bad != nil {
		return nil, bad
	}
	w := &whyTracer{tracer: t, plan: &WhyPlan{Lines: t.stageDeriver.plan.Lines}}
	if t.byBlock[0] != nil {
		bad = w.fromSelect(t.byBlock[0])
	} else {
		bad = w.fromSet()
	}
	if bad != nil {
		return nil, bad
	}
	w.makeSets()
	for i := range w.plan.Tables {
		w.tableStatements(i)
	}
	w.check(numbered)
	w.plan.NotLooked = w.notLooked
	return w.plan, nil
}

// fromSelect follows a row of a SELECT.
func (w *whyTracer) fromSelect(p *blockParts) *Fault {
	if len(p.node.DistinctClause) > 0 && p.clause.distinctOn.isEmpty() {
		return w.fromValues(w.outputs(p), func(wanted []pair) *Fault { return w.fromWanted(p, wanted, nil) })
	}
	var keys []hole
	if p.isGrouped() {
		var reason string
		if keys, reason = w.groupKeys(p); reason != "" {
			return notTraceable("%s", reason)
		}
	} else {
		for _, f := range p.tables() {
			keys = append(keys, w.identity(p, f)...)
		}
	}
	statement, err := w.derive(w.inScope(w.rebuild(p, rebuilt{
		more: keys, isGrouped: true, distinct: true, tail: true,
	}), p.scope, false))
	if err != nil {
		return notTraceable("the statement with the keys of its rows: %v", err)
	}
	w.plan.Keyed = statement
	var conditions []hole
	for _, key := range keys {
		name, place := w.parameter()
		w.addKey(key, -1, name)
		conditions = append(conditions, expressionOf("@0 IS NOT DISTINCT FROM @1", key, place))
	}
	outputs := w.outputs(p)
	for _, o := range outputs {
		w.plan.Columns = append(w.plan.Columns, o.name)
	}
	w.noteSubqueries(p)
	w.block(p, conditions)
	w.findReads(p, outputs)
	return nil
}

// addKey adds a key of the row.
func (w *whyTracer) addKey(key hole, output int, parameter string) {
	text, err := nameParameters(strings.TrimSuffix(strings.TrimPrefix(key.text, "("), ")"), w.names)
	if err != nil {
		text = key.text
	}
	w.plan.Keys = append(w.plan.Keys, TraceKey{text, output, parameter})
}

// identity returns the columns that identify a row of an item of FROM.
func (w *whyTracer) identity(p *blockParts, f *fromItem) (keys []hole) {
	columns := w.columnsOf(p, f)
	var primary []string
	if f.table != nil && len(f.node.GetRangeVar().GetAlias().GetColnames()) == 0 {
		primary, _ = keyOf(f.table)
	}
	for _, c := range columns {
		if c.isComparable && (len(primary) == 0 || slices.Contains(primary, c.name)) {
			keys = append(keys, column(f.name, c.name))
		}
	}
	return keys
}

// keyOf returns the columns that identify a row of a table: its primary key, or all columns that can be compared.
func keyOf(t *Table) (columns []string, isPrimary bool) {
	isPrimary = len(t.PrimaryKey) > 0
	for _, c := range t.Columns {
		if c.IsMasked || incomparableTypes[c.Type] {
			isPrimary = isPrimary && !slices.Contains(t.PrimaryKey, c.Name)
			continue
		}
		columns = append(columns, c.Name)
	}
	if isPrimary {
		return t.PrimaryKey, true
	}
	return columns, false
}

// fromValues follows a row whose values identify it. follow gets the comparisons by column.
func (w *whyTracer) fromValues(columns []output, follow func(wanted []pair) *Fault) *Fault {
	if len(columns) == 0 {
		return notTraceable("the columns of the result are not known")
	}
	whole := derivedQuery{w.text(span{0, len(w.tokens)}), w.tree.GetSelectStmt()}
	if last := len(w.tokens) - 1; w.is(last, pg_query.Token_ASCII_59) {
		whole.text = w.text(span{0, last})
	}
	statement, err := w.derive(whole)
	if err != nil {
		return notTraceable("%v", err)
	}
	w.plan.Keyed = statement
	var wanted []pair
	for i, o := range columns {
		w.plan.Columns = append(w.plan.Columns, o.name)
		if !o.isComparable {
			continue
		}
		name, place := w.parameter()
		w.plan.Keys = append(w.plan.Keys, TraceKey{o.name, i, name})
		wanted = append(wanted, pair{place, i})
	}
	return follow(wanted)
}

// fromSet follows a row of a set operation to its sides.
func (w *whyTracer) fromSet() *Fault {
	if len(w.arms(0)) == 0 {
		return notTraceable("the rows of the statement are of no table")
	}
	var columns []output
	for _, c := range w.rowsOf(0) {
		columns = append(columns, output{rowColumn: c})
	}
	return w.fromValues(columns, func(wanted []pair) *Fault {
		for _, arm := range w.positiveArms(0) {
			p := w.byBlock[arm]
			if p == nil {
				w.note("a side of a set operation without FROM")
			} else if bad := w.fromWanted(p, wanted, nil); bad != nil {
				return bad
			}
		}
		return nil
	})
}

// positiveArms returns the sides of a block's set operations whose rows can be in the result: not those that EXCEPT
// takes away.
func (w *whyTracer) positiveArms(block int) (list []int) {
	arms := w.arms(block)
	var removed []int
	for _, s := range w.sets {
		if s.block == block && strings.HasPrefix(w.stage(s.stage).Name, "EXCEPT") {
			removed = append(removed, w.stage(s.right).Block)
			w.note("the right side of EXCEPT, which has no row with these values")
		}
	}
	for _, arm := range arms {
		if !slices.Contains(removed, arm) {
			list = append(list, arm)
		}
	}
	return list
}

// fromWanted follows the rows of a block that have the values of the rows of a set or, without one, of parameters.
// wanted has a pair for each column of the set: the column of the block. It returns a Fault if the sources of these
// rows cannot be told from others.
func (w *whyTracer) fromWanted(p *blockParts, wanted []pair, set *rowSet) *Fault {
	outputs := w.outputs(p)
	var keys []hole
	if p.isGrouped() {
		var reason string
		if keys, reason = w.groupKeys(p); reason != "" {
			return notTraceable("%s", reason)
		}
	}
	covered := make([]bool, len(keys))
	var pairs []pair
	var conditions []hole
	for i, one := range wanted {
		at := one.column
		if at >= len(outputs) {
			return notTraceable("the columns of a query are not known")
		}
		o := outputs[at]
		if !o.isOfRow || !o.isComparable {
			continue
		}
		if p.isGrouped() {
			at = slices.IndexFunc(keys, func(k hole) bool { return sameExpression(k, o.expression) })
			if at < 0 {
				continue
			}
			covered[at] = true
		}
		if set == nil {
			conditions = append(conditions, expressionOf("@0 IS NOT DISTINCT FROM @1", o.expression, one.expression))
		} else {
			pairs = append(pairs, pair{o.expression, i})
		}
	}
	if slices.Contains(covered, false) {
		return notTraceable("%s groups by an expression that it does not return", w.nameOf(p))
	}
	if len(pairs)+len(conditions) == 0 && !p.isGrouped() {
		return notTraceable("no value of a row of %s is a value of its tables", w.nameOf(p))
	}
	if set != nil {
		conditions = append(conditions, isAmong(pairs, *set))
	}
	if p.node.LimitCount != nil || p.node.LimitOffset != nil || !p.clause.distinctOn.isEmpty() {
		kept, ok := w.isKept(p, outputs, keys)
		if !ok {
			return notTraceable("LIMIT of %s, whose columns are not known", w.nameOf(p))
		}
		conditions = append(conditions, kept)
	}
	w.noteSubqueries(p)
	w.block(p, conditions)
	return nil
}

// isKept returns the condition that LIMIT and DISTINCT ON of a block leave a row.
func (w *whyTracer) isKept(p *blockParts, outputs []output, keys []hole) (kept hole, ok bool) {
	if len(p.node.DistinctClause) > 0 && p.clause.distinctOn.isEmpty() { // the values are the key
		keys = nil
		for _, o := range outputs {
			if o.isComparable && o.isOfRow {
				keys = append(keys, o.expression)
			}
		}
	} else if !p.isGrouped() {
		for _, f := range p.tables() {
			keys = append(keys, w.identity(p, f)...)
		}
	}
	if len(outputs) == 0 {
		return kept, false
	}
	r := rebuilt{isGrouped: true, distinct: true, tail: true, more: keys}
	all := len(outputs) + len(keys)
	rows := fill(`SELECT * FROM (@0) AS "why all" (`+numberedNames(all)+")", queryHole(w.rebuild(p, r)))
	set := w.newSet(w.inScope(rows, p.scope, false), all)
	var pairs []pair
	for i, key := range keys {
		pairs = append(pairs, pair{key, len(outputs) + i})
	}
	return isAmong(pairs, set), true
}

func (w *whyTracer) nameOf(p *blockParts) string {
	if name := w.stageDeriver.plan.Blocks[p.id].Name; name != "" {
		return name
	}
	return "a subquery"
}

// noteSubqueries notes that the subqueries in the expressions of a block are not followed.
func (w *whyTracer) noteSubqueries(p *blockParts) {
	has := false
	visit := func(n *pg_query.Node) bool {
		has = has || n.GetSubLink() != nil
		return !has
	}
	for _, n := range slices.Concat(p.node.TargetList, []*pg_query.Node{p.node.WhereClause, p.node.HavingClause}) {
		if n != nil {
			forEachNode(n, visit)
		}
	}
	if has {
		w.note("the subqueries in SELECT, WHERE and HAVING")
	}
}

// maxTraceDepth bounds the blocks between a table and the result.
const maxTraceDepth = 12

// block follows the rows of FROM and WHERE of a block that meet further conditions.
func (w *whyTracer) block(p *blockParts, conditions []hole) {
	if w.depth++; w.depth > maxTraceDepth {
		w.note("subqueries in more than " + strconv.Itoa(maxTraceDepth) + " others")
		w.depth--
		return
	}
	defer func() { w.depth-- }()
	for _, f := range p.tables() {
		switch {
		case f.table != nil && f.name != "":
			w.useTable(p, f, conditions)
		case f.child >= 0:
			w.useBlock(p, f, conditions)
		default:
			w.noteItem(f)
		}
	}
}

// useTable notes the wanted rows of a table.
func (w *whyTracer) useTable(p *blockParts, f *fromItem, conditions []hole) {
	at := slices.Index(w.tables, f.table)
	if at < 0 {
		at = len(w.tables)
		w.tables, w.uses = append(w.tables, f.table), append(w.uses, nil)
		key, isPrimary := keyOf(f.table)
		w.plan.Tables = append(w.plan.Tables, TraceTable{Name: tableName(f.table), Key: key, IsPrimaryKey: isPrimary})
	}
	table := &w.plan.Tables[at]
	from, _ := w.lines(f.span)
	if !slices.Contains(table.Items, f.name) || !slices.Contains(table.Lines, from) {
		table.Items, table.Lines = append(table.Items, f.name), append(table.Lines, from)
	}
	names := table.Key
	if renames := f.node.GetRangeVar().GetAlias().GetColnames(); len(renames) > 0 {
		if names = w.renamed(p, f, names); names == nil {
			w.note("the rows of " + stages.Clip(w.text(f.span)))
			return
		}
	}
	if len(names) == 0 {
		table.Reason, table.Message = stages.ReasonNotTraceable, "no column of the table can be compared"
		return
	}
	var targets []hole
	for _, name := range names {
		targets = append(targets, column(f.name, name))
	}
	keys := w.inScope(w.rebuild(p, rebuilt{targets: targets, where: conditions}), p.scope, false)
	w.uses[at] = append(w.uses[at], useOfTable{p, f, keys})
}

// renamed returns the names that columns of a table have in an item of FROM.
func (w *whyTracer) renamed(p *blockParts, f *fromItem, names []string) (list []string) {
	columns := w.columnsOf(p, f)
	for _, name := range names {
		i := slices.IndexFunc(f.table.Columns, func(c Column) bool { return c.Name == name })
		if i < 0 || i >= len(columns) {
			return nil
		}
		list = append(list, columns[i].name)
	}
	return list
}

// tableName returns the name of a table as a statement writes it.
func tableName(t *Table) string {
	quoteIfNeeded := func(name string) string {
		if isName(name) && name == strings.ToLower(name) {
			return name
		}
		return quoteName(name)
	}
	if t.IsVisible {
		return quoteIfNeeded(t.Name)
	}
	return quoteIfNeeded(t.Schema) + "." + quoteIfNeeded(t.Name)
}

// useBlock follows the rows of a WITH query or a subquery that the wanted rows of a block have.
func (w *whyTracer) useBlock(p *blockParts, f *fromItem, conditions []hole) {
	name := f.name
	if name == "" {
		name = "a subquery"
	}
	columns := w.columnsOf(p, f)
	var targets []hole
	var wanted []pair
	for i, c := range columns {
		if c.isComparable {
			targets = append(targets, column(f.name, c.name))
			wanted = append(wanted, pair{column: i})
		}
	}
	if len(targets) == 0 {
		w.note("the rows of " + name + ", whose columns are not known")
		return
	}
	set := w.newSet(w.inScope(w.rebuild(p, rebuilt{targets: targets, where: conditions}), p.scope, false), len(targets))
	blocks := []int{f.child}
	if w.byBlock[f.child] == nil {
		blocks = w.positiveArms(f.child)
	}
	if len(blocks) == 0 && w.stageDeriver.plan.Blocks[f.child].Kind == stages.BlockCTE {
		w.note("the rows of " + name + ", which is recursive or has no table")
	}
	for _, block := range blocks {
		inner := w.byBlock[block]
		if inner == nil {
			w.note("the rows of " + name)
		} else if bad := w.fromWanted(inner, wanted, &set); bad != nil {
			w.note("the rows of " + name + ": " + bad.Message)
		}
	}
}

// makeSets makes a set with the keys of the wanted rows of each table.
func (w *whyTracer) makeSets() {
	w.keySets = make([]rowSet, len(w.uses))
	for at, uses := range w.uses {
		if len(uses) == 0 {
			continue
		}
		rows := uses[0].keys
		for _, use := range uses[1:] {
			rows = fill(`SELECT * FROM (@0) AS "why left" UNION ALL SELECT * FROM (@1) AS "why right"`, queryHole(rows),
				queryHole(use.keys))
		}
		w.keySets[at] = w.newSet(rows, len(w.plan.Tables[at].Key))
	}
}

// matches returns the condition that a row, whose key has expressions, is one of the wanted rows of a table.
func (w *whyTracer) matches(at int, key []hole) hole {
	var pairs []pair
	for i, k := range key {
		pairs = append(pairs, pair{k, i})
	}
	return isAmong(pairs, w.keySets[at])
}

// keyOfItem returns the key of a table in an item of FROM.
func keyOfItem(item string, names []string) (key []hole) {
	for _, name := range names {
		key = append(key, column(item, name))
	}
	return key
}

// tableStatements makes the statements for the rows of a table.
func (w *whyTracer) tableStatements(at int) {
	table, known := &w.plan.Tables[at], w.tables[at]
	if len(w.uses[at]) == 0 {
		if table.Reason == "" {
			table.Reason, table.Message = stages.ReasonNotTraceable, "its rows are not followed"
		}
		return
	}
	from := parsedSelect("SELECT FROM " + quoteName(known.Schema) + "." + quoteName(known.Name) + ` AS "table rows"`)
	item := listHole(quoteName(known.Schema)+"."+quoteName(known.Name)+` AS "table rows"`, from.FromClause)
	key := keyOfItem("table rows", table.Key)
	holes := append([]hole{item, w.matches(at, key)}, key...)
	list := ""
	for i := range key {
		if i > 0 {
			list += ", "
		}
		list += "@" + strconv.Itoa(i+2)
	}
	columns := ""
	for i, c := range known.Columns { // a login may not read all columns of a table
		if i > 0 {
			columns += ", "
		}
		columns += "@" + strconv.Itoa(len(holes))
		holes = append(holes, column("table rows", c.Name))
	}
	counts := "count(*)"
	if !table.IsPrimaryKey {
		counts += ", count(DISTINCT ROW(" + list + "))"
	}
	limit := " LIMIT " + strconv.Itoa(maxTracedRows)
	for _, one := range []struct {
		sql  string
		into **DerivedStatement
	}{
		{"SELECT " + counts + " FROM @0 WHERE @1", &table.Count},
		{"SELECT " + columns + " FROM @0 WHERE @1 ORDER BY " + list + limit, &table.Rows},
	} {
		statement, err := w.deriveWithSets(fill(one.sql, holes...))
		if err != nil {
			table.Reason, table.Message = stages.ReasonDiffers, err.Error()
			return
		}
		*one.into = &statement
	}
}

// findReads notes which tables each column of the result reads.
func (w *whyTracer) findReads(p *blockParts, outputs []output) {
	for _, o := range outputs {
		tables := []int{}
		items := p.tables()
		refs := columnsOf(o.node())
		if len(refs) == 0 { // count(*)
			tables = nil
		}
		for _, ref := range refs {
			f := w.tableOf(items, ref)
			if f == nil || f.table == nil {
				tables = nil
				break
			}
			if at := slices.Index(w.tables, f.table); !slices.Contains(tables, at) {
				tables = append(tables, at)
			}
		}
		w.plan.Reads = append(w.plan.Reads, tables)
	}
}
