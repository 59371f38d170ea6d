package history

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/sirupsen/logrus"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

const (
	beginTimeout  = 5 * time.Second  // for a run or query that has not begun: its caller gets an error soon
	finishTimeout = 30 * time.Second // for the end of an execution

	statementTimeout = 30 * time.Second // for one attempt of a write
	firstRetryDelay  = 5 * time.Millisecond
	minPoolConns     = 10 // for reads and transactions
	maxWriteConns    = 5  // so many that a limit.Shared has a reserve
)

// Store keeps sandboxes, executions, recordings, artifacts and keys. Its methods are safe for concurrent
// use. They return a *sandbox.Error if the caller can act on it: FaultNotFound, FaultInvalid, FaultBusy, and
// FaultUnavailable while PostgreSQL is unreachable.
type Store struct {
	pool      *pgxpool.Pool // for reads and for rare writes
	writePool *pgxpool.Pool // for exec: its statements may wait long, and must not take the reads' connections
	writer    *writer
	owner     *ownership
	closed    chan struct{} // closed by Close; exec stops its retries then

	refusedDir string // of records that PostgreSQL refused
	closeOnce  sync.Once
	pending    pendingCount
	reads      *limit.Shared // connections of pool
	writes     *limit.Shared // connections of writePool
	cpu        *limit.CPU    // for the JSON of large records; may be nil
	share      *limit.Share  // of reads; may be nil
	timeouts   timeouts
	logger     logrus.FieldLogger
}

// timeouts bound reads, so that a server that hangs does not hang its callers, and the wait for another node.
type timeouts struct {
	read   time.Duration // for a key, a sandbox, an artifact
	search time.Duration // for searches among all executions
	lease  time.Duration // of a node; see ownership
}

var serviceTimeouts = timeouts{read: 10 * time.Second, search: time.Minute, lease: leaseDuration}

// Config says where a Store keeps its data, and how safely.
type Config struct {
	URL string // of the database, with the login that owns it
	Dir string // of the write-ahead log; no other process may use it

	// AsynchronousCommit flushes the end of an execution to disk about 10 ms after Finish returns, and not before: it
	// is what PostgreSQL calls synchronous_commit=off. The death of this process still loses nothing; a crash of the
	// machine may lose the executions that ended in those 10 ms.
	AsynchronousCommit bool

	CPU   *limit.CPU   // shares the encoding and decoding of large records; nil: unlimited
	Share *limit.Share // bounds a user's reads; nil: unlimited
}

// Open connects to the database, keeps other services off it, runs missing migrations, and inserts the records that are
// left in the log. It returns an error if another service uses the database. After a kill of that service, Open waits
// 10 s in case it returns. The caller closes the Store.
func Open(ctx context.Context, c Config, logger logrus.FieldLogger) (*Store, error) {
	return open(ctx, c, logger, time.Now, serviceTimeouts)
}

func open(
	ctx context.Context, c Config, logger logrus.FieldLogger, now func() time.Time, timeouts timeouts,
) (*Store, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, fmt.Errorf("history database: %w", err)
	}
	config.ConnConfig.RuntimeParams["application_name"] = "glasshouse-history"
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "on"
	keepAlive(config.ConnConfig.RuntimeParams)
	config.MaxConns = max(config.MaxConns, minPoolConns)
	writeConfig := config.Copy()
	writeConfig.MaxConns, writeConfig.MinConns = maxWriteConns, 0
	s := &Store{
		closed: make(chan struct{}), refusedDir: filepath.Join(c.Dir, "refused"),
		reads:  limit.NewShared(int(config.MaxConns), c.CPU.Users()),
		writes: limit.NewShared(maxWriteConns, c.CPU.Users()), cpu: c.CPU, share: c.Share,
		timeouts: timeouts, logger: logger,
	}
	node, err := openNode(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	s.owner = newOwnership(config.ConnConfig, node, timeouts.lease, logger)
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("history database: %w", err)
	}
	if s.writePool, err = pgxpool.NewWithConfig(ctx, writeConfig); err == nil {
		err = s.owner.acquire(ctx)
	}
	if err == nil && !s.owner.isFirst() {
		err = s.owner.register(ctx)
	}
	if err == nil {
		err = migrate(ctx, s.pool)
	}
	if err == nil && s.owner.isFirst() {
		err = s.owner.register(ctx)
	}
	if err == nil {
		err = ensureTextIndex(ctx, s.pool, logger)
	}
	if err != nil {
		s.release()
		return nil, fmt.Errorf("history database: %w", err)
	}
	db := &inserter{
		node: s.owner.node,
		connect: func(ctx context.Context) (*pgx.Conn, error) {
			return connectForInserts(ctx, config.ConnConfig.Copy())
		},
		refusedDir: s.refusedDir, hasProgress: map[string]bool{}, logger: logger,
	}
	if err = s.interruptWrites(ctx); err == nil {
		err = s.countPending(ctx)
	}
	if err != nil {
		s.release()
		return nil, fmt.Errorf("history database: %w", err)
	}
	if s.writer, err = openWriter(c.Dir, c.AsynchronousCommit, c.CPU, db, now); err != nil {
		s.release()
		return nil, fmt.Errorf("history: %w", err)
	}
	return s, nil
}

