package dbaccess

import (
	"context"
	"errors"

	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
)

// Permit checks a statement with parameters of these names as Query does, and has the server plan it, which fails if
// the login may not read what the statement reads. It returns the text that would run. The error is that of Query.
func (r *Reader) Permit(
	ctx context.Context, sql string, names []string, l sandbox.QueryLimits,
) (ran string, err error) {
	if err := r.ensureAudited(ctx); err != nil {
		return "", err
	}
	stmt, err := r.checkStatement(ctx, parse.Request{SQL: sql, Names: names}, l.User)
	if err != nil {
		return "", err
	}
	if stmt.Refusal != nil {
		no := *stmt.Refusal
		return "", &no
	}
	plan := sql
	if stmt.Explained == 0 {
		plan = explainPrefix + sql
	}
	params := map[string]any{} // NULL is a value of each type
	for _, name := range names {
		params[name] = nil
	}
	discard := func(sandbox.RowBatch) error { return nil }
	_, err = r.Query(ctx, plan, params, l, discard)
	if no, ok := errors.AsType[*sandbox.Refusal](err); ok && no.Reason == "syntax-error" && stmt.Explained == 0 {
		_, err = r.Query(ctx, sql, params, l, discard) // PostgreSQL does not plan a SHOW
	}
	return stmt.SQL, err
}

const explainPrefix = "EXPLAIN "
