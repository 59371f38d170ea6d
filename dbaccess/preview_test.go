package dbaccess_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

// A preview has each row before and after, even where another statement is hard to make, and changes nothing.
func TestPreviewHasRowsBeforeAndAfter(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	owner, r := openSampled(t)
	for sql, want := range map[string]string{
		"UPDATE customers SET n = n + 1, tags = '{}' WHERE (NOT vip) IS NULL AND id < 4": `1 [{` +
			`{"id":3,"name":"eve","vip":null,"n":3,"tags":null,"odd \"name)":3,"where":3} ` +
			`{"id":3,"name":"eve","vip":null,"n":4,"tags":[],"odd \"name)":3,"where":3}}]`,
		`UPDATE "delete" AS set SET set = :n, id = id + 10 WHERE set.from = 'x' OR set.id = 2 AND false`: `1 [{` +
			`{"id":1,"set":1,"from":"x"} {"id":11,"set":5,"from":"x"}}]`,
		"WITH o AS (SELECT sum(total) AS n FROM orders WHERE NOT total < 20) " +
			"UPDATE ONLY orders x SET total = o.n FROM o, customers c WHERE c.id = customer_id AND x.id = 13 " +
			"RETURNING 1": `1 [{` +
			`{"id":13,"customer_id":2,"total":30} {"id":13,"customer_id":2,"total":140}}]`,
		"DELETE FROM orders USING customers c WHERE c.id = customer_id AND total = 40 -- old": `1 [{` +
			`{"id":14,"customer_id":6,"total":40} null}]`,
		"INSERT INTO orders (total, id) VALUES (1, 99), (2, 11) ON CONFLICT (id) DO NOTHING": `1 [{` +
			`null {"id":99,"customer_id":null,"total":1}}]`,
		"DELETE FROM customers WHERE false": "0 []",
	} {
		params := map[string]any{}
		if strings.Contains(sql, ":n") {
			params["n"] = json.Number("5")
		}
		got, err := r.Preview(ctx, sql, params, sandbox.QueryLimits{})
		if text := previewText(got); err != nil || text != want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", sql, text, err, want)
		}
	}
	if got, err := r.Preview(ctx, "DELETE FROM customers", nil, sandbox.QueryLimits{}); err != nil ||
		got.Affected != 7 || len(got.Rows) != 7 {
		t.Errorf("got %s, %v; want all rows", previewText(got), err)
	}
	var rows, sum int
	err := owner.QueryRow(ctx, `SELECT count(*), (SELECT sum(total) FROM orders) + (SELECT count(*) FROM "delete")
		FROM customers`).Scan(&rows, &sum)
	if err != nil || rows != 7 || sum != 152 {
		t.Errorf("got %d rows and the sum %d, %v; want 7 and 152: the previews changed something", rows, sum, err)
	}
}

func previewText(p sandbox.WritePreview) string {
	var rows []string
	for _, row := range p.Rows {
		rows = append(rows, fmt.Sprintf("{%s %s}", row.Before, row.After))
	}
	return fmt.Sprintf("%d [%s]", p.Affected, strings.Join(rows, " "))
}