// Close inserts the backlog and closes the Store. Its error has the number of records that could not be inserted. They
// stay in the log, and the next Open inserts them.
func (s *Store) Close() error {
	err := s.writer.close()
	s.closeOnce.Do(func() {
		close(s.closed)
		s.release()
	})
	return err
}

// release closes the pools and lets other services use the database.
func (s *Store) release() {
	defer s.owner.close()
	for _, pool := range []*pgxpool.Pool{s.pool, s.writePool} {
		if pool != nil {
			pool.Close()
		}
	}
}

// Ping returns an error if the database does not answer or if Begin would refuse an execution.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.checkBegin(); err != nil {
		return err
	}
	return s.read(ctx, func(ctx context.Context) error { return s.pool.Ping(ctx) })
}

// checkBegin returns FaultUnavailable if no run may begin: because of the disk, of the backlog, or of another service.
func (s *Store) checkBegin() error {
	if err := s.owner.check(); err != nil {
		return err
	}
	return s.writer.checkBegin()
}

// Waiting says how much of history waits for PostgreSQL. It does not ask PostgreSQL.
func (s *Store) Waiting() sandbox.HistoryStatus { return s.writer.status() }

// Status says how much of history waits for PostgreSQL, and how much space there is.
func (s *Store) Status(ctx context.Context) (sandbox.HistoryStatus, error) {
	st := s.writer.status()
	err := s.read(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `SELECT pg_database_size(current_database())`).Scan(&st.DatabaseBytes)
	})
	if isUnavailable(err) { // the rest of the status says since when
		st.Error, err = err.Error(), nil
	}
	return st, err
}

// The CPU time that PostgreSQL and the service take for a read, and for a record that it returns: to read it, to decode
// it, and to encode it for the client.
const (
	readWork       = 300 * time.Microsecond
	recordWork     = 10 * time.Microsecond
	recordByteWork = 20 // for a byte, in nanoseconds
	// maxReadWork is the most that the time of a read counts for: on a busy machine most of it is waiting.
	maxReadWork = 50 * time.Millisecond
)

// readExecutions runs a read of executions after all records of its scope that were appended before this call are
// inserted. Its timeout begins when the user's share allows the read.
func (s *Store) readExecutions(ctx context.Context, of scope, f func(context.Context) error) error {
	s.share.Wait(ctx, limit.UserOf(ctx), readWork)
	ctx, cancel := context.WithTimeout(ctx, s.timeouts.search)
	defer cancel()
	if err := s.writer.waitInserted(ctx, of); err != nil {
		return unavailable(err)
	}
	return s.readWithin(ctx, f)
}

// read runs a read within its timeout, which begins when the user's share allows the read.
func (s *Store) read(ctx context.Context, f func(context.Context) error) error {
	s.share.Wait(ctx, limit.UserOf(ctx), readWork)
	ctx, cancel := context.WithTimeout(ctx, s.timeouts.read)
	defer cancel()
	return s.readWithin(ctx, f)
}

// readWithin runs f in the turn of the context's user. f must be safe to repeat. If f fails because a connection was
// lost, for example after a restart of the server, f runs once more on new connections.
func (s *Store) readWithin(ctx context.Context, f func(context.Context) error) error {
	return s.inTurn(ctx, func() error {
		err := f(ctx)
		if isConnectionError(err) {
			s.pool.Reset()
			err = f(ctx)
		}
		return err
	})
}

