package dbaccess_test

import (
	"bufio"
	"errors"
	"os"
	"strings"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/sandbox"
)

func reason(err error) string {
	var r *sandbox.Refusal
	if err == nil {
		return "ok"
	}
	if errors.As(err, &r) {
		return r.Reason
	}
	return "error: " + err.Error()
}

func TestCheckCases(t *testing.T) {
	file, err := os.Open("testdata/check.sql")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	n := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		want, sql, ok := strings.Cut(lines.Text(), ": ")
		if !ok || strings.HasPrefix(want, "--") {
			continue
		}
		n++
		if err := dbaccess.Check(sql); reason(err) != want {
			t.Errorf("%s\n  got  %s (%v)\n  want %s", sql, reason(err), err, want)
		}
	}
	if n < 110 {
		t.Errorf("only %d cases were read", n)
	}
}

// Shapes that crash or stall the C parser must never reach it, and a long list,
// which is legal, must.
func TestCheckSurvivesHugeStatements(t *testing.T) {
	repeat := strings.Repeat
	for name, c := range map[string]struct{ sql, want string }{
		"operators":   {"SELECT 1" + repeat("+1", 30_000), "too-large"},
		"parentheses": {"SELECT " + repeat("(", 10_000) + "1" + repeat(")", 10_000), "too-large"},
		"casts":       {"SELECT 1" + repeat("::int", 10_000), "too-large"},
		"not":         {"SELECT " + repeat("NOT ", 30_000) + "true", "too-large"},
		"minus":       {"SELECT " + repeat("- ", 30_000) + "1", "too-large"},
		"union":       {"SELECT 1" + repeat(" UNION SELECT 1", 10_000), "too-large"},
		"case":        {"SELECT " + repeat("CASE WHEN true THEN ", 5_000) + "1" + repeat(" END", 5_000), "too-large"},
		"indirection": {"SELECT (a)" + repeat(".a", 30_000), "too-large"},
		"subscripts":  {"SELECT a" + repeat("[1]", 30_000), "too-large"},
		"joins":       {"SELECT 1 FROM a" + repeat(" NATURAL JOIN a", 10_000), "too-large"},
		"bytes":       {"SELECT '" + repeat("x", 1<<20) + "'", "too-large"},
		"nul":         {"SELECT 1\x00; DROP TABLE users", "syntax-error"},
		"list":        {"SELECT 1 WHERE 1 IN (" + repeat("1,", 50_000) + "1)", "ok"},
		"columns":     {"SELECT " + repeat("a + b,", 1500) + "1", "ok"},
	} {
		if err := dbaccess.Check(c.sql); reason(err) != c.want {
			t.Errorf("%s: got %s, want %s", name, reason(err), c.want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("SELECT a[1:2], :x::int FROM t WHERE b = ':x' -- :x")
	f.Fuzz(func(t *testing.T, sql string) { _ = dbaccess.Check(sql) })
}
