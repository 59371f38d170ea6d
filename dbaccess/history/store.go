// Package history is door two: the service's own tables, under a role of its own.
//
// An execution's row is first in a log on this machine (package wal): its opening
// before its code runs, its end, flushed to disk, before its answer (10 ms after it, where
// commits are asynchronous). From there it goes
// to the database 50 ms later, with all that came meanwhile, in one transaction: so a
// run waits for no server, and one that is short is one row written once. Who reads
// executions waits until those that came before are there. While the database is away
// runs go on for some seconds; then none begins until it is back. What it missed is
// written when it is back, or at the next start.
//
// What a running execution does goes the same way, each thing before it is done: a table
// of its own has it until the execution's end, and a service that was killed closes the
// execution with it.
//
// Other writes are committed in groups, by two writers with a connection each: one for
// what need not be on disk at once, one for what must. While one group commits, the
// next one gathers. What a lost server did not commit is written again: the first for a
// few seconds, the second until their callers give up.
//
// Reads go through a pool; one that meets a connection from before a restart of
// the server is tried once more, and none waits for a server that hangs for longer than
// some seconds, or a minute where it looks through executions.
package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/sirupsen/logrus"

	"glasshouse/migrations"
	"glasshouse/sandbox"
)

const (
	// openPatience is how long an opening rides out a restart of the server; nothing
	// has run yet, so its caller is told soon.
	openPatience  = 5 * time.Second
	closePatience = 30 * time.Second

	readPatience   = 10 * time.Second // for a key, a sandbox, an artifact
	searchPatience = time.Minute      // for executions
)

// Store keeps sandboxes, executions and keys. Its methods may be called from many
// goroutines at once. Their errors are a *sandbox.Error where the caller can act on
// them: FaultNotFound, FaultInvalid, and FaultUnavailable while the server is away.
type Store struct {
	pool             *pgxpool.Pool
	queue            *queue
	asynchronous     bool
	openings, closes *group
	say              logrus.FieldLogger
}

// Config is where a Store keeps what it is given, and how safely.
type Config struct {
	URL string // of the database, with its owner's login
	Dir string // of the log; no other process may use it

	// AsynchronousCommit has an execution's end flushed to disk some 10 ms after Finish returns,
	// not before: what PostgreSQL calls synchronous_commit off. The death of this process loses
	// nothing all the same; a crash of the machine may lose what ended in those 10 ms.
	AsynchronousCommit bool
}

// Open connects to the database, runs the migrations that are missing, under a lock, and
// writes what is left in the log.
func Open(ctx context.Context, c Config, say logrus.FieldLogger) (*Store, error) {
	config, err := pgxpool.ParseConfig(c.URL)
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
	q, err := openQueue(c.Dir, &scribe{told: map[string]bool{}, connect: connect("on"), refused: filepath.Join(c.Dir, "refused"), say: say})
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("history: %w", err)
	}
	return &Store{pool: pool, queue: q, asynchronous: c.AsynchronousCommit, openings: newGroup(openPatience, connect("off")), closes: newGroup(0, connect("on")), say: say}, nil
}

// Close ends all after what waits is written. Its error says what could not be; that
// is in the log, for the next Open.
func (s *Store) Close() error {
	err := s.queue.close()
	s.openings.close()
	s.closes.close()
	s.pool.Close()
	return err
}

// Ping says whether the database answers, and an execution could begin.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.queue.disk.room(); err != nil {
		return err
	}
	if err := s.queue.room(); err != nil {
		return unavailable(err)
	}
	return s.read(ctx, func(ctx context.Context) error { return s.pool.Ping(ctx) })
}

// readExecutions is read for what depends on executions, of which there may be many: all
// that came before are there.
func (s *Store) readExecutions(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, searchPatience)
	defer cancel()
	if err := s.queue.settled(ctx); err != nil {
		return unavailable(err)
	}
	return s.readWithin(ctx, f)
}

// read runs f, which must be harmless to repeat, once more where it met a dead
// connection, on fresh ones. A server that hangs does not hang its caller.
func (s *Store) read(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	return s.readWithin(ctx, f)
}

// readWithin is read for as long as ctx lets it.
func (s *Store) readWithin(ctx context.Context, f func(context.Context) error) error {
	err := f(ctx)
	if lost(err) {
		s.pool.Reset()
		err = f(ctx)
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

func isUnavailable(err error) bool {
	var known *sandbox.Error
	return errors.As(err, &known) && known.Fault == sandbox.FaultUnavailable
}

// errLost marks the error of a write whose caller gave up while it waited.
var errLost = errors.New("the write was not confirmed")

// lost says whether err means that the server, not the statement, failed.
func lost(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, errLost) || errors.Is(err, errClosed) {
		return true
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		// Shut down or starting up, connection trouble, out of resources.
		return strings.HasPrefix(pg.Code, "57P") || strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "53")
	}
	var connect *pgconn.ConnectError
	var network net.Error // a deadline is one too
	return errors.As(err, &connect) || errors.As(err, &network) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || pgconn.SafeToRetry(err) ||
		strings.Contains(err.Error(), "conn closed") // pgx has no value for it
}

func notFound(what string) error {
	return sandbox.Errorf(sandbox.FaultNotFound, "there is no such %s, or it is not yours", what)
}
