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
		{"SELECT YEAR(now())", "extract(year FROM x)"},
		{"SELECT DATEDIFF(now(), now())", "x::date - y::date"},
		{"SELECT DATEDIFF(day, now(), now())", "x::date - y::date"},
		{"SELECT CURDATE()", "current_date"},
		{"SELECT DATE_SUB(now(), INTERVAL 30 DAY)", "interval '30 days'"},
		{"SELECT now() - interval 1 month", "interval '30 days'"},
		{"SELECT IF(true, 1, 2)", "CASE WHEN"},
		{"SELECT json_value('{}'::jsonb, '$.a')", "->>"},
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
