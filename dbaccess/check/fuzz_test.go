package check

import (
	"reflect"
	"strings"
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/parse"
)

// seedStatements adds the statements of case files as seeds.
func seedStatements(f *testing.F, pattern string) {
	f.Helper()
	for _, c := range dbtest.Cases(f, pattern) {
		f.Add(c.SQL)
	}
}

// FuzzCheck checks every text that parses, without a catalog. The check must not panic, and must refuse
// calls with an effect.
func FuzzCheck(f *testing.F) {
	seedStatements(f, "../testdata/check/*.sql")
	f.Fuzz(func(t *testing.T, sql string) {
		if len(sql) > 64<<10 {
			return
		}
		r := parse.ParseInProcess(parse.Request{SQL: sql, AllowAnyName: true})
		if r.Fault != nil {
			return
		}
		w := newWalker(r.SQL, nil)
		if no := w.checkStatement(r.Tree); no != nil {
			if no.Reason == "" || no.Message == "" || no.Position < 0 || no.Position > len(r.SQL)+1 {
				t.Errorf("%q: got an incomplete refusal %+v", sql, no)
			}
			return
		}
		for _, word := range []string{"pg_sleep(", "pg_read_file(", "lo_import(", "dblink("} {
			// a call outside of strings and comments
			if plain := strings.ToLower(r.SQL); strings.HasPrefix(strings.TrimSpace(plain), "select "+word) {
				t.Errorf("%q is allowed, want a refusal", sql)
			}
		}
	})
}

// FuzzMasks splices masks into every statement that passes the check. The text must still parse, only subqueries
// without the masked column may read its table, and a refusal must have a position in the text.
func FuzzMasks(f *testing.F) {
	seedStatements(f, "../testdata/mask/cases.sql")
	cat := &Catalog{
		searchPath: []string{"public"}, relations: map[string][]*relation{},
		MaskedColumns: map[Origin]bool{{}: true},
	}
	for name, order := range map[string][]string{
		"staff": {"id", "name", "ssn", "pay", "boss"}, "logs": {"id", "staff_id", "text", "ssn", "meta"},
	} {
		r := &relation{schema: "public", name: name, columnOrder: order, primaryKey: []string{"id"}}
		if name == "staff" {
			r.maskedColumns = map[string]bool{"ssn": true}
		}
		cat.relations[name] = []*relation{r}
	}
	f.Fuzz(func(t *testing.T, sql string) {
		readers := map[*pg_query.RangeVar]bool{} // of the table in subqueries
		if len(sql) > 16<<10 {
			return
		}
		r := parse.ParseInProcess(parse.Request{SQL: sql, AllowAnyName: true})
		if r.Fault != nil || newWalker(r.SQL, nil).checkStatement(r.Tree) != nil {
			return // functions and types do not matter here
		}
		walker := newWalker(r.SQL, cat)
		no := walker.checkStatement(r.Tree)
		edited := ""
		if no == nil {
			edited, _, no = apply(r.SQL, walker.edits)
		}
		if no != nil {
			if no.Reason == "" || no.Position < 0 || no.Position > len(r.SQL)+1 {
				t.Errorf("%q: got an incomplete refusal %+v", sql, no)
			}
			return
		}
		tree, err := pg_query.ParseToJSON(edited)
		if err != nil {
			t.Fatalf("%q became %q, which does not parse: %v", sql, edited, err)
		}
		parsed, err := readTree(tree)
		if err != nil {
			t.Fatal(err)
		}
		var visit func(s *nodeType, node reflect.Value)
		visit = func(s *nodeType, node reflect.Value) {
			if q, ok := node.Interface().(*pg_query.SelectStmt); ok {
				for _, from := range q.FromClause {
					item := from
					if sample := from.GetRangeTableSample(); sample != nil {
						item = sample.Relation
					}
					if r := item.GetRangeVar(); r != nil && r.Relname == "staff" && r.Schemaname == "public" {
						readers[r] = true
						for _, target := range q.TargetList {
							fields := target.GetResTarget().GetVal().GetColumnRef().GetFields()
							names := stringsOf(fields)
							if len(names) > 0 && (len(names) != 2 || names[1] == "ssn") {
								t.Errorf("%q became %q, which reads a masked column", sql, edited)
							}
						}
					}
				}
			}
			if r, ok := node.Interface().(*pg_query.RangeVar); ok && r.Relname == "staff" && r.Schemaname == "public" &&
				!readers[r] {
				t.Errorf("%q became %q, which reads the table itself", sql, edited)
			}
			s.forEachChild(node.Elem(), visit)
		}
		for _, one := range parsed.Stmts {
			node := reflect.ValueOf(one)
			visit(nodeTypeOf(node.Type().Elem()), node)
		}
	})
}
