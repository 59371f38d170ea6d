package dbaccess_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// regressFiles are the regression files with the most SELECTs of many forms, after those that make their tables. They
// run in this order until regressTime is over.
var regressFiles = strings.Fields(`groupingsets window with subselect join union aggregates select select_distinct
	select_distinct_on select_having select_implicit tsrf case limit rangefuncs create_view select_views boolean
	incremental_sort memoize equivclass rowtypes inherit partition_join partition_aggregate arrays jsonb json numeric
	strings text int8 float8 date timestamp timestamptz interval`)

// regressTime bounds the time for the queries.
const regressTime = 40 * time.Second

// regressWorkers is the number of users who ask for stages at the same time.
const regressWorkers = 4

// maskedMark begins each value of the columns that are masked, and stands in no statement.
const maskedMark = "zqx"

// TestStagesOfRegressionFiles asks for the stages of the SELECTs of PostgreSQL's regression files. What the derived
// statements compute is in the statement, the last stage has the rows of the statement, and no value of a masked column
// is in an answer.
func TestStagesOfRegressionFiles(t *testing.T) {
	t.Parallel()
	dir := regressDir()
	if dir == "" {
		t.Log("report: not tested, because PostgreSQL's regression files are not here (scripts/regress fetches " +
			"them): the stages of their SELECTs")
		return
	}
	limit := regressTime
	if testing.Short() {
		limit /= 3
	}
	f := newRegressFixture(t, dir)
	end := time.Now().Add(limit)
	for _, file := range regressFiles {
		if !time.Now().Before(end) {
			break
		}
		f.run(t, file, end)
	}
	t.Logf("report: stages of %d SELECTs of PostgreSQL's regression files: %d derived statements compared, %d stages "+
		"counted, %d failed, %d beyond the budget, %d refused",
		f.ran.Load(), f.derived.Load(), f.counted.Load(), f.failed.Load(), f.skipped.Load(), f.refused.Load())
	if f.ran.Load() < 100 && !testing.Short() {
		t.Errorf("only %d statements had stages", f.ran.Load())
	}
}

// regressDir returns src/test/regress of PostgreSQL's source, or "".
func regressDir() string {
	for _, dir := range []string{
		os.Getenv("GLASSHOUSE_REGRESS"), filepath.Join(os.Getenv("GLASSHOUSE_DATA_DIR"), "regress", "files"),
	} {
		if _, err := os.Stat(filepath.Join(dir, "parallel_schedule")); err == nil && dir != "" {
			return dir
		}
	}
	return ""
}

// regressFixture is a database with the tables of the regression files.
type regressFixture struct {
	dir   string
	urls  *dbtest.Databases
	admin *pgx.Conn

	ran, derived, counted, failed, skipped, refused atomic.Int64
}

func newRegressFixture(t *testing.T, dir string) *regressFixture {
	t.Helper()
	f := &regressFixture{dir: dir, urls: dbtest.StartPrivate(t)}
	admin, err := dbtest.Connect(t.Context(), f.urls.URL(embedded.RoleAdmin, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Close(context.Background()) })
	f.admin = admin
	f.exec(t, "SET statement_timeout = '2s'")
	f.exec(t, "SET search_path = public")
	f.load(t, "test_setup")
	for _, table := range []string{"onek", "tenk1"} {
		f.exec(t, "UPDATE "+table+" SET stringu1 = '"+maskedMark+"' || stringu1")
	}
	return f
}

// unwanted matches statements of the regression files that take rights, roles or rows away before the SELECTs run.
var unwanted = regexp.MustCompile(`(?is)^(\s*--[^\n]*\n)*\s*(drop|grant|revoke|truncate|delete|begin|start|commit|` +
	`rollback|end|abort|savepoint|release|set|reset|create (role|user|group)|alter (role|user|group)|explain|vacuum|` +
	`create event|declare|fetch|close|lock|do|copy .* to )\b`)

var (
	readsRows = regexp.MustCompile(`(?i)^(\s*--[^\n]*\n)*\s*(select|with|values|table|\()`)
	temporary = regexp.MustCompile(`(?i)\b(temp|temporary) (table|view|recursive view)`)
	copyFile  = regexp.MustCompile(`(?is)copy\s+(\w+)\s+from\s+'([^']+)'`)
)

// load runs the statements of a file that make tables, and returns its queries.
func (f *regressFixture) load(t *testing.T, file string) (queries []string) {
	t.Helper()
	for _, st := range dbtest.RegressStatements(t, f.dir, file) {
		switch {
		case st.Copied != nil:
			_, _ = f.admin.PgConn().CopyFrom(t.Context(), strings.NewReader(*st.Copied), st.SQL)
		case copyFile.MatchString(st.SQL):
			m := copyFile.FindStringSubmatch(st.SQL)
			if data, err := os.Open(m[2]); err == nil {
				_, _ = f.admin.PgConn().CopyFrom(t.Context(), data, "COPY "+m[1]+" FROM STDIN")
				_ = data.Close()
			}
		case readsRows.MatchString(st.SQL):
			queries = append(queries, st.SQL)
		case !unwanted.MatchString(st.SQL):
			// One that fails makes no table, and the queries of it fail.
			_, _ = f.admin.PgConn().Exec(t.Context(), temporary.ReplaceAllString(st.SQL, "$2")).ReadAll()
		}
	}
	return queries
}

