// Package oracle tells what a statement calls, from the tree that PostgreSQL itself makes of it.
//
//	o, err := oracle.Open(ctx, url, "")
//	defer o.Close()
//	calls, err := o.Unlisted(ctx, "SELECT pg_sleep(1)", "pg_catalog")
//
// It judges what package check allows, and knows nothing about that package.
package oracle

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/dbaccess/nodetree"
	"glasshouse/policy"
)

// Oracle asks one database. PostgreSQL analyses a text and expands views and row policies, then it sends the tree
// (debug_print_rewritten). Nothing runs. One goroutine may use an Oracle.
//
// The tree has no checks of domains, no default arguments, no input and output functions of types, no support functions
// of indexes, no functions behind aggregates, and nothing that a function looks up while it runs.
type Oracle struct {
	conn      *pgx.Conn
	tree      string // after rewriting
	bound     string // before it: views are tables
	functions map[uint32]boundFunction
	views     map[uint32]nodetree.Objects // of PostgreSQL's own views that may be read
}

type boundFunction struct{ schema, name, signature, extension string }

// Open connects to a database. The trees are those that a role gets; "": the login of the URL.
func Open(ctx context.Context, url, role string) (*Oracle, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	o := &Oracle{functions: map[uint32]boundFunction{}, views: map[uint32]nodetree.Objects{}}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		switch {
		case strings.HasPrefix(n.Message, "rewritten parse tree"):
			o.tree += n.Detail
		case strings.HasPrefix(n.Message, "parse tree"):
			o.bound += n.Detail
		}
	}
	if o.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return nil, err
	}
	// Only a superuser may keep the trees out of the server's log.
	_, _ = o.conn.Exec(ctx, "SET log_min_messages = fatal")
	set := "SET client_min_messages = log; SET debug_pretty_print = off; SET debug_print_parse = on; " +
		"SET debug_print_rewritten = on"
	if role != "" {
		set += "; SET ROLE " + pgx.Identifier{role}.Sanitize()
	}
	if _, err := o.conn.Exec(ctx, set); err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

// Close ends the connection.
func (o *Oracle) Close() { _ = o.conn.Close(context.Background()) }

var explained = regexp.MustCompile(`^\s*EXPLAIN(\s*\([^)]*\))?(\s+VERBOSE)?\s+`)

// firstUserOID is the first identifier of an object that is not PostgreSQL's own.
const firstUserOID = 16384

// Unlisted returns the functions which a statement would call on a search path and that neither package policy lists
// nor allowed ("schema.name" or "name"), as "schema.name(types)". The error is a *pgconn.PgError if PostgreSQL refuses
// the statement, which then calls nothing. Functions in PostgreSQL's own views that may be read are left out.
func (o *Oracle) Unlisted(ctx context.Context, sql, searchPath string, allowed ...string) (calls []string, err error) {
	if err := o.analyse(ctx, sql, searchPath); err != nil {
		return nil, err
	}
	objects := nodetree.Read(o.tree)
	own := map[uint32]bool{} // functions of PostgreSQL's own views
	for _, oid := range objects.Relations {
		if err := o.addOwn(ctx, own, oid, false); err != nil {
			return nil, err
		}
	}
	implied := objects.Casts
	for _, oid := range objects.Operators {
		if oid >= firstUserOID {
			var function uint32
			if err := o.conn.QueryRow(ctx, "SELECT oprcode::oid FROM pg_operator WHERE oid = $1", oid).
				Scan(&function); err != nil {
				return nil, err
			}
			implied = append(implied, function)
		}
	}
	for _, oid := range objects.Functions {
		if own[oid] {
			continue
		}
		if calls, err = o.add(ctx, calls, oid, allowed); err != nil {
			return nil, err
		}
	}
	for _, oid := range implied { // PostgreSQL's own casts and operators call functions that are not listed by name
		if oid < firstUserOID {
			continue
		}
		if calls, err = o.add(ctx, calls, oid, allowed); err != nil {
			return nil, err
		}
	}
	return calls, nil
}

// analyse sets the trees of a statement.
func (o *Oracle) analyse(ctx context.Context, sql, searchPath string) error {
	if _, err := o.conn.Exec(ctx, "SET search_path = "+searchPath); err != nil {
		return err
	}
	o.tree, o.bound = "", ""
	sql = explained.ReplaceAllString(sql, "") // the tree of EXPLAIN does not have that of the statement in it
	if _, err := o.conn.Prepare(ctx, "", sql); err != nil {
		return err
	}
	if o.tree == "" || o.bound == "" {
		return fmt.Errorf("PostgreSQL has sent no tree of %s", sql)
	}
	return nil
}

