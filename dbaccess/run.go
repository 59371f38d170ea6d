package dbaccess

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/sandbox"
)

// Query checks and runs one read-only statement. params are JSON values, numbers
// as json.Number. The error is a *sandbox.Refusal where the statement was refused
// or failed, and FaultUnavailable where the server is away.
func (r *Reader) Query(ctx context.Context, sql string, params map[string]any, l sandbox.Limits) (sandbox.Rows, error) {
	var rows sandbox.Rows
	b, err := bind(sql, params)
	if err != nil {
		return rows, err
	}
	known, err := r.known(ctx)
	if err != nil {
		return rows, err
	}
	rows.Fingerprint, err = check(b.sql, known)
	var refusal *sandbox.Refusal
	if errors.As(err, &refusal) {
		if refusal.Position > 0 {
			refusal.Position, refusal.Line = b.locate(refusal.Position)
		}
		return rows, refusal
	}
	if l.MaxRows <= 0 || l.MaxRows > r.config.Limits.MaxRows {
		l.MaxRows = r.config.Limits.MaxRows
	}
	if l.MaxBytes <= 0 || l.MaxBytes > r.config.Limits.MaxBytes {
		l.MaxBytes = r.config.Limits.MaxBytes
	}
	if l.Timeout <= 0 || l.Timeout > r.config.Limits.Timeout {
		l.Timeout = r.config.Limits.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, l.Timeout+5*time.Second)
	defer cancel()
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return rows, unavailable(err)
	}
	defer conn.Release()
	pg := conn.Conn().PgConn()
	err = transact(ctx, pg, b, l, &rows)
	if err == nil && !rows.Truncated && pg.TxStatus() == 'I' {
		return rows, nil
	}
	// Whatever is still going on is cancelled on the server, and the connection is
	// not used again: it is clean by being new.
	if err == nil || pg.TxStatus() != 'I' {
		stop, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer done()
		_ = pg.CancelRequest(stop)
		_ = pg.Close(stop)
	}
	if err == nil {
		return rows, nil
	}
	return sandbox.Rows{Fingerprint: rows.Fingerprint}, r.failure(ctx, err, b, known, l)
}

// transact does it all in one round trip: READ ONLY transaction, timeout,
// statement, ROLLBACK.
func transact(ctx context.Context, pg *pgconn.PgConn, b *bound, l sandbox.Limits, rows *sandbox.Rows) error {
	p := pg.StartPipeline(ctx)
	p.SendQueryParams("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", nil, nil, nil, nil)
	p.SendQueryParams("SET LOCAL statement_timeout = "+strconv.FormatInt(l.Timeout.Milliseconds(), 10), nil, nil, nil, nil)
	p.SendQueryParams(b.sql, b.values, b.oids, nil, nil)
	p.SendQueryParams("ROLLBACK", nil, nil, nil, nil)
	if err := p.Sync(); err != nil {
		return errors.Join(err, p.Close())
	}
	var first error
	for n := 0; ; n++ {
		result, err := p.GetResults()
		if err != nil {
			if first == nil {
				first = err
			}
			if _, isPg := errorOf(err); !isPg {
				return first
			}
			continue
		}
		switch result := result.(type) {
		case *pgconn.ResultReader:
			if n == 2 {
				if read(result, l, rows); rows.Truncated {
					return nil // the rest is cut off with the connection
				}
			}
			if _, err := result.Close(); err != nil && first == nil {
				first = err
			}
		case *pgconn.PipelineSync:
			closeErr := p.Close()
			if first == nil {
				first = closeErr
			}
			if pg.TxStatus() == 'E' || pg.TxStatus() == 'T' {
				_ = pg.Exec(ctx, "ROLLBACK").Close() // a constant; user SQL never goes this way
			}
			return first
		case nil:
			return first
		}
	}
}

// read takes rows until there are none or a cap is reached.
func read(result *pgconn.ResultReader, l sandbox.Limits, rows *sandbox.Rows) {
	fields := result.FieldDescriptions()
	decoders := make([]decoder, len(fields))
	rows.Columns, rows.Data = make([]sandbox.Column, len(fields)), make([][]any, len(fields))
	for i, f := range fields {
		rows.Columns[i], decoders[i] = columnOf(f)
		rows.Data[i] = []any{}
	}
	for result.NextRow() {
		values := result.Values()
		size := int64(0)
		for _, v := range values {
			size += int64(len(v))
		}
		if rows.Count >= l.MaxRows || rows.Bytes+size > l.MaxBytes {
			rows.Truncated = true
			return
		}
		for i, v := range values {
			if v == nil {
				rows.Data[i] = append(rows.Data[i], nil)
			} else {
				rows.Data[i] = append(rows.Data[i], decoders[i](string(v)))
			}
		}
		rows.Count++
		rows.Bytes += size
	}
}

func errorOf(err error) (*pgconn.PgError, bool) {
	var pg *pgconn.PgError
	ok := errors.As(err, &pg)
	return pg, ok
}

// failure says what the server said, in terms of the caller's own text.
func (r *Reader) failure(ctx context.Context, err error, b *bound, known *catalogue, l sandbox.Limits) error {
	pg, ok := errorOf(err)
	if !ok {
		if ctx.Err() != nil {
			return &sandbox.Refusal{Reason: "cancelled", Message: "the statement was cancelled", Failed: true}
		}
		return unavailable(err)
	}
	out := &sandbox.Refusal{Reason: "failed", Message: pg.Message, SQLState: pg.Code, Hint: pg.Hint, Failed: true}
	if pg.Position > 0 {
		at := 0 // the server counts characters
		for n := int32(1); n < pg.Position && at < len(b.sql); n++ {
			at++
			for at < len(b.sql) && b.sql[at]&0xC0 == 0x80 {
				at++
			}
		}
		out.Position, out.Line = b.locate(at + 1)
	}
	switch pg.Code {
	case "42P01":
		out.Reason, out.Nearest = "unknown-table", nearest(quoted(pg.Message), known.tables)
		out.Hint = "db_tables() lists the tables"
	case "42703":
		out.Reason, out.Nearest = "unknown-column", nearest(quoted(pg.Message), known.columns)
		out.Hint = "db_schema(table) lists the columns"
	case "42883":
		out.Reason = "unknown-function"
	case "42501":
		out.Reason = "permission"
	case "25006":
		out.Reason = "read-only"
	case "57014":
		out.Reason, out.Message = "timeout", fmt.Sprintf("the statement took longer than %s and was cancelled", l.Timeout)
		out.Hint = "read less at a time: filter, aggregate or LIMIT"
	case "42601":
		out.Reason = "syntax-error"
	case "57P01", "57P02", "57P03":
		return unavailable(err)
	}
	if out.Nearest != "" {
		out.Hint = "did you mean " + out.Nearest + "?"
	}
	return out
}

// quoted is the name that a message of the server quotes, without its table.
func quoted(message string) string {
	if _, rest, ok := strings.Cut(message, `"`); ok {
		name, _, _ := strings.Cut(rest, `"`)
		return name[strings.LastIndexByte(name, '.')+1:]
	}
	if rest, ok := strings.CutPrefix(message, "column "); ok {
		name, _, _ := strings.Cut(rest, " ")
		return name[strings.LastIndexByte(name, '.')+1:]
	}
	return ""
}
