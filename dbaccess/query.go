package dbaccess

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"glasshouse/dbaccess/check"
	"glasshouse/dbaccess/parse"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// Query checks and runs one read-only statement. It passes rows to sink while the server still
// sends them. params are JSON values, with numbers as json.Number. The error is a *sandbox.Refusal
// if the statement is refused or fails, even after some rows, and FaultUnavailable if the server
// cannot be reached.
func (r *Reader) Query(
	ctx context.Context, sql string, params map[string]any, l sandbox.QueryLimits, sink sandbox.RowSink,
) (sandbox.QuerySummary, error) {
	if err := r.ensureAudited(ctx); err != nil {
		return sandbox.QuerySummary{}, err
	}
	stmt, err := r.checkStatement(ctx, parse.Request{SQL: sql, Names: slices.Collect(maps.Keys(params))}, l.User)
	if err != nil {
		return sandbox.QuerySummary{}, err
	}
	none := sandbox.QuerySummary{Fingerprint: stmt.Fingerprint, Tables: stmt.Tables}
	if stmt.Refusal != nil {
		no := *stmt.Refusal
		return none, &no
	}
	bound, err := bindParameters(stmt, params)
	if err != nil {
		return none, err
	}
	r.applyCeilings(&l)
	held := r.config.Results.Open(l.User)
	defer held.Close()
	t := transaction{
		statement: stmt, limits: l, checksTrees: r.config.ServerCheck, held: held,
		summary: summaryOf(stmt),
		batcher: rowBatcher{sink: sink, held: held},
	}
	if err := r.runOnConnection(ctx, &t, bound); err != nil {
		return none, err
	}
	// The last batch, which is all of a small result, needs no connection.
	if err := t.batcher.finish(); err != nil {
		return none, r.translateError(ctx, err, stmt, l)
	}
	return t.summary, nil
}

// summaryOf returns what is known of a statement before it runs.
func summaryOf(stmt *check.Statement) sandbox.QuerySummary {
	return sandbox.QuerySummary{
		Fingerprint: stmt.Fingerprint, Ran: stmt.SQL, Schema: stmt.Schema, ReadsClock: stmt.ReadsClock,
		Tables: stmt.Tables,
	}
}

// checkStatement checks a statement of a user in the user's turn.
func (r *Reader) checkStatement(ctx context.Context, q parse.Request, user string) (*check.Statement, error) {
	release, err := r.config.Parsers.turns.Acquire(ctx, user, limit.Forever)
	if err != nil {
		return nil, errCancelledWaiting()
	}
	defer release()
	if r.config.Checked != nil {
		began := time.Now()
		defer func() { r.config.Checked(time.Since(began)) }()
	}
	return r.checker.Statement(ctx, q, false)
}

func errCancelledWaiting() error {
	return &sandbox.Refusal{
		Reason:  "cancelled",
		Message: "the statement was cancelled while it waited for a free connection",
		Failed:  true,
	}
}

// runOnConnection waits for a slot of the sandbox and the user and runs a transaction on a pooled
// connection.
func (r *Reader) runOnConnection(ctx context.Context, t *transaction, bound *boundParameters) error {
	release, err := r.acquire(ctx, t.limits)
	if err != nil {
		return err
	}
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		release()
		return r.unavailable(err)
	}
	t.pg = conn.Conn().PgConn()
	endStatement := r.beginStatement(r.pool, t.pg.PID(), t.limits, release)
	defer func() {
		isClosed := t.pg.IsClosed()
		conn.Release() // the pool discards a closed connection
		endStatement(isClosed)
	}()
	if err := t.runWithTypes(ctx, bound); err != nil {
		return r.translateError(ctx, err, t.statement, t.limits)
	}
	return nil
}

// beginStatement notes that a statement begins in a process of the server, on a connection of a pool. The caller calls
// end when it is done with the statement and has given back the connection. end calls release, at once or, if the
// connection was closed, when the server has ended the statement.
func (r *Reader) beginStatement(
	pool *pgxpool.Pool, pid uint32, l sandbox.QueryLimits, release func(),
) (end func(isClosed bool)) {
	process := serverProcess{pool: pool, pid: pid, began: time.Now(), limits: l}
	work := r.measureWork(pid)
	return func(isClosed bool) {
		r.config.Share.Charge(l.User, work())
		if isClosed {
			go r.overdue.await(process, release)
		} else {
			release()
		}
	}
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
	serverTimeoutMargin = 2 * time.Second // wait beyond the server's own statement timeout
	maxErrorTextBytes   = 1 << 20         // allowance of a protocol message for an error text, beyond the bytes of a row
	cancelTimeout       = time.Second     // for a cancel request to reach the server
)

