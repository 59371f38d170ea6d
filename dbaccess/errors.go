package dbaccess

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/sandbox"
)

// maxMessage is how much of a message of PostgreSQL's is told, in characters: a value of any size
// may be in it.
const maxMessageChars = 16 << 10

func pgErrorOf(err error) (*pgconn.PgError, bool) {
	var pg *pgconn.PgError
	ok := errors.As(err, &pg)
	return pg, ok
}

// reasons are stable codes for what SQLSTATE says; all others are "failed".
var reasonBySQLState = map[string]string{
	"42P01": "unknown-table", "42703": "unknown-column", "42883": "unknown-function", "42704": "unknown-name", "42601": "syntax-error", "42501": "permission", "25006": "read-only",
	"42702": "ambiguous-name", "42725": "ambiguous-name", "42803": "grouping", "42804": "type-mismatch", "42P18": "type-mismatch", "22P02": "invalid-value", "22007": "invalid-value", "22008": "invalid-value",
	"22003": "out-of-range", "22012": "division-by-zero", "21000": "too-many-rows", "53400": "too-large", "54001": "too-large", "53200": "too-large",
}

// translateError says what the server said, in terms of the caller's own text.
func translateError(ctx context.Context, err error, stmt *checkedStatement, l sandbox.QueryLimits) error {
	if ctx.Err() != nil {
		return &sandbox.Refusal{Reason: "cancelled", Message: "the statement was cancelled", Failed: true}
	}
	var left *sinkError
	if errors.As(err, &left) {
		return &sandbox.Refusal{Reason: "cancelled", Message: "the statement was cancelled, for nobody takes its rows any more", Failed: true}
	}
	var no *sandbox.Refusal
	if errors.As(err, &no) {
		return no
	}
	pg, ok := pgErrorOf(err)
	if !ok && errors.Is(err, context.DeadlineExceeded) {
		return timeoutRefusal(l) // the server did not end it in its own time
	}
	if !ok {
		return unavailable(err)
	}
	out := &sandbox.Refusal{Reason: "failed", Message: sandbox.Shorten(pg.Message, maxMessageChars), SQLState: pg.Code, Hint: sandbox.Shorten(pg.Hint, maxMessageChars), Failed: true}
	if pg.Position > 0 {
		out.Position, out.Line = stmt.locate(int(pg.Position))
	}
	if reason := reasonBySQLState[pg.Code]; reason != "" {
		out.Reason = reason
	}
	switch pg.Code {
	case "42P01":
		out.Nearest = nearestName(quotedName(out.Message), stmt.catalog.tableNames)
		out.Hint = "db_tables() lists the tables"
	case "42703":
		name := quotedName(out.Message)
		if out.Nearest = nearestName(name, stmt.columnNames); out.Nearest == "" {
			out.Nearest = nearestName(name, stmt.catalog.columnNames)
		}
		out.Hint = "db_schema(table) lists the columns"
		if out.Nearest == name {
			out.Nearest, out.Hint = "", "only tables that are not in this statement have a column of that name; "+out.Hint
		}
	case "57014":
		return timeoutRefusal(l)
	case "57P01", "57P02", "57P03":
		return unavailable(err)
	}
	if out.Nearest != "" {
		out.Hint = "did you mean " + out.Nearest + "?"
	}
	addDialectHint(out, stmt.original)
	return out
}

// quotedName is the name that a message of the server quotes, without its table.
func quotedName(message string) string {
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

func timeoutRefusal(l sandbox.QueryLimits) *sandbox.Refusal {
	return &sandbox.Refusal{
		Reason: "timeout", Message: fmt.Sprintf("the statement took longer than %s and was cancelled", l.Timeout), SQLState: "57014",
		Hint: "read less at a time: filter, aggregate or LIMIT", Failed: true,
	}
}
