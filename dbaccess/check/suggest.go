package check

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// Names are names that can be suggested: from each in lower case to how a statement writes it.
type Names map[string]string

// Add adds a name unless one that differs in case only is there.
func (n Names) Add(name, written string) {
	if key := strings.ToLower(name); n[key] == "" {
		n[key] = written
	}
}

// nearest returns the name that is most like a name, whatever the case, as a statement writes it, or "".
func (n Names) nearest(name string) string {
	return n[policy.Nearest(strings.ToLower(name), maps.Keys(n))]
}

var unquotedName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// Quote returns a name as a statement writes it, like quote_ident of the server: in double quotes if it needs them.
func (cat *Catalog) Quote(name string) string {
	if unquotedName.MatchString(name) && (cat == nil || !cat.keywords[name]) {
		return name
	}
	return pgx.Identifier{name}.Sanitize()
}

// loadKeywords loads the words that are names only in double quotes, or in some places.
func (cat *Catalog) loadKeywords(ctx context.Context, tx pgx.Tx) error {
	var word string
	cat.keywords = map[string]bool{}
	return forEachRow(ctx, tx, `SELECT word FROM pg_get_keywords() WHERE catcode <> 'U'`, []any{&word},
		func() { cat.keywords[word] = true })
}

// addNames collects the tables that may be read, and their columns. A table has its schema if the search path does not
// find it, or if another one has its name.
func (cat *Catalog) addNames() {
	cat.tableNames, cat.columnNames = Names{}, Names{}
	for _, name := range slices.Sorted(maps.Keys(cat.relations)) {
		readable := slices.DeleteFunc(slices.Clone(cat.relations[name]),
			func(r *relation) bool { return len(r.readable) == 0 })
		place := func(r *relation) int { // that of its schema on the search path
			if i := slices.Index(cat.searchPath, r.schema); i >= 0 {
				return i
			}
			return len(cat.searchPath)
		}
		slices.SortFunc(readable, func(a, b *relation) int { return place(a) - place(b) })
		for _, r := range readable {
			written := cat.Quote(name)
			if len(readable) > 1 || place(r) == len(cat.searchPath) {
				written = cat.Quote(r.schema) + "." + written
			}
			cat.tableNames.Add(name, written)
			for _, column := range r.readable {
				cat.columnNames.Add(column, cat.Quote(column))
			}
		}
	}
}

// addOwnNames collects the names that the statement itself gives to queries and columns.
func (stmt *Statement) addOwnNames(w *walker) {
	stmt.tables = w.relations
	addColumn := func(name string) { stmt.columnNames = append(stmt.columnNames, name) }
	for _, query := range w.allWithQueries {
		stmt.queryNames = append(stmt.queryNames, query.name)
		query.item.forEachName(addColumn)
	}
	for _, item := range w.itemsByNode {
		item.forEachName(addColumn)
	}
}

// forEachName calls take with the names that the text gives to columns of an item.
func (item *fromItem) forEachName(take func(string)) {
	for _, name := range item.listed {
		take(name)
	}
	for _, c := range item.columns {
		take(c.name)
	}
}

// SuggestTable adds a suggestion to the refusal of a table that does not exist.
func (stmt *Statement) SuggestTable(no *sandbox.Refusal) {
	name, queries := QuotedName(no.Message), Names{}
	for _, query := range stmt.queryNames {
		queries.Add(query, stmt.Catalog.Quote(query))
	}
	if no.Nearest = queries.nearest(name); no.Nearest == "" && stmt.Catalog != nil {
		no.Nearest = stmt.Catalog.tableNames.nearest(name)
	}
	if no.Hint = "db_tables() lists the tables"; no.Nearest != "" {
		no.Hint = "did you mean " + no.Nearest + "?"
	}
}

