package parse

import "testing"

func TestExplainedQueryIsFound(t *testing.T) {
	for sql, want := range map[string]string{
		"EXPLAIN SELECT 1":         "SELECT 1",
		"explain verbose select 1": "select 1",
		"/* a */ EXPLAIN -- b\n(COSTS off, /* c */ FORMAT json)TABLE t": "TABLE t",
		"EXPLAIN (SELECT 1) UNION (SELECT :a)":                          "(SELECT 1) UNION (SELECT $1)",
		"EXPLAIN ((VALUES (1)))":                                        "((VALUES (1)))",
		"EXPLAIN (VERBOSE) (WITH a AS (SELECT 1) TABLE a)":              "(WITH a AS (SELECT 1) TABLE a)",
		"EXPLAIN ANALYZE VERBOSE WITH a AS (SELECT 1) TABLE a;":         "WITH a AS (SELECT 1) TABLE a;",
		"SELECT 1 AS explain":                                           "",
		"SHOW timezone":                                                 "",
	} {
		got := ParseInProcess(Request{SQL: sql, AllowAnyName: true})
		if got.Fault != nil {
			t.Errorf("%s: got %v", sql, got.Fault)
		}
		text := ""
		if got.Explained > 0 {
			text = got.SQL[got.Explained:]
		}
		if text != want {
			t.Errorf("%s: got %q, want %q", sql, text, want)
		}
	}
}
