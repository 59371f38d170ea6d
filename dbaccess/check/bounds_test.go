package check

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
)

// cpuTime returns the CPU time that f takes on its thread: on a busy machine it takes a part of the time that passes.
func cpuTime(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var began, ended unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &began) // never fails
	f()
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ended)
	return time.Duration(ended.Nano() - began.Nano())
}

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
		searchPath: []string{"public"}, relations: map[string][]*relation{},
		MaskedColumns: map[Origin]bool{{}: true}, functions: map[string][]*function{},
	}
	for name, order := range map[string][]string{"staff": {"id", "name", "ssn"}, "logs": {"id", "text"}, "wide": wide} {
		r := &relation{
			schema: "public", name: name, columnOrder: order, columns: setOf(order), primaryKey: []string{"id"},
		}
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
	stars, nested := "WITH a0 AS (SELECT id, ssn FROM staff)", "SELECT id FROM staff"
	for i := range 28 {
		stars += fmt.Sprintf(", a%d AS (SELECT p.*, q.* FROM a%d p, a%d q)", i+1, i, i)
		nested = fmt.Sprintf("(WITH RECURSIVE a%d AS (%s UNION SELECT 1) SELECT * FROM a%d)", i, nested, i)
	}
	refs := "SELECT " + repeated(n, "(q.c# = 1)") + " FROM "
	calls := repeated(n, "1 c#")
	for name, sql := range map[string]string{
		"columns of one item":         refs + "staff, (SELECT " + calls + ") q",
		"listed columns of one item":  refs + "staff, (SELECT 1) q(" + repeated(n, "c#") + ")",
		"columns of many items":       "SELECT " + repeated(n, "(x# = 1)") + from,
		"items of one name":           "SELECT " + repeated(4500, "q.f#") + " FROM " + repeated(4500, "(SELECT 1 x) q"),
		"functions or columns":        "SELECT " + repeated(n, "(q.f# = 1)") + " FROM logs, (SELECT " + calls + ") q",
		"columns with a schema":       "SELECT " + repeated(n, "public.staff.id") + from,
		"columns with the same table": "SELECT " + repeated(n, "public.staff.id") + " FROM " + repeated(n, "staff"),
		"keys of groups":              "SELECT " + repeated(n, "name x#") + " FROM staff GROUP BY " + repeated(n, "y#"),
		"grouped items":               "SELECT " + repeated(n, "a#.name") + from + " GROUP BY " + repeated(n, "a#.id"),
		"all columns of wide items":   "SELECT * FROM " + repeated(n, "wide a#"),
		"some columns of wide items":  "SELECT 1 FROM " + repeated(n, "wide a#"),
		"columns of a write":          "UPDATE logs SET id = 1" + from + " WHERE (" + repeated(n, "id") + ") IS NULL",
		"parameters":                  "SELECT " + repeated(n, ":p#"),
		"joins of all columns":        stars + " SELECT p.ssn = p.id FROM a28 p",
		"recursive queries":           "SELECT q.id = 1 FROM " + nested + " q",
	} {
		request := parse.Request{SQL: sql, AllowAnyName: true}
		parsed := parse.ParseInProcess(request)
		if parsed.Fault != nil {
			t.Fatalf("%s: %v", name, parsed.Fault)
		}
		var no *sandbox.Refusal
		took := cpuTime(func() {
			stmt, w := checkParsed(request, parsed, cat, strings.HasPrefix(sql, "UPDATE"))
			if no = stmt.Refusal; no == nil {
				no = stmt.bindNames(w)
			}
		})
		if took > 5*time.Second {
			t.Errorf("%s: the check took %s of CPU time, want it bounded", name, took)
		}
		if no != nil && no.Reason != "too-large" && no.Reason != "masked-column" {
			t.Errorf("%s: got %+v, want no refusal, masked-column or too-large", name, no)
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
	if !computesWithMask("{QUERY :targetList ({TARGETENTRY :expr {FUNCEXPR :args " + tree + "}})}") {
		t.Error("got a complete search, want it to end early and to find the constant")
	}
}
