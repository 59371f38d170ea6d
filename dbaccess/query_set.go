package dbaccess

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/dbaccess/check"
	"glasshouse/dbaccess/parse"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// QuerySet runs several queries on one snapshot: in one READ ONLY, REPEATABLE READ transaction. It counts as one
// statement of the limits. A query that fails leaves the others as they are.
type QuerySet struct {
	reader *Reader
	pg     *pgconn.PgConn
	limits sandbox.QueryLimits
	held   *limit.Held
}

// savepoint is the name of the savepoint around each statement of a QuerySet. Statements of users name none.
const savepoint = "glasshouse"

// checkedQuery is a query that may run, with its parameters.
type checkedQuery struct {
	statement *check.Statement
	bound     *boundParameters
	copy      sandbox.RowSink // also gets the rows; nil: nobody does
}

// textRows are the rows of a query as PostgreSQL's texts; nil stands for NULL.
type textRows struct {
	sandbox.QuerySummary
	Columns []sandbox.Column
	Rows    [][][]byte
}

// checkQuery checks a query as Query does. The error is a *sandbox.Refusal if it may not run.
func (r *Reader) checkQuery(
	ctx context.Context, sql string, params map[string]any, user string,
) (*checkedQuery, error) {
	stmt, err := r.checkStatement(ctx, parse.Request{SQL: sql, Names: slices.Collect(maps.Keys(params))}, user)
	if err != nil {
		return nil, err
	}
	if stmt.Refusal != nil {
		no := *stmt.Refusal
		return nil, &no
	}
	bound, err := bindParameters(stmt, params)
	return &checkedQuery{statement: stmt, bound: bound}, err
}

// runSet calls use with a QuerySet, which is valid until use returns. use checks its queries before, because a check
// may need a connection, too.
func (r *Reader) runSet(ctx context.Context, l sandbox.QueryLimits, use func(*QuerySet) error) error {
	if err := r.ensureAudited(ctx); err != nil {
		return err
	}
	r.applyCeilings(&l)
	release, err := r.acquire(ctx, l)
	if err != nil {
		return err
	}
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		release()
		return r.unavailable(err)
	}
	held := r.config.Results.Open(l.User)
	defer held.Close()
	s := &QuerySet{reader: r, pg: conn.Conn().PgConn(), limits: l, held: held}
	endStatement := r.beginStatement(r.pool, s.pg.PID(), l, release)
	defer func() {
		s.end()
		isClosed := s.pg.IsClosed()
		conn.Release()
		endStatement(isClosed)
	}()
	// The counts of several statements are compared with the time of one, and parallel workers are for all users.
	_, err = s.pg.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "+
		"SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL jit = off").ReadAll()
	if err != nil {
		if ctx.Err() != nil {
			return errCancelledWaiting()
		}
		return r.unavailable(err)
	}
	return use(s)
}

// end ends the transaction, and closes the connection unless it is clean.
func (s *QuerySet) end() {
	if s.pg.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), cancelTimeout)
	defer cancel()
	_, err := s.pg.Exec(ctx, "ROLLBACK").ReadAll()
	if err == nil {
		_, err = s.pg.Exec(ctx, "DISCARD ALL").ReadAll()
	}
	t := transaction{pg: s.pg}
	if err != nil || !t.isClean() {
		t.close()
	}
}

// query runs a query and returns its rows, if keepsRows is set, or only their number. The error is that of
// Reader.Query.
func (s *QuerySet) query(
	ctx context.Context, q *checkedQuery, timeout time.Duration, maxRows int, keepsRows bool,
) (out textRows, err error) {
	var kept [][][]byte
	out, err = s.scan(ctx, q, timeout, maxRows, func(row [][]byte) {
		if keepsRows {
			kept = append(kept, cloneRow(row))
		}
	})
	out.Rows = kept
	return out, err
}

func cloneRow(row [][]byte) [][]byte {
	kept := make([][]byte, len(row))
	for i, text := range row {
		kept[i] = slices.Clone(text)
	}
	return kept
}

// scan runs a query and passes its rows, which are valid until take returns. The error is that of Reader.Query.
func (s *QuerySet) scan(
	ctx context.Context, q *checkedQuery, timeout time.Duration, maxRows int, take func(row [][]byte),
) (out textRows, err error) {
	if s.pg.IsClosed() {
		return out, errSetEnded()
	}
	l := s.limits
	l.Timeout, l.MaxRows = min(timeout, l.Timeout), min(maxRows, l.MaxRows)
	t := transaction{
		statement: q.statement, limits: l, checksTrees: s.reader.config.ServerCheck, held: s.held, pg: s.pg, set: s,
		summary: summaryOf(q.statement), batcher: rowBatcher{sink: q.copy, held: s.held},
	}
	t.raw = func(row [][]byte) error {
		take(row)
		if q.copy == nil {
			return nil
		}
		return t.batcher.add(row)
	}
	if err = t.runWithTypes(ctx, q.bound); err == nil && q.copy != nil {
		err = t.batcher.finish()
	}
	out.QuerySummary, out.Columns = t.summary, t.batcher.rows.Columns
	if err != nil {
		return out, s.reader.translateError(ctx, err, t.statement, l)
	}
	return out, nil
}

func errSetEnded() error {
	return &sandbox.Refusal{
		Reason: "failed", Message: "an earlier statement has closed the connection to the database", Failed: true,
	}
}

// isEnded reports whether no further statement can run.
func (s *QuerySet) isEnded() bool { return s.pg.IsClosed() }

var errNoCounts = errors.New("the server has not returned one row of counts")
