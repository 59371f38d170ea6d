package check

import (
	"reflect"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
)

// maskedItem is an item of FROM that is a relation with masked columns.
type maskedItem struct {
	node     *pg_query.RangeVar
	relation *relation
	sample   *pg_query.RangeTableSample // nil: there is no TABLESAMPLE
}

// name returns the name of the item in the statement.
func (m *maskedItem) name() string {
	if m.node.Alias != nil {
		return m.node.Alias.Aliasname
	}
	return m.node.Relname
}

// list returns columns of the item with constants in place of the masked ones.
func (m *maskedItem) list(columns []string) string {
	list := make([]string, len(columns))
	for i, name := range columns {
		list[i] = pgx.Identifier{m.name(), name}.Sanitize()
		if m.relation.maskedColumns[name] {
			list[i] = maskConstant + " AS " + pgx.Identifier{name}.Sanitize()
		}
	}
	return strings.Join(list, ", ")
}

// subquery returns the beginning of the subquery that replaces the item, up to its name there.
func (m *maskedItem) subquery(columns []string) string {
	only := ""
	if !m.node.Inh {
		only = "ONLY "
	}
	name := pgx.Identifier{m.name()}.Sanitize()
	return "(SELECT " + m.list(columns) + " FROM " + only +
		pgx.Identifier{m.relation.schema, m.relation.name}.Sanitize() + " AS " + name
}

const maskConstant = "'" + MaskValue + "'::cstring"

// spliceMasks replaces the masked items of FROM, and what PostgreSQL does not understand of such an item.
func (w *walker) spliceMasks() {
	tokens, err := parse.Scan(w.sql)
	if err != nil {
		w.refuse(-1, "masked-column", "the text of the statement cannot be read: %s", err)
		return
	}
	s := splicer{walker: w, tokens: tokens, replaced: map[*pg_query.ColumnRef]bool{}}
	w.masks.takesAll = w.masks.takesAll || s.takesRows()
	for _, m := range w.masks.items {
		if s.replaceItem(m); w.err != nil {
			return
		}
	}
	for _, n := range w.masks.grouped {
		if s.extendGroups(n); w.err != nil {
			return
		}
	}
	for _, n := range w.masks.columns {
		if len(n.Fields) > 2 && !s.replaced[n] && s.spend(len(w.masks.items)) {
			s.shortenReference(n)
		}
	}
}

// splicer makes the edits of a statement with masked columns.
type splicer struct {
	*walker
	tokens   []parse.Token
	replaced map[*pg_query.ColumnRef]bool
	added    int // bytes of the edits
}

// index returns the index of the token at a byte offset, or -1.
func (s *splicer) index(at int32) int {
	i, found := slices.BinarySearchFunc(s.tokens, int(at), func(t parse.Token, at int) int { return t.Start - at })
	if !found {
		return -1
	}
	return i
}

// kind returns the kind of a token; NUL: there is none.
func (s *splicer) kind(i int) pg_query.Token {
	if i < 0 || i >= len(s.tokens) {
		return pg_query.Token_NUL
	}
	return s.tokens[i].Kind
}

// afterNames returns the index after names with dots between them. i is the index of the first one.
func (s *splicer) afterNames(i, names int) int {
	for n := range names {
		if n > 0 {
			i++ // the dot
		}
		if s.kind(i) == pg_query.Token_UIDENT && s.kind(i+1) == pg_query.Token_UESCAPE {
			i += 2
		}
		i++
	}
	return i
}

