package check

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"glasshouse/dbaccess/parse"
)

// repeated returns n copies of a text with commas between them and their numbers in place of #.
func repeated(n int, text string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = strings.ReplaceAll(text, "#", strconv.Itoa(i))
	}
	return strings.Join(list, ", ")
}

// TestCheckIsBounded checks statements whose names and items multiply, in a database with masked columns. Without a
// bound some of them take minutes, or gigabytes.
func TestCheckIsBounded(t *testing.T) {
	wide := []string{"id", "ssn"}
	for i := range 1500 {
		wide = append(wide, "column_"+strconv.Itoa(i))
	}
	cat := &Catalog{
		searchPath: []string{"public"}, relations: map[string][]*relation{}, TableNames: map[string]bool{},
		MaskedColumns: map[Origin]bool{{}: true}, functions: map[string][]*function{},
	}
	for name, order := range map[string][]string{"staff": {"id", "name", "ssn"}, "logs": {"id", "text"}, "wide": wide} {
		r := &relation{schema: "public", name: name, columnOrder: order, columns: setOf(order), primaryKey: []string{"id"}}
		if name != "logs" {
			r.maskedColumns = map[string]bool{"ssn": true}
		}
		cat.relations[name] = []*relation{r}
	}
	const n = 10_000
	for i := range n {
		name := "f" + strconv.Itoa(i)
		cat.functions[name] = []*function{{schema: "pg_catalog", name: name, allowed: true}}
	}
	from := " FROM " + repeated(n, "staff a#")
	for name, c := range map[string]struct {
		sql    string
		writes bool
	}{
		"columns of one item":         {sql: "SELECT " + repeated(n, "(q.c# = 1)") + " FROM staff, (SELECT " + repeated(n, "1 c#") + ") q"},
		"listed columns of one item":  {sql: "SELECT " + repeated(n, "(q.c# = 1)") + " FROM staff, (SELECT 1) q(" + repeated(n, "c#") + ")"},
		"columns of many items":       {sql: "SELECT " + repeated(n, "(x# = 1)") + from},
		"items of one name":           {sql: "SELECT " + repeated(4500, "q.f#") + " FROM staff, " + repeated(4500, "(SELECT 1 x) q")},
		"functions or columns":        {sql: "SELECT " + repeated(n, "(q.f# = 1)") + " FROM logs, (SELECT " + repeated(n, "1 c#") + ") q"},
		"columns with a schema":       {sql: "SELECT " + repeated(n, "public.staff.id") + from},
		"columns with the same table": {sql: "SELECT " + repeated(n, "public.staff.id") + " FROM " + repeated(n, "staff")},
		"keys of groups":              {sql: "SELECT " + repeated(n, "a.name x#") + " FROM staff a GROUP BY " + repeated(n, "y#")},
		"grouped items":               {sql: "SELECT " + repeated(n, "a#.name") + from + " GROUP BY " + repeated(n, "a#.id")},
		"all columns of wide items":   {sql: "SELECT * FROM " + repeated(n, "wide a#")},
		"some columns of wide items":  {sql: "SELECT 1 FROM " + repeated(n, "wide a#")},
		"columns of a write":          {sql: "UPDATE logs SET id = 1" + from + " WHERE (" + repeated(n, "id") + ") IS NULL", writes: true},
		"parameters":                  {sql: "SELECT " + repeated(n, ":p#")},
	} {
		request := parse.Request{SQL: c.sql, AllowAnyName: true}
		parsed := parse.ParseInProcess(request)
		if parsed.Fault != nil {
			t.Fatalf("%s: %v", name, parsed.Fault)
		}
		began := time.Now()
		stmt, w := checkParsed(request, parsed, cat, c.writes)
		no := stmt.Refusal
		if no == nil {
			no = stmt.bindNames(w)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: the check took %s, want it bounded", name, took)
		}
		if no != nil && no.Reason != "too-large" {
			t.Errorf("%s: got %+v, want no refusal or too-large", name, no)
		}
	}
}

// TestMaskSearchIsBounded searches a tree in which each row has two rows of the query below.
func TestMaskSearchIsBounded(t *testing.T) {
	row := "{TARGETENTRY :expr {VAR :varno 1 :varattno 0 :vartype 2249 :varlevelsup 0}}"
	tree := "{QUERY :rtable <> :targetList ({TARGETENTRY :expr {CONST :consttype 23}})}"
	for range 100 {
		tree = "{QUERY :rtable ({RTE :rtekind 1 :subquery " + tree + "}) :targetList (" + row + " " + row + ")}"
	}
	if !computesWithMask("{QUERY :rtable <> :targetList ({TARGETENTRY :expr " + "{FUNCEXPR :args " + tree + "}})}") {
		t.Error("got a complete search, want it to end early and to find the constant")
	}
}
