// Package history is door two: the service's own tables, under a role of its own.
//
// Writes of executions are committed in groups, by two writers with a connection
// each: one for openings, whose commit need not be on disk, one for closings, whose
// commit must. While one group commits, the next one gathers, so a single caller
// pays one round trip and many share one flush. What a lost server did not commit is written again: openings for a few
// seconds, closings until their callers give up. A closing writes the whole row,
// so it does not matter if its opening was lost.
//
// Reads go through a pool; one that meets a connection from before a restart of
// the server is tried once more.
package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"glasshouse/migrations"
	"glasshouse/sandbox"
)

// openPatience is how long an opening rides out a restart of the server; nothing
// has run yet, so its caller is told soon.
const openPatience = 5 * time.Second

// Store keeps sandboxes, executions and keys. Its methods may be called from many
// goroutines at once. Their errors are a *sandbox.Error where the caller can act on
// them: FaultNotFound, FaultInvalid, and FaultUnavailable while the server is away.
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
	connect := func(synchronous string) func(context.Context) (*pgx.Conn, error) {
		own := config.ConnConfig.Copy()
		own.RuntimeParams["synchronous_commit"] = synchronous
		return func(ctx context.Context) (*pgx.Conn, error) { return pgx.ConnectConfig(ctx, own) }
	}
	return &Store{pool: pool, openings: newGroup(openPatience, connect("off")), closes: newGroup(0, connect("on"))}, nil
}

// Close ends the groups, after what waits in them is written, and the pool.
func (s *Store) Close() {
	s.openings.close()
	s.closes.close()
	s.pool.Close()
}

// Ping says whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	return s.read(func() error { return s.pool.Ping(ctx) })
}

// read runs f, which must be harmless to repeat, once more where it met a dead
// connection, on fresh ones.
func (s *Store) read(f func() error) error {
	err := f()
	if lost(err) {
		s.pool.Reset()
		err = f()
	}
	return unavailable(err)
}

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

// errLost marks the error of a write whose caller gave up while it waited.
var errLost = errors.New("the write was not confirmed")

// lost says whether err means that the server, not the statement, failed.
func lost(err error) bool {
	if err == nil {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		// Shut down or starting up, connection trouble, out of resources.
		return strings.HasPrefix(pg.Code, "57P") || strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "53")
	}
	var connect *pgconn.ConnectError
	var network net.Error // a deadline is one too
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, errLost) || errors.Is(err, errClosed) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || pgconn.SafeToRetry(err) ||
		strings.Contains(err.Error(), "conn closed") // pgx has no value for it
}

func notFound(what string) error {
	return sandbox.Errorf(sandbox.FaultNotFound, "there is no such %s, or it is not yours", what)
}
