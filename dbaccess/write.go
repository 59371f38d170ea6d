package dbaccess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
)

// A write is judged as a query is, but for its own kind of statement, and planned
// by a login of its own, which writes. Nothing runs it but Apply.

// writingStatements may be captured; all else that has an effect is refused.
var writingStatements = wordSet("InsertStmt UpdateStmt DeleteStmt MergeStmt")

// writtenNodes are those that only they have.
var writeOnlyNodes = wordSet("InsertStmt UpdateStmt DeleteStmt MergeStmt MergeWhenClause OnConflictClause InferClause MultiAssignRef SetToDefault IndexElem")

func openWriter(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("writing login: %w", err)
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	for key, value := range pinnedSettings {
		config.ConnConfig.RuntimeParams[key] = value
	}
	config.ConnConfig.RuntimeParams["application_name"] = "glasshouse-writer"
	config.MaxConns = 4
	return pgxpool.NewWithConfig(ctx, config)
}

// checkWrite plans a statement that would write; a *sandbox.Refusal where it may
// not, or is none.
func (r *Reader) checkWrite(ctx context.Context, sql string, params map[string]any) (*checkedStatement, *boundParameters, error) {
	stmt, err := r.checkStatement(ctx, parse.Request{SQL: sql, Names: keysOf(params)}, true)
	if err != nil {
		return nil, nil, err
	}
	if stmt.refusal != nil {
		no := *stmt.refusal
		return nil, nil, &no
	}
	bound, err := bindParameters(stmt.parameterNames, params)
	return stmt, bound, err
}

// Capture judges a statement that would write, and plans it without running it.
// The plan is nil where there is no writing login.
func (r *Reader) Capture(ctx context.Context, sql string, params map[string]any) (out sandbox.WritePlan, err error) {
	stmt, bound, err := r.checkWrite(ctx, sql, params)
	if err != nil {
		return out, err
	}
	out.Fingerprint = stmt.fingerprint
	if r.writer == nil {
		return out, nil
	}
	err = r.runWithWriter(ctx, stmt, bound, pgx.ReadOnly, "EXPLAIN (FORMAT JSON) ", func(res [][][]byte, _ int64) error {
		var plans []struct {
			Plan struct {
				Rows  int64             `json:"Plan Rows"`
				Plans []json.RawMessage `json:"Plans"`
			}
		}
		if len(res) == 0 || json.Unmarshal(res[0][0], &plans) != nil || len(plans) == 0 {
			return errors.New("the server's plan can't be read")
		}
		out.Plan = json.RawMessage(res[0][0])
		out.Rows = plans[0].Plan.Rows
		// A ModifyTable without RETURNING gives no rows itself: its input's are those it changes.
		var input struct {
			Rows int64 `json:"Plan Rows"`
		}
		if len(plans[0].Plan.Plans) > 0 && json.Unmarshal(plans[0].Plan.Plans[0], &input) == nil {
			out.Rows = max(out.Rows, input.Rows)
		}
		return nil
	})
	return out, err
}

// Apply runs a captured statement by the writing login, in one transaction, after it
// was judged again. It returns how many rows it changed.
func (r *Reader) Apply(ctx context.Context, sql string, params map[string]any) (rows int64, err error) {
	if r.writer == nil {
		return 0, &sandbox.Error{Fault: sandbox.FaultForbidden, Detail: "the operator has configured no writing login (--writer-url), so nothing can be applied"}
	}
	stmt, bound, err := r.checkWrite(ctx, sql, params)
	if err != nil {
		return 0, err
	}
	return rows, r.runWithWriter(ctx, stmt, bound, pgx.ReadWrite, "", func(_ [][][]byte, changed int64) error {
		rows = changed
		return nil
	})
}

// runWithWriter runs prefix and the statement in one transaction of the writing login,
// which is committed where it may write. The connection is not used again.
func (r *Reader) runWithWriter(ctx context.Context, stmt *checkedStatement, bound *boundParameters, mode pgx.TxAccessMode, prefix string, take func(rows [][][]byte, changed int64) error) error {
	limits := r.config.Limits
	ctx, cancel := context.WithTimeout(ctx, limits.Timeout+serverTimeoutMargin)
	defer cancel()
	pooled, err := r.writer.Acquire(ctx)
	if err != nil {
		return unavailable(err)
	}
	conn := pooled.Hijack()
	defer func() {
		brief, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer done()
		_ = conn.Close(brief)
	}()
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: mode}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL search_path = "+stmt.searchPath); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = "+strconv.FormatInt(limits.Timeout.Milliseconds(), 10)); err != nil {
			return err
		}
		result := conn.PgConn().ExecParams(ctx, prefix+stmt.sql, bound.texts, bound.oids, nil, nil).Read()
		if result.Err != nil {
			return result.Err
		}
		return take(result.Rows, result.CommandTag.RowsAffected())
	})
	if err != nil {
		shifted := *stmt
		shifted.sql = prefix + stmt.sql
		shifted.toSQL = append([]parse.Shift{{At: 0, Delta: len(prefix)}}, shiftAll(stmt.toSQL, len(prefix))...)
		return translateError(ctx, err, &shifted, limits)
	}
	return nil
}

// shiftAll moves what maps positions by as many bytes as stand before the text.
func shiftAll(all []parse.Shift, by int) []parse.Shift {
	out := make([]parse.Shift, len(all))
	for i, s := range all {
		out[i] = parse.Shift{At: s.At + by, Delta: s.Delta + by}
	}
	return out
}

func keysOf(params map[string]any) []string {
	out := make([]string, 0, len(params))
	for name := range params {
		out = append(out, name)
	}
	return out
}
