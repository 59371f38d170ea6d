package dbaccess_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

// A text, a list of texts and None get the type that the statement needs where they stand, or are text.
func TestParametersGetTheTypeOfTheirPlaceOrValue(t *testing.T) {
	t.Parallel()
	n := func(digits string) json.Number { return json.Number(digits) }
	type values = map[string]any
	cases := []struct {
		sql    string
		params values
		want   string // the first value, or a part of the error
		fails  bool
	}{
		// filters that a caller may leave out
		{"SELECT count(*) FROM (VALUES ('a'),('b')) v(x) WHERE (:c IS NULL OR x = :c)", values{"c": nil}, "2", false},
		{"SELECT count(*) FROM (VALUES ('a'),('b')) v(x) WHERE (:c IS NULL OR x = :c)", values{"c": "b"}, "1", false},
		{"SELECT count(*) FROM (VALUES ('a'),('b')) v(x) WHERE (x = :c OR :c IS NULL)", values{"c": nil}, "2", false},
		{"SELECT count(*) FROM (VALUES (1),(2)) v(x) WHERE (:c IS NULL OR x = :c)", values{"c": nil}, "2", false},
		{"SELECT count(*) FROM (VALUES (1),(2)) v(x) WHERE (:c IS NULL OR x = :c)", values{"c": n("2")}, "1", false},
		{"SELECT count(*) FROM generate_series('2026-01-01'::date, '2026-01-10', '1 day') d WHERE " +
			"(:f IS NULL OR d >= :f) " +
			"AND (:t IS NULL OR d < :t)", values{"f": "2026-01-04", "t": nil}, "7", false},
		{"SELECT count(*) FROM (VALUES ('é', 1),('b', 2)) v(x, y) WHERE 'ééé' <> '' AND (:a IS NULL OR x = :a) AND " +
			"(:b IS NULL OR y = :b) AND (:a IS NOT NULL OR :b IS NOT NULL)", values{"a": "é", "b": nil}, "1", false},
		{"SELECT count(*) FROM (VALUES ('a'),('b')) v(x) WHERE (:c IS NULL OR x = ANY(:c))",
			values{"c": []any{"b", "z"}}, "1", false},
		{"SELECT count(*) FROM (VALUES (1),(2)) v(x) WHERE (:c IS NULL OR x = ANY(:c))",
			values{"c": []any{}}, "0", false},
		{"SELECT count(*) WHERE :c IS NULL", values{"c": nil}, "1", false},
		{"EXPLAIN (COSTS off) SELECT 1 WHERE :c IS NULL OR 'b' = :c", values{"c": "x"}, "Result", false},
		// functions of any type
		{"SELECT jsonb_build_object('k', :v)", values{"v": "v"}, `{"k": "v"}`, false},
		{"SELECT jsonb_build_object('k', :v, 'l', :v)", values{"v": nil}, `{"k": null, "l": null}`, false},
		{"SELECT pg_typeof(:c)", values{"c": "x"}, "text", false},
		{"SELECT pg_typeof(:c)", values{"c": []any{"x"}}, "text[]", false},
		{"SELECT concat(:a, :b)", values{"a": "x", "b": nil}, "x", false},
		// two types
		{"SELECT :d::date || ' ' || :d::text", values{"d": "2026-01-02"}, "2026-01-02 2026-01-02", false},
		{"SELECT extract(year FROM :d::date) + length(:d::text)", values{"d": "2026-01-02"}, "2036", false},
		{"SELECT :d::int + 1, :d::int + 2", values{"d": "41"}, "42", false},
		// JSON
		{"SELECT :l::jsonb->1", values{"l": []any{n("1"), n("2")}}, "2", false},
		{"SELECT CAST(:l AS json)->0->>'x'", values{"l": []any{map[string]any{"x": "y"}}}, "y", false},
		{"SELECT jsonb_array_length(:l::jsonb)",
			values{"l": []any{map[string]any{"x": n("1")}, n("2"), "z", nil}}, "4", false},
		{"SELECT jsonb_array_length(:l :: JSONB)", values{"l": []any{}}, "0", false},
		{"SELECT (:l::jsonb->>0)::int = ANY(:l)", values{"l": []any{n("1"), n("2")}}, "true", false},
		{"SELECT :d::jsonb->>'k'", values{"d": map[string]any{"k": "v"}}, "v", false},
		{"SELECT :t::jsonb->>'k'", values{"t": `{"k": "v"}`}, "v", false},
		{"SELECT (:l::jsonb[])[1]->>'k'", values{"l": []any{map[string]any{"k": "v"}}}, "v", false},
		// names
		{"SELECT :größe::int + :_x1", values{"größe": n("1"), "_x1": n("2")}, "3", false},
		{"SELECT (ARRAY[:a, :b])[2]", values{"a": n("1"), "b": n("2")}, "2", false},
		{"SELECT (ARRAY[[:a, 1], [2, :b]])[2][2]", values{"a": n("1"), "b": n("5")}, "5", false},
		{"SELECT x[:n] FROM (SELECT ARRAY[7,8,9] x, 2 n) v", nil, "[7 8]", false},
		{"SELECT x[abs(:i)] FROM (SELECT ARRAY[7,8,9] x) v", values{"i": n("2")}, "8", false},

		{"SELECT 1 = ANY(ARRAY[:a, :b])",
			values{"a": n("1")}, "missing-parameter: the parameter :b has no value", true},
		{"SELECT ARRAY[[1], [:b]]", nil, "missing-parameter: the parameter :b has no value", true},
		{"SELECT ARRAY /* of */ [:b]", nil, "missing-parameter: the parameter :b has no value", true},
		{"SELECT x[abs(:i)] FROM (SELECT ARRAY[7,8,9] x) v",
			nil, "missing-parameter: the parameter :i has no value", true},
		{"SELECT :größe", nil, "missing-parameter: the parameter :größe has no value", true},
		{"SELECT 1 WHERE 1 IN :ids", values{"ids": []any{n("1")}},
			`syntax-error: syntax error at or near ":ids" (hint: compare with a list by = ANY(:ids), not by IN)`, true},
		{"SELECT interval :x", values{"x": "1 day"},
			`at or near ":x" (hint: write the type behind the parameter: :x::interval)`, true},
		{"SELECT * FROM :name", values{"name": "users"}, `syntax-error: syntax error at or near ":name" (hint: ` +
			`a parameter stands for a value: a name of a table or column, or a keyword, must be in the text)`, true},
		{"SELECT jsonb_array_length(:l)", values{"l": []any{n("1")}}, "a list is an array; write :name::jsonb", true},
		{"SELECT '[1]'::jsonb @> :l", values{"l": []any{n("1")}}, "a list is an array; write :name::jsonb", true},
		{"SELECT * FROM unnest(:l)", values{"l": []any{"a"}}, "or :name::text[] for a list", true},
		{"SELECT :a + :b", values{"a": "1", "b": "2"}, "write the type behind the parameter", true},
		{"SELECT 1 WHERE 'a'::text = :n", values{"n": n("1")}, "cast one side to the type of the other", true},
		{"SELECT * FROM unnest(:l::text[])", values{"l": []any{"a"}}, "a", false},
		{"SELECT '$1'::int + :a",
			values{"a": n("1")}, `invalid-value: invalid input syntax for type integer: "$1"`, true},
		{"SELECT 'é' FROM (VALUES (1)) v(x) WHERE (:c IS NULL OR x = :c)\n AND nme = 1", values{"c": nil},
			`at character 69, line 2`, true},
	}
	places, many := make([]string, 40), values{} // more than a statement is sent again for
	for i := range places {
		name := fmt.Sprint("p", i)
		places[i], many[name] = fmt.Sprintf("(:%[1]s IS NULL OR 'a' = :%[1]s)", name), nil
	}
	cases = append(cases, cases[0])
	last := &cases[len(cases)-1]
	last.sql, last.params, last.fails = "SELECT 1 WHERE "+strings.Join(places, " AND "), many, true
	last.want = "type-mismatch: could not determine data type of parameter :p30 (hint: write the type behind the " +
		"parameter: :p30::text)"
	s := dbtest.Start(t)
	for _, serverCheck := range []bool{false, true} {
		r := openReader(t, dbaccess.Config{
			URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge), ServerCheck: serverCheck,
		})
		for _, c := range cases {
			var got string
			rows, err := all(context.Background(), r, c.sql, c.params, sandbox.QueryLimits{})
			if no, ok := errors.AsType[*sandbox.Refusal](err); ok {
				got = fmt.Sprintf("%s: %s (hint: %s) at character %d, line %d",
					no.Reason, no.Message, no.Hint, no.Position, no.Line)
			} else if err == nil && len(rows.Data[0]) > 0 {
				got = fmt.Sprint(rows.Data[0][0])
			}
			if c.fails != (err != nil) || c.fails && !strings.Contains(got, c.want) || !c.fails && got != c.want {
				t.Errorf("server check %v: %s %v\n  got  %s, %v\n  want %s",
					serverCheck, c.sql, c.params, got, err, c.want)
			}
		}
	}
}

// The position of an error is that in the caller's text, even where parameters got numbers of their own.
func TestPositionsAfterParametersWithTypes(t *testing.T) {
	t.Parallel()
	r := readerOfNames(t)
	sql := "SELECT 'é', id FROM people WHERE id IN (SELECT id FROM \"order\")"
	for range 10 {
		sql += "\nAND (:p IS NULL OR :p IS NULL OR :p IS NULL OR :p IS NULL OR id IN (" +
			"SELECT x.id FROM sales.people x, interval_of_days))"
	}
	sql += " AND name = :p" // only here the parameter gets a type
	_, err := all(context.Background(), r, sql, map[string]any{"p": "x"}, sandbox.QueryLimits{})
	want := 1 // of the 31st place: a statement is sent again for 30
	for range 31 {
		at := strings.Index(sql[want:], ":p IS NULL")
		want += at + 1
	}
	want -= len("é") - 1
	no, ok := errors.AsType[*sandbox.Refusal](err)
	if !ok || no.Position != want || no.Line != 9 {
		t.Errorf("got %+v, %v, want the error at character %d of line 9", no, err, want)
	}
}
