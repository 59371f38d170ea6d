package parse_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/parse"
)

// FuzzSample looks for statements whose sample has another condition than the statement. It compares the trees that the
// check reads.
func FuzzSample(f *testing.F) {
	for _, c := range dbtest.Cases(f, "../testdata/check/writes.sql") {
		f.Add(c.SQL)
	}
	for _, sql := range []string{
		"DELETE FROM t WHERE (NOT a) IS NULL", "DELETE FROM ONLY (s.t) * x USING a JOIN b USING (i) WHERE x.i = a.i",
		"UPDATE t AS set SET a = b IS DISTINCT FROM c, (d, e) = (1, :a), f = DEFAULT FROM g WHERE t.where = :a " +
			"RETURNING *",
		"WITH RECURSIVE update (a) AS (SELECT 1) SEARCH DEPTH FIRST BY a SET b " +
			"UPDATE t SET a[1] = CASE WHEN b THEN 1 END",
		"INSERT INTO s.t AS u (a, b) OVERRIDING SYSTEM VALUE SELECT 1 AS returning, 2 FROM a JOIN b ON conflict " +
			"ON CONFLICT (a) WHERE b DO UPDATE SET a = 1 WHERE u.a = 2 RETURNING a AS b",
		"INSERT INTO t WITH a AS (VALUES (:a)) TABLE a", "INSERT INTO t DEFAULT VALUES", "; DELETE FROM t ; ;",
		`DELETE FROM U&"t\0061" UESCAPE '!' WHERE "a)""" = $q$) OR ($q$ -- )`,
		"DELETE FROM t WHERE a[:a] = ':a' /* :a */",
		"DELETE FROM t WHERE CURRENT OF c", "WITH t AS (SELECT 1) DELETE FROM t",
	} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		if len(sql) > 16<<10 {
			return
		}
		stalled := time.AfterFunc(10*time.Second, func() { panic("stalled") })
		defer stalled.Stop()
		names := []string{"a"}
		written := parse.ParseInProcess(parse.Request{SQL: sql, Names: names})
		if p := parse.ParseInProcess(parse.Request{SQL: written.SQL, Derive: parse.Preview}); (p.Fault == nil) !=
			(p.Derived != "" && p.Target != "") {
			t.Errorf("%q: got the preview %+v, want one or a fault", sql, p)
		}
		for _, d := range []parse.Derivation{parse.Sample, parse.Count} {
			r := parse.ParseInProcess(parse.Request{SQL: sql, Names: names, Derive: d})
			if r.Fault != nil {
				continue
			}
			query := parse.ParseInProcess(parse.Request{SQL: r.Derived, Names: r.Names})
			if query.Fault != nil {
				t.Fatalf("%q: %q: got %v, want a query", sql, r.Derived, query.Fault)
			}
			if !slices.Equal(query.Names, r.Names) {
				t.Errorf("%q: %q: got the parameters %v, want %v", sql, r.Derived, query.Names, r.Names)
			}
			from, to := statementOf(t, written.Tree), statementOf(t, query.Tree)["SelectStmt"]
			if to == nil {
				t.Fatalf("%q: got %q, want a SELECT", sql, r.Derived)
			}
			write, others := from["DeleteStmt"], "usingClause"
			if write == nil {
				write, others = from["UpdateStmt"], "fromClause"
			}
			if write == nil {
				continue
			}
			got := to["whereClause"]
			if write[others] != nil {
				link, _ := got.(map[string]any)["SubLink"].(map[string]any)
				one := link["subselect"].(map[string]any)["SelectStmt"].(map[string]any)
				if got = one["whereClause"]; !reflect.DeepEqual(one["fromClause"], write[others]) {
					t.Errorf("%q: %q reads other tables", sql, r.Derived)
				}
			}
			if !reflect.DeepEqual(got, write["whereClause"]) ||
				!reflect.DeepEqual(to["withClause"], write["withClause"]) {
				t.Errorf("%q: %q has another condition", sql, r.Derived)
			}
		}
	})
}

// statementOf returns the only statement of a tree, without locations: its node by the node's name.
func statementOf(t *testing.T, tree string) map[string]map[string]any {
	t.Helper()
	var parsed struct {
		Stmts []struct{ Stmt map[string]map[string]any }
	}
	if err := json.Unmarshal([]byte(tree), &parsed); err != nil || len(parsed.Stmts) != 1 {
		t.Fatalf("got the tree %s and %v, want one statement", tree, err)
	}
	for _, node := range parsed.Stmts[0].Stmt {
		withoutLocations(node)
	}
	return parsed.Stmts[0].Stmt
}

func withoutLocations(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "location")
		for _, field := range v {
			withoutLocations(field)
		}
	case []any:
		for _, item := range v {
			withoutLocations(item)
		}
	}
}
