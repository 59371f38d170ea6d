package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// historySizes are the numbers of executions in history, smallest first: each row adds what is missing.
var historySizes = []int{1_000, 100_000, 1_000_000}

// fillHistory adds executions, from one number to another, with a statement each. They are a minute apart; one in ten
// failed, and one in 50 000 was killed. Their 50 users have equal shares. Each code has the text "revenue", all but the
// newest 2 percent "margin", and one in 500 000 "zebra". One in two has the tag team, with 20 values; each of these has a ticket of its own.
const fillHistory = `
INSERT INTO executions (id, sandbox_id, owner, kind, status, code, error, seconds, memory_mb, created_at, completed_at,
	record, cpu_ms, query_count, rows_read, tags)
SELECT format('bench-%%s', lpad(n::text, 8, '0')), format('s-%%s', n / 20), format('user-%%s', n %% 50),
	(ARRAY['execute', 'quick-execute', 'debug'])[1 + n %% 3],
	CASE WHEN n %% 50000 = 7 THEN 'killed' WHEN n %% 10 = 3 THEN 'failed' ELSE 'completed' END,
	format(E'# Question %%s\nrows = db_query("SELECT month, sum(total) AS revenue FROM orders '
		'WHERE customer_id = %%s GROUP BY 1")\n'
		'import pandas as pd\nframe = pd.DataFrame(rows)\nframe["growth"] = frame.revenue.pct_change()\n'
		'# %%s %%s\nframe.tail(12)\n', n, n %% 997, CASE WHEN n <= %[2]d * 0.98 THEN 'margin' ELSE 'profit' END, CASE WHEN n %% 500000 = 9 THEN 'zebra' ELSE md5(n::text) END),
	CASE WHEN n %% 10 = 3 THEN format('KeyError: %%L', md5(n::text)) END, 0.1 + n %% 7, 20 + n %% 90,
	at, at + interval '1 second', convert_to(format('{"execution_id":"bench-%%s","status":"completed","stdout":"%%s"}',
		lpad(n::text, 8, '0'), repeat('x', 1000)), 'UTF8'), n %% 900, 1, n %% 5000,
	CASE WHEN n %% 2 = 0 THEN jsonb_build_object('team', format('t%%s', n / 2 %% 20), 'ticket', format('OPS-%%s', n)) END
FROM (SELECT n, now() - interval '1 minute' * (%[2]d - n) - interval '1 day' AS at
	FROM generate_series(%[1]d, %[2]d) n) numbered;
INSERT INTO queries (execution_id, number, sandbox_id, owner, sql, fingerprint, status, reason, error, rows, bytes,
	truncated, milliseconds, started_at)
SELECT id, 1, sandbox_id, owner, 'SELECT month, sum(total) FROM orders GROUP BY 1', md5((rows_read %% 200)::text),
	'ok', '', '', rows_read, rows_read * 40, false, cpu_ms / 10, created_at
FROM executions
WHERE id BETWEEN format('bench-%%s', lpad('%[1]d', 8, '0')) AND format('bench-%%s', lpad('%[2]d', 8, '0'));
ANALYZE executions; ANALYZE queries;
`

func historyRows(options) (rows []measurement) {
	for _, size := range historySizes {
		within := func(goalMS float64, name, path string) {
			rows = append(rows, measurement{name: fmt.Sprintf("%s, of %d executions", name, size), unit: milliseconds,
				goal: absolute(goalMS, 0), samples: someSamples,
				open: func(ctx context.Context, g *glasshouse) (sampler, error) {
					if err := g.addExecutions(ctx, size); err != nil {
						return sampler{}, err
					}
					return only(g.timeCall(ctx, "GET", path, nil)), nil
				}})
		}
		get := func(name, path string) { within(20, name, path) }
		get("list", "/executions")
		get("list of a user", "/executions?user_id=user-7")
		get("list by a rare status", "/executions?status=killed")
		get("list of a user by a status that is not there", "/executions?user_id=user-8&status=killed")
		get("search for a text that all have", "/executions?text=revenue")
		get("search for a rare text", "/executions?text=zebra")
		within(200, "search for a text that all have but the newest", "/executions?text=margin")
		get("search for a text that is nowhere", "/executions?text=crocodile")
		get("list by duration", "/executions?order=duration")
		get("list by rows, of a user", "/executions?order=rows&user_id=user-7")
		get("search for a rare text, by duration", "/executions?text=zebra&order=duration")
		get("activity of 30 days", "/activity?since="+time.Now().UTC().AddDate(0, 0, -30).Format(time.RFC3339))
		get("list by a tag that one in 40 has", "/executions?tag=team:t7")
		get("list by a rare tag and a frequent one", "/executions?tag=team:t7&tag=ticket:OPS-414")
		get("statistics", "/sandbox/statistics")
		get("metrics", "/metrics")
		get("statements of a user", "/statements?user_id=user-7")
		get("statements by fingerprint, of a day", "/statements/top")
	}
	return rows
}

// addExecutions adds executions to the service's history until there are count.
func (g *glasshouse) addExecutions(ctx context.Context, count int) error {
	var statistics struct {
		Statistics struct {
			Total int `json:"total_executions"`
		} `json:"statistics"`
	}
	if err := g.call(ctx, "GET", "/sandbox/statistics", nil, &statistics); err != nil {
		return err
	}
	first := statistics.Statistics.Total
	if first >= count {
		return nil
	}
	progress("adding %d executions to history", count-first)
	_, err := g.psql(ctx, fmt.Sprintf(fillHistory, first+1, count))
	return err
}

// psql runs statements on the service's history, and returns their values as text without headings.
func (g *glasshouse) psql(ctx context.Context, sql string) (string, error) {
	psql := exec.CommandContext(ctx, "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h",
		filepath.Join(g.dir, "postgres", "socket"), "-U", "glasshouse_history", "-d", "history", "-f", "-")
	psql.Stdin = strings.NewReader(sql)
	out, err := psql.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("psql is not installed: apt-get install postgresql-client")
	}
	if err != nil {
		return "", fmt.Errorf("psql: %w: %.2000s", err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
