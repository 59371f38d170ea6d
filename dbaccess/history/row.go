package history

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// row is an execution as its table has it, or a thing that a running one does.
type row struct {
	e           *sandbox.Execution // for its short columns alone
	kind        string             // of the thing; "": it is the execution
	number      int64              // of the thing
	completed   *time.Time         // nil: it goes on
	failure     *string
	body        []byte
	connections []byte // JSON; nil: it has none
}

// place is the same for rows of which the later one is all that matters.
func (r row) place() string {
	if r.kind == "" {
		return r.e.ID
	}
	return fmt.Sprint(r.e.ID, "/", r.kind, "/", r.number)
}

// maxRecord is what the table and the protocol take with room to spare, in bytes.
const maxRecord = 512 << 20

// rowOf is the row of an execution; of one that has ended where that is said.
func rowOf(e *sandbox.Execution, ended bool) (row, error) {
	short := *e
	r := row{e: &short}
	if ended {
		if short.CompletedAt == nil {
			now := time.Now().UTC()
			short.CompletedAt = &now
		}
		r.completed = short.CompletedAt
		if e.Error != nil {
			text := clean(*e.Error)
			r.failure = &text
		}
	}
	var err error
	if r.body, err = encode(&short, ended); err != nil {
		return r, err
	}
	if len(r.body) > maxRecord {
		return r, fmt.Errorf("the record of execution %s has %d bytes, more than history takes", e.ID, len(r.body))
	}
	if ended && len(e.Connections) > 0 {
		rows := slices.Clone(e.Connections)
		for i := range rows {
			rows[i].Host, rows[i].Address, rows[i].Reason = clean(rows[i].Host), clean(rows[i].Address), clean(rows[i].Reason)
		}
		r.connections, err = json.Marshal(rows)
	}
	// What is large of it is in the body.
	short = sandbox.Execution{ID: e.ID, SandboxID: e.SandboxID, User: e.User, Kind: e.Kind, Status: e.Status, Code: e.Code, CreatedAt: e.CreatedAt,
		ExecutionTime: e.ExecutionTime, MemoryUsage: e.MemoryUsage}
	return r, err
}

// upsert writes rows. An opening changes nothing where the row is there; an end may be
// written more than once.
const upsert = `INSERT INTO executions (id, sandbox_id, owner, kind, status, code, created_at, record, error, seconds, memory_mb, completed_at)
	SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::bytea[], $9::text[],
		$10::float8[], $11::float8[], $12::timestamptz[])
	ON CONFLICT (id) DO UPDATE SET status = excluded.status, record = excluded.record, error = excluded.error,
		seconds = excluded.seconds, memory_mb = excluded.memory_mb, completed_at = excluded.completed_at
		WHERE excluded.completed_at IS NOT NULL`

// connect writes the rows of one execution's connections, unless they are there.
const connect = `INSERT INTO connections (execution_id, number, sandbox_id, owner, host, port, address, status, reason, bytes_sent, bytes_received, milliseconds, started_at)
	SELECT $1, n, $2, $3, c.host, c.port, coalesce(c.address, ''), c.status, coalesce(c.reason, ''), c.bytes_sent, c.bytes_received, c.duration_ms, c.started_at
	FROM ROWS FROM (jsonb_to_recordset($4::jsonb) AS (host text, port int, address text, status text, reason text,
		bytes_sent bigint, bytes_received bigint, duration_ms double precision, started_at timestamptz)) WITH ORDINALITY
		AS c (host, port, address, status, reason, bytes_sent, bytes_received, duration_ms, started_at, n)
	ON CONFLICT DO NOTHING`

const progressed = `INSERT INTO progress (execution_id, kind, number, record) VALUES ($1, $2, $3, $4)
	ON CONFLICT (execution_id, kind, number) DO UPDATE SET record = excluded.record`

// writeRows writes rows of different places as one transaction, in which the executions
// over, whose ends are among them, lose their progress.
func writeRows(ctx context.Context, conn *pgx.Conn, all []row, over []string) error {
	var b pgx.Batch
	rows := make([]row, 0, len(all))
	for _, r := range all {
		if r.kind == "" {
			rows = append(rows, r)
		} else {
			b.Queue(progressed, clean(r.e.ID), r.kind, r.number, r.body)
		}
	}
	if len(over) > 0 {
		b.Queue(`DELETE FROM progress WHERE execution_id = ANY($1)`, over)
	}
	if len(rows) > 0 {
		writeExecutions(&b, rows)
	}
	return conn.SendBatch(ctx, &b).Close() // the first error of any
}

// writeExecutions adds rows of different executions to a batch.
func writeExecutions(b *pgx.Batch, rows []row) {
	texts, bodies := make([][]string, 6), make([][]byte, len(rows))
	created, completed := make([]time.Time, len(rows)), make([]*time.Time, len(rows))
	failures, seconds, memory := make([]*string, len(rows)), make([]float64, len(rows)), make([]float64, len(rows))
	for n, r := range rows {
		for c, text := range []string{r.e.ID, r.e.SandboxID, r.e.User, string(r.e.Kind), string(r.e.Status), r.e.Code} {
			texts[c] = append(texts[c], clean(text))
		}
		bodies[n], created[n], completed[n] = r.body, r.e.CreatedAt, r.completed
		failures[n], seconds[n], memory[n] = r.failure, r.e.ExecutionTime, r.e.MemoryUsage
	}
	b.Queue(upsert, texts[0], texts[1], texts[2], texts[3], texts[4], texts[5], created, bodies, failures, seconds, memory, completed)
	for n, r := range rows {
		if r.connections != nil {
			b.Queue(connect, texts[0][n], texts[1][n], texts[2][n], string(r.connections))
		}
	}
}
