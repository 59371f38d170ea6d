package dbaccess_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

// A statement in the style of another database or library gets a hint with what to write.
func TestOtherDialectsGetAHint(t *testing.T) {
	t.Parallel()
	s := dbtest.Start(t)
	r := reader(t, embedded.RoleReader, s)
	for _, c := range [][2]string{
		// placeholders
		{"SELECT 1 WHERE 1 = {id}", ":name"},
		{"SELECT 1 WHERE 1 = ${id}", ":name"},
		{"SELECT * FROM {table}", ":name"},
		{"SELECT '{id}' + FROM x", ""},
		// functions that PostgreSQL lacks
		{"SELECT YEAR(now())", "extract(year FROM now())"},
		{"SELECT DATEDIFF(now(), now())", "now()::date - now()::date"},
		{"SELECT DATEDIFF(day, now(), now())", "now()::date - now()::date"},
		{"SELECT CURDATE()", "current_date"},
		{"SELECT DATE_SUB(now(), INTERVAL 30 DAY)", "interval '30 days'"},
		{"SELECT now() - interval 1 month", "interval '30 days'"},
		{"SELECT IF(true, 1, 2)", "CASE WHEN"},
		{"SELECT json_value('{}'::jsonb, '$.a')", "->>"},
		// names in brackets and backticks (npgsql/npgsql#2906, OHDSI/SqlRender#170)
		{"SELECT [ID] FROM t", "write the name as id:"},
		{"SELECT 1 FROM [dbo].[Users]", "write the name as dbo:"},
		{"SELECT t.[full name] FROM t", `write the name as "full name":`},
		{"SELECT [select] FROM t", `write the name as "select":`},
		{"SELECT 1 FROM `Users` WHERE `Id` = 1", "here users"},
		{"SELECT t.`full name` FROM t", `here "full name"`},
		{"SELECT '`' + FROM t", ""},
		{"SELECT a[1] FROM (SELECT ARRAY[x] FROM [t]) v(a)", "write the name as t:"},
		// the first rows (OHDSI/SqlRender#236, klahnakoski/mo-sql-parsing#189)
		{"SELECT TOP 10 id FROM t ORDER BY id", "write LIMIT 10 at the end"},
		{"SELECT DISTINCT TOP 3 [id] FROM t", "write LIMIT 3 at the end"},
		{"SELECT TOP (7) id FROM t", "write LIMIT 7 at the end"},
		{"SELECT TOP 3 WITH TIES id FROM t ORDER BY id", "write FETCH FIRST 3 ROWS WITH TIES"},
		{"SELECT TOP 5 PERCENT id FROM t", "no percentage"},
		{"SELECT top 10 FROM (SELECT 1 AS top) t", "write LIMIT 10 at the end"},
		{"SELECT 1 LIMIT 5, 10", "write LIMIT 10 OFFSET 5"},
		{"SELECT 1 WHERE ROWNUM <= 10", "write LIMIT"},
		// calls, with their own arguments
		{"SELECT ISNULL(1 + 1, 'a, b')", "write coalesce(1 + 1, 'a, b')"},
		{"SELECT IFNULL(lower('a'), 'x')", "write coalesce(lower('a'), 'x')"},
		{"SELECT NVL(1, 2) FROM t", "write coalesce(1, 2)"},
		{"SELECT NVL(1, 2, 3)", "write coalesce(x, y)"},
		{"SELECT NVL(", ""},
		{"SELECT IIF(1 = 1, 'a', 'b')", "write CASE WHEN 1 = 1 THEN 'a' ELSE 'b' END"},
		{"SELECT GETDATE()", "write now()"},
		{"SELECT SYSDATE", "write now()"},
		{"SELECT DATEADD(month, -1, now())", "write now() + -1 * interval '1 month'"},
		{"SELECT DATEDIFF(day, now(), current_date)", "write current_date::date - now()::date"},
		{"SELECT DATEDIFF(hour, now(), current_date)", "write extract(epoch FROM current_date - now())"},
		{"SELECT CHARINDEX('b', 'abc')", "write strpos('abc', 'b')"},
		{"SELECT LEN('abc')", "write length('abc')"},
		{"SELECT CONVERT(int, '5')", "CAST('5' AS int)"},
		{"SELECT CAST(1 AS SIGNED)", "bigint"},
		{"SELECT CAST('2026-01-31' AS DATETIME)", "timestamp"},
		{"SELECT CAST(1 AS NVARCHAR(10))", "text"},
		// text and operators
		{`SELECT 1 WHERE 'a' = "a"`, "write text in single quotes: 'a'"},
		{"SELECT 'a' + 'b'", "join texts by ||"},
		{"SELECT 'a'::text + 'b'", "join texts by ||"},
		{"SELECT 1 WHERE 1 == 1", "write = for equal"},
		{"SELECT 1 WHERE 'O'Brien' = ''", "O''Brien"},
		{"SELECT 1 WHERE 'a' REGEXP 'a'", "~ 'pattern'"},
		{"SELECT 1 MINUS SELECT 2", "EXCEPT"},
		{"SELECT 1 FROM dual", "leave out FROM dual"},
		// functions that take other types, or another number of arguments
		{"SELECT round(avg(x), 2) FROM (VALUES (1.5::float8)) v(x)", "there is round(numeric, int4); cast"},
		{"SELECT round(1.5::real, 1)", "as in x::numeric"},
		{"SELECT left('abc')", "there is left(text, int4)"},
		{"SELECT date_trunc(now(), 'month')", "date_trunc(text, timestamptz)"},
		{"SELECT length(5)", "as in x::text"},
		{"SELECT round('x', 'y', 'z')", "there is round(float8), round(numeric), round(numeric, int4)"},
	} {
		_, err := all(context.Background(), r, c[0], nil, sandbox.QueryLimits{})
		no, ok := errors.AsType[*sandbox.Refusal](err)
		if !ok || !strings.Contains(no.Hint, c[1]) || c[1] == "" && no.Hint != "" {
			t.Errorf("%s: got %v, want a refusal with the hint %q", c[0], err, c[1])
		}
	}
}
