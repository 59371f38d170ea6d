package httpapi_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// cells returns the cells of one column of a page.
func cells(a answer, column int) (out []any) {
	rows, _ := a.get("rows").([]any)
	for _, row := range rows {
		out = append(out, row.([]any)[column])
	}
	return out
}

func wantCells(t *testing.T, a answer, column int, want ...any) {
	t.Helper()
	if got := cells(a, column); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v: %s", got, want, a.text)
	}
}

// A session that still has a table gives all rows and columns of it, and the record only the first.
func TestRowsOfALiveTable(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	e := c.run(t, id, `import pandas as pd
pd.DataFrame({f"c{n}": range(10_000) for n in range(120)})`)
	path := "/executions/" + e.get("execution_id").(string) + "/tables/0/rows"
	page := c.ok(t, "GET", path+"?start=4999&count=2", nil)
	wantCells(t, page, 119, 4999.0, 5000.0)
	if page.get("total") != 10_000.0 || page.get("total_columns") != 120.0 {
		t.Errorf("got %v rows and %v columns, want 10000 and 120", page.get("total"), page.get("total_columns"))
	}
	wantCells(t, c.ok(t, "GET", path+"?sort=-3&count=2", nil), 0, 9999.0, 9998.0)
	wantCells(t, c.ok(t, "GET", path+"?filter=0:ge:17&filter=1:lt:19", nil), 0, 17.0, 18.0)
	stats := c.ok(t, "GET", path+"?stats=5", nil)
	if stats.get("stats.max") != 9999.0 || stats.get("stats.count") != 10_000.0 {
		t.Errorf("got %s, want the statistics of all rows", stats.text)
	}
	wantProblem(t, c.do(t, "GET", path+"?sort=120", nil), http.StatusGone, "gone", "120 columns")
	wantProblem(t, c.do(t, "GET", path+"?filter=0:like:x", nil),
		http.StatusUnprocessableEntity, "invalid-input", "contains")

	c.run(t, id, "frame = pd.DataFrame({'n': range(100)})")
	wantProblem(t, c.do(t, "GET", path, nil), http.StatusGone, "gone", "no longer has this table")
	of := "/sandbox/" + id + "/variables/frame/rows"
	wantCells(t, c.ok(t, "GET", of+"?start=99", nil), 0, 99.0)
	wantProblem(t, c.do(t, "GET", strings.Replace(of, "frame", "none", 1), nil),
		http.StatusGone, "gone", "no variable none")
	other := newUser(t, sandbox.RoleAgent)
	wantProblem(t, other.do(t, "GET", of, nil), http.StatusNotFound, "not-found")
	wantProblem(t, other.do(t, "GET", path, nil), http.StatusNotFound, "not-found")
	c.ok(t, "DELETE", "/sandbox/"+id, nil)
	wantProblem(t, c.do(t, "GET", path, nil), http.StatusGone, "gone")
}

const typed = `rows = db_query("""SELECT n, (n % 3)::text AS t, n::numeric / 4 AS d, CASE n WHEN 2 THEN 'NaN'::float8
	WHEN 3 THEN NULL ELSE n END AS f, jsonb_build_object('n', n) AS j, DATE '2026-01-01' + n AS day,
	repeat('x', 1000) AS long, CASE n WHEN 5 THEN '' WHEN 6 THEN NULL ELSE 'a' END AS e, 9007199254740993 + n AS big,
	make_interval(days => n, secs => 1.5) AS i, ARRAY[n, n + 1] AS a
	FROM generate_series(1, 1200) n""")
len(rows)`

