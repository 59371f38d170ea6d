package history

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

const (
	defaultPageLimit = 50 // records
	maxPageLimit     = 1000
	maxPageBytes     = 16 << 20 // of records; a page ends early rather than exceed it
)

// conditions are the clauses of a WHERE and their arguments.
type conditions struct {
	clauses []string
	args    []any
}

// add adds a clause in which ? stands for the argument.
func (c *conditions) add(clause string, arg any) {
	c.args = append(c.args, arg)
	c.clauses = append(c.clauses, strings.ReplaceAll(clause, "?", fmt.Sprintf("$%d", len(c.args))))
}

func (c *conditions) String() string {
	return strings.Join(append([]string{"true"}, c.clauses...), " AND ")
}

func conditionsOf(f sandbox.ExecutionFilter) *conditions {
	var c conditions
	if f.User != "" {
		c.add("owner = ?", clean(f.User))
	}
	if f.SandboxID != "" {
		c.add("sandbox_id = ?", clean(f.SandboxID))
	}
	if f.Status != "" {
		c.add("status = ?", clean(string(f.Status)))
	}
	if !f.Since.IsZero() {
		c.add("created_at >= ?", f.Since)
	}
	if !f.Until.IsZero() {
		c.add("created_at < ?", f.Until)
	}
	if f.Text != "" {
		c.add("(strpos(lower(code), lower(?)) > 0 OR strpos(lower(error), lower(?)) > 0)", clean(f.Text))
	}
	if f.After != "" {
		c.add("(created_at, id) < (SELECT a.created_at, a.id FROM executions a WHERE a.id = ?)", clean(f.After))
	}
	return &c
}

// scopeOf returns a scope that has all executions of a filter.
func scopeOf(f sandbox.ExecutionFilter) scope {
	if f.SandboxID != "" {
		return ofSandbox(f.SandboxID)
	}
	return ofUser(f.User)
}

// Executions returns a page of the executions that match the filter, newest first, and the cursor of the next page,
// which is "" for the last page. Running executions have their queries and connections so far. A page has at most as
// many executions as the filter's limit, and fewer if they are very large. Executions returns FaultInvalid if the
// filter's cursor belongs to another list.
func (s *Store) Executions(ctx context.Context, f sandbox.ExecutionFilter) ([]sandbox.Execution, string, error) {
	if err := s.checkCursor(ctx, f); err != nil {
		return nil, "", err
	}
	limit := pageLimit(f.Limit)
	c := conditionsOf(f)
	// The inner query adds up sizes, which PostgreSQL knows without reading large records, so that only the records of
	// the page are read. One row more than the limit tells whether there is a next page.
	sql := fmt.Sprintf(`SELECT %s FROM executions e JOIN (
			SELECT id, sum(size) OVER newest - size AS before, row_number() OVER newest AS n FROM (
				SELECT id, created_at, octet_length(record) + CASE WHEN completed_at IS NULL THEN
					(SELECT coalesce(sum(octet_length(p.record)), 0) FROM progress p
						WHERE p.execution_id = executions.id)
					ELSE 0 END AS size
				FROM executions WHERE %s ORDER BY created_at DESC, id DESC LIMIT %d) page
			WINDOW newest AS (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING)) sized ON sized.id = e.id
		WHERE sized.before <= %d OR sized.n <= 2 ORDER BY e.created_at DESC, e.id DESC`,
		recordColumns, c, limit+1, maxPageBytes)
	var list []sandbox.Execution
	var next string
	err := s.readExecutions(ctx, scopeOf(f), func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, sql, c.args...)
		if err != nil {
			return err
		}
		list, next, err = s.collectPage(ctx, rows, limit)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return list, next, nil
}

// checkCursor returns FaultInvalid if the filter's cursor is not an execution of the list. The error is the same for an
// execution of another user, so that the caller cannot find out whether that execution exists.
func (s *Store) checkCursor(ctx context.Context, f sandbox.ExecutionFilter) error {
	if f.After == "" {
		return nil
	}
	last, err := s.Execution(ctx, f.After)
	ofOtherList := f.User != "" && last.User != f.User || f.SandboxID != "" && last.SandboxID != f.SandboxID
	if sandbox.FaultOf(err) == sandbox.FaultNotFound || err == nil && ofOtherList {
		return errInvalidCursor()
	}
	return err
}

func errInvalidCursor() error {
	return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "after",
		Detail: "is not a cursor: use the one that the previous page returned"}
}

// pageLimit returns the number of records in a page for which limit was asked.
func pageLimit(limit int) int {
	if limit <= 0 {
		limit = defaultPageLimit
	}
	return min(limit, maxPageLimit)
}

// collectPage decodes rows until the page is full, and returns the cursor of the next page.
func (s *Store) collectPage(ctx context.Context, rows pgx.Rows, limit int) ([]sandbox.Execution, string, error) {
	defer rows.Close()
	list, pageBytes := []sandbox.Execution{}, 0
	for rows.Next() {
		var record []byte
		var progress [][]byte
		if err := rows.Scan(&record, &progress); err != nil {
			return nil, "", err
		}
		size := len(record)
		for _, p := range progress {
			size += len(p)
		}
		if len(list) == limit || len(list) > 0 && pageBytes+size > maxPageBytes {
			return list, list[len(list)-1].ID, nil
		}
		e, err := s.decodeExecution(ctx, record, progress)
		if err != nil {
			return nil, "", err
		}
		list, pageBytes = append(list, e), pageBytes+size
	}
	return list, "", rows.Err()
}
