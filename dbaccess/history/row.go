package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// row is a record on its way to PostgreSQL: that of an execution, of its progress, or of a sandbox.
type row struct {
	key         string // a row replaces an earlier one with the same key
	executionID string // "": the row is a sandbox's or an input log
	inputsOf    string // the execution of an input log; else ""
	mustSync    bool   // the log is flushed before the caller continues
	record      []byte // JSON: the payload of the log's record

	statement string // that inserts the row; "": the row is an execution's
	args      []any  // of statement; those of progress are in queueProgress

	kind   string // of progress
	number int64  // of progress

	// The columns of an execution (column.go); a sandbox has the first two. All texts are made valid for PostgreSQL.
	sandboxID, user string
	node            string // set by insertRows
	code            string
	failure         *string
	output          string                   // that searches look into
	expiresAt       *time.Time               // nil: its key has no limit of its own
	summary         sandbox.ExecutionSummary // the other columns

	connections []byte // JSON for the table connections; nil: none
	queries     []byte // JSON for the table queries; nil: none
}

func (r row) isExecution() bool { return r.statement == "" }

// isEnd reports whether the row is that of an execution that has ended.
func (r row) isEnd() bool { return r.summary.CompletedAt != nil }

// isLarge reports whether the row is inserted without rows of other users.
func (r row) isLarge() bool { return len(r.record) >= largeRowBytes }

func (r row) isProgress() bool { return r.executionID != "" && !r.isExecution() }

// maxRecordBytes is more than the limits of output, results, statements and notes allow together, and less than half of
// what PostgreSQL can store in a column.
const maxRecordBytes = 400 << 20

// newRow returns a row with the record of v.
func newRow(key string, v any) (row, error) {
	record, err := sandbox.AppendJSON(nil, v)
	return encodedRow(key, record, err)
}

// encodedRow returns a row with a record, or the error of its encoding.
func encodedRow(key string, record []byte, err error) (row, error) {
	if err != nil {
		return row{}, fmt.Errorf("encode the history record of %s: %w", key, err)
	}
	if len(record) > maxRecordBytes {
		return row{}, fmt.Errorf("the history record of %s has %d bytes; the maximum is %d",
			key, len(record), maxRecordBytes)
	}
	return row{key: key, record: record}, nil
}

// executionRow returns the row of an execution, which has ended if e.CompletedAt is set.
func executionRow(e *sandbox.Execution) (row, error) {
	record, err := encode(e)
	r, err := encodedRow(clean(e.ID), record, err)
	if err != nil {
		return r, err
	}
	r.executionID, r.sandboxID, r.user = e.ID, e.SandboxID, e.User
	r.code, r.failure, r.expiresAt, r.summary = e.Code, e.Error, e.ExpiresAt, e.Summary()
	if r.isEnd() {
		r.output = e.SearchText()
	}
	cleanColumns(&r)
	if r.mustSync = r.isEnd(); !r.mustSync {
		return r, nil
	}
	if len(e.Connections) > 0 {
		list := slices.Clone(e.Connections)
		for n := range list {
			c := &list[n]
			c.Host, c.Address, c.Reason = clean(c.Host), clean(c.Address), clean(c.Reason)
		}
		if r.connections, err = json.Marshal(list); err != nil {
			return r, err
		}
	}
	if len(e.Queries) > 0 {
		list := slices.Clone(e.Queries)
		for n := range list {
			q := &list[n]
			q.SQL, q.Error, q.Reason, q.Parameters = clean(q.SQL), clean(q.Error), clean(q.Reason), nil
			q.Fingerprint, q.Database = clean(q.Fingerprint), clean(q.Database)
			q.Tables = slices.Clone(q.Tables)
			for i, table := range q.Tables {
				q.Tables[i] = strings.ReplaceAll(clean(table), `"`, "")
			}
		}
		r.queries, err = json.Marshal(list)
	}
	return r, err
}

// progressRow returns the row of a query or connection of a running execution.
func progressRow(p sandbox.Progress) (row, error) {
	id := clean(p.Execution)
	r, err := newRow(fmt.Sprint(id, "/", p.Kind(), "/", p.Number), p)
	r.executionID = id
	r.statement = upsertProgress
	r.kind, r.number = p.Kind(), p.Number
	return r, err
}

// createdRow returns the row of a sandbox that was created.
func createdRow(c sandboxCreated) (row, error) {
	r, err := newRow("sandbox/"+clean(c.ID), c)
	r.statement = `INSERT INTO sandboxes (id, owner, policy, ephemeral, state, created_at, node)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING`
	r.sandboxID, r.user = clean(c.ID), clean(c.Owner)
	r.args = []any{clean(c.ID), clean(c.Owner), c.Policy, c.Ephemeral, string(c.State), c.CreatedAt, c.Node}
	return r, err
}

// endedRow returns the row of a sandbox that ended. Its key has the state and the time, and the earliest end counts:
// another node may already have recorded the sandbox as lost.
func endedRow(e sandboxEnded) (row, error) {
	r, err := newRow(fmt.Sprint("sandbox/", clean(e.ID), "/", e.State, "/", e.EndedAt.UnixNano()), e)
	r.mustSync = true
	r.statement = `UPDATE sandboxes SET state = $2, ended_at = $3 WHERE id = $1
		AND (ended_at IS NULL OR ended_at > $3)`
	r.sandboxID, r.user = clean(e.ID), clean(e.Owner)
	r.args = []any{clean(e.ID), string(e.State), e.EndedAt}
	return r, err
}

// inputsRow returns the row of an input log.
func inputsRow(l loggedInputs) (row, error) {
	r, err := newRow("inputs/"+clean(l.ID), l)
	r.statement, r.inputsOf = insertInputs, clean(l.ID)
	r.sandboxID, r.user = clean(l.Sandbox), clean(l.User)
	r.args = []any{clean(l.ID), l.Log}
	return r, err
}