// afterParentheses returns the index after the parentheses that begin at i.
func (s *splicer) afterParentheses(i int) int {
	for depth := 0; i < len(s.tokens); i++ {
		switch s.kind(i) {
		case pg_query.Token_ASCII_40:
			depth++
		case pg_query.Token_ASCII_41:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return i
}

// replace replaces the tokens from first to before end.
func (s *splicer) replace(first, end int, text string) {
	if first < 0 || end <= first || end > len(s.tokens) {
		s.refuse(-1, "masked-column", "the statement has the name of a table with masked columns in a form that is "+
			"not understood: write it plainly, as schema.table")
		return
	}
	s.addEdit(edit{at: s.tokens[first].Start, end: s.tokens[end-1].End, text: text})
}

// addEdit adds an edit. It refuses the statement before the texts of the edits are longer than a statement may become.
func (s *splicer) addEdit(e edit) {
	if s.added += len(e.text); s.added > maxBoundBytes {
		s.fail(-1, refuseBoundBytes(s.added))
		return
	}
	s.edits = append(s.edits, e)
}

// replaceItem replaces an item of FROM by a subquery with the same name. TABLE and TABLESAMPLE take no subquery.
func (s *splicer) replaceItem(m *maskedItem) {
	n := m.node
	names := 1
	if n.Schemaname != "" {
		names++
	}
	if n.Catalogname != "" {
		names++
	}
	first := s.index(n.Location)
	end := s.afterNames(first, names)
	if first < 0 {
		end = first
	}
	switch {
	case n.Inh:
		if s.kind(end) == pg_query.Token_ASCII_42 { // users *
			end++
		}
	case s.kind(first-1) == pg_query.Token_ONLY:
		first--
	case s.kind(first-1) == pg_query.Token_ASCII_40 && s.kind(first-2) == pg_query.Token_ONLY: // ONLY (users)
		first, end = first-2, end+1
	default:
		first = -1
	}
	text, alias := m.subquery(s.columnsOf(m)), " AS "+pgx.Identifier{m.name()}.Sanitize()
	switch {
	case m.sample != nil:
		if method := stringsOf(m.sample.Method); method[len(method)-1] != "bernoulli" {
			s.fail(int(m.sample.Location), refuseSample(m.relation))
			return
		}
		sample := end
		for sample < len(s.tokens) && s.kind(sample) != pg_query.Token_TABLESAMPLE {
			sample++
		}
		s.replace(first, sample, text+" ")
		last := s.afterParentheses(sample)
		if m.sample.Repeatable != nil {
			last = s.afterParentheses(last)
		}
		if columns := stringsOf(n.Alias.GetColnames()); len(columns) > 0 {
			for i, name := range columns {
				columns[i] = pgx.Identifier{name}.Sanitize()
			}
			alias += " (" + strings.Join(columns, ", ") + ")"
		}
		at := s.tokens[last-1].End
		s.addEdit(edit{at: at, end: at, text: ")" + alias})
	case s.kind(first-1) == pg_query.Token_TABLE:
		s.replace(first-1, end, "SELECT * FROM "+text+")"+alias)
	case n.Alias != nil: // it follows
		s.replace(first, end, text+")")
	default:
		s.replace(first, end, text+")"+alias)
	}
}

// refuseSample refuses a sample of pages: how many rows a page has tells how long their values are.
func refuseSample(r *relation) *sandbox.Refusal {
	no := sandbox.Refusef("masked-column", "TABLESAMPLE SYSTEM takes whole pages of %s.%s, and the number of rows in "+
		"a page tells about the length of masked values", r.schema, r.name)
	no.Hint = "use TABLESAMPLE BERNOULLI"
	return no
}

// columnsOf returns the columns of an item that the statement can name. The others would only make the text and
// PostgreSQL's analysis longer. A statement that may take a row, or columns without their names, gets all of them.
// System columns are none: where a row lies (ctid) tells how long its values are.
func (s *splicer) columnsOf(m *maskedItem) []string {
	if !s.spend(len(m.relation.columnOrder)) {
		return nil
	}
	if s.masks.takesAll || len(m.node.Alias.GetColnames()) > 0 {
		return m.relation.columnOrder
	}
	return slices.DeleteFunc(slices.Clone(m.relation.columnOrder), func(c string) bool { return !s.masks.named[c] })
}

// takesRows reports whether a name of the statement may be a row of an item of FROM, or x.y the call y(x) with a row.
func (s *splicer) takesRows() bool {
	for _, n := range s.masks.columns {
		last := len(n.Fields) - 1
		name := n.Fields[last].GetString_().GetSval()
		if len(s.fromItems[name]) > 0 {
			return true
		}
		if last == 0 {
			continue
		}
		items := s.fromItems[n.Fields[last-1].GetString_().GetSval()]
		if !s.spend(1 + len(items)) {
			return true
		}
		for _, item := range items {
			if r := item.relation; r != nil && !r.columns[name] {
				return true
			}
		}
	}
	return false
}

// shortenReference takes the schema out of schema.table.column and schema.table.*, because the subquery has none.
func (s *splicer) shortenReference(n *pg_query.ColumnRef) {
	last := len(n.Fields) - 1
	schema, table := n.Fields[last-2].GetString_().GetSval(), n.Fields[last-1].GetString_().GetSval()
	for _, m := range s.masks.items {
		if m.node.Alias == nil && m.relation.schema == schema && m.relation.name == table {
			first := s.index(n.Location)
			s.replace(first, s.afterNames(first, last-1)+1, " ")
			return
		}
	}
}

// extendGroups makes GROUP BY of a primary key work. PostgreSQL then lets a query select all columns of the table, but
// not those of a subquery: the columns that the query names are added to the keys, which makes the same groups.
func (s *splicer) extendGroups(q *pg_query.SelectStmt) {
	var named map[string]bool
	tables, keys := tablesOf(q.FromClause), groupKeys(q.GroupClause)
	for _, item := range tables {
		if !s.spend(len(s.masks.items)) {
			return
		}
		i := slices.IndexFunc(s.masks.items, func(m *maskedItem) bool { return m.node == item })
		if i < 0 || len(item.Alias.GetColnames()) > 0 || len(s.masks.items[i].relation.primaryKey) == 0 {
			continue
		}
		m, at := s.masks.items[i], -1
		isGrouped := func(column string) bool {
			if !s.spend(len(keys) * (1 + len(q.TargetList))) {
				return false
			}
			return slices.ContainsFunc(keys, func(key *pg_query.Node) bool {
				if m.isColumn(groupKey(q, key), column) {
					at = max(locationOf(key), int(key.GetAConst().GetLocation()))
					return true
				}
				return false
			})
		}
		if slices.ContainsFunc(m.relation.primaryKey, func(c string) bool { return !isGrouped(c) }) {
			continue
		}
		if named == nil {
			named = map[string]bool{}
			s.addColumnNames(named, reflect.ValueOf(q))
		}
		isAll, isOnly := false, len(q.FromClause) == 1 && len(tables) == 1
		for _, target := range q.TargetList {
			if !s.spend(1 + len(m.relation.maskedColumns)) {
				return
			}
			if ref := target.GetResTarget().GetVal().GetColumnRef(); m.isStar(ref, isOnly) {
				isAll = true
				s.replaceReference(ref, m.list(m.relation.columnOrder))
			} else {
				s.selectConstant(m, target.GetResTarget())
			}
		}
		text := ""
		for _, column := range m.relation.columnOrder {
			if (isAll || named[column]) && !m.relation.maskedColumns[column] && !isGrouped(column) {
				text += pgx.Identifier{m.name(), column}.Sanitize() + ", "
			}
		}
		s.addEdit(edit{at: at, end: at, text: text})
	}
}

// selectConstant replaces a masked column in the list of a grouped query, which cannot name it.
func (s *splicer) selectConstant(m *maskedItem, target *pg_query.ResTarget) {
	n := target.GetVal().GetColumnRef()
	for name := range m.relation.maskedColumns {
		if m.isColumn(n, name) {
			text := maskConstant
			if target.Name == "" {
				text += " AS " + pgx.Identifier{name}.Sanitize()
			}
			s.replaceReference(n, text)
		}
	}
}

// replaceReference replaces the name of a column, or of all columns.
func (s *splicer) replaceReference(n *pg_query.ColumnRef, text string) {
	s.replaced[n] = true
	first := s.index(n.Location)
	s.replace(first, s.afterNames(first, len(n.Fields)), " "+text+" ")
}

// isStar reports whether a reference is all columns of the item. isOnly says that it is the only item of FROM.
func (m *maskedItem) isStar(n *pg_query.ColumnRef, isOnly bool) bool {
	last := len(n.GetFields()) - 1
	if last < 0 || n.Fields[last].GetAStar() == nil {
		return false
	}
	return last == 0 && isOnly || last > 0 && n.Fields[last-1].GetString_().GetSval() == m.name()
}

// isColumn reports whether a reference is the column of the item. nil is none.
func (m *maskedItem) isColumn(n *pg_query.ColumnRef, column string) bool {
	parts := stringsOf(n.GetFields())
	return len(parts) == len(n.GetFields()) && len(parts) > 0 && parts[len(parts)-1] == column &&
		(len(parts) == 1 || parts[len(parts)-2] == m.name())
}

// groupKeys returns the keys of GROUP BY, also those in (a, b).
func groupKeys(clause []*pg_query.Node) (keys []*pg_query.Node) {
	for _, key := range clause {
		if row := key.GetRowExpr(); row != nil {
			keys = append(keys, groupKeys(row.Args)...)
		} else {
			keys = append(keys, key)
		}
	}
	return keys
}

// groupKey returns the column that a key of GROUP BY is, or that the output column is whose number or name it is. nil:
// none. If the name is also that of a column of FROM, PostgreSQL takes that one, and refuses the output column.
func groupKey(q *pg_query.SelectStmt, key *pg_query.Node) *pg_query.ColumnRef {
	if n := int(key.GetAConst().GetIval().GetIval()); n > 0 && n <= len(q.TargetList) {
		return q.TargetList[n-1].GetResTarget().GetVal().GetColumnRef()
	}
	if ref := key.GetColumnRef(); len(ref.GetFields()) == 1 {
		for _, target := range q.TargetList {
			if t := target.GetResTarget(); t.GetName() != "" && t.Name == ref.Fields[0].GetString_().GetSval() {
				return t.Val.GetColumnRef()
			}
		}
	}
	return key.GetColumnRef()
}

// tablesOf returns the tables of a FROM list, also those in joins whose columns have the names of the tables.
func tablesOf(from []*pg_query.Node) (tables []*pg_query.RangeVar) {
	for _, n := range from {
		switch {
		case n.GetRangeVar() != nil:
			tables = append(tables, n.GetRangeVar())
		case n.GetJoinExpr() != nil && n.GetJoinExpr().Alias == nil:
			tables = append(tables, tablesOf([]*pg_query.Node{n.GetJoinExpr().Larg, n.GetJoinExpr().Rarg})...)
		}
	}
	return tables
}

// addColumnNames adds the last part of every name of a column below a node. SELECT * has no name.
func (w *walker) addColumnNames(names map[string]bool, node reflect.Value) {
	if !w.spend(mapSteps) {
		return
	}
	if n, ok := node.Interface().(*pg_query.ColumnRef); ok {
		if s := n.Fields[len(n.Fields)-1].GetString_(); s != nil {
			names[s.Sval] = true
		}
		return
	}
	nodeTypeOf(node.Type().Elem()).forEachChild(node.Elem(), func(_ *nodeType, below reflect.Value) {
		w.addColumnNames(names, below)
	})
}

// edit replaces the bytes from at to end of the statement by a text.
type edit struct {
	at, end int
	text    string
}

// apply returns the text with the edits, and the shifts of its offsets. Two equal edits count once.
func apply(sql string, edits []edit) (edited string, shifts []parse.Shift, no *sandbox.Refusal) {
	if len(edits) == 0 {
		return sql, nil, nil
	}
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.at != b.at {
			return a.at - b.at
		}
		return a.end - b.end // an insertion comes first
	})
	edits = slices.Compact(edits)
	size := len(sql)
	for _, e := range edits {
		size += len(e.text)
	}
	if size > maxBoundBytes {
		return "", nil, refuseBoundBytes(size)
	}
	var out strings.Builder
	copied := 0
	for _, e := range edits {
		if e.at < copied || e.end < e.at || e.end > len(sql) {
			return "", nil, sandbox.Refusef("statement-not-allowed", "names of the statement cannot be bound: "+
				"give each table in FROM an alias, and use it in place of schema.table")
		}
		out.WriteString(sql[copied:e.at])
		out.WriteString(e.text)
		copied = e.end
		shifts = append(shifts, parse.Shift{At: out.Len(), Delta: out.Len() - copied})
	}
	out.WriteString(sql[copied:])
	return out.String(), shifts, nil
}

func refuseBoundBytes(size int) *sandbox.Refusal {
	return sandbox.Refusef("too-large", "the statement has too many names of other schemas than pg_catalog, or of "+
		"tables with masked columns: with what the service adds it would have at least %d bytes, and %d are allowed",
		size, maxBoundBytes)
}
