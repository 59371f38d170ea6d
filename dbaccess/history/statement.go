package history

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// maxConsidered is the number of the newest statements that TopStatements sums up. A hundred thousand take 0.2 s.
const maxConsidered = 100_000

var statements = timeline[sandbox.Statement]{
	from: "queries",
	columns: fmt.Sprintf(`execution_id, number, sandbox_id, owner, left(sql, %d), octet_length(sql), status, reason,
		error, rows, bytes, truncated, fingerprint, milliseconds, started_at, database,
		tables`, sandbox.StatementChars),
	order: order{
		"statements", []string{"started_at", "execution_id", "number"}, []string{"timestamptz", "text", "int"},
	},
	scan: func(row pgx.CollectableRow) (q sandbox.Statement, err error) {
		err = row.Scan(&q.ExecutionID, &q.Number, &q.SandboxID, &q.User, &q.SQL, &q.SQLBytes, &q.Status, &q.Reason,
			&q.Error, &q.Rows, &q.Bytes, &q.Truncated, &q.Fingerprint, &q.DurationMS, &q.StartedAt,
			&q.Database, &q.Tables)
		q.StartedAt = q.StartedAt.UTC()
		return q, err
	},
	key: func(q sandbox.Statement) []any { return []any{q.StartedAt, q.ExecutionID, q.Number} },
}

// Statements returns a page of the statements of ended executions that match the filter, newest first, and the cursor
// of the next page.
func (s *Store) Statements(
	ctx context.Context, f sandbox.RecordFilter,
) (list []sandbox.Statement, next string, err error) {
	return statements.page(ctx, s, scopeOfRecords(f), conditionsOfStatements(f), f.After, f.Limit)
}

func conditionsOfStatements(f sandbox.RecordFilter) (c conditions) {
	c.addRecordFilter(f, "owner", "sandbox_id", "execution_id", "status", "started_at")
	if f.Fingerprint != "" {
		c.add("fingerprint = ?", clean(f.Fingerprint))
	}
	if f.Database != "" {
		c.add("database = ?", clean(f.Database))
	}
	if f.Table != "" { // as a statement writes it; the column has no quotes
		c.add("tables @> ARRAY[?]", strings.ReplaceAll(clean(f.Table), `"`, ""))
	}
	if f.IsWork {
		c.clauses = append(c.clauses,
			"execution_id NOT IN (SELECT e.id FROM executions e WHERE "+isBesidesWork+")")
	}
	c.addText(f.Text, "sql")
	return c
}

// orderOfStatements are the columns by which TopStatements sorts.
var orderOfStatements = map[sandbox.StatementOrder]string{
	sandbox.OrderTotal: "total_ms", sandbox.OrderCalls: "calls", sandbox.OrderMean: "mean_ms",
	sandbox.OrderP95: "p95_ms", sandbox.OrderRows: "rows", sandbox.OrderRefused: "refused",
}

// TopStatements sums up the statements that match the filter by fingerprint and database, and returns those with the
// largest number of an order. It considers the newest maxConsidered statements, and returns how many it has considered.
// A statement that has no fingerprint, because it cannot be parsed, is counted by its text.
func (s *Store) TopStatements(
	ctx context.Context, f sandbox.RecordFilter, order sandbox.StatementOrder,
) (list []sandbox.StatementStatistics, considered int64, err error) {
	column, known := orderOfStatements[order]
	if !known {
		return nil, 0, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "order", Detail: "unknown order"}
	}
	c := conditionsOfStatements(f)
	sql := fmt.Sprintf(`WITH considered AS MATERIALIZED (
			SELECT coalesce(nullif(fingerprint, ''), md5(sql)) || '@' || database AS name, * FROM queries WHERE %s
			ORDER BY started_at DESC, execution_id DESC, number DESC LIMIT %d
		), reasons AS (
			SELECT name, jsonb_object_agg(reason, n) AS reasons FROM (
				SELECT name, reason, count(*) AS n FROM considered WHERE status = 'refused' GROUP BY 1, 2) r GROUP BY 1
		), owners AS (
			SELECT name, (array_agg(owner ORDER BY n DESC, owner))[1:5] AS main_users FROM (
				SELECT name, owner, count(*) AS n FROM considered GROUP BY 1, 2) o GROUP BY 1
		), summed AS (
			SELECT name, max(fingerprint) AS fingerprint, max(database) AS database, count(*) AS calls,
				sum(milliseconds) AS total_ms, avg(milliseconds) AS mean_ms,
				percentile_disc(0.95) WITHIN GROUP (ORDER BY milliseconds) AS p95_ms, max(milliseconds) AS max_ms,
				-- a captured statement has changed none: its rows are an estimate
				coalesce(sum(rows) FILTER (WHERE status <> 'captured'), 0)::bigint AS rows,
				count(*) FILTER (WHERE status = 'failed') AS failed,
				count(*) FILTER (WHERE status = 'refused') AS refused,
				count(*) FILTER (WHERE status = 'captured') AS captured, count(DISTINCT owner) AS users,
				max(started_at) AS last_at, sum(count(*)) OVER () AS considered
			FROM considered GROUP BY name ORDER BY %s DESC, name LIMIT %d
		) SELECT fingerprint, database, calls, total_ms, mean_ms, p95_ms, max_ms, rows, failed, refused, captured, users,
			main_users, last_at, coalesce(reasons, '{}'), considered::bigint,
			(SELECT left(q.sql, %d) FROM considered q WHERE q.name = summed.name ORDER BY started_at DESC LIMIT 1)
		FROM summed JOIN owners USING (name) LEFT JOIN reasons USING (name) ORDER BY %s DESC, name`,
		&c, maxConsidered, column, pageLimit(f.Limit), sandbox.StatementChars, column)
	scan := func(row pgx.CollectableRow) (q sandbox.StatementStatistics, err error) {
		err = row.Scan(&q.Fingerprint, &q.Database, &q.Calls, &q.TotalMS, &q.MeanMS, &q.P95MS, &q.MaxMS, &q.Rows,
			&q.Failed, &q.Refused, &q.Captured, &q.Users, &q.MainUsers, &q.LastAt, &q.Reasons, &considered, &q.SQL)
		q.LastAt = q.LastAt.UTC()
		return q, err
	}
	read := func(ctx context.Context, f func(context.Context) error) error {
		return s.readExecutions(ctx, scope{}, f)
	}
	list, err = query(ctx, s, read, scan, sql, c.args...)
	return list, considered, err
}