// What a rollback does not undo, or may not undo, is refused, however the statement reaches it.
func TestPreviewIsRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := dbtest.Start(t)
	admin, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	r := openWithWriter(t, s, `
		CREATE TABLE plain (id int PRIMARY KEY, n int);
		INSERT INTO plain VALUES (1, 1), (2, 2);
		CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TABLE triggered (id int);
		CREATE TRIGGER touch BEFORE UPDATE ON triggered FOR EACH ROW EXECUTE FUNCTION touch();
		CREATE TABLE parted (id int) PARTITION BY RANGE (id);
		CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (10);
		CREATE TRIGGER touch AFTER INSERT ON part FOR EACH ROW EXECUTE FUNCTION touch();
		CREATE TABLE parent (id int PRIMARY KEY);
		CREATE TABLE child (id int REFERENCES parent ON DELETE CASCADE);
		CREATE TABLE ruled (id int);
		CREATE RULE also AS ON DELETE TO ruled DO ALSO DELETE FROM plain;
		CREATE TABLE numbered (id serial, n int);
		CREATE TABLE identified (id int GENERATED ALWAYS AS IDENTITY, n int);
		CREATE TABLE rolled (id int DEFAULT (random() * 100)::int, n int);
		CREATE FUNCTION odd(int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
		CREATE TABLE checked (id int CHECK (odd(id)));
		CREATE DOMAIN oddity AS int CHECK (odd(VALUE));
		CREATE DOMAIN oddities AS oddity;
		CREATE TABLE domained (id oddities);
		CREATE VIEW simple AS SELECT * FROM plain;
		CREATE TABLE secured (id int);
		ALTER TABLE secured ENABLE ROW LEVEL SECURITY;
		CREATE TYPE mood AS ENUM ('good');
		CREATE TABLE felt (id mood);
		CREATE TABLE referring (id int REFERENCES plain DEFERRABLE INITIALLY DEFERRED);
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO glasshouse_writer;
		GRANT SELECT ON ALL TABLES IN SCHEMA public TO glasshouse_reader`)
	if _, err := admin.Exec(ctx, `
		CREATE FOREIGN DATA WRAPPER nothing;
		CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing;
		CREATE FOREIGN TABLE remote (id int) SERVER elsewhere;
		CREATE TABLE mixed (id int) PARTITION BY RANGE (id);
		CREATE FOREIGN TABLE far PARTITION OF mixed FOR VALUES FROM (0) TO (10) SERVER elsewhere;
		CREATE FUNCTION mood(public.mood) RETURNS json LANGUAGE plpgsql AS $$ BEGIN RETURN '1'; END $$;
		CREATE CAST (public.mood AS json) WITH FUNCTION mood(public.mood);
		GRANT SELECT, INSERT, UPDATE, DELETE ON remote, mixed TO glasshouse_writer, glasshouse_reader`); err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]string{
		"UPDATE triggered SET id = 1":                                    "the trigger touch",
		"INSERT INTO parted VALUES (1)":                                  "part has the trigger touch",
		"DELETE FROM parent":                                             "foreign key child_id_fkey",
		"DELETE FROM ruled":                                              "rules are not supported",
		"INSERT INTO ruled VALUES (1)":                                   "the rule also",
		"INSERT INTO numbered (n) VALUES (1)":                            "volatile function nextval(regclass)",
		"UPDATE numbered SET id = DEFAULT":                               "volatile function nextval(regclass)",
		"INSERT INTO identified (n) VALUES (1)":                          "identity column",
		"INSERT INTO rolled (n) VALUES (1)":                              "volatile function random()",
		"DELETE FROM plain WHERE n > random()":                           "volatile function random()",
		"INSERT INTO checked VALUES (1)":                                 "volatile function public.odd(integer)",
		"INSERT INTO domained VALUES (1)":                                "volatile function public.odd(integer)",
		"UPDATE simple SET n = 1":                                        `"simple" is a view`,
		"DELETE FROM secured":                                            "row security",
		"DELETE FROM remote":                                             `"remote" is a view or a foreign table`,
		"DELETE FROM plain USING mixed":                                  "far is a foreign table",
		"DELETE FROM mixed":                                              "far is a foreign table",
		"DELETE FROM felt":                                               "the cast from mood to json",
		"DELETE FROM plain USING remote":                                 "remote is a foreign table",
		"DELETE FROM plain WHERE CURRENT OF c":                           "CurrentOf",
		"MERGE INTO plain USING child ON false WHEN MATCHED THEN DELETE": "only INSERT, UPDATE",
		"INSERT INTO referring VALUES (77)":                              "violates foreign key",
		"UPDATE plain SET id = 1":                                        "duplicate key",
	} {
		_, err := r.Preview(ctx, sql, nil, sandbox.QueryLimits{})
		var no *sandbox.Refusal
		if !errors.As(err, &no) || !strings.Contains(no.Message, want) {
			t.Errorf("%s: got %v, want a refusal with %q", sql, err, want)
		}
	}
	// Foreign keys that only check have a preview; so has what a disabled trigger would touch.
	if _, err := admin.Exec(ctx, "ALTER TABLE triggered DISABLE TRIGGER touch"); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"INSERT INTO referring VALUES (1)", "UPDATE plain SET n = 7", "UPDATE triggered SET id = 1",
		"UPDATE numbered SET n = 1", "INSERT INTO numbered VALUES (1, 1)",
	} {
		if _, err := r.Preview(ctx, sql, nil, sandbox.QueryLimits{}); err != nil {
			t.Errorf("%s: got %v, want a preview", sql, err)
		}
	}

	if _, err := admin.Exec(ctx, "BEGIN; SELECT FROM plain FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	_, err = r.Preview(ctx, "DELETE FROM plain", nil, sandbox.QueryLimits{})
	var no *sandbox.Refusal
	if !errors.As(err, &no) || no.Reason != "timeout" || !strings.Contains(no.Message, "holds a lock") {
		t.Errorf("a locked row: got %v, want a timeout that names the lock", err)
	}
}

// A preview shows no value of a masked column, nor of one that the reading login may not see.
func TestPreviewIsMasked(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := dbtest.Start(t)
	openWithWriter(t, s, `
		CREATE TABLE staff (id int, email text, salary int, n int);
		INSERT INTO staff VALUES (1, 'ada@example.com', 12345, 1);
		REVOKE ALL ON staff FROM glasshouse_reader;
		GRANT SELECT (id, email, n) ON staff TO glasshouse_reader`)
	r, err := dbaccess.Open(ctx, dbaccess.Config{
		URL:         s.URL(embedded.RoleReader, embedded.DatabaseKnowledge),
		WriterURL:   s.URL(embedded.RoleWriter, embedded.DatabaseKnowledge),
		MaskColumns: []string{"staff.email"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := r.Preview(ctx, "UPDATE staff SET n = 2, email = 'x' WHERE id = 1", nil, sandbox.QueryLimits{})
	const want = `1 [{{"id":1,"email":"***","salary":"***","n":1} {"id":1,"email":"***","salary":"***","n":2}}]`
	if text := previewText(got); err != nil || text != want {
		t.Errorf("got %s, %v; want %s", text, err, want)
	}
}
