package dbaccess_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

const undoneTables = `
CREATE TABLE goods (id int PRIMARY KEY, name text, price numeric, made timestamptz, tags text[], more json, raw bytea,
	span int4range, ratio float8, twice numeric GENERATED ALWAYS AS (price * 2) STORED, secret text, "odd ""name" text);
INSERT INTO goods VALUES
	(1, E'it''s \\ "here"\n', 12345678901234567890.123, '2026-01-02 03:04:05.678901+02', '{a,"b c",NULL}', '{"k": 1}',
		'\x00ff', '[1,5)', 'NaN', DEFAULT, 'one', 'x'),
	(2, NULL, 0.10, 'infinity', '{}', NULL, NULL, 'empty', '-Infinity', DEFAULT, 'two', ''),
	(3, '日本', NULL, NULL, NULL, '[1.0, 2]', '\x', NULL, 0.1, DEFAULT, NULL, NULL);
CREATE TABLE parts (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, good int REFERENCES goods ON DELETE CASCADE,
	n int);
INSERT INTO parts (good, n) VALUES (3, 1), (3, 2);
CREATE TABLE keyless (n int);
INSERT INTO keyless VALUES (1), (1), (2);
CREATE TABLE seen (n int);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO seen VALUES (1); RETURN NULL; END';
CREATE TRIGGER note AFTER UPDATE ON keyless FOR EACH STATEMENT EXECUTE FUNCTION note();
GRANT INSERT ON seen TO ` + embedded.RoleWriter

func openUndone(t *testing.T) (owner *pgx.Conn, r *dbaccess.Reader) {
	t.Helper()
	s := dbtest.Start(t)
	owner, err := dbtest.Connect(context.Background(), s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { owner.Close(context.Background()) })
	return owner, openWithWriter(t, s, undoneTables)
}

// applyUndoable applies a statement, and returns its undo script and the number of changed rows.
func applyUndoable(t *testing.T, r *dbaccess.Reader, sql string) (undo sandbox.WriteUndo, rows int64) {
	t.Helper()
	rows, err := r.ApplyKeepingUndo(context.Background(), sql, nil, 1,
		func(_ context.Context, u sandbox.WriteUndo) error {
			undo = u
			return nil
		})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return undo, rows
}

