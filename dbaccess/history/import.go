package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
	"glasshouse/sandbox/blob"
)

// importer stores the executions of an archive.
type importer struct {
	store  *Store
	conn   *pgx.Conn
	blobs  *blob.Store
	lines  *archiveReader
	counts ArchiveCounts

	rows      []row // executions that wait for flush, with the size of their records
	size      int
	waiting   map[string]bool // their ids
	artifacts []sandbox.Artifact
	pinned    []string
}

// Import stores the executions of an archive that Export has written. It skips executions that history has, so it may
// be repeated after an error. It first reads the whole archive, and stores nothing if the archive is torn, damaged or
// of a newer format, if checkChunk returns an error for a chunk of a recording, or if an input log cannot be decoded.
// No service may use the blob store meanwhile.
func (s *Store) Import(
	ctx context.Context, archive io.ReadSeeker, blobs *blob.Store, checkChunk func(sandbox.Chunk) error,
) (ArchiveCounts, error) {
	if err := checkArchive(archive, checkChunk); err != nil {
		return ArchiveCounts{}, err
	}
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return ArchiveCounts{}, err
	}
	lines, err := newArchiveReader(archive)
	if err != nil {
		return ArchiveCounts{}, err
	}
	defer lines.close()
	if err := s.writer.waitInserted(ctx, scope{}); err != nil {
		return ArchiveCounts{}, unavailable(err)
	}
	conn, err := connectForInserts(ctx, s.pool.Config().ConnConfig.Copy())
	if err != nil {
		return ArchiveCounts{}, unavailable(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	m := &importer{store: s, conn: conn, blobs: blobs, lines: lines, waiting: map[string]bool{}}
	defer func() { m.blobs.Unpin(m.pinned) }()
	err = m.importAll(ctx)
	return m.counts, unavailable(err)
}

func (m *importer) importAll(ctx context.Context) error {
	for {
		line, _, err := m.lines.next()
		switch {
		case err != nil:
			return err
		case line.End != nil:
			return m.flush(ctx)
		case line.Begin != "":
			if err := m.importExecution(ctx, clean(line.Begin)); err != nil {
				return fmt.Errorf("import execution %s: %w", line.Begin, err)
			}
		}
	}
}

// importExecution reads and stores the lines that follow Begin.
func (m *importer) importExecution(ctx context.Context, id string) error {
	exists := m.waiting[id]
	if !exists {
		err := m.conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM executions WHERE id = $1)`, id).Scan(&exists)
		if err != nil {
			return err
		}
	}
	for {
		line, _, err := m.lines.next()
		switch {
		case err != nil:
			return err
		case line.Execution != nil && exists:
			m.counts.Skipped++
			return nil
		case exists:
		case line.Execution != nil:
			return m.add(ctx, line.Execution)
		case line.Sandbox != nil:
			err = m.importSandbox(ctx, *line.Sandbox)
		case line.Chunk != nil:
			m.counts.Chunks++
			err = m.store.KeepChunk(ctx, id, line.Chunk.chunk())
		case line.Inputs != nil:
			m.counts.InputLogs++
			err = m.store.exec(ctx, insertInputs, clean(id), line.Inputs)
		case line.Bytes != nil:
			file := fileReader{lines: m.lines, rest: line.Bytes}
			if err = m.put(&file); err == nil {
				err = m.addArtifact(file.artifact)
			}
		case line.Artifact != nil: // an empty file, or one without its bytes
			if !line.Artifact.Missing {
				err = m.put(&fileReader{artifact: line.Artifact})
			}
			if err == nil {
				err = m.addArtifact(line.Artifact)
			}
		default:
			err = fmt.Errorf("line %d has an unexpected kind", m.lines.number)
		}
		if err != nil {
			return err
		}
	}
}

// fileReader reads the pieces of a file, up to the artifact that follows them.
type fileReader struct {
	lines    *archiveReader
	rest     []byte
	artifact *archivedArtifact
}

func (f *fileReader) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		if f.artifact != nil {
			return 0, io.EOF
		}
		line, _, err := f.lines.next()
		if err != nil {
			return 0, err
		}
		f.rest, f.artifact = line.Bytes, line.Artifact
		if f.rest == nil && f.artifact == nil {
			return 0, fmt.Errorf("line %d: a file has no artifact", f.lines.number)
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// put stores a file in the blob store, pinned until Import returns.
func (m *importer) put(file *fileReader) error {
	stored, err := m.blobs.Put("", file)
	if err != nil {
		return err
	}
	m.pinned = append(m.pinned, stored.SHA256)
	if stored.SHA256 != file.artifact.SHA256 {
		return fmt.Errorf("the file %q has the checksum %s, want %s", file.artifact.Path, stored.SHA256,
			file.artifact.SHA256)
	}
	return nil
}

func (m *importer) addArtifact(a *archivedArtifact) error {
	if m.counts.Artifacts++; a.Missing {
		m.counts.Missing++
	}
	a.Artifact.User, a.Artifact.Folder = a.User, a.Folder
	m.artifacts = append(m.artifacts, a.Artifact)
	return nil
}

func (m *importer) importSandbox(ctx context.Context, b archivedSandbox) error {
	if b.State == string(sandbox.StateActive) { // it does not live here
		b.State = string(sandbox.StateLost)
	}
	tag, err := m.conn.Exec(ctx, `INSERT INTO sandboxes (id, owner, policy, ephemeral, state, created_at, ended_at)
		VALUES ($1, $2, $3, $4, $5, $6::timestamptz, coalesce($7, $6::timestamptz))
		ON CONFLICT (id) DO NOTHING`,
		clean(b.ID), clean(b.Owner), b.Policy, b.Ephemeral, b.State, b.CreatedAt, b.EndedAt)
	if err != nil || tag.RowsAffected() == 1 {
		return err
	}
	var owner string
	err = m.conn.QueryRow(ctx, `SELECT owner FROM sandboxes WHERE id = $1`, clean(b.ID)).Scan(&owner)
	if err == nil && owner != clean(b.Owner) {
		err = fmt.Errorf("the sandbox %s is of the user %q in the export, and of %q in history", b.ID, b.Owner, owner)
	}
	return err
}

// add adds an execution to the batch that flush stores. Its artifacts are stored before.
func (m *importer) add(ctx context.Context, record []byte) error {
	e, err := decode(record)
	if err != nil {
		return err
	}
	r, err := executionRow(&e)
	if err != nil {
		return err
	}
	r.record = record // as it was exported
	m.rows, m.size, m.waiting[r.executionID] = append(m.rows, r), m.size+len(r.record), true
	if len(m.rows) >= maxBatchRows || m.size >= maxBatchBytes {
		return m.flush(ctx)
	}
	return nil
}

// flush stores the batch: first the artifacts and their links, then the executions in one transaction.
func (m *importer) flush(ctx context.Context) error {
	if len(m.artifacts) > 0 {
		if err := m.blobs.Sync(m.pinned); err != nil {
			return err
		}
		if err := m.store.KeepArtifacts(ctx, m.artifacts); err != nil {
			return err
		}
		if err := linkNewest(ctx, m.conn, m.blobs, m.artifacts); err != nil {
			return err
		}
	}
	if len(m.rows) > 0 {
		if err := insertRows(ctx, m.conn, m.store.owner.node, m.rows, nil); err != nil {
			return err
		}
	}
	m.blobs.Unpin(m.pinned)
	m.counts.Executions += len(m.rows)
	m.rows, m.size, m.artifacts, m.pinned = nil, 0, nil, nil
	clear(m.waiting)
	return nil
}

// LinkArtifacts gives the newest version of each file its name in the blob store, after the names were lost. It leaves
// out files without bytes.
func (s *Store) LinkArtifacts(ctx context.Context, blobs *blob.Store) error {
	rows, err := s.pool.Query(ctx, `SELECT DISTINCT ON (place, path) `+artifactColumns+` FROM artifacts
		ORDER BY place, path, created_at DESC, id`)
	if err != nil {
		return unavailable(err)
	}
	defer rows.Close()
	for rows.Next() {
		a, err := scanArtifact(rows)
		if err == nil {
			err = linkIfStored(blobs, a)
		}
		if err != nil {
			return err
		}
	}
	return unavailable(rows.Err())
}

// linkIfStored gives an artifact its name, if the blob store has the bytes.
func linkIfStored(blobs *blob.Store, a sandbox.Artifact) error {
	f, err := blobs.Open(a.SHA256)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_ = f.Close()
		_, err = blobs.Link(a)
	}
	return err
}

// linkNewest gives the newest version of each file its name in the blob store. It leaves out files without bytes.
func linkNewest(ctx context.Context, conn *pgx.Conn, blobs *blob.Store, list []sandbox.Artifact) error {
	versions, err := newestVersions(ctx, conn, list)
	if err != nil {
		return err
	}
	for _, a := range versions {
		if err := linkIfStored(blobs, a); err != nil {
			return err
		}
	}
	return nil
}
