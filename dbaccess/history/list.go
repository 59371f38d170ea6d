package history

import (
	"context"
	"fmt"
	"slices"
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

// scopeOf returns a scope that has all executions of a filter.
func scopeOf(f sandbox.ExecutionFilter) scope {
	if f.SandboxID != "" {
		return ofSandbox(f.SandboxID)
	}
	return ofUser(f.User)
}

// Executions returns a page of the executions that match the filter, newest first, and the cursor of the next page,
// which is "" for the last page. Running executions have their queries and connections so far. A page has at most as
// many executions as the filter's limit, and fewer if they are very large.
func (s *Store) Executions(ctx context.Context, f sandbox.ExecutionFilter) ([]sandbox.Execution, string, error) {
	summaries, next, err := s.ExecutionSummaries(ctx, f)
	if err != nil {
		return nil, "", err
	}
	ids := make([]string, len(summaries))
	for n, e := range summaries {
		ids[n] = e.ID
	}
	// The inner query adds up sizes, which PostgreSQL knows without reading large records, so that only the records of
	// the page are read.
	sql := fmt.Sprintf(`SELECT %s FROM executions e JOIN (
			SELECT id, sum(size) OVER newest - size AS before, row_number() OVER newest AS n FROM (
				SELECT id, created_at, octet_length(record) + CASE WHEN completed_at IS NULL THEN
					(SELECT coalesce(sum(octet_length(p.record)), 0) FROM progress p
						WHERE p.execution_id = executions.id)
					ELSE 0 END AS size
				FROM executions WHERE id = ANY ($1)) page
			WINDOW newest AS (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING)) sized ON sized.id = e.id
		WHERE sized.before <= %d OR sized.n <= 2 ORDER BY e.created_at DESC, e.id DESC`, recordColumns, maxPageBytes)
	var list []sandbox.Execution
	err = s.readWithin(ctx, func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, sql, ids)
		if err != nil {
			return err
		}
		list, err = s.collectPage(ctx, rows)
		return err
	})
	if err != nil || len(list) == 0 {
		return list, next, err
	}
	if last := slices.Index(ids, clean(list[len(list)-1].ID)); last >= 0 && last < len(ids)-1 { // the page ended early
		// The summary has the time of the column, which is less exact than that of the record.
		next, err = executionSummaries.order.cursor(executionSummaries.key(summaries[last])...)
	}
	return list, next, err
}

// pageLimit returns the number of records in a page for which limit was asked.
func pageLimit(limit int) int {
	if limit <= 0 {
		limit = defaultPageLimit
	}
	return min(limit, maxPageLimit)
}

// collectPage decodes rows until the page is full.
func (s *Store) collectPage(ctx context.Context, rows pgx.Rows) ([]sandbox.Execution, error) {
	defer rows.Close()
	list, pageBytes := []sandbox.Execution{}, 0
	for rows.Next() {
		var stored storedExecution
		if err := rows.Scan(stored.columns()...); err != nil {
			return nil, err
		}
		if len(list) > 0 && pageBytes+stored.size() > maxPageBytes {
			return list, nil
		}
		e, err := s.decodeExecution(ctx, stored)
		if err != nil {
			return nil, err
		}
		list, pageBytes = append(list, e), pageBytes+stored.size()
	}
	return list, rows.Err()
}
