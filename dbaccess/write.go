package dbaccess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"glasshouse/dbaccess/check"
	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
)

// A write is checked like a query, except for its kind of statement, and planned with a login of its
// own. Only Apply runs it.

func openWriter(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := parsePool(url)
	if err != nil {
		return nil, fmt.Errorf("writing login: %w", err)
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	maps.Copy(config.ConnConfig.RuntimeParams, pinnedSettings)
	config.ConnConfig.RuntimeParams["application_name"] = "glasshouse-writer"
	config.MaxConns = 4
	return pgxpool.NewWithConfig(ctx, config)
}

// checkWrite checks a statement that writes and binds its parameters. The error is a
// *sandbox.Refusal if the statement is not allowed or does not write.
func (r *Reader) checkWrite(
	ctx context.Context, sql string, params map[string]any,
) (*check.Statement, *boundParameters, error) {
	if err := r.ensureAudited(ctx); err != nil {
		return nil, nil, err
	}
	stmt, err := r.checker.Statement(ctx, parse.Request{SQL: sql, Names: slices.Collect(maps.Keys(params))}, true)
	if err != nil {
		return nil, nil, err
	}
	if stmt.Refusal != nil {
		no := *stmt.Refusal
		return nil, nil, &no
	}
	bound, err := bindParameters(stmt, params)
	return stmt, bound, err
}

// Capture checks a statement that writes and plans it without running it, which enters the limits of concurrency of
// the user and the sandbox of l. The plan is nil without a writing login.
func (r *Reader) Capture(
	ctx context.Context, sql string, params map[string]any, l sandbox.QueryLimits,
) (out sandbox.WritePlan, err error) {
	stmt, bound, err := r.checkWrite(ctx, sql, params)
	if err != nil {
		return out, err
	}
	out.Fingerprint, out.Tables = stmt.Fingerprint, stmt.Tables
	// A statement without a count may have parts that the parser cannot split; then nothing is said of its condition.
	if derived, err := r.checker.Derive(ctx, parse.Request{
		SQL: sql, Names: slices.Collect(maps.Keys(params)), Derive: parse.Count}); err == nil {
		out.IsWhole = derived.Write.IsWhole
	}
	if r.writer == nil {
		return out, nil
	}
	err = r.runWithWriter(
		ctx,
		stmt,
		bound,
		l,
		pgx.ReadOnly,
		"EXPLAIN (FORMAT JSON) ",
		func(res [][][]byte, _ int64) error {
			var plans []struct {
				Plan struct {
					Rows  int64             `json:"Plan Rows"`
					Plans []json.RawMessage `json:"Plans"`
				}
			}
			if len(res) == 0 || json.Unmarshal(res[0][0], &plans) != nil || len(plans) == 0 {
				return errors.New("the server's query plan cannot be read")
			}
			out.Plan = json.RawMessage(res[0][0])
			out.Rows = plans[0].Plan.Rows
			// Without RETURNING the ModifyTable node itself has no rows; its input has those that change.
			var input struct {
				Rows int64 `json:"Plan Rows"`
			}
			if len(plans[0].Plan.Plans) > 0 && json.Unmarshal(plans[0].Plan.Plans[0], &input) == nil {
				out.Rows = max(out.Rows, input.Rows)
			}
			return nil
		},
	)
	return out, err
}

// SampleQueries returns a query that reads at most ten rows which a captured statement would affect, and a query for
// the number of all of them. They are queries like those of users: Query checks them. The error is a *sandbox.Refusal
// if the statement has no sample.
func (r *Reader) SampleQueries(
	ctx context.Context, sql string, params map[string]any,
) (rows, count sandbox.BoundQuery, err error) {
	if rows, err = r.derive(ctx, sql, params, parse.Sample); err == nil {
		count, err = r.derive(ctx, sql, params, parse.Count)
	}
	return rows, count, err
}

func (r *Reader) derive(
	ctx context.Context, sql string, params map[string]any, d parse.Derivation,
) (out sandbox.BoundQuery, err error) {
	q, err := r.checker.Derive(
		ctx, parse.Request{SQL: sql, Names: slices.Collect(maps.Keys(params)), Derive: d})
	out = sandbox.BoundQuery{SQL: q.Derived, Parameters: map[string]any{}}
	for _, name := range q.Names {
		out.Parameters[name] = params[name]
	}
	return out, err
}

// Apply checks a captured statement again and runs it with the writing login in one transaction. It returns the number
// of changed rows. sandbox.ErrOutcomeUnknown is in the chain of the error if the server did not answer COMMIT. After
// any other error the statement has changed nothing.
func (r *Reader) Apply(ctx context.Context, sql string, params map[string]any) (rows int64, err error) {
	if r.writer == nil {
		return 0, errNoWriter()
	}
	stmt, bound, err := r.checkWrite(ctx, sql, params)
	if err != nil {
		return 0, err
	}
	take := func(_ [][][]byte, changed int64) error {
		rows = changed
		return nil
	}
	return rows, r.runWithWriter(ctx, stmt, bound, sandbox.QueryLimits{}, pgx.ReadWrite, "", take)
}

func errNoWriter() error {
	return sandbox.Errorf(sandbox.FaultForbidden,
		"the service has no writing login: the operator must set --writer-url before a write can run")
}

// runWithWriter runs prefix and the statement in one transaction of the writing login, and commits in mode ReadWrite.
func (r *Reader) runWithWriter(
	ctx context.Context, stmt *check.Statement, bound *boundParameters, l sandbox.QueryLimits, mode pgx.TxAccessMode,
	prefix string, take func(rows [][][]byte, changed int64) error,
) error {
	limits := r.config.Limits
	err := r.withWriter(ctx, stmt, l, limits.Timeout, pgx.TxOptions{AccessMode: mode},
		func(ctx context.Context, tx pgx.Tx) error {
			result := tx.Conn().PgConn().ExecParams(ctx, prefix+stmt.SQL, bound.texts, bound.oids, nil, nil).Read()
			if result.Err != nil {
				return result.Err
			}
			if err := take(result.Rows, result.CommandTag.RowsAffected()); err != nil || mode == pgx.ReadOnly {
				return err
			}
			return commit(ctx, tx)
		})
	if err != nil && !errors.Is(err, sandbox.ErrOutcomeUnknown) {
		err = r.translateError(ctx, err, stmt.WithPrefix(prefix), limits)
	}
	return err
}

// withWriter runs f in a transaction of the writing login, with the search path of the statement and a timeout for each
// statement. Then it closes the connection, which rolls back unless f has committed.
func (r *Reader) withWriter(
	ctx context.Context, stmt *check.Statement, l sandbox.QueryLimits, timeout time.Duration, options pgx.TxOptions,
	f func(context.Context, pgx.Tx) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, timeout+serverTimeoutMargin)
	defer cancel()
	release, err := r.acquire(ctx, l)
	if err != nil {
		return err
	}
	pooled, err := r.writer.Acquire(ctx)
	if err != nil {
		release()
		return r.unavailable(err)
	}
	conn := pooled.Hijack()
	endStatement := r.beginStatement(r.writer, conn.PgConn().PID(), l, release)
	defer func() {
		brief, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer done()
		_ = conn.Close(brief)
		endStatement(true)
	}()
	tx, err := conn.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	settings := "SET LOCAL search_path = " + stmt.SearchPath + "; SET LOCAL statement_timeout = " +
		strconv.FormatInt(timeout.Milliseconds(), 10)
	if _, err := tx.Exec(ctx, settings, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	return f(ctx, tx)
}

// commitTimeout bounds the wait for the server's answer to COMMIT, which runs deferred triggers and may wait for a
// standby.
const commitTimeout = 30 * time.Second

// commit commits a transaction. sandbox.ErrOutcomeUnknown is in the chain of the error unless the server has said that
// it rolled back, or COMMIT was not sent.
func commit(ctx context.Context, tx pgx.Tx) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	err := tx.Commit(ctx)
	pg, ok := errors.AsType[*pgconn.PgError](err)
	isRefused := ok && pg.SeverityUnlocalized == "ERROR" // FATAL can also end the wait after a commit
	if err == nil || isRefused || errors.Is(err, pgx.ErrTxCommitRollback) || pgconn.SafeToRetry(err) {
		return err
	}
	return &sandbox.Error{
		Fault:  sandbox.FaultUnavailable,
		Detail: sandbox.ErrOutcomeUnknown.Error(),
		Cause:  errors.Join(sandbox.ErrOutcomeUnknown, err),
	}
}