func run(t *testing.T, owner *pgx.Conn, sql string) {
	t.Helper()
	if _, err := owner.Exec(context.Background(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// contents returns all rows of the tables as text.
func contents(t *testing.T, owner *pgx.Conn) (all string) {
	t.Helper()
	err := owner.QueryRow(context.Background(), `SELECT
		coalesce((SELECT string_agg(g::text, E'\n' ORDER BY id) FROM goods g), '')
		|| '/' || coalesce((SELECT string_agg(p::text, ',' ORDER BY id) FROM parts p), '')
		|| '/' || coalesce((SELECT string_agg(n::text, ',' ORDER BY n) FROM keyless), '')`).Scan(&all)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The script of each write restores all that the write changed, whatever the types of the columns are.
func TestUndoRestoresAllValues(t *testing.T) {
	t.Parallel()
	owner, r := openUndone(t)
	before := contents(t, owner)
	for _, c := range []struct {
		sql  string
		rows int64
	}{
		{"UPDATE goods SET name = 'new', price = price + 1, made = now(), tags = '{z}', more = '{}', raw = 'x', " +
			`span = NULL, ratio = 2, "odd ""name" = 'y'`, 3},
		{"UPDATE goods SET id = id + 10 WHERE id < 3", 2},
		{"UPDATE goods g SET name = o.name FROM goods o WHERE o.id = g.id % 3 + 1", 3},
		{"DELETE FROM goods WHERE id <> 3", 2},
		{"DELETE FROM parts", 2},
		{"DELETE FROM keyless WHERE n = 1", 2},
		{"INSERT INTO goods (id, name) VALUES (7, 'seven'), (8, '8')", 2},
		{"INSERT INTO parts (good, n) SELECT 1, 5 FROM goods", 3},
		{"INSERT INTO goods (id) VALUES (1), (9) ON CONFLICT DO NOTHING", 1},
	} {
		undo, rows := applyUndoable(t, r, c.sql)
		if rows != c.rows || undo.Rows != c.rows || undo.Missing != "" || contents(t, owner) == before {
			t.Errorf("%s: got %d rows and the undo %+v, want %d rows", c.sql, rows, undo, c.rows)
		}
		run(t, owner, undo.Script)
		if got := contents(t, owner); got != before {
			t.Errorf("%s: after its undo script\ngot  %s\nwant %s\n%s", c.sql, got, before, undo.Script)
		}
	}
}

// A row that has changed since the write stays as it is.
func TestUndoLeavesLaterChanges(t *testing.T) {
	t.Parallel()
	owner, r := openUndone(t)
	undo, _ := applyUndoable(t, r, "UPDATE goods SET price = 5")
	run(t, owner, "UPDATE goods SET price = 6 WHERE id = 2; UPDATE goods SET name = 'other' WHERE id = 3")
	run(t, owner, undo.Script)
	var got string
	err := owner.QueryRow(context.Background(), `SELECT string_agg(concat(price, ' ', name), ',' ORDER BY id) FROM goods
		WHERE id > 1`).Scan(&got)
	if want := "6 , other"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q: the price of 2 is a later one, and the name of 3 is not the write's",
			got, err, want)
	}
	undo, _ = applyUndoable(t, r, "INSERT INTO goods (id) VALUES (20), (21)")
	run(t, owner, "UPDATE goods SET name = 'used' WHERE id = 21")
	run(t, owner, undo.Script)
	var left int
	err = owner.QueryRow(context.Background(), `SELECT max(id) + count(*) FILTER (WHERE id = 20)
		FROM goods`).Scan(&left)
	if err != nil || left != 21 {
		t.Errorf("got %d, %v; want the row 21, which somebody has used, and not the row 20", left, err)
	}
}

// An undo says what it cannot restore, and why there is no script.
func TestUndoSaysWhatItCannot(t *testing.T) {
	t.Parallel()
	s := dbtest.Start(t)
	openWithWriter(t, s, undoneTables)
	r, err := dbaccess.Open(context.Background(), dbaccess.Config{
		URL:       s.URL(embedded.RoleReader, embedded.DatabaseKnowledge),
		WriterURL: s.URL(embedded.RoleWriter, embedded.DatabaseKnowledge), ServerCheck: true,
		MaskColumns: []string{"goods.secret"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	for _, c := range []struct{ sql, missing, cannot string }{
		{"UPDATE keyless SET n = 5", "no primary key", "trigger note"},
		{"INSERT INTO keyless VALUES (1)", "no primary key", "rows that have changed since"},
		{"UPDATE goods SET secret = 'shown?', name = 'n' WHERE id = 1", "", `"secret"`},
		{"UPDATE goods SET secret = 'shown? no' WHERE id = 1", "no column", `"secret"`},
		{"UPDATE goods SET name = 'n' WHERE false", "no row", ""},
		{"INSERT INTO goods (id) VALUES (2) ON CONFLICT (id) DO UPDATE SET name = 'again'", "ON CONFLICT", ""},
		{"DELETE FROM goods WHERE id = 3", `"secret"`, "parts_good_fkey"},
	} {
		undo, _ := applyUndoable(t, r, c.sql)
		if !strings.Contains(undo.Missing, c.missing) || (undo.Script == "") != (c.missing != "") ||
			!strings.Contains(strings.Join(undo.Cannot, "; "), c.cannot) {
			t.Errorf("%s: got %+v, want missing %q and cannot %q", c.sql, undo, c.missing, c.cannot)
		}
		if strings.Contains(undo.Script, "one") || strings.Contains(undo.Script, "shown?") {
			t.Errorf("%s: the script has values of a masked column: %s", c.sql, undo.Script)
		}
	}
}

// A write whose rows another transaction changes at the same time is applied without a script.
func TestUndoDoesNotStopAWrite(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := dbtest.Start(t)
	r := openWithWriter(t, s, undoneTables)
	owner, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, embedded.DatabaseKnowledge)) // who may see locks
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { owner.Close(ctx) })
	run(t, owner, "BEGIN; UPDATE goods SET price = 1 WHERE id = 2")
	var undo sandbox.WriteUndo
	done := make(chan error, 1)
	go func() {
		_, err := r.ApplyKeepingUndo(ctx, "UPDATE goods SET price = price + 1 WHERE id = 2", nil, 1,
			func(_ context.Context, u sandbox.WriteUndo) error { undo = u; return nil })
		done <- err
	}()
	eventually(t, "the write waits for the row", func() bool {
		var waits bool
		err := owner.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)`).Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
		return waits
	})
	run(t, owner, "COMMIT")
	if err := <-done; err != nil || undo.Missing == "" || undo.Script != "" {
		t.Errorf("got %v and the undo %+v, want a write without a script", err, undo)
	}
	var price int
	if err := owner.QueryRow(ctx, "SELECT price FROM goods WHERE id = 2").Scan(&price); err != nil || price != 2 {
		t.Errorf("got the price %d, %v; want 2: on top of the other transaction", price, err)
	}
}

// A write whose undo cannot be kept changes nothing.
func TestUndoThatIsNotKept(t *testing.T) {
	t.Parallel()
	owner, r := openUndone(t)
	before, full := contents(t, owner), errors.New("the disk is full")
	_, err := r.ApplyKeepingUndo(context.Background(), "DELETE FROM goods", nil, 1,
		func(context.Context, sandbox.WriteUndo) error { return full })
	if !errors.Is(err, full) || contents(t, owner) != before {
		t.Errorf("got %v; want the error of keep and no change", err)
	}
}
