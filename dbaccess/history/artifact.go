package history

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/sandbox"
)

// KeepArtifacts writes what an execution left; it is on disk when it returns.
func (s *Store) KeepArtifacts(ctx context.Context, list []sandbox.Artifact) error {
	columns := make([][]string, 9)
	sizes, times := make([]int64, len(list)), make([]time.Time, len(list))
	for n, a := range list {
		for c, text := range []string{a.ID, a.ExecutionID, a.SandboxID, a.User, a.Folder, a.Path, a.SHA256, a.MIME, string(a.Change)} {
			columns[c] = append(columns[c], clean(text))
		}
		sizes[n], times[n] = a.Size, a.CreatedAt
	}
	return unavailable(s.closes.do(ctx, 200*len(list), `INSERT INTO artifacts (id, execution_id, sandbox_id, owner, place, path, sha256, mime, change, size, created_at)
		SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[], $11::timestamptz[])
		ON CONFLICT (id) DO NOTHING`,
		columns[0], columns[1], columns[2], columns[3], columns[4], columns[5], columns[6], columns[7], columns[8], sizes, times))
}

const artifactColumns = `id, execution_id, sandbox_id, owner, place, path, sha256, mime, change, size, created_at`

func scanArtifact(row pgx.CollectableRow) (sandbox.Artifact, error) {
	var a sandbox.Artifact
	err := row.Scan(&a.ID, &a.ExecutionID, &a.SandboxID, &a.User, &a.Folder, &a.Path, &a.SHA256, &a.MIME, &a.Change, &a.Size, &a.CreatedAt)
	a.CreatedAt = a.CreatedAt.UTC()
	return a, err
}

// Artifact returns one artifact. FaultNotFound where there is none.
func (s *Store) Artifact(ctx context.Context, id string) (sandbox.Artifact, error) {
	var a sandbox.Artifact
	err := s.read(ctx, func(ctx context.Context) (err error) {
		rows, _ := s.pool.Query(ctx, `SELECT `+artifactColumns+` FROM artifacts WHERE id = $1`, clean(id))
		a, err = pgx.CollectExactlyOneRow(rows, scanArtifact)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return a, sandbox.Errorf(sandbox.FaultNotFound, "there is no such artifact, or it is not yours, or its time to be kept is over")
	}
	return a, err
}

// Artifacts lists a sandbox's artifacts by path, the newest version of each: of those
// after one, or where it is nothing of all, the first limit.
func (s *Store) Artifacts(ctx context.Context, sandboxID string, after sandbox.Artifact, limit int) ([]sandbox.Artifact, error) {
	var list []sandbox.Artifact
	err := s.read(ctx, func(ctx context.Context) (err error) {
		rows, _ := s.pool.Query(ctx, `SELECT DISTINCT ON (place, path) `+artifactColumns+` FROM artifacts WHERE sandbox_id = $1
			AND ($2 = '' OR place > $3 OR place = $3 AND path > $4) ORDER BY place, path, created_at DESC, id LIMIT $5`,
			clean(sandboxID), after.ID, after.Folder, after.Path, limit)
		list, err = pgx.CollectRows(rows, scanArtifact)
		return err
	})
	return list, err
}

// ExpireArtifacts forgets artifacts from before a time, and of each user the oldest
// beyond most bytes, counted in pages, with one for each. It returns those of which no newer version has the same name.
func (s *Store) ExpireArtifacts(ctx context.Context, before time.Time, most int64) ([]sandbox.Artifact, error) {
	rows, _ := s.pool.Query(ctx, `DELETE FROM artifacts USING (SELECT id AS old, sum(4096 + (size + 4095) / 4096 * 4096) OVER (PARTITION BY owner ORDER BY created_at DESC, id DESC) AS upto FROM artifacts) AS ranked
		WHERE id = old AND (created_at < $1 OR upto > $2) RETURNING `+artifactColumns, before, most)
	gone, err := pgx.CollectRows(rows, scanArtifact)
	if err != nil || len(gone) == 0 {
		return nil, unavailable(err)
	}
	var places, paths []string
	for _, a := range gone {
		places, paths = append(places, a.Folder), append(paths, a.Path)
	}
	type name struct{ place, path string }
	rows, _ = s.pool.Query(ctx, `SELECT DISTINCT place, path FROM artifacts JOIN unnest($1::text[], $2::text[]) AS g(gp, gn) ON place = gp AND path = gn`, places, paths)
	taken := map[name]bool{}
	var have name
	if _, err := pgx.ForEachRow(rows, []any{&have.place, &have.path}, func() error { taken[have] = true; return nil }); err != nil {
		return nil, unavailable(err)
	}
	free := gone[:0]
	for _, a := range gone {
		if !taken[name{a.Folder, a.Path}] {
			free = append(free, a)
		}
	}
	return free, nil
}

// SumsInUse returns those of sums that an artifact has.
func (s *Store) SumsInUse(ctx context.Context, sums []string) ([]string, error) {
	return s.inUse(ctx, `SELECT DISTINCT sha256 FROM artifacts WHERE sha256 = ANY($1)`, sums)
}

// PlacesInUse returns those of places that an artifact is in.
func (s *Store) PlacesInUse(ctx context.Context, places []string) ([]string, error) {
	return s.inUse(ctx, `SELECT p FROM unnest($1::text[]) AS p WHERE EXISTS (SELECT FROM artifacts WHERE place = p)`, places)
}

func (s *Store) inUse(ctx context.Context, sql string, names []string) ([]string, error) {
	var used []string
	err := s.readWithin(ctx, func(ctx context.Context) (err error) {
		rows, _ := s.pool.Query(ctx, sql, names)
		used, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return used, err
}
