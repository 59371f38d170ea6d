package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
	"glasshouse/sandbox/blob"
)

// exportPage is the number of executions whose ids are read at once.
const exportPage = 500

// ExportFilter selects ended executions. A zero field selects all.
type ExportFilter struct {
	Since, Until time.Time // when they began
	User         string
}

// exporter writes executions to an archive.
type exporter struct {
	conn  *pgx.Conn
	blobs *blob.Store
	out   *archiveWriter
}

// Export writes the ended executions of a history database that match a filter to w, the oldest first, with
// everything that belongs to them except pending writes, conversations and the stages of statements, which can be
// computed again. It only reads, over a connection of its own, so a service may use the database meanwhile. It needs
// memory for one execution.
func Export(
	ctx context.Context, url string, f ExportFilter, blobs *blob.Store, w io.Writer,
) (counts ArchiveCounts, err error) {
	conn, err := connectToRead(ctx, url)
	if err != nil {
		return counts, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	out, err := newArchiveWriter(w)
	if err != nil {
		return counts, err
	}
	header := archiveHeader{Format: archiveFormat, ExportedAt: time.Now().UTC(), User: f.User}
	if !f.Since.IsZero() {
		header.Since = &f.Since
	}
	if !f.Until.IsZero() {
		header.Until = &f.Until
	}
	if err = out.write(archiveLine{Header: &header}); err == nil {
		err = (&exporter{conn, blobs, out}).exportAll(ctx, f)
	}
	if err != nil {
		_ = out.zip.Close()
		return out.counts, err
	}
	return out.counts, out.end()
}

// connectToRead connects to a history database and checks that it has the schema of this version.
func connectToRead(ctx context.Context, url string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("history database: %w", err)
	}
	config.RuntimeParams["application_name"] = "glasshouse-history"
	config.RuntimeParams["default_transaction_read_only"] = "on"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("history database: %w", err)
	}
	if err := checkSchema(ctx, conn); err != nil {
		_ = conn.Close(ctx)
		return nil, fmt.Errorf("history database: %w", err)
	}
	return conn, nil
}

func (x *exporter) exportAll(ctx context.Context, f ExportFilter) error {
	type place struct {
		At time.Time
		ID string
	}
	last := place{}
	for {
		c := conditions{}
		c.add("completed_at IS NOT NULL AND created_at >= ?", last.At)
		c.add("(created_at > $1 OR id > ?)", last.ID)
		if !f.Since.IsZero() {
			c.add("created_at >= ?", f.Since)
		}
		if !f.Until.IsZero() {
			c.add("created_at < ?", f.Until)
		}
		if f.User != "" {
			c.add("owner = ?", clean(f.User))
		}
		rows, _ := x.conn.Query(ctx, fmt.Sprintf(`SELECT created_at, id FROM executions WHERE %s
			ORDER BY created_at, id LIMIT %d`, &c, exportPage), c.args...)
		page, err := pgx.CollectRows(rows, pgx.RowToStructByPos[place])
		if err != nil {
			return err
		}
		for _, e := range page {
			if err := x.export(ctx, e.ID); err != nil {
				return fmt.Errorf("export execution %s: %w", e.ID, err)
			}
		}
		if len(page) < exportPage {
			return nil
		}
		last = page[len(page)-1]
	}
}

// export writes one execution. It leaves out an execution that was erased meanwhile or cannot be read.
func (x *exporter) export(ctx context.Context, id string) error {
	var record []byte
	var box archivedSandbox
	var policy []byte
	err := x.conn.QueryRow(ctx, `SELECT e.record, coalesce(s.id, ''), coalesce(s.owner, ''), s.policy,
			coalesce(s.ephemeral, false), coalesce(s.state, ''), coalesce(s.created_at, e.created_at), s.ended_at
		FROM executions e LEFT JOIN sandboxes s ON s.id = e.sandbox_id WHERE e.id = $1`, id).
		Scan(&record, &box.ID, &box.Owner, &policy, &box.Ephemeral, &box.State, &box.CreatedAt, &box.EndedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := decode(record); err != nil || !json.Valid(record) {
		x.out.counts.Unreadable++
		return nil
	}
	if err := x.out.write(archiveLine{Begin: id}); err != nil {
		return err
	}
	if box.ID != "" {
		box.Policy = policy
		if err := x.out.write(archiveLine{Sandbox: &box}); err != nil {
			return err
		}
	}
	if err := x.exportRecording(ctx, id); err != nil {
		return err
	}
	if err := x.exportInputs(ctx, id); err != nil {
		return err
	}
	if err := x.exportArtifacts(ctx, id); err != nil {
		return err
	}
	x.out.counts.Executions++
	return x.out.write(archiveLine{Execution: record})
}

func (x *exporter) exportRecording(ctx context.Context, id string) error {
	rows, err := x.conn.Query(ctx, `SELECT sequence, first_step, last_step, definitions, index, data
		FROM recording_chunks WHERE execution_id = $1 ORDER BY sequence`, id)
	if err != nil {
		return err
	}
	var c archivedChunk
	fields := []any{&c.Sequence, &c.First, &c.Last, &c.Definitions, &c.Index, &c.Data}
	_, err = pgx.ForEachRow(rows, fields, func() error {
		x.out.counts.Chunks++
		return x.out.write(archiveLine{Chunk: &c})
	})
	return err
}

func (x *exporter) exportInputs(ctx context.Context, id string) error {
	var log []byte
	err := x.conn.QueryRow(ctx, `SELECT log FROM input_logs WHERE execution_id = $1`, id).Scan(&log)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil || len(log) == 0 {
		return err
	}
	x.out.counts.InputLogs++
	return x.out.write(archiveLine{Inputs: log})
}

func (x *exporter) exportArtifacts(ctx context.Context, id string) error {
	rows, _ := x.conn.Query(ctx, `SELECT `+artifactColumns+` FROM artifacts WHERE execution_id = $1
		ORDER BY created_at, id`, id)
	list, err := pgx.CollectRows(rows, scanArtifact)
	if err != nil {
		return err
	}
	for _, a := range list {
		missing, err := x.exportBytes(a)
		if err != nil {
			return err
		}
		if x.out.counts.Artifacts++; missing {
			x.out.counts.Missing++
		}
		if err := x.out.write(archiveLine{Artifact: &archivedArtifact{a, a.User, a.Folder, missing}}); err != nil {
			return err
		}
	}
	return nil
}

// exportBytes writes the file of an artifact in pieces. missing reports that the blob store does not have it.
func (x *exporter) exportBytes(a sandbox.Artifact) (missing bool, err error) {
	f, err := x.blobs.Open(a.SHA256)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	piece := make([]byte, archivePiece)
	for {
		n, err := io.ReadFull(f, piece)
		if n > 0 {
			if err := x.out.write(archiveLine{Bytes: piece[:n]}); err != nil {
				return false, err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}
