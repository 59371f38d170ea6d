package history

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
	"glasshouse/sandbox/blob"
)

// VerifyConfig says what Verify reads, and what it does with problems.
type VerifyConfig struct {
	URL   string // of the history database
	Blobs *blob.Store
	// ReadRecording reads all of a recording, and returns an error if it cannot.
	ReadRecording func(code string, chunks []sandbox.Chunk, load func(sequence int) ([]byte, error)) error
	Report        func(problem string) // called for each problem, with the id of what has it
	RepairCounts  bool                 // count the executions again if the kept counts are wrong
}

// VerifyCounts says what Verify has read.
type VerifyCounts struct {
	Executions, Recordings, Artifacts, Problems int
}

// verifier reads a history database and reports problems.
type verifier struct {
	VerifyConfig
	conn   *pgx.Conn
	counts VerifyCounts
}

// Verify checks that the records of ended executions can be decoded and agree with their columns and with the tables
// of statements and connections, that recordings and input logs can be read, that the blob store has the bytes of each
// artifact, that no row belongs to an execution that is gone, and that the kept counts are right. It reads over a
// connection of its own, so a service may use the database meanwhile. The error says why Verify could not read on.
func Verify(ctx context.Context, c VerifyConfig) (VerifyCounts, error) {
	conn, err := connectToRead(ctx, c.URL)
	if err != nil {
		return VerifyCounts{}, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	v := &verifier{VerifyConfig: c, conn: conn}
	for _, check := range []func(context.Context) error{
		v.checkExecutions, v.checkInputs, v.checkArtifacts, v.checkOrphans, v.checkCounts,
	} {
		if err := check(ctx); err != nil {
			return v.counts, err
		}
	}
	return v.counts, nil
}

func (v *verifier) problem(format string, args ...any) {
	v.counts.Problems++
	v.Report(fmt.Sprintf(format, args...))
}

// checkedColumns are the columns of an execution that Verify compares with its record.
type checkedColumns struct {
	ID, Owner, Status    string
	Queries, Connections int
	HasRecording         bool
}

func (v *verifier) checkExecutions(ctx context.Context) error {
	for last := ""; ; {
		rows, _ := v.conn.Query(ctx, `SELECT id, owner, status,
				(SELECT count(*)::int FROM queries q WHERE q.execution_id = e.id) AS queries,
				(SELECT count(*)::int FROM connections c WHERE c.execution_id = e.id) AS connections,
				EXISTS (SELECT FROM recording_chunks r WHERE r.execution_id = e.id) AS has_recording
			FROM executions e WHERE id > $1 AND completed_at IS NOT NULL ORDER BY id LIMIT $2`, last, exportPage)
		page, err := pgx.CollectRows(rows, pgx.RowToStructByName[checkedColumns])
		if err != nil {
			return err
		}
		for _, stored := range page {
			if err := v.checkExecution(ctx, stored); err != nil {
				return err
			}
		}
		if len(page) < exportPage {
			return nil
		}
		last = page[len(page)-1].ID
	}
}

func (v *verifier) checkExecution(ctx context.Context, stored checkedColumns) error {
	var record []byte
	err := v.conn.QueryRow(ctx, `SELECT record FROM executions WHERE id = $1`, stored.ID).Scan(&record)
	if errors.Is(err, pgx.ErrNoRows) { // erased meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	v.counts.Executions++
	e, err := decode(record)
	if err != nil {
		v.problem("execution %s: its record cannot be read: %v", stored.ID, err)
		return nil
	}
	record = nil
	if clean(e.ID) != stored.ID || clean(e.User) != stored.Owner || clean(string(e.Status)) != stored.Status {
		v.problem("execution %s: its record is of execution %s, user %s, status %s; its row has user %s, status %s",
			stored.ID, e.ID, e.User, e.Status, stored.Owner, stored.Status)
	}
	if len(e.Queries) != stored.Queries {
		v.problem("execution %s: its record has %d statements, the table queries has %d", stored.ID, len(e.Queries),
			stored.Queries)
	}
	if len(e.Connections) != stored.Connections {
		v.problem("execution %s: its record has %d connections, the table connections has %d", stored.ID,
			len(e.Connections), stored.Connections)
	}
	if !stored.HasRecording {
		return nil
	}
	return v.checkRecording(ctx, stored.ID, e.Code)
}

func (v *verifier) checkRecording(ctx context.Context, id, code string) error {
	rows, _ := v.conn.Query(ctx, `SELECT sequence, first_step, last_step, definitions, index
		FROM recording_chunks WHERE execution_id = $1 ORDER BY sequence`, id)
	chunks, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c sandbox.Chunk, err error) {
		err = row.Scan(&c.Sequence, &c.First, &c.Last, &c.Definitions, &c.Index)
		return c, err
	})
	if err != nil || len(chunks) == 0 { // 0: deleted meanwhile
		return err
	}
	v.counts.Recordings++
	err = v.ReadRecording(code, chunks, func(sequence int) (data []byte, err error) {
		err = v.conn.QueryRow(ctx, `SELECT data FROM recording_chunks WHERE execution_id = $1 AND sequence = $2`,
			id, sequence).Scan(&data)
		return data, err
	})
	if ctx.Err() != nil || isConnectionError(err) {
		return err
	}
	if err != nil {
		v.problem("execution %s: its recording cannot be read: %v", id, err)
	}
	return nil
}

