package dbaccess

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/dbaccess/check"
	"glasshouse/dbaccess/parse"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// maxMessageChars bounds a message of the server, which may quote a value of any size.
const maxMessageChars = 16 << 10

// reasonBySQLState maps SQLSTATE to our stable reasons. Other states are "failed".
var reasonBySQLState = map[string]string{
	"42P01": "unknown-table", "42703": "unknown-column", "42883": "unknown-function", "42704": "unknown-name", "42601": "syntax-error", "42501": "permission", "25006": "read-only",
	"42702": "ambiguous-name", "42725": "ambiguous-name", "42803": "grouping", "42804": "type-mismatch", "42P18": "type-mismatch", "42P08": "type-mismatch", "22P02": "invalid-value", "22007": "invalid-value", "22008": "invalid-value",
	"22003": "out-of-range", "22012": "division-by-zero", "21000": "too-many-rows", "53400": "too-large", "54001": "too-large", "53200": "too-large",
}

// translateError turns an error of the server into a refusal with positions in the original text.
func (r *Reader) translateError(
	ctx context.Context, err error, stmt *check.Statement, l sandbox.QueryLimits,
) error {
	if ctx.Err() != nil {
		return &sandbox.Refusal{Reason: "cancelled", Message: "the statement was cancelled", Failed: true}
	}
	if no, ok := errors.AsType[*sandbox.Refusal](err); ok {
		return no
	}
	if errors.Is(err, limit.ErrFull) {
		return tooMuchHeld(r.config.Results, err)
	}
	if _, ok := errors.AsType[*sinkError](err); ok {
		return &sandbox.Refusal{
			Reason:  "cancelled",
			Message: "the statement was cancelled because its rows were no longer read",
			Failed:  true,
		}
	}
	if known, ok := errors.AsType[*sandbox.Error](err); ok {
		return known
	}
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok && errors.Is(err, context.DeadlineExceeded) {
		return timeoutRefusal(l) // the server missed its own timeout
	}
	if !ok {
		return r.unavailable(err)
	}
	message := sandbox.Shorten(pg.Message, maxMessageChars) // first: a search in 20 MB takes seconds
	out := &sandbox.Refusal{
		Reason:   "failed",
		Message:  parse.NameParameters(message, stmt.ParameterNames),
		SQLState: pg.Code,
		Hint:     sandbox.Shorten(pg.Hint, maxMessageChars),
		Failed:   true,
	}
	if pg.Position > 0 {
		out.Position, out.Line = stmt.Locate(int(pg.Position))
	}
	if reason := reasonBySQLState[pg.Code]; reason != "" {
		out.Reason = reason
	}
	switch pg.Code {
	case "42P01":
		stmt.SuggestTable(out)
	case "42703":
		stmt.SuggestColumn(out)
	case "42P08", "42P18": // a statement that writes, or one with too many such places
		if _, name, ok := strings.Cut(out.Message, "parameter :"); ok {
			out.Hint = "write the type behind the parameter: :" + name + "::text"
		}
	case "42883":
		stmt.SuggestSignature(out)
	case "42501":
		stmt.SuggestReadable(out)
	case "57014":
		return timeoutRefusal(l)
	case "57P01", "57P02", "57P03":
		return r.unavailable(err)
	}
	check.AddDialectHint(out, stmt.Original, stmt.Catalog)
	stmt.ExplainMask(out)
	return out
}

func timeoutRefusal(l sandbox.QueryLimits) *sandbox.Refusal {
	return &sandbox.Refusal{
		Reason: "timeout", Message: fmt.Sprintf("the statement took longer than %s and was cancelled", l.Timeout), SQLState: "57014",
		Hint: "reduce the result: filter, aggregate or add LIMIT", Failed: true,
	}
}
