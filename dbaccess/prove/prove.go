// Package prove attacks a database through the read-only reader and directly, and reports which attacks each layer
// stops without the others.
//
//	outcomes, err := prove.Run(ctx, reader, readerURL, ownerURL)
//	succeeded, err := prove.Print(os.Stdout, outcomes)
//	generated, err := prove.Generate(ctx, reader, readerURL, nil)
//	reachable, err := prove.Reachable(ctx, readerURL)
//
// Run tries every attack against four defences:
//
//  1. the check of the SQL alone;
//  2. the privileges of the reader's login alone, in a transaction that may write;
//  3. a READ ONLY transaction alone, as the owner if there is a login for it;
//  4. the reader, which has all of these.
//
// A direct attack runs in a transaction that is rolled back, on a connection of its own, and changes nothing if it
// succeeds. For an attack that cannot be rolled back, Run checks the privileges of the login instead.
package prove

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/dbaccess"
	"glasshouse/policy"
	"glasshouse/sandbox"
)

//go:embed attacks.sql
var attacksSQL string

const (
	beginReadWrite = "BEGIN READ WRITE"
	beginReadOnly  = "BEGIN READ ONLY"
)

// Attack is a statement that the reader must refuse.
type Attack struct {
	Name, SQL string
	privilege string // SQL expression that replaces the direct attack: whether the login has the privilege; "": none
}

// Outcome says which defences an attack passes. Each defence is tested without the others.
type Outcome struct {
	Attack
	Check, Login, ReadOnly, Reader bool
}

// attacks returns the attacks on a table and one of its columns.
func attacks(table, column string) []Attack {
	fill := strings.NewReplacer("{table}", table, "{column}", column, "{chain}", strings.Repeat("+1", 30_000))
	var list []Attack
	for _, chunk := range strings.Split(attacksSQL, "\n### ")[1:] {
		name, sql, _ := strings.Cut(strings.TrimSpace(chunk), "\n")
		a := Attack{Name: name}
		if rest, ok := strings.CutPrefix(sql, "-- only: "); ok {
			a.privilege, sql, _ = strings.Cut(rest, "\n")
			a.privilege = fill.Replace(a.privilege)
		}
		a.SQL = fill.Replace(sql)
		list = append(list, a)
	}
	return list
}