// checkInputs decodes each input log.
func (v *verifier) checkInputs(ctx context.Context) error {
	for last := ""; ; {
		rows, _ := v.conn.Query(ctx, `SELECT execution_id FROM input_logs WHERE execution_id > $1
			ORDER BY execution_id LIMIT $2`, last, exportPage)
		page, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, id := range page {
			var log []byte
			err := v.conn.QueryRow(ctx, `SELECT log FROM input_logs WHERE execution_id = $1`, id).Scan(&log)
			if errors.Is(err, pgx.ErrNoRows) { // deleted meanwhile
				continue
			}
			if err != nil {
				return err
			}
			if err := checkInputs(log); err != nil {
				v.problem("execution %s: its inputs cannot be read: %v", id, err)
			}
		}
		if len(page) < exportPage {
			return nil
		}
		last = page[len(page)-1]
	}
}

// checkArtifacts reads each content once, although several artifacts may have it.
func (v *verifier) checkArtifacts(ctx context.Context) error {
	lastSum, lastID, problem := "", "", ""
	for checked := ""; ; {
		rows, _ := v.conn.Query(ctx, `SELECT `+artifactColumns+` FROM artifacts WHERE (sha256, id) > ($1, $2)
			ORDER BY sha256, id LIMIT $3`, lastSum, lastID, exportPage)
		page, err := pgx.CollectRows(rows, scanArtifact)
		if err != nil {
			return err
		}
		for _, a := range page {
			v.counts.Artifacts++
			if a.SHA256 != checked {
				if problem, err = v.checkBytes(a); err != nil {
					return err
				}
				checked = a.SHA256
			}
			if problem != "" {
				v.problem("artifact %s (%s of execution %s): %s", a.ID, a.Path, a.ExecutionID, problem)
			}
		}
		if len(page) < exportPage {
			return nil
		}
		lastSum, lastID = page[len(page)-1].SHA256, page[len(page)-1].ID
	}
}

// checkBytes returns what is wrong with the bytes of an artifact; "": nothing.
func (v *verifier) checkBytes(a sandbox.Artifact) (problem string, err error) {
	f, err := v.Blobs.Open(a.SHA256)
	if errors.Is(err, fs.ErrNotExist) {
		return "the blob store has no content " + a.SHA256, nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return "its content cannot be read: " + err.Error(), nil
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != a.SHA256 || size != a.Size {
		return fmt.Sprintf("its content has %d bytes and the checksum %s, want %d bytes and %s", size, got, a.Size,
			a.SHA256), nil
	}
	return "", nil
}

// checkOrphans looks for rows of executions that are gone. The row of an execution may follow its first chunks and
// artifacts, so it ignores those of the last minutes.
func (v *verifier) checkOrphans(ctx context.Context) error {
	for noun, from := range map[string]string{
		"statements":  `queries`,
		"connections": `connections`,
		"a recording": `recording_chunks WHERE created_at < now() - interval '10 minutes'`,
		"inputs":      `input_logs WHERE created_at < now() - interval '10 minutes'`,
		"artifacts":   `artifacts WHERE created_at < now() - interval '10 minutes'`,
	} {
		rows, _ := v.conn.Query(ctx, `SELECT DISTINCT execution_id FROM (SELECT * FROM `+from+`) t
			WHERE NOT EXISTS (SELECT FROM executions e WHERE e.id = t.execution_id) ORDER BY 1`)
		var id string
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
			v.problem("execution %s: history has %s of it, but not the execution", id, noun)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wrongCounts selects the kept counts that differ from the rows. PostgreSQL adds up seconds in any order.
const wrongCounts = `SELECT coalesce(t.owner, c.owner), coalesce(t.status, c.status), coalesce(t.executions, 0),
		coalesce(t.seconds, 0), coalesce(c.executions, 0), coalesce(c.seconds, 0)
	FROM execution_totals t FULL JOIN (SELECT owner, status, count(*) AS executions, sum(seconds) AS seconds
		FROM executions GROUP BY 1, 2) c ON c.owner = t.owner AND c.status = t.status
	WHERE coalesce(t.executions, 0) <> coalesce(c.executions, 0)
		OR abs(coalesce(t.seconds, 0) - coalesce(c.seconds, 0)) > 1e-6 * greatest(1, c.seconds, $1)
	ORDER BY 1, 2`

// secondsTolerance is the error of the kept seconds that additions and subtractions may leave, times a million.
const secondsTolerance = 1e3

func (v *verifier) checkCounts(ctx context.Context) error {
	rows, _ := v.conn.Query(ctx, wrongCounts, float64(secondsTolerance))
	var owner, status string
	var keptCount, count int64
	var keptSeconds, seconds float64
	wrong := 0
	_, err := pgx.ForEachRow(rows, []any{&owner, &status, &keptCount, &keptSeconds, &count, &seconds}, func() error {
		v.problem("counts of user %s, status %s: %d executions with %.3f s are kept, history has %d with %.3f s",
			owner, status, keptCount, keptSeconds, count, math.Abs(seconds))
		wrong++
		return nil
	})
	if err != nil || wrong == 0 || !v.RepairCounts {
		return err
	}
	return v.repairCounts(ctx)
}

// repairCounts counts the executions again, over a connection that may write.
func (v *verifier) repairCounts(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, v.URL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// The lock of count_executions, so that no execution is counted meanwhile.
		_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(7236849273)`)
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE execution_totals SET executions = 0, seconds = 0`)
		}
		if err == nil {
			_, err = tx.Exec(ctx, `INSERT INTO execution_totals
				SELECT owner, status, count(*), sum(seconds), max(memory_mb) FROM executions GROUP BY 1, 2
				ON CONFLICT (owner, status) DO UPDATE SET executions = excluded.executions, seconds = excluded.seconds`)
		}
		if err == nil {
			v.Report("the counts were repaired")
		}
		return err
	})
}
