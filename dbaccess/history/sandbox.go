package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	return unavailable(s.openings.do(ctx, len(policy), `INSERT INTO sandboxes (id, owner, policy, ephemeral, state, created_at) VALUES ($1,$2,$3,$4,$5,$6)
		ON CONFLICT (id) DO NOTHING`,
		b.ID, clean(b.Owner), policy, b.Ephemeral, string(b.State), b.CreatedAt))
}

// EndSandbox writes how and when a sandbox ended.
func (s *Store) EndSandbox(ctx context.Context, id string, state sandbox.State, at time.Time) error {
	return unavailable(s.closes.do(ctx, 0, `UPDATE sandboxes SET state = $2, ended_at = $3 WHERE id = $1 AND ended_at IS NULL`, clean(id), string(state), at))
}

// Sandbox returns the record of a sandbox, live or ended; it was last used when it
// last began an execution. FaultNotFound where there is none.
func (s *Store) Sandbox(ctx context.Context, id string) (sandbox.Sandbox, error) {
	var b sandbox.Sandbox
	var policy []byte
	var state string
	err := s.readExecutions(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT id, owner, policy, ephemeral, state, created_at, ended_at,
			greatest(created_at, (SELECT max(e.created_at) FROM executions e WHERE e.sandbox_id = sandboxes.id)) FROM sandboxes WHERE id = $1`, clean(id)).
			Scan(&b.ID, &b.Owner, &policy, &b.Ephemeral, &state, &b.CreatedAt, &b.EndedAt, &b.LastUsed)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return b, notFound("sandbox")
	}
	if err != nil {
		return b, err
	}
	b.State, b.CreatedAt, b.LastUsed = sandbox.State(state), b.CreatedAt.UTC(), b.LastUsed.UTC()
	if b.EndedAt != nil {
		*b.EndedAt = b.EndedAt.UTC()
	}
	if err := json.Unmarshal(policy, &b.Policy); err != nil {
		return b, fmt.Errorf("read a sandbox's policy: %w", err)
	}
	return b, nil
}

// CreateKey keeps a key under the hash of its secret.
func (s *Store) CreateKey(ctx context.Context, k sandbox.Key, hash []byte) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO keys (id, name, owner, role, hash, created_at, expires_at, account, requests_per_minute, concurrent_executions, cpu_seconds_per_day)
		VALUES ($1,$2,$3,$4,$5,$6,$7,coalesce(nullif($8, ''), $1),$9,$10,$11)`,
		k.ID, clean(k.Name), clean(k.User), string(k.Role), hash, k.CreatedAt, k.ExpiresAt, k.Account, k.Limits.Requests, k.Limits.Concurrent, k.Limits.CPUSeconds)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "23505" {
		return sandbox.Errorf(sandbox.FaultInvalid, "a key with this secret or id is there already: make another")
	}
	return unavailable(err)
}

const keyColumns = `SELECT id, name, owner, role, created_at, expires_at, revoked_at, account, requests_per_minute, concurrent_executions, cpu_seconds_per_day FROM keys `

func scanKey(row pgx.CollectableRow) (sandbox.Key, error) {
	var k sandbox.Key
	err := row.Scan(&k.ID, &k.Name, &k.User, &k.Role, &k.CreatedAt, &k.ExpiresAt, &k.RevokedAt, &k.Account, &k.Limits.Requests, &k.Limits.Concurrent, &k.Limits.CPUSeconds)
	return k, err
}

// KeyByHash returns the key whose secret has this hash. FaultNotFound where there
// is none; expiry and revocation are the caller's to judge.
func (s *Store) KeyByHash(ctx context.Context, hash []byte) (sandbox.Key, error) {
	var k sandbox.Key
	err := s.read(ctx, func(ctx context.Context) (err error) {
		rows, _ := s.pool.Query(ctx, keyColumns+`WHERE hash = $1`, hash)
		k, err = pgx.CollectExactlyOneRow(rows, scanKey)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return k, notFound("key")
	}
	return k, err
}

// Keys lists a user's keys, or everybody's where user is "", oldest first.
func (s *Store) Keys(ctx context.Context, user string) ([]sandbox.Key, error) {
	var keys []sandbox.Key
	err := s.read(ctx, func(ctx context.Context) (err error) {
		rows, _ := s.pool.Query(ctx, keyColumns+`WHERE $1 = '' OR owner = $1 ORDER BY created_at, id`, clean(user))
		keys, err = pgx.CollectRows(rows, scanKey)
		return err
	})
	return keys, err
}

// RevokeKey ends a key of the user, or anyone's where user is "".
func (s *Store) RevokeKey(ctx context.Context, id, user string) error {
	var n int64
	err := s.read(ctx, func(ctx context.Context) error { // a second revocation changes nothing
		tag, err := s.pool.Exec(ctx, `UPDATE keys SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1 AND ($2 = '' OR owner = $2)`, clean(id), clean(user))
		n = tag.RowsAffected()
		return err
	})
	if err == nil && n == 0 {
		return notFound("key")
	}
	return err
}
