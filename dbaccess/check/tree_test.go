package check

import (
	"reflect"
	"strings"
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"glasshouse/dbaccess/parse"
)

// FuzzTree compares the tree read from JSON with the tree that the library reads from protobuf.
func FuzzTree(f *testing.F) {
	seedStatements(f, "../testdata/*/*.sql")
	for _, sql := range []string{"", ";", `SELECT E'\b\f\n\r\t\x01\x7f\\"<é>', "a""b\c"`, "SELECT -1, 2147483648, 1e5, x'1f', NULL, TRUE", "CREATE TABLE t (a int PRIMARY KEY) PARTITION BY RANGE (a)", "SELECT 1; SELECT 2",
		"GRANT SELECT ON t TO PUBLIC", "ALTER TABLE t ADD CHECK (a > 0)", "MERGE INTO a USING b ON a.x = b.x WHEN MATCHED THEN DELETE", "CREATE TRIGGER t BEFORE UPDATE ON t EXECUTE FUNCTION f()", "EXPLAIN (ANALYZE) SELECT 1"} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		if len(sql) > 16<<10 {
			return
		}
		r := parse.ParseInProcess(parse.Request{SQL: sql, AllowAnyName: true})
		if r.Fault != nil {
			return
		}
		packed, err := parser.ParseToProtobuf(r.SQL)
		var want pg_query.ParseResult
		if err != nil || proto.Unmarshal(packed, &want) != nil {
			return
		}
		withoutNegative(nodeTypeOf(reflect.TypeFor[pg_query.ParseResult]()), reflect.ValueOf(&want))
		got, err := readTree(r.Tree)
		if err != nil {
			t.Fatalf("%v\n%q\n%s", err, sql, r.Tree)
		}
		if !proto.Equal(got, &want) {
			t.Errorf("%q\ngot  %v\nwant %v", sql, got, &want)
		}
	})
}

// withoutNegative removes negative integers from a tree, as the parser's JSON writer does. No check
// depends on one.
func withoutNegative(s *nodeType, node reflect.Value) {
	if n, ok := node.Interface().(*pg_query.Integer); ok {
		n.Ival = max(n.Ival, 0)
	}
	s.forEachChild(node.Elem(), withoutNegative)
}

// FuzzTreeText reads any text as a tree. It must not panic, and must agree with protojson.
func FuzzTreeText(f *testing.F) {
	for _, text := range []string{`{"version":160001,"stmts":[{"stmt":{"SelectStmt":{"targetList":[{"ResTarget":{"val":{"A_Const":{"sval":{"sval":"a\u003c\"b"},"location":7}},"location":7}}],"all":true,"op":"SETOP_NONE"}},"stmt_len":9}]}`,
		`{"stmts":[{"stmt":{"Integer":{"ival":99999999999}}}]}`, `{"stmts":[{}]}`, `{"stmts":[{"stmt":null}]}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readTree(text)
		var want pg_query.ParseResult
		if err != nil || protojson.Unmarshal([]byte(text), &want) != nil {
			return
		}
		if !proto.Equal(got, &want) {
			t.Errorf("%s\ngot  %v\nwant %v", text, got, &want)
		}
	})
}

// TestTreeRejectsUnknownAndRepeatedFields expects an error for a field that would otherwise be ignored.
func TestTreeRejectsUnknownAndRepeatedFields(t *testing.T) {
	const whole = `{"version":160001,"stmts":[{"stmt":{"SelectStmt":{"op":"SETOP_NONE","all":true}},"stmt_len":9}]}`
	if _, err := readTree(whole); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"all"`, `"new"`}, {`SelectStmt`, `NewStmt`}, {`SETOP_NONE`, `SETOP_NEW`}, {`"all":true`, `"all":true,"op":"SETOP_UNION"`}, {`{"SelectStmt"`, `{"String":{},"SelectStmt"`},
		{`"stmt_len"`, `"stmt":{},"stmt_len"`}, {`"version":160001`, `"version":160001,"stmts":[{}]`}, {`160001`, `2160001160001`}, {`true`, `1`}, {`:9`, `:"9"`}, {`:9`, `: 9`}, {`:9}`, `:9,}`}, {`]}`, `]}{}`}, {`]}`, `]`}, {`SETOP_NONE"`, "SETOP_NONE"}, {`"all"`, "\"all\xff\""},
	} {
		changed := strings.Replace(whole, change[0], change[1], 1)
		if _, err := readTree(changed); changed == whole || err == nil {
			t.Errorf("reading %s succeeded, want an error", changed)
		}
	}
	deep := strings.Repeat(`{"List":{"items":[`, 20_000)
	if _, err := readTree(`{"stmts":[{"stmt":` + deep); err != errTreeTooDeep {
		t.Errorf("deep tree: got %v, want errTreeTooDeep", err)
	}
}
