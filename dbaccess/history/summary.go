package history

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// A search for a text or for tags first reads the newest executions, which have enough matches if matches are frequent
// today: reading them takes milliseconds, while the index would find all matches first. If few of the newest minScanned
// executions match, it finds the others with the index. If there are fewer than maxSorted, they are sorted. Otherwise
// the executions are read in the order of the list until the page is full: matches were frequent once.
const (
	minScanned = 1000
	maxScanned = 5000
	maxSorted  = 10_000
)

var executionSummaries = timeline[sandbox.ExecutionSummary]{
	from:    "executions",
	columns: listExpressions,
	order:   order{"executions", []string{"created_at", "id"}, []string{"timestamptz", "text"}},
	scan:    scanSummary,
	key:     func(e sandbox.ExecutionSummary) []any { return []any{e.CreatedAt, e.ID} },
}

// executionsBy are the lists of ended executions by a number, the largest first.
var executionsBy = map[sandbox.ExecutionOrder]timeline[sandbox.ExecutionSummary]{
	sandbox.ListByDuration: {
		from: "executions", columns: listExpressions, scan: scanSummary,
		order: order{"executions by duration", []string{"seconds", "id"}, []string{"float8", "text"}},
		key:   func(e sandbox.ExecutionSummary) []any { return []any{e.ExecutionTime, e.ID} },
	},
	sandbox.ListByRows: {
		from: "executions", columns: listExpressions, scan: scanSummary,
		order: order{"executions by rows", []string{"rows_read", "id"}, []string{"bigint", "text"}},
		key:   func(e sandbox.ExecutionSummary) []any { return []any{e.RowsRead, e.ID} },
	},
}

func inUTC(at *time.Time) *time.Time {
	if at != nil {
		*at = at.UTC()
	}
	return at
}

// ExecutionSummaries returns a page of the summaries of executions that match the filter, in its order, and the cursor
// of the next page, which is "" for the last page.
func (s *Store) ExecutionSummaries(
	ctx context.Context, f sandbox.ExecutionFilter,
) (list []sandbox.ExecutionSummary, next string, err error) {
	t := executionSummaries
	var c conditions
	c.addFilter(f, false)
	byNumber, isByNumber := executionsBy[f.Order]
	if isByNumber {
		t = byNumber
		c.clauses = append(c.clauses, "completed_at IS NOT NULL")
	}
	if f.After != "" {
		if err := t.order.addCursor(&c, f.After); err != nil {
			return nil, "", err
		}
	}
	matches := conditions{args: c.args}
	matches.addFilter(f, true)
	if len(matches.clauses) == 0 {
		return t.page(ctx, s, scopeOf(f), c, "", f.Limit)
	}
	scans := []int{minScanned, maxScanned}
	if isByNumber {
		scans = nil // the newest are not the first ones
	}
	for _, scanned := range scans {
		newest := t
		newest.from = fmt.Sprintf(
			`(SELECT * FROM executions WHERE %s ORDER BY created_at DESC, id DESC LIMIT %d) newest`, &c, scanned)
		list, next, err = newest.page(ctx, s, scopeOf(f), matches, "", f.Limit)
		if err != nil || next != "" {
			return list, next, err
		}
		if len(list)*maxScanned < pageLimit(f.Limit)*scanned {
			break // the others do not fill the page either
		}
	}
	c = conditions{clauses: append(c.clauses, matches.clauses...), args: matches.args}
	found, err := s.findExecutions(ctx, scopeOf(f), c, maxSorted)
	if err != nil {
		return nil, "", err
	}
	if len(found) < maxSorted { // else PostgreSQL would sort them all
		c = conditions{}
		c.add("id = ANY (?)", found)
	}
	return t.page(ctx, s, scopeOf(f), c, "", f.Limit)
}

