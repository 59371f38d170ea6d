package parse_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/parse"
)

// FuzzParse looks for texts that crash or stall the parser, and checks positions and shifts.
func FuzzParse(f *testing.F) {
	for _, c := range dbtest.Cases(f, "../testdata/check/*.sql") {
		f.Add(c.SQL, "a")
	}
	for _, sql := range []string{
		"SELECT :a::int, ':a', $$:a$$, x[1:a], x[:a], /* :a */ :a -- :a", "SELECT 'a' :a", "SELECT E'\\':a'", `SELECT "a:a" : a`, "SELECT U&'\\0041:a'", "SELECT x[:a:2]", "SELECT ARRAY[:a, :a]", "SELECT a ? :a",
		"SELECT $1", "SELECT $a$ $a$", "SELECT 1+1+1", "((((", "/*/*/**/", "SELECT :a", "\xef\xbb\xbfSELECT 1", "SELECT 'é' || :a",
	} {
		f.Add(sql, "a")
	}
	f.Fuzz(func(t *testing.T, sql, name string) {
		if len(sql) > 64<<10 {
			return
		}
		// The parser runs in this process, so a stall must report the input.
		stalled := time.AfterFunc(10*time.Second, func() { panic("stalled") })
		defer stalled.Stop()
		r := parse.ParseInProcess(parse.Request{SQL: sql, Names: []string{name}})
		if r.Fault != nil {
			if p := r.Fault.Position; p < 0 || p > len(sql)+len(r.SQL)+1 {
				t.Errorf("position %d is outside of %q", p, sql)
			}
			return
		}
		if len(r.Tree) == 0 && strings.TrimSpace(r.SQL) == "" {
			return
		}
		if !utf8.ValidString(r.SQL) || strings.ContainsRune(r.SQL, 0) {
			t.Errorf("%q became %q", sql, r.SQL)
		}
		for _, n := range r.Names {
			if n != name {
				t.Errorf("the parameter %q was not given", n)
			}
		}
		// Undoing the shifts must give the original length.
		if n := len(r.Shifts); n > 0 && len(r.SQL)-r.Shifts[n-1].Delta != len(sql) || n == 0 && r.SQL != sql {
			t.Errorf("%q became %q by %v", sql, r.SQL, r.Shifts)
		}
		if !slices.IsSortedFunc(r.Shifts, func(a, b parse.Shift) int { return a.At - b.At }) {
			t.Errorf("the shifts of %q are out of order: %v", sql, r.Shifts)
		}
		// A text without parameters must not change again.
		if again := parse.ParseInProcess(parse.Request{SQL: sql, AllowAnyName: true}); again.Fault != nil &&
			again.Fault.Reason == "missing-parameter" {
			t.Errorf("%q: got a missing parameter, want none", sql)
		}
	})
}
