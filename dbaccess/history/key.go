package history

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/sandbox"
)

const keyColumns = `id, name, owner, role, created_at, expires_at, revoked_at, created_by, created_with, account,
	requests_per_minute, concurrent_executions, cpu_seconds_per_day, history_days, weight, databases,
	allowed_modules, blocked_modules`

// changeKeys runs f in a transaction that changes keys. Such transactions run one after the other, so that a key cannot
// create another while it is being revoked.
func (s *Store) changeKeys(ctx context.Context, f func(context.Context, pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeouts.read)
	defer cancel()
	return s.transact(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE keys IN SHARE ROW EXCLUSIVE MODE`); err != nil { // does not block reads
			return err
		}
		return f(ctx, tx)
	})
}

// CreateKey stores a key under the hash of its secret. It returns FaultInvalid if the id or the hash exists,
// FaultUnauthorized if the key with which it is created is revoked, and FaultLimit if the user has most valid keys,
// unless most is 0.
func (s *Store) CreateKey(ctx context.Context, k sandbox.Key, hash []byte, most int) error {
	return s.changeKeys(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var valid int
		if most > 0 {
			if err := tx.QueryRow(ctx, `SELECT count(*) FROM keys
				WHERE owner = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`,
				clean(k.User), k.CreatedAt).Scan(&valid); err != nil {
				return err
			}
			if valid >= most {
				return sandbox.Errorf(sandbox.FaultLimit, "you have %d valid keys, the maximum for one user: revoke "+
					"those that are not used, or ask an admin to create the key", valid)
			}
		}
		tag, err := tx.Exec(ctx, `INSERT INTO keys (id, name, owner, role, hash, created_at, expires_at, account,
				requests_per_minute, concurrent_executions, cpu_seconds_per_day, created_by, created_with,
				databases, allowed_modules, blocked_modules, history_days, weight)
			SELECT $1, $2, $3, $4, $5, $6, $7, coalesce(nullif($8, ''), $1), $9, $10, $11, $12, $13, $14,
				coalesce($15::text[], '{}'), coalesce($16::text[], '{}'), $17, $18
			WHERE NOT EXISTS (SELECT FROM keys WHERE id = $13 AND revoked_at IS NOT NULL)`,
			k.ID, clean(k.Name), clean(k.User), string(k.Role), hash, k.CreatedAt, k.ExpiresAt, k.Account,
			k.Limits.Requests, k.Limits.Concurrent, k.Limits.CPUSeconds, clean(k.CreatedBy), k.CreatedWith,
			k.Databases, k.AllowedModules, k.BlockedModules, k.Limits.HistoryDays, k.Limits.Weight)
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "23505" { // unique_violation
			return sandbox.Errorf(sandbox.FaultInvalid, "there is already a key with this secret or id: create another")
		}
		if err == nil && tag.RowsAffected() == 0 {
			return sandbox.Errorf(sandbox.FaultUnauthorized, "this key was revoked")
		}
		return err
	})
}

func scanKey(row pgx.CollectableRow) (sandbox.Key, error) {
	var k sandbox.Key
	err := row.Scan(&k.ID, &k.Name, &k.User, &k.Role, &k.CreatedAt, &k.ExpiresAt, &k.RevokedAt, &k.CreatedBy,
		&k.CreatedWith, &k.Account, &k.Limits.Requests, &k.Limits.Concurrent, &k.Limits.CPUSeconds,
		&k.Limits.HistoryDays, &k.Limits.Weight, &k.Databases, &k.AllowedModules, &k.BlockedModules)
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

// RevokeKeys revokes keys at a time. choose gets the key with the id, then all keys that were created with it, directly
// or not, revoked ones included; it returns the ids of those to revoke. A revoked key keeps its time.
// RevokeKeys returns FaultNotFound if there is no such key, and the error of choose.
func (s *Store) RevokeKeys(
	ctx context.Context, id string, at time.Time, choose func([]sandbox.Key) (ids []string, err error),
) error {
	return s.changeKeys(ctx, func(ctx context.Context, tx pgx.Tx) error {
		// OFFSET makes PostgreSQL look in the index for each key. Otherwise it reads the whole table for each
		// level, and a chain of 3000 keys could not be revoked within the time limit.
		rows, _ := tx.Query(ctx, `WITH RECURSIVE made AS (
				SELECT id, 0 AS depth FROM keys WHERE id = $1
				UNION ALL SELECT child.id, depth + 1 FROM made
					CROSS JOIN LATERAL (SELECT id FROM keys WHERE created_with = made.id OFFSET 0) child)
			SELECT `+keyColumns+` FROM made JOIN keys USING (id) ORDER BY depth, created_at, id`, clean(id))
		keys, err := pgx.CollectRows(rows, scanKey)
		if err == nil && len(keys) == 0 {
			return notFound("key")
		}
		if err != nil {
			return err
		}
		ids, err := choose(keys)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE keys SET revoked_at = $2 WHERE id = ANY ($1) AND revoked_at IS NULL`, ids, at)
		return err
	})
}

// ForgetKeys deletes the keys of an account that expired before a time.
func (s *Store) ForgetKeys(ctx context.Context, account string, before time.Time) error {
	return s.changeKeys(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM keys WHERE account = $1 AND expires_at < $2`, clean(account), before)
		return err
	})
}
