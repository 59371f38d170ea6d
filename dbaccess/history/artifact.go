package history

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

const artifactColumns = `id, execution_id, sandbox_id, owner, place, path, sha256, mime, change, size, created_at`

// KeepArtifacts stores the artifacts of an execution. When it returns nil, they are on disk.
func (s *Store) KeepArtifacts(ctx context.Context, list []sandbox.Artifact) error {
	var columns [9][]string
	var sizes []int64
	var times []time.Time
	for _, a := range list {
		texts := [9]string{
			a.ID, a.ExecutionID, a.SandboxID, a.User, a.Folder, a.Path, a.SHA256, a.MIME, string(a.Change),
		}
		for column, text := range texts {
			columns[column] = append(columns[column], clean(text))
		}
		sizes, times = append(sizes, a.Size), append(times, a.CreatedAt)
	}
	return s.exec(ctx, `INSERT INTO artifacts (`+artifactColumns+`)
		SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
			$8::text[], $9::text[], $10::bigint[], $11::timestamptz[])
		ON CONFLICT (id) DO NOTHING`,
		columns[0], columns[1], columns[2], columns[3], columns[4], columns[5], columns[6], columns[7], columns[8],
		sizes, times)
}

func scanArtifact(row pgx.CollectableRow) (sandbox.Artifact, error) {
	var a sandbox.Artifact
	err := row.Scan(&a.ID, &a.ExecutionID, &a.SandboxID, &a.User, &a.Folder, &a.Path, &a.SHA256, &a.MIME, &a.Change,
		&a.Size, &a.CreatedAt)
	a.CreatedAt = a.CreatedAt.UTC()
	return a, err
}

// Artifact returns the artifact with an id, or FaultNotFound.
func (s *Store) Artifact(ctx context.Context, id string) (sandbox.Artifact, error) {
	return queryOne(ctx, s, "artifact, or it has expired", scanArtifact,
		`SELECT `+artifactColumns+` FROM artifacts WHERE id = $1`, clean(id))
}

// Artifacts returns a page of at most limit artifacts of a sandbox, ordered by folder and path, with the newest
// version of each file, and the cursor of the next page, which is "" for the last page. Each sandbox has a list of its
// own.
func (s *Store) Artifacts(
	ctx context.Context, sandboxID, after string, limit int,
) (list []sandbox.Artifact, next string, err error) {
	o := order{"artifacts of sandbox " + sandboxID, []string{"place", "path"}, []string{"text", "text"}}
	place := []any{"", ""} // before the first
	if after != "" {
		if place, err = o.place(after); err != nil {
			return nil, "", err
		}
	}
	limit = pageLimit(limit)
	list, err = query(ctx, s, s.read, scanArtifact, `SELECT DISTINCT ON (place, path) `+artifactColumns+` FROM artifacts
		WHERE sandbox_id = $1 AND (place, path) > ($2, $3) ORDER BY place, path, created_at DESC, id LIMIT $4`,
		clean(sandboxID), place[0], place[1], limit+1)
	if len(list) > limit {
		list = list[:limit]
		next, err = o.cursor(list[limit-1].Folder, list[limit-1].Path)
	}
	return list, next, err
}

// ExpireArtifacts deletes the artifacts that are older than a time, and each user's oldest artifacts until at most
// maxBytes remain. A file counts in pages of 4096 bytes, as on disk, plus one page. ExpireArtifacts returns the deleted
// artifacts that have no other version with the same folder and path.
func (s *Store) ExpireArtifacts(ctx context.Context, before time.Time, maxBytes int64) ([]sandbox.Artifact, error) {
	rows, _ := s.pool.Query(ctx, `DELETE FROM artifacts USING (
			SELECT id AS old, sum(4096 + (size + 4095) / 4096 * 4096) OVER (PARTITION BY owner
				ORDER BY created_at DESC, id DESC) AS total FROM artifacts) AS ranked
		WHERE id = old AND (created_at < $1 OR total > $2) RETURNING `+artifactColumns, before, maxBytes)
	deleted, err := pgx.CollectRows(rows, scanArtifact)
	if err != nil || len(deleted) == 0 {
		return nil, unavailable(err)
	}
	versions, err := newestVersions(ctx, s.pool, deleted)
	if err != nil {
		return nil, unavailable(err)
	}
	return slices.DeleteFunc(deleted, func(a sandbox.Artifact) bool {
		_, isUsed := versions[fileName{a.Folder, a.Path}]
		return isUsed
	}), nil
}

// fileName is the name of an artifact, which several versions of a file have.
type fileName struct{ folder, path string }

// newestVersions returns the newest artifact of each of the names that artifacts have, if there is one.
func newestVersions(
	ctx context.Context, db interface {
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}, list []sandbox.Artifact,
) (map[fileName]sandbox.Artifact, error) {
	var folders, paths []string
	for _, a := range list {
		folders, paths = append(folders, a.Folder), append(paths, a.Path)
	}
	rows, _ := db.Query(ctx, `SELECT DISTINCT ON (place, path) `+artifactColumns+` FROM artifacts
		JOIN unnest($1::text[], $2::text[]) AS wanted(folder, name) ON place = folder AND path = name
		ORDER BY place, path, created_at DESC, id`, folders, paths)
	found, err := pgx.CollectRows(rows, scanArtifact)
	versions := map[fileName]sandbox.Artifact{}
	for _, a := range found {
		versions[fileName{a.Folder, a.Path}] = a
	}
	return versions, err
}

// SumsInUse returns the subset of the SHA-256 sums that belong to an artifact.
func (s *Store) SumsInUse(ctx context.Context, sums []string) ([]string, error) {
	return query(ctx, s, s.readWithin, pgx.RowTo[string],
		`SELECT DISTINCT sha256 FROM artifacts WHERE sha256 = ANY($1)`, sums)
}

// PlacesInUse returns the subset of the folders that contain an artifact.
func (s *Store) PlacesInUse(ctx context.Context, folders []string) ([]string, error) {
	return query(ctx, s, s.readWithin, pgx.RowTo[string], `SELECT f FROM unnest($1::text[]) AS f
		WHERE EXISTS (SELECT FROM artifacts WHERE place = f)`, folders)
}
