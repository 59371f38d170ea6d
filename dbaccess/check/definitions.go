package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
)

// Queries for the definitions that the server runs along with a statement: views, row policies of
// tables, and checks of domains. The server writes them with every name outside of pg_catalog
// qualified, so their calls are unambiguous.
const (
	viewSQL   = `SELECT pg_get_viewdef($1::int8::oid)`
	policySQL = `SELECT 'SELECT ' || pg_get_expr(polqual, polrelid) FROM pg_policy WHERE polrelid = $1::int8::oid AND polqual IS NOT NULL AND polcmd IN ('r', '*')`
	domainSQL = `SELECT 'SELECT ' || pg_get_expr(conbin, 0) FROM pg_constraint WHERE contypid = $1::int8::oid AND conbin IS NOT NULL`
)

// definition identifies a view, a table with a policy, or a domain.
type definition struct {
	kind, name, sql string
	oid             uint32
}

// definitions returns the definitions that the statement uses.
func (w *walker) definitions() []definition {
	var out []definition
	for r := range w.relations {
		if r.isView {
			out = append(out, definition{"view", r.schema + "." + r.name, viewSQL, r.oid})
		}
		if r.hasRowPolicies {
			out = append(out, definition{"table with the policy", r.schema + "." + r.name, policySQL, r.oid})
		}
		for _, oid := range r.userTypes {
			if w.buildsRows() {
				_ = w.isTypeAllowed(w.catalog.TypesByOID[oid], 0) // adds its domains to usedTypes
			}
		}
	}
	for t := range w.usedTypes {
		if t.Kind == 'd' && t.Schema != "information_schema" {
			out = append(out, definition{"domain", t.Schema + "." + t.Name, domainSQL, t.oid})
		}
	}
	return out
}

// buildsRows reports whether the statement may construct rows of a table's type, which evaluates the
// domains of its columns.
func (w *walker) buildsRows() bool {
	for _, name := range []string{"jsonb_populate_record", "jsonb_populate_recordset", "json_populate_record", "json_populate_recordset"} {
		if w.mentionedNames[name] {
			return true
		}
	}
	return false
}

// checkDefinitions refuses a statement whose views, policies or domains call a function that the
// statement itself may not call.
func (c *Checker) checkDefinitions(ctx context.Context, w *walker) error {
	for _, d := range w.definitions() {
		why, err := c.checkDefinition(ctx, w.catalog, d)
		if err != nil {
			return err
		}
		if why != "" {
			return sandbox.Refusef("function-not-allowed", "the %s %s is refused: in it, %s", d.kind, d.name, why)
		}
	}
	return nil
}

// checkDefinition returns why a definition is refused, or "", and caches the answer.
func (c *Checker) checkDefinition(ctx context.Context, cat *Catalog, d definition) (string, error) {
	key := fmt.Sprint(d.kind, d.oid)
	if why, done := cat.checkedDefinitions.Load(key); done {
		return why.(string), nil
	}
	texts, err := c.readDefinition(ctx, d)
	if err != nil {
		return "", err
	}
	why := ""
	for _, text := range texts {
		var w *walker
		if w, why, err = c.checkServerText(ctx, cat, text); err != nil {
			return "", err
		}
		if why == "" {
			var no *sandbox.Refusal
			if err := c.checkDefinitions(ctx, w); errors.As(err, &no) { // views cannot be cyclic
				why = no.Message
			} else if err != nil {
				return "", err
			}
		}
		if why != "" {
			break
		}
	}
	cat.checkedDefinitions.Store(key, why)
	return why, nil
}

// checkServerText checks a text that the server wrote.
func (c *Checker) checkServerText(ctx context.Context, cat *Catalog, text string) (w *walker, why string, err error) {
	_, err = c.parsers.Parse(ctx, parse.Request{SQL: text}, func(parsed parse.Result) {
		w, why = newWalker(parsed.SQL, cat), ""
		w.searchPath, w.isServerText = nil, true
		if parsed.Fault != nil {
			why = parsed.Fault.Message
		} else if no := w.checkStatement(parsed.Tree); no != nil {
			why = no.Message
		}
	})
	return w, why, err
}

func (c *Checker) readDefinition(ctx context.Context, d definition) (texts []string, err error) {
	err = pgx.BeginTxFunc(ctx, c.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL search_path = pg_catalog"); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, d.sql, int64(d.oid))
		texts, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return texts, Unavailable(c.name, err)
}
