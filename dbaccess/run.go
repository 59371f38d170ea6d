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
	p, err := r.plan(ctx, parse.Request{SQL: sql, Names: names(params)}, false)
	if err != nil {
		return sandbox.QuerySummary{}, err
	}
	none := sandbox.QuerySummary{Fingerprint: p.fingerprint}
	if p.refusal != nil {
		no := *p.refusal
		return none, &no
	}
	b, err := bind(p.names, params)
	if err != nil {
		return none, err
	}
	r.ceilings(&l)
	t := transaction{plan: p, limits: l, total: none, part: part{take: sink}}
	if err := r.transact(ctx, &t, b); err != nil {
		return none, err
	}
	// The last rows, which are all of a small result, need no connection any more.
	if err := t.part.end(); err != nil {
		return none, failure(ctx, err, p, l)
	}
	return t.total, nil
}

// transact waits for a slot of the sandbox and the user, then runs a transaction on a connection of the pool.
func (r *Reader) transact(ctx context.Context, t *transaction, b *values) error {
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
	if err := t.run(ctx, b); err != nil {
		return failure(ctx, err, t.plan, t.limits)
	}
	return nil
}

func (r *Reader) ceilings(l *sandbox.QueryLimits) {
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
	grace    = 2 * time.Second // of the server's own timeout
	slack    = 1 << 20         // of a message over the bytes of its row: an error's text
	cutShort = time.Second     // for a cancel to reach the server
)

// transaction runs one plan on one connection, in one round trip.
type transaction struct {
	pg     *pgconn.PgConn
	plan   *plan
	limits sandbox.QueryLimits
	total  sandbox.QuerySummary
	part   part

	failed error // the server's
	cut    bool  // rows are over the budget of bytes
}

// run leaves the connection clean, or closed.
func (t *transaction) run(ctx context.Context, b *values) error {
	ctx, cancel := context.WithTimeout(ctx, t.limits.Timeout+grace)
	defer cancel()
	gone := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(gone)
		t.cancel()
		_ = t.pg.Conn().Close() // a server that waits for a reader hears of no cancel
	})
	err := t.trip(b)
	if !stop() {
		<-gone // a cancel that is under way could hit the next statement
		err = errors.Join(ctx.Err(), err)
	}
	if err == nil && !t.cut && t.clean() {
		return t.failed
	}
	if !t.pg.IsClosed() || t.cut {
		t.cancel()
	}
	t.close()
	if t.cut {
		return nil
	}
	return errors.Join(t.failed, err)
}

// cancel asks the server, on a connection of its own, to end what it does.
func (t *transaction) cancel() {
	ctx, cancel := context.WithTimeout(context.Background(), cutShort)
	defer cancel()
	_ = t.pg.CancelRequest(ctx)
}

func (t *transaction) close() {
	ctx, cancel := context.WithTimeout(context.Background(), cutShort)
	defer cancel()
	_ = t.pg.Conn().SetDeadline(time.Now().Add(cutShort))
	_ = t.pg.Close(ctx)
}

// clean says that the connection is as it was: in no transaction, which all have
// come to an end, with DISCARD ALL answered, and with the settings that the server
// reports as they were pinned.
func (t *transaction) clean() bool {
	for _, key := range []string{"standard_conforming_strings", "client_encoding", "DateStyle", "IntervalStyle", "TimeZone"} {
		if got := t.pg.ParameterStatus(key); got != "" && got != pinned[key] {
			return false
		}
	}
	return t.pg.TxStatus() == 'I'
}

// trip sends everything at once and reads the answers. The statement is in one
// group with BEGIN: were that refused, the rest of the group is skipped. The
// error is the connection's; the statement's own is in failed.
func (t *transaction) trip(b *values) error {
	fe := t.pg.Frontend()
	fe.SetMaxBodyLen(int(min(t.limits.MaxBytes+slack, math.MaxInt32)))
	for _, sql := range []string{
		"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
		"SET LOCAL search_path = " + t.plan.path,
		"SET LOCAL statement_timeout = " + strconv.FormatInt(t.limits.Timeout.Milliseconds(), 10),
	} {
		fe.SendParse(&pgproto3.Parse{Query: sql})
		fe.SendBind(&pgproto3.Bind{})
		fe.SendExecute(&pgproto3.Execute{})
	}
	fe.SendParse(&pgproto3.Parse{Query: t.plan.sql, ParameterOIDs: b.oids})
	fe.SendBind(&pgproto3.Bind{Parameters: b.texts})
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
			return t.broken(err)
		}
		switch m := message.(type) {
		case *pgproto3.RowDescription:
			if t.failed = t.columns(m); t.failed != nil {
				return t.failed
			}
		case *pgproto3.DataRow:
			if err := t.row(m.Values); err != nil || t.cut {
				return err
			}
		case *pgproto3.ErrorResponse:
			if err := pgconn.ErrorResponseToPgError(m); t.failed == nil && ready == 0 {
				t.failed = err
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

// broken is what reading came to: one row that is over the budget is a result that
// was cut.
func (t *transaction) broken(err error) error {
	var long *pgproto3.ExceededMaxBodyLenErr
	if errors.As(err, &long) {
		t.total.Truncated, t.cut = true, true
		return nil
	}
	return err
}

// columns sees what the statement gives. A masked column is known twice: by the
// trace of the statement, and by where the server says that it comes from.
func (t *transaction) columns(m *pgproto3.RowDescription) error {
	n := len(m.Fields)
	if t.plan.masked != nil && len(t.plan.masked) != n {
		return refuse("masked-column", "the statement gives %d columns and not %d, as it was judged to, and one of them is masked: name them one by one", n, len(t.plan.masked))
	}
	columns, how := make([]sandbox.Column, n), make([]column, n)
	for i, f := range m.Fields {
		columns[i], how[i] = t.plan.known.column(string(f.Name), f.DataTypeOID)
		if t.plan.masked != nil && t.plan.masked[i] || t.plan.known.masked[origin{f.TableOID, f.TableAttributeNumber}] {
			columns[i].Kind, columns[i].Of, columns[i].Array, columns[i].Masked = "string", "", false, true
			how[i] = column{masked: true}
		}
	}
	t.part.describe(columns, how)
	return nil
}

// row adds a row, where there is room for it. The server sends one row more than
// it may, to tell that there are more.
func (t *transaction) row(row [][]byte) error {
	size := int64(0)
	for i, v := range row {
		if t.part.columns[i].masked {
			size += int64(len(mask)) // how long it is would tell of it
		} else {
			size += int64(len(v))
		}
	}
	switch {
	case t.total.Rows >= t.limits.MaxRows:
		t.total.Truncated = true
		return nil
	case t.total.Bytes+size > t.limits.MaxBytes:
		t.total.Truncated, t.cut = true, true
		return nil
	}
	t.total.Rows++
	t.total.Bytes += size
	return t.part.add(row)
}

// values are what a statement's parameters are bound to.
type values struct {
	texts [][]byte // nil is NULL
	oids  []uint32 // 0 lets the server infer
}

func bind(names []string, params map[string]any) (*values, error) {
	b := &values{}
	for _, name := range names {
		text, oid, err := encode(name, params[name])
		if err != nil {
			return nil, err
		}
		b.texts, b.oids = append(b.texts, text), append(b.oids, oid)
	}
	return b, nil
}
