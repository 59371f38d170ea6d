package parse

import (
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// The span of an expression has all of it, and nothing else.
func TestSpanOfExpressions(t *testing.T) {
	t.Parallel()
	for _, want := range []string{
		"a", "t.a", "s.t.a", "1", "-5", "'x'", "a + b", "a::int", "a::numeric(10, 2)", "a::timestamp with time zone",
		"a::double precision", "a::text[]", "date '2026-01-01'", "interval '1 day'", "CAST(a AS date)", "(a + b) / c",
		"a / (b + c)", "((a + b)) * ((c))", "f(a, b)", "s.f(a)", "count(*)", "count(*) FILTER (WHERE a > 1)",
		"sum(a) OVER (PARTITION BY b ORDER BY c)", "sum(a) OVER w", "mode() WITHIN GROUP (ORDER BY a)", "a IS NULL",
		"a IS NOT NULL",
		"a IS NOT TRUE", "NOT a", "NOT (a OR b)", "a AND (b OR c)", "a IN (1, 2)", "a NOT IN (SELECT b FROM u)",
		"a <> ALL (SELECT b FROM u)",
		"EXISTS (SELECT 1 FROM u WHERE b)", "(SELECT max(b) FROM u)", "ARRAY[1, 2]", "ARRAY(SELECT b FROM u)",
		"(a, b) = (1, 2)",
		"ROW(a, b)", "CASE WHEN a THEN b ELSE c END", "CASE a WHEN 1 THEN b END + 2", "coalesce(a, 0)",
		"greatest(a, b)",
		"extract(year FROM a)", "a BETWEEN 1 AND 2", "a LIKE 'x%'", `a COLLATE "C"`, "current_date",
		"a AT TIME ZONE 'UTC'",
		"(a AT TIME ZONE 'UTC')::date", "trim(both ' ' FROM a)", "substring(a FROM 1 FOR 2)", "nullif(a, 0)",
		"a || b || 'c'",
		"100.0 * count(*) / sum(count(*)) OVER ()", "a -> 'b' ->> 'c'", `"a b" + "c"`, "a IS DISTINCT FROM b", "- a",
		"a[1]",
	} {
		sql := "SELECT 1, " + want + " AS x, (" + want + "), 2 FROM t WHERE 3 = (" + want + ")"
		tree, err := pg_query.Parse(sql)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		c, err := newClauseText(sql)
		if err != nil {
			t.Fatal(err)
		}
		query := tree.Stmts[0].Stmt.GetSelectStmt()
		for i, n := range []*pg_query.Node{
			query.TargetList[1].GetResTarget().Val, query.TargetList[2].GetResTarget().Val,
			query.WhereClause.GetAExpr().GetRexpr(),
		} {
			s, ok := c.spanOf(n)
			// The location of a subquery is that of its outermost parenthesis.
			if got := c.text(s); !ok || got != want && !(n.GetSubLink() != nil && got == "("+want+")") {
				t.Errorf("%d of %s: got %q, %t", i, sql, got, ok)
			}
		}
	}
}
