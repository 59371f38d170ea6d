package dbtest

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/dbaccess/embedded"
	"glasshouse/policy"
)

// Oracle tells what a statement calls, from the tree that PostgreSQL itself makes of it. It judges what the check
// allows, and knows nothing about the check: PostgreSQL analyses the text and expands views and row policies, then it
// sends the tree (debug_print_rewritten). Nothing runs.
//
// The tree has no checks of domains, no input and output functions of types, no support functions of indexes, no
// functions behind aggregates, and nothing that a function looks up while it runs.
type Oracle struct {
	conn      *pgx.Conn
	tree      string
	functions map[uint32]boundFunction
}

type boundFunction struct{ schema, name, signature, extension string }

// NewOracle returns an oracle for a database, as the role of readers sees it.
func NewOracle(t testing.TB, url string) *Oracle {
	t.Helper()
	ctx := context.Background()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	o := &Oracle{}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if strings.HasPrefix(n.Message, "rewritten parse tree") {
			o.tree += n.Detail
		}
	}
	if o.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.conn.Close(ctx) })
	// log_min_messages keeps the trees out of the server's log.
	_, err = o.conn.Exec(ctx, "SET log_min_messages = fatal; SET client_min_messages = log; "+
		"SET debug_pretty_print = off; SET debug_print_rewritten = on; SET ROLE "+embedded.RoleReader)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Patterns of the calls in a tree. Text of the statement has no braces or spaces without a backslash in it.
var (
	boundCall = regexp.MustCompile(
		`\{FUNCEXPR :funcid (\d+) :funcresulttype \d+ :funcretset \w+ :funcvariadic \w+ :funcformat (\d+)`)
	boundOther    = regexp.MustCompile(`[^\\] ?:(?:aggfnoid|winfnoid|opfuncid|tsmhandler) (\d+)`)
	boundOperator = regexp.MustCompile(`[^\\] ?:opno (\d+)`)
)

var explained = regexp.MustCompile(`^\s*EXPLAIN(\s*\([^)]*\))?(\s+VERBOSE)?\s+`)

// firstUserOID is the first identifier of an object that is not PostgreSQL's own.
const firstUserOID = 16384

// Unlisted returns the functions which a statement calls and that package policy does not list, nor allowed
// ("schema.name"). err is PostgreSQL's: then the statement calls nothing.
func (o *Oracle) Unlisted(ctx context.Context, sql, searchPath string, allowed ...string) (calls []string, err error) {
	if _, err := o.conn.Exec(ctx, "SET search_path = "+searchPath); err != nil {
		return nil, err
	}
	o.tree = ""
	sql = explained.ReplaceAllString(sql, "") // the tree of EXPLAIN does not have that of the statement in it
	if _, err := o.conn.Prepare(ctx, "", sql); err != nil {
		return nil, err
	}
	if o.tree == "" {
		return nil, fmt.Errorf("PostgreSQL has sent no tree of %s", sql)
	}
	for _, m := range boundCall.FindAllStringSubmatch(o.tree, -1) {
		isCast := m[2] == "1" || m[2] == "2"
		if calls, err = o.add(ctx, calls, m[1], isCast, allowed); err != nil {
			return nil, err
		}
	}
	for _, m := range boundOther.FindAllStringSubmatch(o.tree, -1) {
		isImplied := strings.Contains(m[0], "opfuncid") || strings.Contains(m[0], "tsmhandler")
		if calls, err = o.add(ctx, calls, m[1], isImplied, allowed); err != nil {
			return nil, err
		}
	}
	for _, m := range boundOperator.FindAllStringSubmatch(o.tree, -1) {
		if n, _ := strconv.Atoi(m[1]); n < firstUserOID {
			continue
		}
		var function uint32
		if err := o.query(ctx, "SELECT oprcode::oid FROM pg_operator WHERE oid = $1", m[1], &function); err != nil {
			return nil, err
		}
		if calls, err = o.add(ctx, calls, fmt.Sprint(function), true, allowed); err != nil {
			return nil, err
		}
	}
	return calls, nil
}

// add adds a function that is not listed. PostgreSQL's own casts, ways to sample a table, and functions of operators
// are not listed by their names; implied says that this is one of them.
func (o *Oracle) add(
	ctx context.Context, calls []string, oid string, implied bool, allowed []string,
) ([]string, error) {
	n, err := strconv.ParseUint(oid, 10, 32)
	if err != nil || n == 0 || implied && n < firstUserOID {
		return calls, err
	}
	f, err := o.function(ctx, uint32(n))
	if err != nil {
		return nil, err
	}
	full := f.schema + "." + f.name
	isListed := slices.Contains(allowed, full)
	switch {
	case f.extension != "":
		isListed = isListed || policy.SQLExtensions[f.extension] && !policy.SQLExtensionFunctions[f.name]
	case f.schema == "pg_catalog":
		isListed = isListed || policy.SQLFunctions[f.name][f.signature]
	}
	if !isListed {
		calls = append(calls, full+f.signature)
	}
	return calls, nil
}

func (o *Oracle) function(ctx context.Context, oid uint32) (f boundFunction, err error) {
	if f, ok := o.functions[oid]; ok {
		return f, nil
	}
	err = o.query(ctx, `SELECT nspname, proname,
		'(' || coalesce((SELECT string_agg(typname, ',' ORDER BY n) FROM unnest(proargtypes) WITH ORDINALITY a (t, n)
			JOIN pg_type ON pg_type.oid = t), '') || ')',
		coalesce((SELECT extname FROM pg_depend d JOIN pg_extension e ON e.oid = refobjid
			WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e'), '')
		FROM pg_proc p JOIN pg_namespace ON pg_namespace.oid = pronamespace WHERE p.oid = $1`,
		fmt.Sprint(oid), &f.schema, &f.name, &f.signature, &f.extension)
	if o.functions == nil {
		o.functions = map[uint32]boundFunction{}
	}
	o.functions[oid] = f
	return f, err
}

func (o *Oracle) query(ctx context.Context, sql, oid string, into ...any) error {
	n, err := strconv.ParseUint(oid, 10, 32)
	if err != nil {
		return err
	}
	return o.conn.QueryRow(ctx, sql, uint32(n)).Scan(into...)
}
