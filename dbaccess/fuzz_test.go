package dbaccess

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"glasshouse/dbaccess/parse"
)

// seedStatements adds the statements of case files as seeds.
func seedStatements(f *testing.F, pattern string) {
	f.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, chunk := range strings.Split(string(text), "\n### ")[1:] {
			_, sql, _ := strings.Cut(chunk, "\n")
			f.Add(sql)
		}
	}
}

// FuzzCheck checks whatever parses, without a catalog. The check must not panic, and must refuse calls
// with an effect.
func FuzzCheck(f *testing.F) {
	seedStatements(f, "testdata/check/*.sql")
	f.Fuzz(func(t *testing.T, sql string) {
		if len(sql) > 64<<10 {
			return
		}
		r := parse.ParseInProcess(parse.Request{SQL: sql, AllowAnyName: true})
		if r.Fault != nil {
			return
		}
		checker := newStatementChecker(r.SQL, nil)
		if no := checker.checkStatement(r.Tree); no != nil {
			if no.Reason == "" || no.Message == "" || no.Position < 0 || no.Position > len(r.SQL)+1 {
				t.Errorf("%q: got an incomplete refusal %+v", sql, no)
			}
			return
		}
		for _, word := range []string{"pg_sleep(", "pg_read_file(", "lo_import(", "dblink("} {
			// a call outside of strings and comments
			if plain := strings.ToLower(r.SQL); strings.HasPrefix(strings.TrimSpace(plain), "select "+word) {
				t.Errorf("%q is allowed, want a refusal", sql)
			}
		}
	})
}

// FuzzTrace traces whatever passes the check. It must not panic, and a refusal must have a position.
func FuzzTrace(f *testing.F) {
	seedStatements(f, "testdata/mask/cases.sql")
	cat := &catalog{searchPath: []string{"public"}, relations: map[string][]*relation{}, tableNames: map[string]bool{}}
	for name, order := range map[string][]string{"staff": {"id", "name", "ssn", "pay", "boss"}, "logs": {"id", "staff_id", "text", "ssn", "meta"}} {
		cat.relations[name] = []*relation{{schema: "public", name: name, columnOrder: order, readsMasked: name == "staff", maskedColumns: map[string]bool{"ssn": name == "staff"}}}
	}
	f.Fuzz(func(t *testing.T, sql string) {
		if len(sql) > 16<<10 {
			return
		}
		r := parse.ParseInProcess(parse.Request{SQL: sql, AllowAnyName: true})
		if r.Fault != nil {
			return
		}
		judged := newStatementChecker(r.SQL, nil) // without a catalog: functions do not matter here
		if judged.checkStatement(r.Tree) != nil || judged.statementNode.GetSelectStmt() == nil {
			return
		}
		judged.catalog, judged.searchPath = cat, cat.searchPath
		trace := (&Reader{}).newTracer(t.Context(), judged)
		trace.traceSelect(judged.statementNode.GetSelectStmt(), nil)
		if no := trace.refusal; no != nil && (no.Reason == "" || no.Position < 0 || no.Position > len(r.SQL)+1) {
			t.Errorf("%q: got an incomplete refusal %+v", sql, no)
		}
	})
}

// FuzzArray encodes a list as a parameter and decodes it as a value.
func FuzzArray(f *testing.F) {
	for _, list := range []string{`[]`, `["a", null, "NULL", "", "b\"c\\d", "{}", "x,y"]`, `[[1, 2], [3, null]]`, `[true, false]`, `[[["deep"]]]`, `["é\n\t"]`} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, given string) {
		var list []any
		if json.Unmarshal([]byte(given), &list) != nil {
			return
		}
		list, ok := texts(list, 0).([]any)
		if !ok {
			return
		}
		out, _, err := encodeParameter("p", list)
		if err != nil {
			return
		}
		if got := decodeArray(string(out), ',', decoderByKind[""]); !reflect.DeepEqual(got, list) {
			t.Errorf("%s: encoded as %s and decoded as %#v", given, out, got)
		}
	})
}

// texts returns v if it consists of lists, strings and nulls only, and nil otherwise.
func texts(v any, depth int) any {
	switch v := v.(type) {
	case nil, string:
		return v
	case []any:
		for i := range v {
			if v[i] != nil {
				if v[i] = texts(v[i], depth+1); v[i] == nil {
					return nil
				}
			}
		}
		return v
	}
	return nil
}

// FuzzValue decodes any text as each kind of value. No decoder may panic.
func FuzzValue(f *testing.F) {
	for _, s := range []string{"", "P1Y2M3DT4H5M6.789S", "P-1Y-2M3DT-4H-5M-6.7S", "PT0S", `{1,2}`, `[0:1]={"a b",NULL}`, `{{`, `{"`, `\x00`, "infinity", "2024-01-01 00:00:00+00", "P99999999999999999999Y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, one := range decoderByKind {
			one(s)
			decodeArray(s, ',', one)
		}
	})
}