// The rows of a statement come from the log of an ended execution, with their types.
func TestRowsOfAStatement(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	for form, code := range map[string]string{
		"list": typed, "frame": strings.Replace(typed, "db_query", "db_frame", 1),
		"exact": strings.Replace(strings.Replace(typed, "db_query", "db_frame", 1), `n""")`, `n""", exact=True)`, 1),
	} {
		t.Run(form, func(t *testing.T) {
			e := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": code})
			path := "/executions/" + e.get("execution_id").(string) + "/queries/1/rows"
			page := c.ok(t, "GET", path+"?start=1&count=5", nil)
			wantCells(t, page, 0, 2.0, 3.0, 4.0, 5.0, 6.0)
			wantCells(t, page, 3, map[string]any{"nan": "nan"}, nil, 4.0, 5.0, 6.0)
			if got := cells(page, 2)[1]; got != "0.75000000000000000000" && got != 0.75 {
				t.Errorf("got %v, want three quarters", got)
			}
			wantCells(t, page, 5, "2026-01-03", "2026-01-04", "2026-01-05", "2026-01-06", "2026-01-07")
			wantCells(t, page, 7, "a", "a", "a", "", nil)
			if got := cells(page, 4)[0]; !reflect.DeepEqual(got, map[string]any{"json": map[string]any{"n": 2.0}}) {
				t.Errorf("got %v, want JSON", got)
			}
			if got := cells(page, 6)[0].(map[string]any); len(got["cut"].(string)) > 400 || got["length"] != 1000.0 {
				t.Errorf("got %v, want the beginning of a long text", got)
			}
			if got := cells(page, 8)[0]; got != "9007199254740995" {
				t.Errorf("got %v, want all digits", got)
			}
			if got := cells(page, 9)[0]; got != "2 days 00:00:01.5" {
				t.Errorf("got the interval %v", got)
			}
			if got := cells(page, 10)[0]; !reflect.DeepEqual(got, map[string]any{"json": []any{2.0, 3.0}}) {
				t.Errorf("got %v, want an array", got)
			}
			kind := page.get("columns").([]any)[2].(map[string]any)["kind"]
			if page.get("total") != 1200.0 || kind != "number" {
				t.Errorf("got %v rows and the kind %v, want 1200 and number", page.get("total"), kind)
			}
			wantCells(t, c.ok(t, "GET", path+"?sort=-2&count=1", nil), 0, 1200.0) // by number, not by text
			wantCells(t, c.ok(t, "GET", path+"?filter=7:null:", nil), 0, 6.0)
			wantCells(t, c.ok(t, "GET", path+"?filter=7:eq:", nil), 0, 5.0)
			wantCells(t, c.ok(t, "GET", path+"?filter=8:eq:9007199254740995", nil), 0, 2.0)
			last := c.ok(t, "GET", path+"?sort=3&start=1198", nil)
			wantCells(t, last, 3, map[string]any{"nan": "nan"}, nil)
			whole := c.ok(t, "GET", path+"?column=6&count=1&whole=true", nil)
			if got := cells(whole, 0)[0]; got != strings.Repeat("x", 1000) {
				t.Errorf("got %v, want the whole text", got)
			}
			stats := c.ok(t, "GET", path+"?stats=7", nil)
			if stats.get("stats.missing") != 1.0 || stats.get("stats.empty") != 1.0 ||
				stats.get("stats.distinct") != 2.0 {
				t.Errorf("got %s", stats.text)
			}
			wantProblem(t, c.do(t, "GET", strings.Replace(path, "/1/", "/2/", 1), nil),
				http.StatusNotFound, "not-found")
			wantProblem(t, newUser(t, sandbox.RoleAgent).do(t, "GET", path, nil), http.StatusNotFound, "not-found")
		})
	}
}

// Who may not use the database any more does not get the rows that are kept.
func TestRowsOfAStatementNeedTheDatabase(t *testing.T) {
	t.Parallel()
	sales, staff, _ := salesAndStaff(t)
	all := serveDatabases(t, sales, staff).newUser(t, map[string]any{"role": "developer"})
	e := all.ok(t, "POST", "/sandbox/agent/quick-execute",
		map[string]any{"code": `db_query("SELECT 1 AS n", database="sales")`})
	path := "/executions/" + e.get("execution_id").(string) + "/queries/1/rows"
	wantCells(t, all.ok(t, "GET", path, nil), 0, 1.0)
	narrow, _ := all.newKey(t, map[string]any{"name": "n", "role": "developer", "databases": []string{"staff"}})
	if a := narrow.do(t, "GET", path, nil); a.status == http.StatusOK || strings.Contains(string(a.text), `"rows"`) {
		t.Errorf("got HTTP %d %s, want a refusal", a.status, a.text)
	}
}

// A stopped program gives the rows of a value that was evaluated.
func TestRowsOfAnEvaluatedTable(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	_, a := c.openDebugSession(t, map[string]any{
		"code": "import pandas as pd\ndf = pd.DataFrame({'n': range(1000)})\ndone = 1", "breakpoints": []int{3},
	}, nil)
	path := "/debug/sessions/" + a.get("session_id").(string)
	value := c.ok(t, "POST", path+"/evaluate", map[string]any{"expression": "df[df.n >= 500]", "context": "repl"})
	reference := fmt.Sprint(value.get("variablesReference"))
	rows := path + "/values/" + reference + "/rows"
	page := c.ok(t, "GET", rows+"?start=499&sort=-1", nil)
	wantCells(t, page, 1, 500.0) // behind the index
	if page.get("total") != 500.0 {
		t.Errorf("got %v rows, want 500", page.get("total"))
	}
	c.ok(t, "POST", path+"/evaluate", map[string]any{"expression": "df.loc[500, 'n'] = -1", "context": "repl"})
	wantCells(t, c.ok(t, "GET", rows+"?count=1", nil), 1, 501.0)
	wantProblem(t, c.do(t, "GET", path+"/values/999999/rows", nil), http.StatusUnprocessableEntity, "invalid-input")
}