// SuggestColumn adds a suggestion to the refusal of a column that does not exist, or is not in reach. It names no
// column of a table that the login may not read.
func (stmt *Statement) SuggestColumn(no *sandbox.Refusal) {
	name, columns := QuotedName(no.Message), Names{}
	for r := range stmt.tables {
		for _, column := range r.readable {
			columns.Add(column, stmt.Catalog.Quote(column))
		}
	}
	for _, column := range stmt.columnNames {
		columns.Add(column, stmt.Catalog.Quote(column))
	}
	written := stmt.Catalog.Quote(name)
	no.Hint = stmt.listColumns()
	if no.Nearest = columns.nearest(name); no.Nearest == written {
		no.Nearest, no.Hint = "", "the statement has a column of that name, but not at this place; "+no.Hint
		return
	}
	if no.Nearest == "" && stmt.Catalog != nil {
		no.Nearest = stmt.Catalog.columnNames.nearest(name)
	}
	switch no.Nearest {
	case "":
	case written:
		no.Nearest = ""
		no.Hint = "other tables have a column of that name, but they are not in this statement; " + no.Hint
	default:
		no.Hint = "did you mean " + no.Nearest + "?"
	}
}

// maxListedColumns bounds the columns in a hint.
const maxListedColumns = 50

// listColumns returns a hint with the columns of the statement's tables that may be read, if they are few.
func (stmt *Statement) listColumns() string {
	lists, count := []string{}, 0
	for r := range stmt.tables {
		var names []string
		for _, column := range r.readable {
			names = append(names, stmt.Catalog.Quote(column))
		}
		if count += len(names); count > maxListedColumns {
			break
		}
		lists = append(lists, stmt.Catalog.Quote(r.name)+" has the columns "+strings.Join(names, ", "))
	}
	if count == 0 || count > maxListedColumns {
		return "db_schema(table) lists the columns"
	}
	slices.Sort(lists)
	return strings.Join(lists, "; ")
}

var deniedTable = regexp.MustCompile(`^permission denied for (?:table|view|materialized view|foreign table) (.+)$`)

// SuggestReadable adds the columns that may be read to the refusal of a table that may not be read as a whole.
func (stmt *Statement) SuggestReadable(no *sandbox.Refusal) {
	found := deniedTable.FindStringSubmatch(no.Message)
	if found == nil {
		return
	}
	no.Hint = "db_tables() lists the tables that may be read"
	for r := range stmt.tables {
		if r.name != found[1] || len(r.readable) == 0 {
			continue
		}
		var list []string
		for _, column := range r.readable[:min(len(r.readable), maxListedColumns)] {
			list = append(list, stmt.Catalog.Quote(column))
		}
		if len(r.readable) > maxListedColumns {
			list = append(list, "...")
		}
		no.Hint = "of " + stmt.Catalog.Quote(r.name) + " only these columns may be read, and not *: " +
			strings.Join(list, ", ")
		return
	}
}

var sqlWord = regexp.MustCompile(`"(?:[^"]|"")*"|[\pL_][\pL\pN_$]*|\S`)

// atWord matches the syntax error at a word.
var atWord = regexp.MustCompile(`^syntax error at or near "(.+)"$`)

// isBeforeExpression reports whether an expression follows the word SELECT, which stands at a place or before it: then
// the word is not a name.
func isBeforeExpression(sql string, at int, word string) bool {
	rest := strings.TrimSpace(strings.TrimPrefix(sql[at:], word))
	next := sqlWord.FindString(rest)
	return next != "" && !strings.ContainsAny(next[:1], ",;)=.<>") && !strings.EqualFold(next, "from")
}

// addKeywordHint says to quote a keyword that is the name of a table or column: the word at a syntax error, or the one
// before it, which has begun a clause. cat may be nil.
func addKeywordHint(no *sandbox.Refusal, sql string, cat *Catalog) (added bool) {
	if no.Position == 0 || !atWord.MatchString(no.Message) || cat == nil {
		return false
	}
	at := byteOffset(sql, no.Position)
	words := sqlWord.FindAllString(sql[:at], -1)
	words = append(words[max(0, len(words)-1):], atWord.FindStringSubmatch(no.Message)[1])
	for _, word := range slices.Backward(words) {
		lower := strings.ToLower(word)
		if !cat.keywords[lower] || lower == "select" && isBeforeExpression(sql, at, word) {
			continue
		}
		written := cat.tableNames[lower]
		if written == "" {
			written = cat.columnNames[lower]
		}
		if quoted := `"` + lower + `"`; written == "" && strings.Contains(sql, quoted) {
			written = quoted
		}
		if written != "" {
			no.Nearest, no.Hint = written, "write the name as "+written+": "+lower+" is a keyword of SQL"
			return true
		}
	}
	return false
}
