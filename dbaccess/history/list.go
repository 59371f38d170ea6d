package history

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

const (
	limitDefault = 50
	limitMax     = 1000
	pageBytes    = 16 << 20 // of records; a page ends early rather than exceed it
)

// conditions are the clauses of a WHERE and the arguments that they name.
type conditions struct {
	clauses []string
	args    []any
}

// add adds a clause in which ? stands for v.
func (c *conditions) add(clause string, v any) {
	c.args = append(c.args, v)
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

// Executions lists what the filter lets through, newest first, whole, with what those that go
// on have done so far, and the cursor of the next page, "" where there is none. A page has the
// limit's number of executions or, where they are very large, fewer with a cursor. FaultInvalid where
// the cursor is not one.
func (s *Store) Executions(ctx context.Context, f sandbox.ExecutionFilter) ([]sandbox.Execution, string, error) {
	if f.After != "" {
		last, err := s.Execution(ctx, f.After)
		fault, ok := err.(*sandbox.Error)
		// One of another list is as good as none: or it would tell that it is there.
		if ok && fault.Fault == sandbox.FaultNotFound || err == nil && (f.User != "" && last.User != f.User || f.SandboxID != "" && last.SandboxID != f.SandboxID) {
			return nil, "", &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "after", Detail: "is not a cursor: use the one that the page before ended with"}
		}
		if err != nil {
			return nil, "", err
		}
	}
	limit := f.Limit
	if limit <= 0 {
		limit = limitDefault
	}
	limit = min(limit, limitMax)
	c := conditionsOf(f)
	var list []sandbox.Execution
	var next string
	err := s.readExecutions(ctx, func(ctx context.Context) error {
		// Sizes first, from the row alone: a large record lies elsewhere, and is
		// fetched only where it is within the page. One row more says if there are more.
		rows, err := s.pool.Query(ctx, `SELECT `+bodies+` FROM executions e JOIN (
				SELECT id, sum(size) OVER newest - size AS before, row_number() OVER newest AS n FROM (
					SELECT id, created_at, octet_length(record) + CASE WHEN completed_at IS NULL THEN
						(SELECT coalesce(sum(octet_length(p.record)), 0) FROM progress p WHERE p.execution_id = executions.id) ELSE 0 END AS size
					FROM executions WHERE `+c.String()+fmt.Sprintf(` ORDER BY created_at DESC, id DESC LIMIT %d) page
				WINDOW newest AS (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING)) sized ON sized.id = e.id
			WHERE sized.before <= %d OR sized.n <= 2 ORDER BY e.created_at DESC, e.id DESC`, limit+1, pageBytes), c.args...)
		if err != nil {
			return err
		}
		list, next, err = s.page(rows, limit)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return list, next, nil
}

// page decodes rows until the page is full. The rows end past pageBytes, or past
// the limit, or with the last execution there is.
func (s *Store) page(rows pgx.Rows, limit int) ([]sandbox.Execution, string, error) {
	defer rows.Close()
	list, size := []sandbox.Execution{}, 0
	for rows.Next() {
		var body []byte
		var progress [][]byte
		if err := rows.Scan(&body, &progress); err != nil {
			return nil, "", err
		}
		more := len(body)
		for _, p := range progress {
			more += len(p)
		}
		if len(list) == limit || size > 0 && size+more > pageBytes {
			return list, list[len(list)-1].ID, nil
		}
		e, err := s.executionOf(body, progress)
		if err != nil {
			return nil, "", err
		}
		list, size = append(list, e), size+more
	}
	return list, "", rows.Err()
}