// Column is a column of a relation, by its number. 0 is a whole row; system columns have negative numbers.
type Column struct {
	Relation uint32
	Number   int
}

// firstLowInvalidAttribute is FirstLowInvalidHeapAttributeNumber in PostgreSQL's sysattr.h: sets of columns have no
// negative members.
const firstLowInvalidAttribute = -7

// Columns returns the columns of tables and views that a statement reads on a search path: those whose privilege SELECT
// PostgreSQL checks. The columns that a view itself reads are not among them. The error is a *pgconn.PgError if
// PostgreSQL refuses the statement.
func (o *Oracle) Columns(ctx context.Context, sql, searchPath string) (columns []Column, err error) {
	if err := o.analyse(ctx, sql, searchPath); err != nil {
		return nil, err
	}
	var add func(n *nodetree.Node)
	add = func(n *nodetree.Node) {
		for _, member := range n.Set("selectedCols") { // of an item of FROM or, since PostgreSQL 16, of its permissions
			columns = append(columns, Column{uint32(n.Int("relid")), member + firstLowInvalidAttribute})
		}
		for _, child := range n.Children() {
			add(child)
		}
	}
	for _, root := range nodetree.Parse(o.bound) {
		add(root)
	}
	return columns, nil
}

// addOwn adds the functions of a view of PostgreSQL that may be read, and of the views in it.
func (o *Oracle) addOwn(ctx context.Context, own map[uint32]bool, relation uint32, isRead bool) error {
	objects, known := o.views[relation]
	if !known && relation < firstUserOID {
		rows, _ := o.conn.Query(ctx, `SELECT nspname = 'information_schema' OR relname = ANY ($2), ev_action::text
			FROM pg_rewrite JOIN pg_class c ON c.oid = ev_class JOIN pg_namespace n ON n.oid = relnamespace
			WHERE ev_class = $1`, relation, slices.Collect(maps.Keys(policy.SQLCatalogRelations)))
		var mayBeRead bool
		var tree string
		_, err := pgx.ForEachRow(rows, []any{&mayBeRead, &tree}, func() error {
			if mayBeRead || isRead {
				objects = nodetree.Read(tree)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if !isRead {
			o.views[relation] = objects
		}
	}
	for _, f := range objects.Functions {
		own[f] = true
	}
	for _, inner := range objects.Relations {
		if inner != relation {
			if err := o.addOwn(ctx, own, inner, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds a function that is not listed.
func (o *Oracle) add(ctx context.Context, calls []string, oid uint32, allowed []string) ([]string, error) {
	f, err := o.function(ctx, oid)
	if err != nil {
		return nil, err
	}
	full := f.schema + "." + f.name
	isListed := slices.Contains(allowed, full) || slices.Contains(allowed, f.name)
	switch {
	case f.extension != "":
		isListed = isListed || policy.SQLExtensions[f.extension] && !policy.SQLExtensionFunctions[f.name]
	case f.schema == "pg_catalog":
		isListed = isListed || policy.SQLFunctions[f.name][f.signature] || checkedOtherwise[f.name]
	}
	if !isListed {
		calls = append(calls, full+f.signature)
	}
	return calls, nil
}

// checkedOtherwise are functions behind TABLESAMPLE, and the one whose argument must be on a list of settings.
var checkedOtherwise = map[string]bool{
	"system": true, "bernoulli": true, "current_setting": true,
	"int8inc": true, // of WITH ... SEARCH DEPTH FIRST
}

func (o *Oracle) function(ctx context.Context, oid uint32) (f boundFunction, err error) {
	if f, ok := o.functions[oid]; ok {
		return f, nil
	}
	err = o.conn.QueryRow(ctx, `SELECT nspname, proname,
		'(' || coalesce((SELECT string_agg(typname, ',' ORDER BY n) FROM unnest(proargtypes) WITH ORDINALITY a (t, n)
			JOIN pg_type ON pg_type.oid = t), '') || ')',
		coalesce((SELECT extname FROM pg_depend d JOIN pg_extension e ON e.oid = refobjid
			WHERE proowner IN (SELECT oid FROM pg_roles WHERE rolsuper)
				AND classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e'), '')
		FROM pg_proc p JOIN pg_namespace ON pg_namespace.oid = pronamespace WHERE p.oid = $1`,
		oid).Scan(&f.schema, &f.name, &f.signature, &f.extension)
	o.functions[oid] = f
	return f, err
}
