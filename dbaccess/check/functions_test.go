package check

import (
	"context"
	"testing"
)

// Every expression that is suggested for a function of another database is one that a statement may have.
func TestFunctionsOfOtherDatabasesHaveAnAllowedExpression(t *testing.T) {
	t.Parallel()
	c := New(Config{})
	defer c.Close()
	for name, ours := range otherDialectFunctions {
		sql := "SELECT " + ours + " FROM (SELECT now() AS x, now() AS y, now() AS z) t, " +
			"(SELECT 'a' AS text, 1 AS part, 1 AS start, 1 AS count, 1 AS digits, 'a' AS list) u"
		if err := c.Check(context.Background(), sql); err != nil {
			t.Errorf("%s: %s: got %v, want that it may run", name, sql, err)
		}
	}
}
