package history

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/sandbox"
)

const keyColumns = `id, name, owner, role, created_at, expires_at, revoked_at, account, requests_per_minute,
	concurrent_executions, cpu_seconds_per_day`

// CreateKey stores a key under the hash of its secret. It returns FaultInvalid if the id or the hash exists.
func (s *Store) CreateKey(ctx context.Context, k sandbox.Key, hash []byte) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO keys (id, name, owner, role, hash, created_at, expires_at, account,
			requests_per_minute, concurrent_executions, cpu_seconds_per_day)
		VALUES ($1, $2, $3, $4, $5, $6, $7, coalesce(nullif($8, ''), $1), $9, $10, $11)`,
		k.ID, clean(k.Name), clean(k.User), string(k.Role), hash, k.CreatedAt, k.ExpiresAt, k.Account,
		k.Limits.Requests, k.Limits.Concurrent, k.Limits.CPUSeconds)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "23505" { // unique_violation
		return sandbox.Errorf(sandbox.FaultInvalid, "there is already a key with this secret or id: create another")
	}
	return unavailable(err)
}

func scanKey(row pgx.CollectableRow) (sandbox.Key, error) {
	var k sandbox.Key
	err := row.Scan(&k.ID, &k.Name, &k.User, &k.Role, &k.CreatedAt, &k.ExpiresAt, &k.RevokedAt, &k.Account,
		&k.Limits.Requests, &k.Limits.Concurrent, &k.Limits.CPUSeconds)
	return k, err
}

// KeyByHash returns the key whose secret has this hash, or FaultNotFound. The key may be expired or revoked.
func (s *Store) KeyByHash(ctx context.Context, hash []byte) (sandbox.Key, error) {
	return queryOne(ctx, s, "key", scanKey, `SELECT `+keyColumns+` FROM keys WHERE hash = $1`, hash)
}

// Keys returns the keys of a user, or of all users if user is "", oldest first.
func (s *Store) Keys(ctx context.Context, user string) ([]sandbox.Key, error) {
	return query(ctx, s, s.read, scanKey, `SELECT `+keyColumns+` FROM keys
		WHERE $1 = '' OR owner = $1 ORDER BY created_at, id`, clean(user))
}

// RevokeKey revokes a key of the user, or of any user if user is "". It returns FaultNotFound if no key matches.
// A second revocation changes nothing.
func (s *Store) RevokeKey(ctx context.Context, id, user string) error {
	var found int64
	err := s.read(ctx, func(ctx context.Context) error {
		tag, err := s.pool.Exec(ctx, `UPDATE keys SET revoked_at = coalesce(revoked_at, now())
			WHERE id = $1 AND ($2 = '' OR owner = $2)`, clean(id), clean(user))
		found = tag.RowsAffected()
		return err
	})
	if err == nil && found == 0 {
		return notFound("key")
	}
	return err
}