func (f *regressFixture) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := f.admin.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// run asks for the stages of the queries of a file until a time.
func (f *regressFixture) run(t *testing.T, file string, end time.Time) {
	t.Helper()
	queries := f.load(t, file)
	f.exec(t, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+embedded.RoleReader)
	r, err := dbaccess.Open(t.Context(), dbaccess.Config{
		URL:         f.urls.URL(embedded.RoleReader, embedded.DatabaseKnowledge),
		MaskColumns: []string{"onek.stringu1", "tenk1.stringu1"},
	})
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	defer r.Close()
	var wg sync.WaitGroup
	var next atomic.Int64
	for worker := range regressWorkers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(queries)) && time.Now().Before(end); i = next.Add(1) - 1 {
				f.ask(t, r, file, queries[i], string(rune('a'+worker)))
			}
		})
	}
	wg.Wait()
}

// ask asks for the stages of a query.
func (f *regressFixture) ask(t *testing.T, r *dbaccess.Reader, file, sql, user string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	got, err := r.Stages(ctx, sql, nil, sandbox.QueryLimits{User: user, Timeout: time.Second},
		stages.Options{Samples: true, All: true})
	if err != nil {
		switch reason(err) {
		case "unavailable", "parser-failed":
			t.Errorf("%s: %v: %s", file, err, sql)
		}
		return
	}
	f.ran.Add(1)
	checkInvariants(t, file+": "+sql, got)
	for _, b := range got.Blocks {
		if b.Reason == stages.ReasonInconsistent {
			t.Errorf("%s: the counts contradict the rows: %s\n%s", file, sql, got.Text)
		}
		for _, s := range b.Stages {
			switch s.State {
			case stages.Counted:
				f.counted.Add(1)
			case stages.Failed:
				f.failed.Add(1)
			case stages.Refused:
				f.refused.Add(1)
			default:
				f.skipped.Add(1)
			}
		}
	}
	text, err := json.Marshal(got)
	if err != nil || strings.Contains(string(text), maskedMark) {
		t.Errorf("%s: %v; the answer has a masked value: %s\n%s", file, err, sql, text)
	}
	f.compare(t, r, file, sql)
}

// compare expects the expressions of derived statements to be those of the statement or of its views. It knows nothing
// of the derivation but the columns of its templates, and that they connect whole expressions with AND, and ask whether
// one is true, unknown or NULL.
func (f *regressFixture) compare(t *testing.T, r *dbaccess.Reader, file, sql string) {
	t.Helper()
	derived, views, err := r.DerivedCounts(t.Context(), sql)
	if err != nil {
		t.Errorf("%s: %v: %s", file, err, sql)
		return
	}
	own := map[string]bool{}
	for _, text := range append(views, sql) {
		eachNode(t, text, func(n map[string]any) {
			own[nodeText(t, n)] = true
			join, _ := n["JoinExpr"].(map[string]any)
			using, _ := join["usingClause"].([]any)
			for _, name := range using { // a column of each side
				column := map[string]any{"ColumnRef": map[string]any{"fields": []any{name}}}
				own[nodeText(t, column)] = true
			}
		})
	}
	for _, d := range derived {
		f.derived.Add(1)
		eachNode(t, d.SQL, func(n map[string]any) {
			if text := nodeText(t, n); !own[text] && !hasTemplateColumn(text) && !isTemplate(t, n, own) {
				t.Errorf("%s: a derived statement computes what the statement does not: %s\n%s\n%s", file, text, sql,
					d.SQL)
			}
		})
	}
}

// isTemplate reports whether a node that is not in a statement may be made for it.
func isTemplate(t *testing.T, n map[string]any, own map[string]bool) bool {
	t.Helper()
	isOwn := func(v any) bool {
		inner, ok := v.(map[string]any)
		return ok && (own[nodeText(t, inner)] || hasTemplateColumn(nodeText(t, inner)))
	}
	for kind, v := range n {
		inner, _ := v.(map[string]any)
		switch kind {
		case "A_Expr", "TypeCast":
			return false
		case "NullTest", "BooleanTest":
			return isOwn(inner["arg"])
		case "BoolExpr":
			args, _ := inner["args"].([]any)
			isTest := func(v any) bool {
				test, _ := v.(map[string]any)
				return test["NullTest"] != nil
			}
			isOther := func(v any) bool { return !isOwn(v) && !isTest(v) }
			return inner["boolop"] == "AND_EXPR" && !slices.ContainsFunc(args, isOther) ||
				inner["boolop"] == "OR_EXPR" && !slices.ContainsFunc(args, func(v any) bool { return !isTest(v) })
		}
	}
	return true
}

// templateColumns are columns that derived statements have of their own.
var templateColumns = []string{
	"rows", "pass", "null", "tied", "n", "is null", "stage set", "value", "stage having",
}

// eachNode calls visit with each node of the tree of a statement, without locations.
func eachNode(t *testing.T, sql string, visit func(map[string]any)) {
	t.Helper()
	answer := parse.ParseInProcess(parse.Request{SQL: sql})
	if answer.Fault != nil {
		return
	}
	var tree any
	if err := json.Unmarshal([]byte(answer.Tree), &tree); err != nil {
		t.Fatal(err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			delete(v, "location")
			for _, inner := range v {
				walk(inner)
			}
			if len(v) == 1 {
				visit(v)
			}
		case []any:
			for _, one := range v {
				walk(one)
			}
		}
	}
	walk(tree)
}

func nodeText(t *testing.T, n map[string]any) string {
	t.Helper()
	text, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func hasTemplateColumn(tree string) bool {
	return slices.ContainsFunc(templateColumns, func(name string) bool {
		return strings.Contains(tree, `"ColumnRef":{"fields":[{"String":{"sval":"`+name+`"}}]}`)
	})
}
