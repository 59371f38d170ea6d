package history

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// timeline is a table that a list shows newest first.
type timeline[T any] struct {
	from    string // the table, with its alias
	columns string
	order   order // first the time, then what names the row
	scan    pgx.RowToFunc[T]
	key     func(T) []any // the values of order's columns
}

// page returns the rows that match the conditions, at most limit of them, and the cursor of the next page. The cursor
// has the place of the last row, so it works even when that row is erased.
func (t timeline[T]) page(
	ctx context.Context, s *Store, of scope, c conditions, after string, limit int,
) (list []T, next string, err error) {
	if after != "" {
		if err := t.order.addCursor(&c, after); err != nil {
			return nil, "", err
		}
	}
	limit = pageLimit(limit)
	sql := fmt.Sprintf(`SELECT %s FROM %s WHERE %s ORDER BY %s DESC LIMIT %d`,
		t.columns, t.from, &c, strings.Join(t.order.columns, " DESC, "), limit+1)
	read := func(ctx context.Context, f func(context.Context) error) error { return s.readExecutions(ctx, of, f) }
	// PostgreSQL plans each query for its arguments. Its generic plan, which it prefers after five executions of a
	// prepared statement, does not know that a status is rare, and reads all records by time.
	args := append([]any{pgx.QueryExecModeCacheDescribe}, c.args...)
	if list, err = query(ctx, s, read, t.scan, sql, args...); err != nil {
		return nil, "", err
	}
	if len(list) > limit {
		list = list[:limit]
		next, err = t.order.cursor(t.key(list[limit-1])...)
	}
	return list, next, err
}

// addRecordFilter adds the conditions of the fields that several lists have. names are the columns of the user, the
// sandbox, the execution, the status and the time; "": the list has no such column.
func (c *conditions) addRecordFilter(f sandbox.RecordFilter, user, box, execution, status, at string) {
	for _, field := range []struct{ column, value string }{
		{user, f.User}, {box, f.SandboxID}, {execution, f.ExecutionID}, {status, f.Status},
	} {
		if field.column != "" && field.value != "" {
			c.add(field.column+" = ?", clean(field.value))
		}
	}
	c.addTimes(at, f.Since, f.Until)
}

// addTimes adds the condition that a column has a time from since on and before until. A zero time sets no limit.
func (c *conditions) addTimes(column string, since, until time.Time) {
	if !since.IsZero() {
		c.add(column+" >= ?", since)
	}
	if !until.IsZero() {
		c.add(column+" < ?", until)
	}
}

// addText adds the condition that one of the columns has a text, in upper or lower case. It adds none for the text "".
func (c *conditions) addText(text string, columns ...string) {
	if text == "" {
		return
	}
	var either []string
	for _, column := range columns {
		either = append(either, column+" ILIKE ?")
	}
	pattern := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(clean(text))
	c.add("("+strings.Join(either, " OR ")+")", "%"+pattern+"%")
}

// scopeOfRecords returns a scope that has all executions of a filter.
func scopeOfRecords(f sandbox.RecordFilter) scope {
	switch {
	case f.ExecutionID != "":
		return ofExecution(f.ExecutionID)
	case f.SandboxID != "":
		return ofSandbox(f.SandboxID)
	}
	return ofUser(f.User)
}
