package history

import (
	"context"
	"encoding/base64"
	"encoding/json"
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
	order   []string // columns that order the rows and name each: first the time, then its id
	types   []string // of order
	scan    pgx.RowToFunc[T]
	key     func(T) []any // the values of order
}

// page returns the rows that match the conditions, at most limit of them, and the cursor of the next page. The cursor
// has the place of the last row, so it works also when that row is erased.
func (t timeline[T]) page(
	ctx context.Context, s *Store, of scope, c conditions, after string, limit int,
) (list []T, next string, err error) {
	if after != "" {
		if err := t.addCursor(&c, after); err != nil {
			return nil, "", err
		}
	}
	limit = pageLimit(limit)
	sql := fmt.Sprintf(`SELECT %s FROM %s WHERE %s ORDER BY %s DESC LIMIT %d`,
		t.columns, t.from, &c, strings.Join(t.order, " DESC, "), limit+1)
	read := func(ctx context.Context, f func(context.Context) error) error { return s.readExecutions(ctx, of, f) }
	if list, err = query(ctx, s, read, t.scan, sql, c.args...); err != nil {
		return nil, "", err
	}
	if len(list) > limit {
		list = list[:limit]
		next, err = encodeCursor(t.key(list[limit-1]))
	}
	return list, next, err
}

// addCursor adds the condition that rows follow a cursor.
func (t timeline[T]) addCursor(c *conditions, after string) error {
	values, err := decodeCursor(after, len(t.order))
	if err != nil {
		return err
	}
	var places []string
	for n, value := range values {
		c.args = append(c.args, value)
		places = append(places, fmt.Sprintf("$%d::text::%s", len(c.args), t.types[n]))
	}
	c.clauses = append(c.clauses, fmt.Sprintf("(%s) < (%s)", strings.Join(t.order, ", "), strings.Join(places, ", ")))
	return nil
}

// encodeCursor returns a cursor with the values of the columns that order a list.
func encodeCursor(values []any) (string, error) {
	var texts []string
	for _, value := range values {
		if at, ok := value.(time.Time); ok {
			value = at.UTC().Format(time.RFC3339Nano)
		}
		texts = append(texts, fmt.Sprint(value))
	}
	text, err := json.Marshal(texts)
	return base64.RawURLEncoding.EncodeToString(text), err
}

// decodeCursor returns the count values of a cursor; the first is a time, unless there is only one, an id.
func decodeCursor(cursor string, count int) (values []string, err error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(text, &values)
	}
	if err != nil || len(values) != count {
		return nil, errInvalidCursor()
	}
	first := values[0]
	if count == 1 {
		_, err = json.Number(first).Int64()
	} else {
		_, err = time.Parse(time.RFC3339Nano, first)
	}
	if err == nil && count == 3 {
		_, err = json.Number(values[2]).Int64()
	}
	if err != nil {
		return nil, errInvalidCursor()
	}
	for n := range values {
		values[n] = clean(values[n])
	}
	return values, nil
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
	if !f.Since.IsZero() {
		c.add(at+" >= ?", f.Since)
	}
	if !f.Until.IsZero() {
		c.add(at+" < ?", f.Until)
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
