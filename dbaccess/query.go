package dbaccess

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
)

// Query checks and runs one read-only statement, and hands over its rows while the
// server still sends: a take that is slow slows the server, and what is held here is
// bounded. params are JSON values, numbers as json.Number. The error is a
// *sandbox.Refusal where the statement was refused or failed, be it after some rows,
// and FaultUnavailable where the server is away.
func (r *Reader) Query(ctx context.Context, sql string, params map[string]any, l sandbox.QueryLimits, sink sandbox.RowSink) (sandbox.QuerySummary, error) {
	stmt, err := r.checkStatement(ctx, parse.Request{SQL: sql, Names: keysOf(params)}, false)
	if err != nil {
		return sandbox.QuerySummary{}, err
	}
	none := sandbox.QuerySummary{Fingerprint: stmt.fingerprint}
	if stmt.refusal != nil {
		no := *stmt.refusal
		return none, &no
	}
	bound, err := bindParameters(stmt.parameterNames, params)
	if err != nil {
		return none, err
	}
	r.applyCeilings(&l)
	t := transaction{statement: stmt, limits: l, summary: none, batcher: rowBatcher{sink: sink}}
	if err := r.runOnConnection(ctx, &t, bound); err != nil {
		return none, err
	}
	// The last rows, which are all of a small result, need no connection any more.
	if err := t.batcher.finish(); err != nil {
		return none, translateError(ctx, err, stmt, l)
	}
	return t.summary, nil
}

// runOnConnection waits for a slot of the sandbox and the user, then runs a transaction on a connection of the pool.
func (r *Reader) runOnConnection(ctx context.Context, t *transaction, bound *boundParameters) error {
	release, err := r.acquire(ctx, t.limits)
	if err != nil {
		return &sandbox.Refusal{Reason: "cancelled", Message: "the statement was cancelled while it waited for its turn", Failed: true}
	}
	defer release()
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return unavailable(err)
	}
	defer conn.Release() // one that was closed is not used again
	t.pg = conn.Conn().PgConn()
	if err := t.run(ctx, bound); err != nil {
		return translateError(ctx, err, t.statement, t.limits)
	}
	return nil
}

func (r *Reader) applyCeilings(l *sandbox.QueryLimits) {
	if l.MaxRows <= 0 || l.MaxRows > r.config.Limits.MaxRows {
		l.MaxRows = r.config.Limits.MaxRows
	}
	if l.MaxBytes <= 0 || l.MaxBytes > r.config.Limits.MaxBytes {
		l.MaxBytes = r.config.Limits.MaxBytes
	}
	if l.Timeout <= 0 || l.Timeout > r.config.Limits.Timeout {
		l.Timeout = r.config.Limits.Timeout
	}
}

const (
	serverTimeoutMargin = 2 * time.Second // of the server's own timeout
	maxErrorTextBytes   = 1 << 20         // of a message over the bytes of its row: an error's text
	cancelTimeout       = time.Second     // for a cancel to reach the server
)

// transaction runs one plan on one connection, in one round trip.
type transaction struct {
	pg        *pgconn.PgConn
	statement *checkedStatement
	limits    sandbox.QueryLimits
	summary   sandbox.QuerySummary
	batcher   rowBatcher

	statementError error // the server's
	overByteLimit  bool  // rows are over the budget of bytes
}

// run leaves the connection clean, or closed.
func (t *transaction) run(ctx context.Context, bound *boundParameters) error {
	ctx, cancel := context.WithTimeout(ctx, t.limits.Timeout+serverTimeoutMargin)
	defer cancel()
	gone := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(gone)
		t.cancel()
		_ = t.pg.Conn().Close() // a server that waits for a reader hears of no cancel
	})
	err := t.roundTrip(bound)
	if !stop() {
		<-gone // a cancel that is under way could hit the next statement
		err = errors.Join(ctx.Err(), err)
	}
	if err == nil && !t.overByteLimit && t.isClean() {
		return t.statementError
	}
	if !t.pg.IsClosed() || t.overByteLimit {
		t.cancel()
	}
	t.close()
	if t.overByteLimit {
		return nil
	}
	return errors.Join(t.statementError, err)
}

// cancel asks the server, on a connection of its own, to end what it does.
func (t *transaction) cancel() {
	ctx, cancel := context.WithTimeout(context.Background(), cancelTimeout)
	defer cancel()
	_ = t.pg.CancelRequest(ctx)
}

func (t *transaction) close() {
	ctx, cancel := context.WithTimeout(context.Background(), cancelTimeout)
	defer cancel()
	_ = t.pg.Conn().SetDeadline(time.Now().Add(cancelTimeout))
	_ = t.pg.Close(ctx)
}

// isClean says that the connection is as it was: in no transaction, which all have
// come to an end, with DISCARD ALL answered, and with the settings that the server
// reports as they were pinned.
func (t *transaction) isClean() bool {
	for _, key := range []string{"standard_conforming_strings", "client_encoding", "DateStyle", "IntervalStyle", "TimeZone"} {
		if got := t.pg.ParameterStatus(key); got != "" && got != pinnedSettings[key] {
			return false
		}
	}
	return t.pg.TxStatus() == 'I'
}