// transaction runs one checked statement on one connection, in one round trip, or in two if the server analyses the
// statement before it runs.
type transaction struct {
	pg        *pgconn.PgConn
	statement *check.Statement
	limits    sandbox.QueryLimits
	summary   sandbox.QuerySummary
	batcher   rowBatcher

	checksTrees bool // the server's trees of the statement are judged
	hasBodies   bool // the statement calls a function in SQL or a procedural language (check.Catalog.CheckTree)

	statementError error // the server's answer to the statement
	overByteLimit  bool  // the rows exceed limits.MaxBytes

	held *limit.Held // memory of the user

	set *QuerySet                // whose transaction it runs in; nil: it has its own
	raw func(row [][]byte) error // takes the rows in place of batcher; nil: batcher does
}

// maxTypings bounds how often a statement is sent again with another type of a parameter.
const maxTypings = 30

// runWithTypes runs the statement. Where the server cannot tell the type of a text or of NULL, it sends the statement
// again with the type that the value has. The connection is clean or closed afterwards.
func (t *transaction) runWithTypes(ctx context.Context, bound *boundParameters) error {
	for range maxTypings {
		err := t.run(ctx, bound)
		statement, typed := typeParameter(t.statement, bound, err)
		if typed == nil || t.pg.IsClosed() || ctx.Err() != nil {
			return err
		}
		t.statement, bound, t.statementError = statement, typed, nil
	}
	return t.run(ctx, bound)
}

// run leaves the connection clean or closed.
func (t *transaction) run(ctx context.Context, bound *boundParameters) error {
	ctx, cancel := context.WithTimeout(ctx, t.limits.Timeout+serverTimeoutMargin)
	defer cancel()
	gone := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(gone)
		t.cancel()
		_ = t.pg.Conn().Close() // a server blocked on a full socket ignores a cancel request
	})
	err := t.roundTrip(bound)
	if !stop() {
		<-gone // a pending cancel request could hit the next statement
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

// cancel asks the server, over a connection of its own, to end the current statement.
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

// isClean reports whether the connection can be reused: no transaction is open, DISCARD ALL was
// answered, and the reported settings are the pinned ones.
func (t *transaction) isClean() bool {
	for _, key := range []string{"standard_conforming_strings", "client_encoding", "DateStyle", "IntervalStyle", "TimeZone"} {
		if got := t.pg.ParameterStatus(key); got != "" && got != pinnedSettings[key] {
			return false
		}
	}
	if t.set != nil {
		return t.pg.TxStatus() == 'T'
	}
	return t.pg.TxStatus() == 'I'
}

// roundTrip sends all messages together and reads the answers. The statement is in one implicit
// group with BEGIN: if the server refuses BEGIN, it skips the statement. The returned error belongs
// to the connection; the statement's error is in t.statementError.
func (t *transaction) roundTrip(bound *boundParameters) error {
	fe := t.pg.Frontend()
	maxBody := int(min(t.limits.MaxBytes+maxErrorTextBytes, math.MaxInt32))
	fe.SetMaxBodyLen(maxBody)
	defer holdMessages(t.pg, t.held, maxBody)()
	begin, end := "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", []string{"ROLLBACK", "DISCARD ALL"}
	if t.set != nil {
		begin, end = "SAVEPOINT "+savepoint, []string{"ROLLBACK TO SAVEPOINT " + savepoint, "RELEASE SAVEPOINT " +
			savepoint}
	}
	settings := []string{
		begin,
		"SET LOCAL search_path = " + t.statement.SearchPath,
		"SET LOCAL statement_timeout = " + strconv.FormatInt(t.limits.Timeout.Milliseconds(), 10),
	}
	if t.checksTrees {
		settings = append(settings, "SET LOCAL debug_print_rewritten = on")
	}
	for _, sql := range settings {
		fe.SendParse(&pgproto3.Parse{Query: sql})
		fe.SendBind(&pgproto3.Bind{})
		fe.SendExecute(&pgproto3.Execute{})
	}
	if at := t.statement.Explained; t.checksTrees && at > 0 { // the tree of EXPLAIN does not have that of the query
		spaces := strings.Repeat(" ", utf8.RuneCountInString(t.statement.SQL[:at])) // positions stay what they are
		fe.SendParse(&pgproto3.Parse{Query: spaces + t.statement.SQL[at:], ParameterOIDs: bound.oids})
	}
	fe.SendParse(&pgproto3.Parse{Query: t.statement.SQL, ParameterOIDs: bound.oids})
	if t.checksTrees {
		if err := t.checkTrees(len(settings)); err != nil {
			return err
		}
	}
	if t.statementError == nil {
		fe.SendBind(&pgproto3.Bind{Parameters: bound.texts})
		fe.SendDescribe(&pgproto3.Describe{ObjectType: 'P'})
		fe.SendExecute(&pgproto3.Execute{MaxRows: uint32(min(t.limits.MaxRows+1, math.MaxInt32))})
	}
	fe.SendSync(&pgproto3.Sync{})
	for _, sql := range end {
		fe.SendQuery(&pgproto3.Query{String: sql})
	}
	if err := fe.Flush(); err != nil {
		return err
	}
	for ready := 0; ready < 1+len(end); {
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
				return err // not an error of the statement
			}
		case *pgproto3.NoticeResponse:
			// The server analyses the prepared statement again if the catalog has changed.
			if _, no := t.judge(m); no != nil && !t.hasBodies {
				return no
			}
		case *pgproto3.ReadyForQuery:
			ready++
		case *pgproto3.CopyInResponse, *pgproto3.CopyOutResponse, *pgproto3.CopyBothResponse:
			return fmt.Errorf("the server started a COPY, which is not allowed")
		}
	}
	return nil
}

