// Package prove attacks a database through the read-only door and beside it, and
// says what each layer stops by itself.
//
// An attack is tried four times: by the check alone, by the login alone (in a
// transaction that may write), by READ ONLY alone (as the owner, where one is
// given), and by the whole door. Beside the door each runs on a connection of its
// own, in a transaction that is rolled back, and is harmless where it passes; those
// that could not be rolled back are answered by the login's privileges instead.
package prove

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"glasshouse/dbaccess"
	"glasshouse/sandbox"
)

//go:embed attacks.sql
var attacksSQL string

// Attack is one statement that must not pass.
type Attack struct {
	Name, SQL string
	only      string // a question to ask instead of running it
}

// Outcome says which layers an attack passes, each with the others off.
type Outcome struct {
	Attack
	Check, Login, ReadOnly, Reader bool
	Refusal                        string // the door's words
}

// Attacks lists them, for a table and one of its columns.
func Attacks(table, column string) []Attack {
	fill := strings.NewReplacer("{table}", table, "{column}", column, "{chain}", strings.Repeat("+1", 30_000))
	var out []Attack
	for _, chunk := range strings.Split(attacksSQL, "\n### ")[1:] {
		name, sql, _ := strings.Cut(strings.TrimSpace(chunk), "\n")
		a := Attack{Name: name}
		if rest, ok := strings.CutPrefix(sql, "-- only: "); ok {
			a.only, sql, _ = strings.Cut(rest, "\n")
			a.only = fill.Replace(a.only)
		}
		a.SQL = fill.Replace(sql)
		out = append(out, a)
	}
	return out
}

// Run tries every attack on the database of the reader. url is its login's, owner
// that of a login which may write, "" where there is none: READ ONLY is then tried
// as the reader. The error is that something could not be tried.
func Run(ctx context.Context, r *dbaccess.Reader, url, owner string) ([]Outcome, error) {
	if owner == "" {
		owner = url
	}
	table, column, err := findTarget(ctx, r)
	if err != nil {
		return nil, err
	}
	var out []Outcome
	for _, a := range Attacks(table, column) {
		o := Outcome{Attack: a}
		if o.Check, _, err = verdict(r.Check(ctx, a.SQL)); err != nil {
			return nil, err
		}
		if o.Login, err = passesPostgreSQL(ctx, url, "BEGIN READ WRITE", a); err != nil {
			return nil, err
		}
		if o.ReadOnly, err = passesPostgreSQL(ctx, owner, "BEGIN READ ONLY", a); err != nil {
			return nil, err
		}
		_, err := r.Query(ctx, a.SQL, nil, sandbox.QueryLimits{MaxRows: 10, Timeout: 5 * time.Second}, func(sandbox.RowBatch) error { return nil })
		if o.Reader, o.Refusal, err = verdict(err); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// target is a table to aim at, quoted, and a column of it.
func findTarget(ctx context.Context, r *dbaccess.Reader) (table, column string, err error) {
	tables, err := r.Schema(ctx)
	if err != nil {
		return "", "", err
	}
	for _, t := range tables {
		if t.Kind == "table" && len(t.Columns) > 0 {
			return pgx.Identifier(strings.SplitN(t.Name, ".", 2)).Sanitize(), pgx.Identifier{t.Columns[0].Name}.Sanitize(), nil
		}
	}
	return "", "", errors.New("there is no table that the login may read, so there is nothing to prove")
}

func verdict(err error) (passed bool, why string, failed error) {
	var no *sandbox.Refusal
	if errors.As(err, &no) {
		return false, no.Message, nil
	}
	return err == nil, "", err
}

// beside tries an attack with nothing but PostgreSQL in its way.
func passesPostgreSQL(ctx context.Context, url, begin string, a Attack) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return false, err
	}
	for key, value := range map[string]string{"default_transaction_read_only": "off", "statement_timeout": "5s", "lock_timeout": "1s", "application_name": "glasshouse-prove"} {
		config.RuntimeParams[key] = value
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if a.only != "" {
		var may bool
		if err := conn.QueryRow(ctx, "SELECT coalesce("+a.only+", false)").Scan(&may); err != nil {
			return false, fmt.Errorf("%s: %w", a.Name, err)
		}
		// READ ONLY refuses commands that write; of functions it stops none.
		if may && begin == "BEGIN READ ONLY" && !strings.HasPrefix(a.SQL, "SELECT") && !strings.HasPrefix(a.SQL, "COPY (") && !strings.HasSuffix(a.SQL, "STDOUT") {
			may = false
		}
		return may, nil
	}
	if _, err := conn.Exec(ctx, begin); err != nil {
		return false, err
	}
	// The extended protocol takes one statement: nothing ends the transaction first
	// and then goes on.
	result := conn.PgConn().ExecParams(ctx, a.SQL, nil, nil, nil, nil).Read()
	var said *pgconn.PgError
	switch {
	case result.Err == nil:
	case errors.As(result.Err, &said):
	default:
		return false, fmt.Errorf("%s: %w", a.Name, result.Err)
	}
	if conn.PgConn().TxStatus() == 'I' {
		return result.Err == nil, nil
	}
	_, err = conn.Exec(ctx, "ROLLBACK")
	return result.Err == nil, err
}

// Print writes the outcomes as a table with sums; it returns how many attacks pass
// the whole door.
func Print(to io.Writer, all []Outcome) (through int, err error) {
	words := map[bool]string{true: "PASSES", false: "-"}
	out := tabwriter.NewWriter(to, 0, 4, 2, ' ', 0)
	fmt.Fprintln(out, "ATTACK\tCHECK\tLOGIN\tREAD ONLY\tTHE DOOR")
	var check, login, readOnly int
	for _, o := range all {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", o.Name, words[o.Check], words[o.Login], words[o.ReadOnly], words[o.Reader])
		check, login, readOnly, through = check+count(o.Check), login+count(o.Login), readOnly+count(o.ReadOnly), through+count(o.Reader)
	}
	fmt.Fprintf(out, "%d attacks; of them pass:\t%d\t%d\t%d\t%d\n", len(all), check, login, readOnly, through)
	return through, out.Flush()
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
