package dbaccess

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/sandbox"
)

func errorOf(err error) (*pgconn.PgError, bool) {
	var pg *pgconn.PgError
	ok := errors.As(err, &pg)
	return pg, ok
}

// failure says what the server said, in terms of the caller's own text.
func failure(ctx context.Context, err error, p *plan, l sandbox.Limits) error {
	if ctx.Err() != nil {
		return &sandbox.Refusal{Reason: "cancelled", Message: "the statement was cancelled", Failed: true}
	}
	pg, ok := errorOf(err)
	if !ok && errors.Is(err, context.DeadlineExceeded) {
		return timedOut(l) // the server did not end it in its own time
	}
	if !ok {
		return unavailable(err)
	}
	out := &sandbox.Refusal{Reason: "failed", Message: pg.Message, SQLState: pg.Code, Hint: pg.Hint, Failed: true}
	if pg.Position > 0 {
		out.Position, out.Line = p.locate(int(pg.Position))
	}
	switch pg.Code {
	case "42P01":
		out.Reason, out.Nearest = "unknown-table", nearest(quoted(pg.Message), p.known.tables)
		out.Hint = "db_tables() lists the tables"
	case "42703":
		out.Reason, out.Nearest = "unknown-column", nearest(quoted(pg.Message), p.known.columns)
		out.Hint = "db_schema(table) lists the columns"
	case "42883":
		out.Reason = "unknown-function"
	case "42501":
		out.Reason = "permission"
	case "25006":
		out.Reason = "read-only"
	case "57014":
		return timedOut(l)
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

func timedOut(l sandbox.Limits) *sandbox.Refusal {
	return &sandbox.Refusal{
		Reason: "timeout", Message: fmt.Sprintf("the statement took longer than %s and was cancelled", l.Timeout), SQLState: "57014",
		Hint: "read less at a time: filter, aggregate or LIMIT", Failed: true,
	}
}
