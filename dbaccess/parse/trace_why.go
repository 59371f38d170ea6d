package parse

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"glasshouse/sandbox/stages"
)

// WhyPlan has the statements that read the rows of tables behind a row of a result.
type WhyPlan struct {
	Lines int
	// Keyed is the statement itself. Its last columns are the values of the keys that are no columns of the result.
	Keyed     DerivedStatement
	Keys      []TraceKey
	Tables    []TraceTable
	Columns   []string // names of the columns of the result; nil: they are not known
	Reads     [][]int  // by column of the result: the indexes of Tables that it reads; nil: not known
	NotLooked []string
	// Check is the statement over the rows of Tables alone, with the values of the keys as further columns. It is nil if
	// there is none, for CheckReason.
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
				w.note("a side of a set operation that is no plain SELECT")
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
// wanted has a pair for each column of the set: the column of the block. It returns a Fault if the sources of these rows
// cannot be told from others.
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
	for _, one := range []struct {
		sql  string
		into **DerivedStatement
	}{
		{"SELECT " + counts + " FROM @0 WHERE @1", &table.Count},
		{"SELECT " + columns + " FROM @0 WHERE @1 ORDER BY " + list + " LIMIT " + strconv.Itoa(maxTracedRows), &table.Rows},
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

// edit replaces a part of a text.
type edit struct {
	start, end int
	text       string
}

// check makes the statement over the wanted rows alone. It changes a second tree of the statement, in which it finds
// the blocks and items by their numbers.
func (w *whyTracer) check(numbered string) {
	twin, bad := deriveBlocks(numbered, w.stageDeriver.names, w.stageDeriver.tables, false)
	if bad != nil || len(twin.parts) != len(w.parts) {
		w.plan.CheckReason = "the statement could not be read again"
		return
	}
	c := &restriction{whyTracer: w, twin: twin}
	for at := range w.uses {
		for _, use := range w.uses[at] {
			c.restrict(at, use)
		}
	}
	if c.reason == "" {
		c.restrictWhere()
		c.addKeys()
		c.addSets()
	}
	if c.reason != "" {
		w.plan.CheckReason = c.reason
		return
	}
	slices.SortStableFunc(c.edits, func(a, b edit) int { // what is put before a part comes before it
		return cmp.Or(a.start-b.start, a.end-b.end)
	})
	var text strings.Builder
	copied := 0
	for _, e := range c.edits {
		if e.start < copied {
			w.plan.CheckReason = "the parts of the statement were not found in its text"
			return
		}
		text.WriteString(numbered[copied:e.start] + e.text)
		copied = e.end
	}
	text.WriteString(numbered[copied:])
	statement, err := w.derive(derivedQuery{strings.TrimRight(text.String(), "; \n\t"), twin.tree.GetSelectStmt()})
	if err != nil {
		w.plan.CheckReason = err.Error()
		return
	}
	w.plan.Check = &statement
}

// restriction changes a statement so that it reads the wanted rows alone.
type restriction struct {
	*whyTracer
	twin   *stageDeriver
	edits  []edit
	where  map[int][]hole // by block
	seen   []*fromItem
	reason string
}

// restrict makes an item of FROM have the wanted rows only. If no outer join adds rows to it, this is a condition of
// WHERE, because GROUP BY of a primary key needs the table itself. Otherwise the item becomes a subquery.
func (c *restriction) restrict(at int, use useOfTable) {
	if slices.Contains(c.seen, use.item) {
		return
	}
	c.seen = append(c.seen, use.item)
	names := c.plan.Tables[at].Key
	renames := use.item.node.GetRangeVar().GetAlias().GetColnames()
	if !isNullable(use.parts.items, use.item) {
		if len(renames) > 0 {
			names = c.renamed(use.parts, use.item, names)
		}
		if c.where == nil {
			c.where = map[int][]hole{}
		}
		c.where[use.parts.id] = append(c.where[use.parts.id], c.matches(at, keyOfItem(use.item.name, names)))
		return
	}
	item := c.twinItem(use)
	r := item.node.GetRangeVar()
	if r == nil {
		c.reason = "a table of an outer join was not found in the text"
		return
	}
	bare := proto.CloneOf(r)
	bare.Alias = &pg_query.Alias{Aliasname: "table rows"}
	text := quoteName(r.Relname) + ` AS "table rows"`
	if r.Schemaname != "" {
		text = quoteName(r.Schemaname) + "." + text
	}
	if !r.Inh {
		text = "ONLY " + text
	}
	rows := fill("SELECT * FROM @0 WHERE @1",
		listHole(text, []*pg_query.Node{{Node: &pg_query.Node_RangeVar{RangeVar: bare}}}),
		c.matches(at, keyOfItem("table rows", names)))
	alias := &pg_query.Alias{Aliasname: use.item.name, Colnames: renames}
	name := quoteName(use.item.name)
	if len(renames) > 0 {
		var list []string
		for _, n := range stringsOf(renames) {
			list = append(list, quoteName(n))
		}
		name += " (" + strings.Join(list, ", ") + ")"
	}
	item.node.Node = subquery(rows.node, alias, false).Node
	c.edits = append(c.edits, c.replace(use.item.span, "("+rows.text+") AS "+name))
}

// twinItem returns the item in the second tree.
func (c *restriction) twinItem(use useOfTable) *fromItem {
	i := slices.Index(c.parts, use.parts)
	j := slices.Index(use.parts.tables(), use.item)
	if list := c.twin.parts[i].tables(); j < len(list) {
		return list[j]
	}
	return &fromItem{}
}

func (c *restriction) replace(s span, text string) edit {
	return edit{c.tokens[s.start].Start, c.tokens[s.end-1].End, text}
}

// restrictWhere adds the conditions to WHERE.
func (c *restriction) restrictWhere() {
	for i, p := range c.parts {
		conditions := c.where[p.id]
		if len(conditions) == 0 {
			continue
		}
		node := c.twin.origins[p.id]
		q := p.clause
		if node.WhereClause == nil {
			all := allOf(conditions...)
			node.WhereClause = all.nodes[0]
			end := c.tokens[q.from.end-1].End
			c.edits = append(c.edits, edit{end, end, " WHERE " + all.text})
			continue
		}
		all := allOf(append([]hole{exprHole("", c.twin.parts[i].node.WhereClause)}, conditions...)...)
		node.WhereClause = all.nodes[0]
		start, end := c.tokens[q.where.start].Start, c.tokens[q.where.end-1].End
		after := ")"
		for _, one := range conditions {
			after += " AND " + one.text
		}
		c.edits = append(c.edits, edit{start, start, "("}, edit{end, end, after})
	}
}

// addKeys adds the keys as columns, and takes ORDER BY and LIMIT of the statement away: an OFFSET skips rows.
func (c *restriction) addKeys() {
	p := c.byBlock[0]
	node := c.twin.origins[0]
	if p == nil {
		if node.LimitCount != nil || node.LimitOffset != nil {
			c.reason = "it has a set operation with LIMIT"
		}
		return
	}
	isByValue := len(c.plan.Keys) > 0 && c.plan.Keys[0].Output >= 0
	if !isByValue {
		keys, _ := c.groupKeys(p)
		if !p.isGrouped() {
			for _, f := range p.tables() {
				keys = append(keys, c.identity(p, f)...)
			}
		}
		text := ""
		for _, key := range keys {
			text += ", " + key.text
			node.TargetList = append(node.TargetList, pg_query.MakeResTargetNodeWithVal(proto.CloneOf(key.nodes[0]), -1))
		}
		if p.clause.targets.isEmpty() { // TABLE name
			table := p.clause.from.start - 1
			c.edits = append(c.edits, c.replace(span{table, table + 1}, "SELECT *"+text+" FROM"))
		} else if text != "" {
			end := c.tokens[p.clause.targets.end-1].End
			c.edits = append(c.edits, edit{end, end, text})
		}
	}
	if !p.clause.distinctOn.isEmpty() || p.clause.tail.isEmpty() {
		return
	}
	node.SortClause, node.LimitCount, node.LimitOffset, node.LockingClause = nil, nil, nil, nil
	node.LimitOption = parsedSelect("SELECT 1").LimitOption
	c.edits = append(c.edits, c.replace(p.clause.tail, ""))
}

// addSets adds the sets before the WITH queries of the statement.
func (c *restriction) addSets() {
	used := c.setsIn(c.twin.tree)
	if len(used) == 0 {
		return
	}
	text, nodes := withSets(used)
	node := c.twin.origins[0]
	first := 0
	for c.is(first, pg_query.Token_ASCII_59) || node.WithClause != nil && c.is(first, pg_query.Token_ASCII_40) {
		first++
	}
	at := c.tokens[first].Start
	if node.WithClause == nil {
		node.WithClause = &pg_query.WithClause{}
		text = "WITH " + text + " "
	} else {
		if !c.is(first, pg_query.Token_WITH, pg_query.Token_WITH_LA) {
			c.reason = "WITH was not found in the text"
			return
		}
		if c.is(first+1, pg_query.Token_RECURSIVE) {
			first++
		}
		at = c.tokens[first].End
		text = " " + text + ","
	}
	node.WithClause.Ctes = append(nodes, node.WithClause.Ctes...)
	c.edits = append(c.edits, edit{at, at, text})
}

// isNullable reports whether an outer join of the items of FROM adds rows in which a table is NULL.
func isNullable(items []*fromItem, table *fromItem) bool {
	var find func(item *fromItem, nullable bool) (found, isNull bool)
	find = func(item *fromItem, nullable bool) (found, isNull bool) {
		if item == table {
			return true, nullable
		}
		if item.left == nil {
			return false, false
		}
		kind := item.node.GetJoinExpr().GetJointype()
		isFull := kind == pg_query.JoinType_JOIN_FULL
		if found, isNull = find(item.left, nullable || isFull || kind == pg_query.JoinType_JOIN_RIGHT); found {
			return found, isNull
		}
		return find(item.right, nullable || isFull || kind == pg_query.JoinType_JOIN_LEFT)
	}
	for _, item := range items {
		if found, isNull := find(item, false); found {
			return isNull
		}
	}
	return true
}
