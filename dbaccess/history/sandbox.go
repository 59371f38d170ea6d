package history

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/sandbox"
)

// CreateSandbox writes the record of a sandbox. It rides with the openings: a
// crash may lose the record of a sandbox that the crash ended anyway.
func (s *Store) CreateSandbox(ctx context.Context, b sandbox.Sandbox) error {
	policy, err := json.Marshal(b.Policy)
	if err != nil {
		return err
	}
	return unavailable(s.openings.do(ctx, `INSERT INTO sandboxes (id, owner, policy, ephemeral, state, created_at) VALUES ($1,$2,$3,$4,$5,$6)`,
		b.ID, b.Owner, policy, b.Ephemeral, string(b.State), b.CreatedAt))
}

// EndSandbox writes how and when a sandbox ended.
func (s *Store) EndSandbox(ctx context.Context, id string, state sandbox.State, at time.Time) error {
	return unavailable(s.closes.do(ctx, `UPDATE sandboxes SET state = $2, ended_at = $3 WHERE id = $1 AND ended_at IS NULL`, id, string(state), at))
}

// Sandbox returns the record of a sandbox, live or ended. FaultNotFound where
// there is none.
func (s *Store) Sandbox(ctx context.Context, id string) (sandbox.Sandbox, error) {
	var b sandbox.Sandbox
	var policy []byte
	var state string
	err := s.pool.QueryRow(ctx, `SELECT id, owner, policy, ephemeral, state, created_at, ended_at FROM sandboxes WHERE id = $1`, clean(id)).
		Scan(&b.ID, &b.Owner, &policy, &b.Ephemeral, &state, &b.CreatedAt, &b.EndedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return b, notFound("sandbox")
	}
	if err != nil {
		return b, unavailable(err)
	}
	b.State, b.LastUsed = sandbox.State(state), b.CreatedAt
	return b, json.Unmarshal(policy, &b.Policy)
}

// CreateKey keeps a key under the hash of its secret.
func (s *Store) CreateKey(ctx context.Context, k sandbox.Key, hash []byte) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO keys (id, name, owner, role, hash, created_at, expires_at) VALUES ($1,$2,$3,$4,$5,$6,$7)`,
		k.ID, clean(k.Name), clean(k.User), string(k.Role), hash, k.CreatedAt, k.ExpiresAt)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "23505" {
		return sandbox.Errorf(sandbox.FaultInvalid, "this key is there already")
	}
	return unavailable(err)
}

const keyColumns = `SELECT id, name, owner, role, created_at, expires_at, revoked_at FROM keys `

func scanKey(row pgx.CollectableRow) (sandbox.Key, error) {
	var k sandbox.Key
	err := row.Scan(&k.ID, &k.Name, &k.User, &k.Role, &k.CreatedAt, &k.ExpiresAt, &k.RevokedAt)
	return k, err
}

// KeyByHash returns the key whose secret has this hash. FaultNotFound where there
// is none; expiry and revocation are the caller's to judge.
func (s *Store) KeyByHash(ctx context.Context, hash []byte) (sandbox.Key, error) {
	rows, _ := s.pool.Query(ctx, keyColumns+`WHERE hash = $1`, hash)
	k, err := pgx.CollectExactlyOneRow(rows, scanKey)
	if errors.Is(err, pgx.ErrNoRows) {
		return k, notFound("key")
	}
	return k, unavailable(err)
}

// Keys lists a user's keys, or everybody's where user is "", oldest first.
func (s *Store) Keys(ctx context.Context, user string) ([]sandbox.Key, error) {
	rows, _ := s.pool.Query(ctx, keyColumns+`WHERE $1 = '' OR owner = $1 ORDER BY created_at, id`, clean(user))
	keys, err := pgx.CollectRows(rows, scanKey)
	return keys, unavailable(err)
}

// RevokeKey ends a key of the user, or anyone's where user is "".
func (s *Store) RevokeKey(ctx context.Context, id, user string) error {
	tag, err := s.pool.Exec(ctx, `UPDATE keys SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1 AND ($2 = '' OR owner = $2)`, clean(id), clean(user))
	if err == nil && tag.RowsAffected() == 0 {
		return notFound("key")
	}
	return unavailable(err)
}