var connections = timeline[sandbox.ConnectionRecord]{
	from: "connections",
	columns: `execution_id, number, sandbox_id, owner, host, port, address, status, reason, bytes_sent, bytes_received,
		milliseconds, started_at`,
	order: order{
		"connections", []string{"started_at", "execution_id", "number"}, []string{"timestamptz", "text", "int"},
	},
	scan: func(row pgx.CollectableRow) (c sandbox.ConnectionRecord, err error) {
		err = row.Scan(&c.ExecutionID, &c.Number, &c.SandboxID, &c.User, &c.Host, &c.Port, &c.Address, &c.Status,
			&c.Reason, &c.BytesSent, &c.BytesReceived, &c.DurationMS, &c.StartedAt)
		c.StartedAt = c.StartedAt.UTC()
		return c, err
	},
	key: func(c sandbox.ConnectionRecord) []any { return []any{c.StartedAt, c.ExecutionID, c.Number} },
}

// Connections returns a page of the connections of ended executions that match the filter, newest first, and the cursor
// of the next page.
func (s *Store) Connections(
	ctx context.Context, f sandbox.RecordFilter,
) (list []sandbox.ConnectionRecord, next string, err error) {
	var c conditions
	c.addRecordFilter(f, "owner", "sandbox_id", "execution_id", "status", "started_at")
	if f.Host != "" {
		c.add("host = ?", clean(f.Host))
	}
	return connections.page(ctx, s, scopeOfRecords(f), c, f.After, f.Limit)
}

var artifactRecords = timeline[sandbox.Artifact]{
	from: "artifacts", columns: artifactColumns,
	order: order{"artifacts", []string{"created_at", "id"}, []string{"timestamptz", "text"}},
	scan:  scanArtifact,
	key:   func(a sandbox.Artifact) []any { return []any{a.CreatedAt, a.ID} },
}

// ArtifactRecords returns a page of the artifacts that match the filter, all versions, newest first, and the cursor of
// the next page.
func (s *Store) ArtifactRecords(
	ctx context.Context, f sandbox.RecordFilter,
) (list []sandbox.Artifact, next string, err error) {
	var c conditions
	c.addRecordFilter(f, "owner", "sandbox_id", "execution_id", "", "created_at")
	c.addText(f.Text, "path")
	return artifactRecords.page(ctx, s, scopeOfRecords(f), c, f.After, f.Limit)
}

var auditEntries = timeline[sandbox.AuditEntry]{
	from: "audit", columns: `id, at, actor, key_id, action, object, owner, detail,
		CASE WHEN object LIKE 'pending-write/%'
			THEN (SELECT p.record FROM pending_writes p WHERE p.id = substr(object, 15)) END`,
	order: order{"audit entries", []string{"id"}, []string{"bigint"}},
	scan: func(row pgx.CollectableRow) (e sandbox.AuditEntry, err error) {
		var record []byte
		err = row.Scan(&e.ID, &e.At, &e.User, &e.KeyID, &e.Action, &e.Object, &e.Owner, &e.Detail, &record)
		e.At = e.At.UTC()
		if err == nil && record != nil {
			var w sandbox.PendingWrite
			err = json.Unmarshal(record, &w)
			e.Statement = w.SQL
		}
		return e, err
	},
	key: func(e sandbox.AuditEntry) []any { return []any{e.ID} },
}

// AuditEntries returns a page of the audit log, newest first, and the cursor of the next page.
func (s *Store) AuditEntries(
	ctx context.Context, f sandbox.RecordFilter,
) (list []sandbox.AuditEntry, next string, err error) {
	var c conditions
	c.addRecordFilter(f, "actor", "", "", "", "at")
	if f.Action != "" {
		c.add("action = ?", clean(f.Action))
	}
	if f.Object != "" {
		c.add("object = ?", clean(f.Object))
	}
	return auditEntries.page(ctx, s, ofUser(f.User), c, f.After, f.Limit)
}

// AddAudit adds an entry to the audit log. When it returns nil, the entry is on disk. The entry's ID and At are not
// used: PostgreSQL sets them.
func (s *Store) AddAudit(ctx context.Context, e sandbox.AuditEntry) error {
	ctx, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	const sql = `INSERT INTO audit (actor, key_id, action, object, owner, detail) VALUES ($1, $2, $3, $4, $5, $6)`
	return s.exec(ctx, sql, clean(e.User), clean(e.KeyID), string(e.Action), clean(e.Object), clean(e.Owner),
		nullable(e.Detail))
}

// nullable returns nil for an empty JSON text.
func nullable(text []byte) any {
	if len(text) == 0 {
		return nil
	}
	return text
}
