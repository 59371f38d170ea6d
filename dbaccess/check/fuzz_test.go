package check

import (
	"strings"
	"testing"

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

// FuzzMasks splices masks into every statement that passes the check. The text must still parse, and a refusal must
// have a position in the text.
func FuzzMasks(f *testing.F) {
	seedStatements(f, "../testdata/mask/cases.sql")
	cat := &Catalog{
		searchPath: []string{"public"}, relations: map[string][]*relation{}, TableNames: map[string]bool{},
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
		if again := parse.ParseInProcess(parse.Request{SQL: edited, AllowAnyName: true}); again.Fault != nil {
			t.Errorf("%q became %q, which does not parse: %v", sql, edited, again.Fault)
		}
	})
}