// roundTrip sends everything at once and reads the answers. The statement is in one
// group with BEGIN: were that refused, the rest of the group is skipped. The
// error is the connection's; the statement's own is in failed.
func (t *transaction) roundTrip(bound *boundParameters) error {
	fe := t.pg.Frontend()
	fe.SetMaxBodyLen(int(min(t.limits.MaxBytes+maxErrorTextBytes, math.MaxInt32)))
	for _, sql := range []string{
		"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
		"SET LOCAL search_path = " + t.statement.searchPath,
		"SET LOCAL statement_timeout = " + strconv.FormatInt(t.limits.Timeout.Milliseconds(), 10),
	} {
		fe.SendParse(&pgproto3.Parse{Query: sql})
		fe.SendBind(&pgproto3.Bind{})
		fe.SendExecute(&pgproto3.Execute{})
	}
	fe.SendParse(&pgproto3.Parse{Query: t.statement.sql, ParameterOIDs: bound.oids})
	fe.SendBind(&pgproto3.Bind{Parameters: bound.texts})
	fe.SendDescribe(&pgproto3.Describe{ObjectType: 'P'})
	fe.SendExecute(&pgproto3.Execute{MaxRows: uint32(min(t.limits.MaxRows+1, math.MaxInt32))})
	fe.SendSync(&pgproto3.Sync{})
	fe.SendQuery(&pgproto3.Query{String: "ROLLBACK"})
	fe.SendQuery(&pgproto3.Query{String: "DISCARD ALL"})
	if err := fe.Flush(); err != nil {
		return err
	}
	for ready := 0; ready < 3; {
		message, err := t.pg.ReceiveMessage(context.Background())
		if err != nil {
			return t.checkReadError(err)
		}
		switch m := message.(type) {
		case *pgproto3.RowDescription:
			if t.statementError = t.describe(m); t.statementError != nil {
				return t.statementError
			}
		case *pgproto3.DataRow:
			if err := t.addRow(m.Values); err != nil || t.overByteLimit {
				return err
			}
		case *pgproto3.ErrorResponse:
			if err := pgconn.ErrorResponseToPgError(m); t.statementError == nil && ready == 0 {
				t.statementError = err
			} else {
				return err // not the statement's
			}
		case *pgproto3.ReadyForQuery:
			ready++
		case *pgproto3.CopyInResponse, *pgproto3.CopyOutResponse, *pgproto3.CopyBothResponse:
			return fmt.Errorf("the server began to copy")
		}
	}
	return nil
}

// checkReadError is what reading came to: one row that is over the budget is a result that
// was cut.
func (t *transaction) checkReadError(err error) error {
	var long *pgproto3.ExceededMaxBodyLenErr
	if errors.As(err, &long) {
		t.summary.Truncated, t.overByteLimit = true, true
		return nil
	}
	return err
}

// describe sees what the statement gives. A masked column is known twice: by the
// trace of the statement, and by where the server says that it comes from.
func (t *transaction) describe(m *pgproto3.RowDescription) error {
	n := len(m.Fields)
	if t.statement.maskedOutputs != nil && len(t.statement.maskedOutputs) != n {
		return refuse("masked-column", "the statement gives %d columns and not %d, as it was judged to, and one of them is masked: name them one by one", n, len(t.statement.maskedOutputs))
	}
	columns, how := make([]sandbox.Column, n), make([]columnReader, n)
	for i, f := range m.Fields {
		columns[i], how[i] = t.statement.catalog.describeColumn(string(f.Name), f.DataTypeOID)
		if t.statement.maskedOutputs != nil && t.statement.maskedOutputs[i] || t.statement.catalog.maskedColumns[origin{f.TableOID, f.TableAttributeNumber}] {
			columns[i].Kind, columns[i].Of, columns[i].Array, columns[i].Masked = "string", "", false, true
			how[i] = columnReader{masked: true}
		}
	}
	t.batcher.describe(columns, how)
	return nil
}

// addRow adds a row, where there is room for it. The server sends one row more than
// it may, to tell that there are more.
func (t *transaction) addRow(row [][]byte) error {
	size := int64(0)
	for i, v := range row {
		if t.batcher.columns[i].masked {
			size += int64(len(maskValue)) // how long it is would tell of it
		} else {
			size += int64(len(v))
		}
	}
	switch {
	case t.summary.Rows >= t.limits.MaxRows:
		t.summary.Truncated = true
		return nil
	case t.summary.Bytes+size > t.limits.MaxBytes:
		t.summary.Truncated, t.overByteLimit = true, true
		return nil
	}
	t.summary.Rows++
	t.summary.Bytes += size
	return t.batcher.add(row)
}

// boundParameters are what a statement's parameters are bound to.
type boundParameters struct {
	texts [][]byte // nil is NULL
	oids  []uint32 // 0 lets the server infer
}

func bindParameters(names []string, params map[string]any) (*boundParameters, error) {
	bound := &boundParameters{}
	for _, name := range names {
		text, oid, err := encodeParameter(name, params[name])
		if err != nil {
			return nil, err
		}
		bound.texts, bound.oids = append(bound.texts, text), append(bound.oids, oid)
	}
	return bound, nil
}
