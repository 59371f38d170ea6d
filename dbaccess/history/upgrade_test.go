package history

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/migrations"
	"glasshouse/sandbox"
)

// Every schema that ever was, with data in it, becomes today's: nothing is lost, what is kept beside the records agrees
// with them, and the history goes on.
func TestEveryOlderSchemaIsUpgraded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	names, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	today := newArchivedHistory(t)
	const count = 5
	today.fill(t, count)
	key := sandbox.Key{ID: "k", User: "ada", Role: sandbox.RoleAgent, Name: "laptop", CreatedAt: time.Now().UTC()}
	if err := today.CreateKey(ctx, key, []byte("hash"), 0); err != nil {
		t.Fatal(err)
	}
	write := sandbox.PendingWrite{ID: "w", ExecutionID: "e00", User: "ada", Status: sandbox.WritePending,
		CreatedAt: key.CreatedAt}
	if err := today.AddWrite(ctx, write, 100, 1<<20); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < len(names); n++ {
		t.Run("from "+names[n-1], func(t *testing.T) {
			t.Parallel()
			url := databaseURL(t)
			tables := copyToSchema(t, today.url, url, names[:n])
			old := archivedHistory{openStore(t, Config{URL: url, Dir: t.TempDir()}), today.blobs, today.blobsDir}
			lacks := func(row string) bool { // the row is of a table that the schema lacked
				table, _, _ := strings.Cut(row, " ")
				later := []string{"connections", "pending_writes", "recording_chunks", "artifacts"}
				isLater := slices.Contains(later, table)
				return isLater && !slices.Contains(tables, table)
			}
			want := slices.DeleteFunc(rowsOf(t, today), lacks)
			if got := rowsOf(t, old); !slices.Equal(got, want) {
				t.Errorf("got\n%.2000s\nwant\n%.2000s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			counts, problems := old.verify(t, false)
			problems = slices.DeleteFunc(problems, func(problem string) bool { // such records had no connections
				return !slices.Contains(tables, "connections") &&
					strings.HasSuffix(problem, "the table connections has 0")
			})
			if counts.Executions != count || len(problems) > 0 {
				t.Errorf("verify: got %+v, %q; want %d executions and no problems", counts, problems, count)
			}
			ofDefault := sandbox.RecordFilter{Database: sandbox.DefaultDatabase, Limit: 100}
			statements, _, err := old.Statements(ctx, ofDefault)
			if err != nil || len(statements) != 3*count {
				t.Errorf("got %d statements of the default database and %v, want %d", len(statements), err, 3*count)
			}
			old.begin(t, runningExecution("new"))
			old.finish(t, runningExecution("new"), sandbox.StatusCompleted)
			st, err := old.Statistics(ctx, "ada")
			if want := (count+1)/2 + 1; err != nil || st.TotalExecutions != want {
				t.Errorf("statistics after another execution: got %+v, %v; want %d executions", st, err, want)
			}
		})
	}
}

// copyToSchema makes the schema of the first migrations in the database of a URL, and copies into it what it has of the
// rows of another database. It returns the tables of the schema.
func copyToSchema(t *testing.T, from, to string, names []string) (tables []string) {
	t.Helper()
	ctx := context.Background()
	connect := func(url string) *pgx.Conn {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(ctx) })
		return conn
	}
	source, target := connect(from), connect(to)
	sql := `CREATE TABLE schema_versions (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());`
	for _, name := range names {
		text, err := migrations.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sql += string(text) + fmt.Sprintf(`INSERT INTO schema_versions (name) VALUES ('%s');`, name)
	}
	if _, err := target.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
	rows, _ := target.Query(ctx, `SELECT table_name::text, string_agg(quote_ident(column_name), ', ') FROM
		information_schema.columns WHERE table_schema = 'public' AND column_name <> 'node'
		AND table_name NOT IN ('schema_versions', 'nodes', 'execution_totals') GROUP BY 1`) // triggers fill the last
	var table, columns string
	copies := map[string]string{}
	if _, err := pgx.ForEachRow(rows, []any{&table, &columns}, func() error {
		copies[table] = columns
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for table, columns := range copies {
		var data bytes.Buffer
		_, err := source.PgConn().CopyTo(ctx, &data, fmt.Sprintf(`COPY %s (%s) TO STDOUT`, table, columns))
		if err == nil {
			_, err = target.PgConn().CopyFrom(ctx, &data, fmt.Sprintf(`COPY %s (%s) FROM STDIN`, table, columns))
		}
		if err != nil {
			t.Fatalf("copy %s: %v", table, err)
		}
		tables = append(tables, table)
	}
	return tables
}

// rowsOf returns the rows of history as text, each with its table, without what an older schema cannot know.
func rowsOf(t *testing.T, h archivedHistory) (rows []string) {
	t.Helper()
	for table, omitted := range map[string]string{
		"executions": "{node,expires_at}", "sandboxes": "{node,state,ended_at}", "queries": "{}", "connections": "{}",
		"recording_chunks": "{}", "artifacts": "{}", "execution_totals": "{}", "pending_writes": "{}",
		"keys": "{account,created_by,created_with}",
	} {
		rows = append(rows, h.query(t, fmt.Sprintf(`SELECT '%s ' || (to_jsonb(r) - '%s'::text[])::text FROM %[1]s r`,
			table, omitted))...)
	}
	slices.Sort(rows)
	return rows
}
