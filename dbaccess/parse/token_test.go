package parse

import (
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"
)

// FuzzTokens compares tokens with those of the library.
func FuzzTokens(f *testing.F) {
	for _, sql := range []string{"", "SELECT", "SELECT a, :b FROM c -- d", "/* */ SELECT U&'\\0041' || E'\\n' || $$x$$ ~ $1 AND x[1:2] <> 'é'", "\ufeffSELECT 1;;", "SELECT CASE WHEN 1e5 > .5 THEN x'1f' END", "SELECT 'a"} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		if CheckText(sql) != nil {
			return
		}
		want, err := pg_query.Scan(sql)
		if err != nil {
			return
		}
		scanned, err := parser.ScanToProtobuf(sql)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeTokens(scanned)
		if err != nil || len(got) != len(want.Tokens) {
			t.Fatalf("%q: got %d tokens, want %d: %v", sql, len(got), len(want.Tokens), err)
		}
		for i, w := range want.Tokens {
			isKeyword := w.KeywordKind != pg_query.KeywordKind_NO_KEYWORD
			if want := (Token{int(w.Start), int(w.End), w.Token, isKeyword}); got[i] != want {
				t.Errorf("token %d of %q is %+v, want %+v", i, sql, got[i], want)
			}
		}
		// A truncated input must be an error, not a panic.

		for n := range min(len(scanned), 100) {
			_, _ = decodeTokens(scanned[:n])
		}
	})
}