// keepAlive makes PostgreSQL notice within 20 s that the machine of a client is gone, and end its transactions.
func keepAlive(params map[string]string) {
	params["tcp_keepalives_idle"], params["tcp_keepalives_interval"], params["tcp_keepalives_count"] = "5", "5", "3"
}

// transactAsOwner is transact for changes that no other node may have made unnecessary since: the transaction fails if
// this node no longer owns the database.
func (s *Store) transactAsOwner(ctx context.Context, f func(pgx.Tx) error) error {
	return s.transact(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT require_node($1, $2)`, s.owner.node.ID, s.owner.node.Epoch); err != nil {
			return err
		}
		return f(tx)
	})
}

// transact runs f in a transaction, in the turn of the context's user.
func (s *Store) transact(ctx context.Context, f func(pgx.Tx) error) error {
	return s.inTurn(ctx, func() error { return pgx.BeginFunc(ctx, s.pool, f) })
}

// inTurn runs f, which takes a connection of the pool, in the turn of the context's user.
func (s *Store) inTurn(ctx context.Context, f func() error) error {
	release, err := s.reads.Acquire(ctx, limit.UserOf(ctx), limit.Forever)
	if err != nil {
		return unavailable(notConfirmed(ctx, err))
	}
	defer release()
	return unavailable(f())
}

// query reads rows with read, such as s.read.
func query[T any](
	ctx context.Context, s *Store, read func(context.Context, func(context.Context) error) error,
	scan pgx.RowToFunc[T], sql string, args ...any,
) (list []T, err error) {
	err = read(ctx, func(ctx context.Context) error {
		began := time.Now()
		defer func() { s.share.Charge(limit.UserOf(ctx), min(time.Since(began), maxReadWork)) }()
		rows, _ := s.pool.Query(ctx, sql, args...) // CollectRows returns its error
		list, err = pgx.CollectRows(rows, scan)
		return err
	})
	return list, err
}

// queryOne reads the row of a noun with s.read. Without a row it returns FaultNotFound.
func queryOne[T any](
	ctx context.Context, s *Store, noun string, scan pgx.RowToFunc[T], sql string, args ...any,
) (one T, err error) {
	list, err := query(ctx, s, s.read, scan, sql, args...)
	if err != nil {
		return one, err
	}
	if len(list) == 0 {
		return one, notFound(noun)
	}
	return list[0], nil
}

// exec runs a statement that may run twice, and returns after its commit is on disk. While PostgreSQL is unreachable
// exec tries again until ctx ends. Then the statement may still have been committed.
func (s *Store) exec(ctx context.Context, sql string, args ...any) error {
	return s.retry(ctx, func(ctx context.Context) error {
		_, err := s.writePool.Exec(ctx, sql, args...)
		return err
	})
}

// execAsync is exec for data that a crash of PostgreSQL's machine may lose: it does not wait for the disk. It returns
// FaultUnavailable after beginTimeout.
func (s *Store) execAsync(ctx context.Context, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	return s.retry(ctx, func(ctx context.Context) error {
		var batch pgx.Batch // one transaction and one round trip
		batch.Queue(`SELECT set_config('synchronous_commit', 'off', true)`)
		batch.Queue(sql, args...)
		return s.writePool.SendBatch(ctx, &batch).Close()
	})
}

func (s *Store) retry(ctx context.Context, f func(context.Context) error) error {
	for delay := firstRetryDelay; ; delay = min(2*delay, maxRetryDelay) {
		release, err := s.writes.Acquire(ctx, limit.UserOf(ctx), limit.Forever)
		if err != nil {
			return unavailable(notConfirmed(ctx, err))
		}
		attempt, cancel := context.WithTimeout(ctx, statementTimeout)
		err = f(attempt)
		cancel()
		release()
		if err == nil {
			return nil
		}
		select {
		case <-s.closed:
			return unavailable(errClosed)
		default:
		}
		if !isConnectionError(err) {
			return err
		}
		s.writePool.Reset()
		select {
		case <-ctx.Done():
			return unavailable(notConfirmed(ctx, err))
		case <-s.closed:
		case <-time.After(delay):
		}
	}
}