// The first bytes of a record tell its kind. The record of an execution has no prefix.
var (
	progressPrefix = []byte(`{"progress_of":`)
	createdPrefix  = []byte(`{"sandbox_created":`)
	endedPrefix    = []byte(`{"sandbox_ended":`)
	inputsPrefix   = []byte(`{"inputs_of":`)
)

// parseRow returns the row of a record that was in the log.
func parseRow(record []byte) (row, error) {
	switch {
	case bytes.HasPrefix(record, progressPrefix):
		return decodeRow(record, progressRow)
	case bytes.HasPrefix(record, createdPrefix):
		return decodeRow(record, createdRow)
	case bytes.HasPrefix(record, endedPrefix):
		return decodeRow(record, endedRow)
	case bytes.HasPrefix(record, inputsPrefix):
		return decodeRow(record, inputsRow)
	}
	e, err := decode(record)
	if err != nil {
		return row{}, err
	}
	return executionRow(&e)
}

func decodeRow[T any](record []byte, rowOf func(T) (row, error)) (row, error) {
	var v T
	if err := json.Unmarshal(record, &v); err != nil {
		return row{}, fmt.Errorf("decode a history record: %w", err)
	}
	return rowOf(v)
}

// insertConnections inserts the connections of one execution that are not in the table yet.
const insertConnections = `INSERT INTO connections (execution_id, number, sandbox_id, owner, host, port, address,
		status, reason, bytes_sent, bytes_received, milliseconds, started_at)
	SELECT $1, n, $2, $3, c.host, c.port, coalesce(c.address, ''), c.status, coalesce(c.reason, ''), c.bytes_sent,
		c.bytes_received, c.duration_ms, c.started_at
	FROM ROWS FROM (jsonb_to_recordset($4::jsonb) AS (host text, port int, address text, status text, reason text,
		bytes_sent bigint, bytes_received bigint, duration_ms double precision, started_at timestamptz)) WITH ORDINALITY
		AS c (host, port, address, status, reason, bytes_sent, bytes_received, duration_ms, started_at, n)
	ON CONFLICT DO NOTHING`

// insertQueries inserts the statements of one execution that are not in the table yet.
const insertQueries = `INSERT INTO queries (execution_id, number, sandbox_id, owner, sql, fingerprint, status, reason,
		error, rows, bytes, truncated, milliseconds, started_at, database, tables)
	SELECT $1, n, $2, $3, q.query, coalesce(q.fingerprint, ''), q.status, coalesce(q.reason, ''),
		coalesce(q.error, ''), q.rows, q.bytes, q.truncated, q.duration_ms, q.started_at,
		coalesce(q.database, ''), coalesce(q.tables, '{}')
	FROM ROWS FROM (jsonb_to_recordset($4::jsonb) AS (query text, fingerprint text, status text, reason text,
		error text, rows bigint, bytes bigint, truncated boolean, duration_ms double precision, started_at timestamptz,
		database text, tables text[])) WITH ORDINALITY
		AS q (query, fingerprint, status, reason, error, rows, bytes, truncated, duration_ms, started_at, database,
			tables, n)
	ON CONFLICT DO NOTHING`

// insertRows inserts rows of a node with different keys in one transaction. The transaction also deletes the progress
// of executions whose end is among the rows, because the end contains it. The error is a replacement (isReplaced) if
// another node has the database now.
func insertRows(ctx context.Context, conn *pgx.Conn, of node, rows []row, ended []string) error {
	var batch pgx.Batch // PostgreSQL runs a pipeline as one transaction
	batch.Queue(`SELECT require_node($1, $2)`, of.ID, of.Epoch)
	small := make([]row, 0, len(rows)) // executions
	var progress []row
	for _, r := range rows {
		r.node = of.ID
		switch {
		case r.isProgress():
			progress = append(progress, r)
		case !r.isExecution():
			batch.Queue(r.statement, r.args...)
		case r.isLarge():
			batch.Queue(upsertExecution, fieldsOf(storedColumns, &r)...)
			queueLists(&batch, r)
		default:
			small = append(small, r)
		}
	}
	if len(progress) > 0 {
		queueProgress(&batch, progress)
	}
	if len(ended) > 0 {
		batch.Queue(`DELETE FROM progress WHERE execution_id = ANY($1)`, ended)
	}
	if len(small) > 0 {
		queueExecutions(&batch, small)
	}
	for _, r := range small {
		queueLists(&batch, r)
	}
	return conn.SendBatch(ctx, &batch).Close() // returns the first error of any statement
}

// upsertProgress inserts the progress of executions.
const upsertProgress = `INSERT INTO progress (execution_id, kind, number, record)
	SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bytea[])
	ON CONFLICT (execution_id, kind, number) DO UPDATE SET record = excluded.record`

// queueProgress queues one statement for all rows: 512 rows take half as long as with a statement for each.
func queueProgress(batch *pgx.Batch, rows []row) {
	var ids, kinds []string
	var numbers []int64
	var records [][]byte
	for _, r := range rows {
		ids, kinds = append(ids, r.executionID), append(kinds, r.kind)
		numbers, records = append(numbers, r.number), append(records, r.record)
	}
	batch.Queue(upsertProgress, ids, kinds, numbers, records)
}

// queueLists queues the connections and queries of an execution.
func queueLists(batch *pgx.Batch, r row) {
	if r.connections != nil {
		batch.Queue(insertConnections, r.executionID, r.sandboxID, r.user, string(r.connections))
	}
	if r.queries != nil {
		batch.Queue(insertQueries, r.executionID, r.sandboxID, r.user, string(r.queries))
	}
}