// Run tries every attack on the database of the reader. readerURL has the reader's login. ownerURL has a login that may
// write; if it is "", Run tests the READ ONLY transaction with the reader's login. Run returns an error if it cannot
// try an attack.
func Run(ctx context.Context, r *dbaccess.Reader, readerURL, ownerURL string) ([]Outcome, error) {
	if ownerURL == "" {
		ownerURL = readerURL
	}
	table, column, err := findTarget(ctx, r)
	if err != nil {
		return nil, err
	}
	limits := sandbox.QueryLimits{MaxRows: 10, Timeout: 5 * time.Second}
	discard := func(sandbox.RowBatch) error { return nil }
	var outcomes []Outcome
	for _, a := range attacks(table, column) {
		o := Outcome{Attack: a}
		if o.Check, err = verdict(r.Check(ctx, a.SQL)); err != nil {
			return nil, err
		}
		if o.Login, err = passesPostgreSQL(ctx, readerURL, beginReadWrite, a); err != nil {
			return nil, err
		}
		if o.ReadOnly, err = passesPostgreSQL(ctx, ownerURL, beginReadOnly, a); err != nil {
			return nil, err
		}
		_, err := r.Query(ctx, a.SQL, nil, limits, discard)
		if o.Reader, err = verdict(err); err != nil {
			return nil, err
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// findTarget returns a table that the login may read, and a column of it, as a statement writes them.
func findTarget(ctx context.Context, r *dbaccess.Reader) (table, column string, err error) {
	tables, err := r.Schema(ctx)
	if err != nil {
		return "", "", err
	}
	for _, t := range tables {
		if t.Kind == "table" && len(t.Columns) > 0 {
			return t.Name, t.Columns[0].QuotedName, nil
		}
	}
	return "", "", errors.New("the login may read no table, so there is nothing to attack: grant SELECT on a table")
}

// verdict reports whether an attack passed, from the reader's error. It returns errors that are not refusals.
func verdict(readerErr error) (passed bool, err error) {
	if _, refused := errors.AsType[*sandbox.Refusal](readerErr); refused {
		return false, nil
	}
	return readerErr == nil, readerErr
}

// passesPostgreSQL reports whether PostgreSQL alone allows an attack in a transaction that begins with begin.
func passesPostgreSQL(ctx context.Context, url, begin string, a Attack) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return false, err
	}
	maps.Copy(config.RuntimeParams, map[string]string{
		"default_transaction_read_only": "off", "statement_timeout": "5s", "lock_timeout": "1s",
		"application_name": "glasshouse-prove",
	})
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if a.privilege != "" {
		var allowed bool
		if err := conn.QueryRow(ctx, "SELECT coalesce("+a.privilege+", false)").Scan(&allowed); err != nil {
			return false, fmt.Errorf("%s: %w", a.Name, err)
		}
		// READ ONLY stops commands that write. It stops no function.
		isCommand := !strings.HasPrefix(a.SQL, "SELECT") && !strings.HasPrefix(a.SQL, "COPY (") &&
			!strings.HasSuffix(a.SQL, "STDOUT")
		return allowed && !(begin == beginReadOnly && isCommand), nil
	}
	if _, err := conn.Exec(ctx, begin); err != nil {
		return false, err
	}
	// The extended protocol takes one statement, so no statement can end the transaction and then start another.
	result := conn.PgConn().ExecParams(ctx, a.SQL, nil, nil, nil, nil).Read()
	var pgErr *pgconn.PgError
	if result.Err != nil && !errors.As(result.Err, &pgErr) {
		return false, fmt.Errorf("%s: %w", a.Name, result.Err)
	}
	if conn.PgConn().TxStatus() == 'I' { // the attack itself ended the transaction
		return result.Err == nil, nil
	}
	_, err = conn.Exec(ctx, "ROLLBACK")
	return result.Err == nil, err
}

// Print writes the outcomes as a table with totals. It returns the number of attacks that pass the reader.
func Print(to io.Writer, outcomes []Outcome) (succeeded int, err error) {
	out := tabwriter.NewWriter(to, 0, 4, 2, ' ', 0)
	fmt.Fprintln(out, "ATTACK\tCHECK\tLOGIN\tREAD ONLY\tREADER")
	var totals [4]int
	for _, o := range outcomes {
		fmt.Fprint(out, o.Name)
		for n, passed := range []bool{o.Check, o.Login, o.ReadOnly, o.Reader} {
			if passed {
				totals[n]++
				fmt.Fprint(out, "\tPASSES")
			} else {
				fmt.Fprint(out, "\t-")
			}
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "passed, of %d attacks:\t%d\t%d\t%d\t%d\n",
		len(outcomes), totals[0], totals[1], totals[2], totals[3])
	return totals[3], out.Flush()
}

// ReachableFunctions are functions of one kind that the login may call.
type ReachableFunctions struct {
	Kind  string // what they do, after "may"
	Names []string
}

// Reachable returns the functions of PostgreSQL that do more than compute a value and that the login of a URL may call:
// only the check keeps statements from them. The result is empty on a database where policy.SQLRevoke ran, unless the
// login has another role that may call them.
func Reachable(ctx context.Context, url string) ([]ReachableFunctions, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, _ := conn.Query(ctx, policy.SQLReachable) // CollectRows returns the error
	return pgx.CollectRows(rows, pgx.RowToStructByPos[ReachableFunctions])
}

// PrintReachable writes the functions, one line for each kind, and how to revoke them.
func PrintReachable(to io.Writer, reachable []ReachableFunctions) error {
	out := bufio.NewWriter(to)
	fmt.Fprintln(out, "Only the check keeps agents from these functions: PostgreSQL lets the login call them. It may")
	for _, r := range reachable {
		fmt.Fprintf(out, "  %s: %s\n", r.Kind, strings.Join(r.Names, ", "))
	}
	fmt.Fprintln(out, "`glasshouse role-sql --revoke-from-public` prints how to revoke them and what others lose.")
	return out.Flush()
}
