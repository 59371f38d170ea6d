package prove

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/oracle"
	"glasshouse/policy"
	"glasshouse/sandbox"
)

// Generated has the results of Generate. Each generated statement names a function that is not listed.
type Generated struct {
	Functions  int      // names of functions
	Statements int      // Refused + Unfound + others that PostgreSQL reads as something harmless + len(Calls)
	Refused    int      // by the check
	Unfound    int      // the check allows them, and PostgreSQL finds no function on their search path
	Calls      []string // "statement: function" for those that would call what is not listed
}

// callableSQL selects the functions that the login may call with one argument: schema, name, and type of the argument.
const callableSQL = `SELECT nspname, proname, CASE WHEN typtype = 'p' THEN 'int' ELSE proargtypes[0]::regtype::text END
	FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace JOIN pg_type t ON t.oid = proargtypes[0]
	WHERE has_function_privilege(p.oid, 'EXECUTE') AND has_schema_privilege(n.oid, 'USAGE')
	AND pronargs - pronargdefaults <= 1 AND typname NOT IN ('internal', 'cstring')
	AND (typtype <> 'p' OR typname LIKE 'any%')
	AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype, 'internal'::regtype)
	AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')
	ORDER BY nspname = 'pg_catalog', nspname, proname`

// ways are items of FROM and ways to name a function: in attribute notation after the item or a value, and as a call.
var ways = []struct{ from, ref string }{
	{"unnest(ARRAY[{value}]) s", "s.{name}"},
	{"coalesce({value}, NULL) s", "s.{name}"},
	{"(SELECT {value} AS v) s", "(s.v).{name}"},
	{"(VALUES ({value})) s (v)", "(SELECT s.v).{name}"},
	{"(SELECT 1) s", "({value}).{name}"},
	{"(SELECT 1) s", "{name}({value})"},
	{"(SELECT 1) s", "{schema}.{name}({value})"},
}

// places are statements with an item and a name after it.
var places = []string{
	"SELECT {ref} FROM {from}",
	"SELECT * FROM (SELECT {ref} AS x FROM {from}) outside",
	"SELECT 1 FROM {from} WHERE ({ref})::text IS NOT NULL",
	"SELECT 1 FROM {from} ORDER BY ({ref})::text",
	"SELECT CASE WHEN ({ref})::text = 'a' THEN 1 END FROM {from}",
	"WITH inside AS (SELECT ({ref})::text AS x FROM {from}) SELECT x FROM inside, (SELECT 'pg_class'::regclass) r",
}

// Generate writes statements with the functions that exist in the database, that the login may call and that neither
// package policy nor allowed (dbaccess.Config.AllowFunctions) lists, and asks PostgreSQL what each one calls that the
// check allows. Nothing runs.
func Generate(ctx context.Context, r *dbaccess.Reader, readerURL string, allowed []string) (g Generated, err error) {
	o, err := oracle.Open(ctx, readerURL, "")
	if err != nil {
		return g, err
	}
	defer o.Close()
	listed := make([]string, len(allowed))
	for n, name := range allowed {
		listed[n], _, _ = strings.Cut(name, "(")
	}
	functions, err := callable(ctx, readerURL, listed)
	if err != nil {
		return g, err
	}
	g.Functions = len(functions)
	for _, f := range functions {
		fill := strings.NewReplacer("{value}", "NULL::"+f.Argument, "{name}", pgx.Identifier{f.Name}.Sanitize(),
			"{schema}", pgx.Identifier{f.Schema}.Sanitize())
		for _, way := range ways {
			place := strings.NewReplacer("{from}", fill.Replace(way.from), "{ref}", fill.Replace(way.ref))
			for _, text := range places {
				if err := g.try(ctx, r, o, place.Replace(text), listed); err != nil {
					return g, err
				}
			}
		}
	}
	return g, nil
}

func (g *Generated) try(
	ctx context.Context, r *dbaccess.Reader, o *oracle.Oracle, sql string, allowed []string,
) error {
	g.Statements++
	text, path, err := r.Bind(ctx, sql)
	if _, refused := errors.AsType[*sandbox.Refusal](err); refused {
		g.Refused++
		return nil
	}
	if err != nil {
		return err
	}
	calls, err := o.Unlisted(ctx, text, path, allowed...)
	if _, fails := errors.AsType[*pgconn.PgError](err); fails {
		g.Unfound++
		return nil
	}
	if len(calls) > 0 {
		g.Calls = append(g.Calls, sql+": "+strings.Join(calls, ", "))
	}
	return err
}

// callableFunction is a function that may be called with one argument.
type callableFunction struct{ Schema, Name, Argument string }

// callable returns the functions that are not listed, one for each name and schema.
func callable(ctx context.Context, url string, listed []string) (functions []callableFunction, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, _ := conn.Query(ctx, callableSQL) // CollectRows returns the error
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[callableFunction])
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, f := range all {
		full := f.Schema + "." + f.Name
		isListed := slices.Contains(listed, f.Name) || slices.Contains(listed, full) ||
			f.Schema == "pg_catalog" && len(policy.SQLFunctions[f.Name]) > 0
		if !isListed && !seen[full] {
			functions = append(functions, f)
		}
		seen[full] = true
	}
	return functions, nil
}

// PrintGenerated writes the numbers, and the statements that would call what is not listed.
func PrintGenerated(to io.Writer, g Generated) error {
	for _, call := range g.Calls {
		if _, err := fmt.Fprintln(to, "CALLS", call); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(to, "%d generated statements with %d functions that are not listed: the check refuses %d, "+
		"for %d PostgreSQL finds no function, %d call one\n", g.Statements, g.Functions, g.Refused, g.Unfound, len(g.Calls))
	return err
}
