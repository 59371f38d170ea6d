// Package history is door two: the service's own tables, under a role of its own.
//
// Writes of executions are committed in groups: each of two goroutines (one for
// openings, whose commit need not be on disk, one for closings, whose commit
// must) takes everything that waits, writes it as one pipelined transaction and
// answers all who wait. While one group commits, the next one gathers, so a
// single caller pays one round trip and many share one flush. A group that the
// server lost is written again until its callers give up.
package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sort"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"glasshouse/migrations"
	"glasshouse/sandbox"
)

// Store keeps sandboxes, executions and keys.
type Store struct {
	pool             *pgxpool.Pool
	openings, closes *group
}

// Open connects to url and runs the migrations that are missing, under a lock.
func Open(ctx context.Context, url string) (*Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("history database: %w", err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = "glasshouse-history"
	config.MaxConns = max(config.MaxConns, 8)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("history database: %w", err)
	}
	if err := migrate(ctx, pool); err != nil {
		pool.Close()
		return nil, fmt.Errorf("history database: %w", err)
	}
	return &Store{pool: pool, openings: newGroup(pool, "off"), closes: newGroup(pool, "on")}, nil
}

// Close ends the groups, after what waits in them is written, and the pool.
func (s *Store) Close() {
	s.openings.close()
	s.closes.close()
	s.pool.Close()
}

// Ping says whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return unavailable(s.pool.Ping(ctx)) }

func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	names, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		return err
	}
	sort.Strings(names)
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(7236849271)`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS schema_versions (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `SELECT name FROM schema_versions ORDER BY 1`)
		done, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for n, name := range done {
			if n >= len(names) || names[n] != name {
				return fmt.Errorf("it has version %s, which this glasshouse does not know: use a newer one, or another database", name)
			}
		}
		for _, name := range names[len(done):] {
			body, err := migrations.Files.ReadFile(name)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, string(body)); err != nil {
				return fmt.Errorf("migration %s: %w", name, err)
			}
			if _, err := tx.Exec(ctx, `INSERT INTO schema_versions (name) VALUES ($1)`, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// unavailable turns a lost or refused connection into what the caller can act on.
func unavailable(err error) error {
	if err == nil || !lost(err) {
		return err
	}
	return &sandbox.Error{Fault: sandbox.FaultUnavailable, Detail: "the history database does not answer; nothing runs without history, try again soon", RetryAfter: 2, Cause: err}
}

// lost says whether err means that the server, not the statement, failed.
func lost(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "57P") || strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "53")
	}
	var connect *pgconn.ConnectError
	var op net.Error
	return errors.As(err, &connect) || errors.As(err, &op) || errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err) ||
		strings.Contains(err.Error(), "EOF") || strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "broken pipe") || strings.Contains(err.Error(), "reset by peer")
}

func notFound(what string) error {
	return sandbox.Errorf(sandbox.FaultNotFound, "there is no such %s, or it is not yours", what)
}