// checkTrees waits for the server's tree of the statement, and sets t.statementError if the tree calls a function that
// is not allowed. settings is the number of statements that were sent before.
func (t *transaction) checkTrees(settings int) error {
	fe := t.pg.Frontend()
	fe.Send(&pgproto3.Flush{})
	if err := fe.Flush(); err != nil {
		return err
	}
	parses := settings + 1
	if t.statement.Explained > 0 {
		parses++
	}
	trees := 0
	for parsed := 0; parsed < parses; {
		message, err := t.pg.ReceiveMessage(context.Background())
		if large, ok := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); ok {
			return sandbox.Refusef("too-large", "PostgreSQL's analysis of the statement has %d bytes, more than a "+
				"result may have: write it shorter, or pass data as parameters", large.ActualBodyLen)
		} else if err != nil {
			return err
		}
		switch m := message.(type) {
		case *pgproto3.ParseComplete:
			parsed++
		case *pgproto3.NoticeResponse:
			isTree, no := t.judge(m)
			if isTree {
				trees++
			}
			if no != nil && t.statementError == nil {
				t.statementError = no
			}
		case *pgproto3.ErrorResponse:
			t.statementError = pgconn.ErrorResponseToPgError(m)
			return nil
		}
	}
	if trees < parses-settings {
		return sandbox.Refusef("failed", "the server has not sent its analysis of the statement, which --server-check "+
			"needs: the operator connects to PostgreSQL itself, not to a pooler that keeps its messages")
	}
	return nil
}

// judge judges a message of the server if it is a tree.
func (t *transaction) judge(m *pgproto3.NoticeResponse) (isTree bool, no error) {
	if !t.checksTrees || !strings.HasPrefix(m.Message, "rewritten parse tree") {
		return false, nil
	}
	hasBodies, refusal := t.statement.Catalog.CheckTree(m.Detail)
	if t.hasBodies = t.hasBodies || hasBodies; refusal != nil {
		return true, refusal
	}
	if t.statement.ComputesWithMask(m.Detail) {
		t.summary.ComputedWithMask = t.statement.MaskedNames
	}
	return true, nil
}

// checkReadError returns nil if err means that a single row exceeds the byte limit; the result is
// truncated then.
func (t *transaction) checkReadError(err error) error {
	if _, ok := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); ok {
		t.summary.Truncated, t.overByteLimit = true, true
		return nil
	}
	return err
}

// describe takes the output columns. A masked column has the type of check.MaskValue. No column has the origin of a
// masked one: the text that runs reads none.
func (t *transaction) describe(m *pgproto3.RowDescription) error {
	columns, how := make([]sandbox.Column, len(m.Fields)), make([]columnReader, len(m.Fields))
	for i, f := range m.Fields {
		if t.statement.Catalog.MaskedColumns[check.Origin{Relation: f.TableOID, Column: f.TableAttributeNumber}] {
			return sandbox.Refusef("masked-column", "the column %s is masked, and the check of the text did not find "+
				"it: tell the operator", f.Name)
		}
		columns[i], how[i] = describeColumn(t.statement.Catalog, string(f.Name), f.DataTypeOID)
		if f.DataTypeOID == check.MaskType {
			columns[i].Kind, columns[i].Masked = "string", true
		}
	}
	t.batcher.describe(columns, how)
	return nil
}

// addRow adds a row if it is within the limits. The server sends one row more than allowed, which
// shows that there are more.
func (t *transaction) addRow(row [][]byte) error {
	size := int64(0)
	for _, v := range row {
		size += int64(len(v))
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
	if t.raw != nil {
		return t.raw(row)
	}
	return t.batcher.add(row)
}
