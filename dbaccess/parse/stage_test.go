package parse_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox/stages"
)

// WHERE has a stage for each condition that AND connects, also in parentheses, and none for a part of another
// condition.
func TestStagesOfConditions(t *testing.T) {
	t.Parallel()
	for where, want := range map[string][]string{
		"a":                                          {"a"},
		"a AND b AND c":                              {"a", "b", "c"},
		"a BETWEEN 1 AND 2 AND b":                    {"a BETWEEN 1 AND 2", "b"},
		"a NOT BETWEEN SYMMETRIC b AND c AND d":      {"a NOT BETWEEN SYMMETRIC b AND c", "d"},
		"(a AND b) AND (c OR d AND e)":               {"a", "b", "(c OR d AND e)"},
		"a AND (b AND (c AND d))":                    {"a", "b", "c", "d"},
		"((a AND b))":                                {"a", "b"},
		"a AND b OR c":                               {"a AND b OR c"},
		"NOT (a AND b) AND c":                        {"NOT (a AND b)", "c"},
		"CASE WHEN a AND b THEN c END AND d":         {"CASE WHEN a AND b THEN c END", "d"},
		"a IN (SELECT x FROM u WHERE y AND z) AND b": {"a IN (SELECT x FROM u WHERE y AND z)", "b"},
		"t.and = 'AND' /* AND */ AND \"AND\" -- AND": {"t.and = 'AND'", "\"AND\""},
	} {
		r := parse.ParseInProcess(parse.Request{SQL: "SELECT 1 FROM t WHERE " + where, Derive: parse.Stages})
		if r.Fault != nil {
			t.Errorf("%s: %v", where, r.Fault)
			continue
		}
		var got []string
		for _, s := range r.Stages.Stages {
			if s.Kind == stages.KindWhere && r.Stages.Blocks[s.Block].Kind == stages.BlockMain {
				got = append(got, s.Text)
				if s.Reason != "" {
					t.Errorf("%s: %s is refused: %s", where, s.Text, s.Message)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", where, got, want)
		}
	}
}

// A stage is refused if the text that is made for it has another tree. FOR looks like the beginning of FOR UPDATE here.
func TestStagesWithAnotherTreeAreRefused(t *testing.T) {
	t.Parallel()
	r := parse.ParseInProcess(parse.Request{SQL: "SELECT collation FOR ('a')", Derive: parse.Stages})
	if r.Fault != nil {
		t.Fatal(r.Fault)
	}
	if s := r.Stages.Stages; len(s) != 1 || s[0].Reason != stages.ReasonDiffers || len(r.Stages.Counts) != 0 {
		t.Errorf("got %+v and %+v, want one stage with %s and no statement", s, r.Stages.Counts, stages.ReasonDiffers)
	}
}

// FuzzStages looks for statements whose derivation crashes, or gives what no statement can be.
func FuzzStages(f *testing.F) {
	var forms []string
	var cases []struct{ SQL string }
	for file, into := range map[string]any{"forms.json": &forms, "cases.json": &cases} {
		text, err := os.ReadFile("../testdata/stages/" + file)
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			f.Fatal(err)
		}
	}
	for _, c := range cases {
		f.Add(c.SQL)
	}
	for _, sql := range forms {
		f.Add(sql)
	}
	for _, c := range dbtest.Cases(f, "../testdata/check/*.sql") {
		f.Add(c.SQL)
	}
	for _, sql := range []string{
		"SELECT FROM", "SELECT a FROM b JOIN", "SELECT a FROM (((b)))", "WITH a AS SELECT 1",
		"SELECT CASE a WHEN b THEN c END",
		"SELECT a FROM t WHERE a BETWEEN :a AND b AND c[:a] = ':a' /* AND */", `SELECT "AND" FROM t AS "FROM"`,
		"WITH RECURSIVE a AS (SELECT 1 UNION SELECT 2 FROM a) SEARCH DEPTH FIRST BY x, y SET z SELECT * FROM a",
		"SELECT a FROM t ORDER BY a USING < LIMIT ALL FOR UPDATE", "SELECT a FROM LEFT('x', 1), RIGHT",
		"SELECT t.case FROM t.end",
		"SELECT 1 UNION SELECT 2 ORDER BY 1 LIMIT 1", "(((SELECT 1)))", "((SELECT 1) LIMIT 1) LIMIT 2",
		"SELECT a FROM t GROUP BY", "SELECT (SELECT b FROM u WHERE c AND d) FROM t WHERE (a AND (b AND c)) OR d",
	} {
		f.Add(sql)
	}
	tables := []parse.Table{{Schema: "public", Name: "orders", IsVisible: true, PrimaryKey: []string{"id"},
		Columns: []parse.Column{{Name: "id", Type: "integer"}, {Name: "total", Type: "numeric", IsNullable: true}}}}
	f.Fuzz(func(t *testing.T, sql string) {
		if len(sql) > 16<<10 {
			return
		}
		stalled := time.AfterFunc(20*time.Second, func() { panic("stalled") })
		defer stalled.Stop()
		names := []string{"a"}
		r := parse.ParseInProcess(parse.Request{
			SQL: sql, Names: names, Derive: parse.Stages, Tables: tables, Samples: true,
		})
		if (r.Fault == nil) == (r.Stages == nil) {
			t.Fatalf("%q: got %v and %v, want stages or a fault", sql, r.Stages, r.Fault)
		}
		if r.Fault != nil {
			return
		}
		if len(r.Stages.Order) != len(r.Stages.Blocks) {
			t.Errorf("%q: got the order %v of %d blocks", sql, r.Stages.Order, len(r.Stages.Blocks))
		}
		var derived []parse.DerivedStatement
		for _, c := range r.Stages.Counts {
			derived = append(derived, c.DerivedStatement)
		}
		for _, s := range r.Stages.Shared {
			derived = append(derived, s.DerivedStatement)
		}
		for _, s := range r.Stages.Stages {
			if s.Sample != nil {
				derived = append(derived, *s.Sample)
			}
		}
		for _, p := range r.Stages.Probes {
			derived = append(derived, p.Statements...)
		}
		for _, d := range derived {
			query := parse.ParseInProcess(parse.Request{SQL: d.SQL, Names: d.Names})
			if query.Fault != nil {
				t.Fatalf("%q: %q: got %v, want a query", sql, d.SQL, query.Fault)
			}
			used := slices.Clone(query.Names)
			slices.Sort(used)
			if !slices.Equal(slices.Compact(used), d.Names) {
				t.Errorf("%q: %q: got the parameters %v, want %v", sql, d.SQL, d.Names, query.Names)
			}
			if statementOf(t, query.Tree)["SelectStmt"] == nil {
				t.Errorf("%q: got %q, want a SELECT", sql, d.SQL)
			}
		}
	})
}