// findExecutions returns the IDs of executions that match, at most limit of them, in no order. An order would lead
// PostgreSQL to read all executions in that order until it has enough.
func (s *Store) findExecutions(ctx context.Context, of scope, c conditions, limit int) ([]string, error) {
	read := func(ctx context.Context, f func(context.Context) error) error { return s.readExecutions(ctx, of, f) }
	sql := fmt.Sprintf(`SELECT id FROM executions WHERE %s LIMIT %d`, &c, limit)
	return query(ctx, s, read, pgx.RowTo[string], sql, append([]any{pgx.QueryExecModeCacheDescribe}, c.args...)...)
}

var sandboxSummaries = timeline[sandbox.SandboxSummary]{
	from: "sandboxes b",
	columns: fmt.Sprintf(`b.id, b.owner, b.policy, b.state, b.ephemeral, b.created_at, b.ended_at,
		greatest(b.created_at, (SELECT max(e.created_at) FROM executions e WHERE e.sandbox_id = b.id)), b.title,
		coalesce((SELECT coalesce(nullif(e.title, ''), left(e.code, %d)) FROM executions e WHERE e.sandbox_id = b.id
			ORDER BY e.created_at, e.id LIMIT 1), ''),
		(SELECT count(*) FROM (SELECT FROM executions e WHERE e.sandbox_id = b.id LIMIT 1000) counted)`,
		sandbox.SummaryCodeChars),
	order: order{"sandboxes", []string{"b.created_at", "b.id"}, []string{"timestamptz", "text"}},
	scan: func(row pgx.CollectableRow) (sandbox.SandboxSummary, error) {
		var b sandbox.Sandbox
		var text []byte
		var title, firstRun string
		var runs int
		err := row.Scan(&b.ID, &b.Owner, &text, &b.State, &b.Ephemeral, &b.CreatedAt, &b.EndedAt, &b.LastUsed, &title,
			&firstRun, &runs)
		if err != nil {
			return sandbox.SandboxSummary{}, err
		}
		var p policy.Policy
		if err := json.Unmarshal(text, &p); err != nil {
			return sandbox.SandboxSummary{}, fmt.Errorf("read a sandbox's policy: %w", err)
		}
		b.Policy, b.CreatedAt, b.LastUsed, b.EndedAt = p, b.CreatedAt.UTC(), b.LastUsed.UTC(), inUTC(b.EndedAt)
		out := b.Summary()
		out.Title, out.FirstRun, out.Runs = title, firstRun, runs
		return out, nil
	},
	key: func(b sandbox.SandboxSummary) []any { return []any{b.CreatedAt, b.ID} },
}

// SandboxSummaries returns a page of the live and ended sandboxes that match the filter, newest first, and the cursor
// of the next page.
func (s *Store) SandboxSummaries(
	ctx context.Context, f sandbox.RecordFilter,
) (list []sandbox.SandboxSummary, next string, err error) {
	var c conditions
	c.addRecordFilter(f, "b.owner", "b.id", "", "b.state", "b.created_at")
	c.clauses = append(c.clauses, "NOT b.ephemeral") // earlier versions recorded sandboxes of one execution
	return sandboxSummaries.page(ctx, s, scopeOfRecords(f), c, f.After, f.Limit)
}

// maxBesidesWork is the highest number that CountBesidesWork counts to: a page shows it.
const maxBesidesWork = 1000

// CountBesidesWork returns the number of replays and explanations that match the filter, at most maxBesidesWork.
func (s *Store) CountBesidesWork(ctx context.Context, f sandbox.ExecutionFilter) (n int, err error) {
	f.IsWork = false
	var c conditions
	c.addFilter(f, false)
	c.addFilter(f, true)
	sql := fmt.Sprintf(`SELECT count(*) FROM (SELECT 1 FROM executions WHERE %s AND %s LIMIT %d) besides`,
		&c, isBesidesWork, maxBesidesWork)
	err = s.readExecutions(ctx, scopeOf(f), func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, sql, c.args...).Scan(&n)
	})
	return n, err
}
