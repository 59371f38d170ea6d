package dbaccess_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

func reader(t *testing.T, role string, s *dbtest.Databases) *dbaccess.Reader {
	t.Helper()
	return openReader(t, dbaccess.Config{URL: s.URL(role, embedded.DatabaseKnowledge)})
}

func openReader(t *testing.T, c dbaccess.Config) *dbaccess.Reader {
	t.Helper()
	r, err := dbaccess.Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// TestReader measures allocations of the whole process, so it does not run in parallel. It creates a login, so its
// server is its own.
func TestReader(t *testing.T) {
	ctx := context.Background()
	s := dbtest.StartPrivate(t)
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	r := reader(t, embedded.RoleReader, s)
	query := func(sql string, params map[string]any, l sandbox.QueryLimits) (result, error) {
		return all(ctx, r, sql, params, l)
	}

	t.Run("login audit", func(t *testing.T) {
		if err := r.AuditLogin(ctx); err != nil {
			t.Errorf("AuditLogin of the reader = %v, want nil", err)
		}
		for _, role := range []string{embedded.RoleAdmin, embedded.RoleOwner} {
			if err := reader(t, role, s).AuditLogin(ctx); err == nil || !strings.Contains(err.Error(), "CREATE ROLE") {
				t.Errorf("AuditLogin of %s = %v, want an error with the SQL of a suitable login", role, err)
			}
		}
	})

	t.Run("login made by role-sql", func(t *testing.T) {
		admin, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, embedded.DatabaseKnowledge))
		if err != nil {
			t.Fatal(err)
		}
		defer admin.Close(ctx)
		sql := dbaccess.RoleSQL("made Here", embedded.DatabaseKnowledge, dbaccess.RoleOptions{RevokeFromPublic: true})
		if _, err := admin.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
		// The same login for another database of the server. An error would end the script (ON_ERROR_STOP).
		if _, err := admin.Exec(ctx, "CREATE DATABASE second"); err != nil {
			t.Fatal(err)
		}
		second, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, "second"))
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close(ctx)
		sql = dbaccess.RoleSQL("made Here", "second", dbaccess.RoleOptions{RevokeFromPublic: true,
			Mask: []string{"notes.secret"}})
		for _, sql := range []string{"CREATE TABLE notes (id int, secret text)", sql, sql} {
			if _, err := second.Exec(ctx, sql); err != nil {
				t.Fatal(err)
			}
		}
		var reads, readsSecret bool
		if err := second.QueryRow(ctx, `SELECT has_column_privilege('made Here', 'notes', 'id', 'SELECT'),
			has_column_privilege('made Here', 'notes', 'secret', 'SELECT')`).Scan(&reads, &readsSecret); err != nil ||
			!reads || readsSecret {
			t.Errorf("got id %v, secret %v, %v; want that the login reads all columns but the masked one",
				reads, readsSecret, err)
		}
		odd := dbaccess.RoleSQL("$$ ' $q$", embedded.DatabaseKnowledge, dbaccess.RoleOptions{})
		if _, err := admin.Exec(ctx, odd); err != nil {
			t.Errorf("a name with quotes: %v", err)
		}
		made := reader(t, "made Here", s)
		if err := made.AuditLogin(ctx); err != nil {
			t.Error(err)
		}
		if rows, err := all(ctx, made, "SELECT count(*) FROM users", nil, sandbox.QueryLimits{}); err != nil ||
			rows.Data[0][0] != int64(500) {
			t.Errorf("got %v, %v, want 500", rows.Data, err)
		}

		// The server's analysis of its statements is in the server's log until role-sql --server-check.
		for _, want := range []bool{true, false} {
			checked, err := dbaccess.Open(ctx, dbaccess.Config{
				URL: s.URL("made Here", embedded.DatabaseKnowledge), ServerCheck: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			if logs, err := checked.LogsTrees(ctx); err != nil || logs != want {
				t.Errorf("LogsTrees: got %v, %v, want %v", logs, err, want)
			}
			checked.Close()
			sql := dbaccess.RoleSQL("made Here", "", dbaccess.RoleOptions{ServerCheck: true})
			_, sql, _ = strings.Cut(sql, "A superuser")
			if _, err := admin.Exec(ctx, "-- A superuser"+sql); err != nil {
				t.Fatal(err)
			}
		}
	})

	t.Run("values", func(t *testing.T) {
		rows, err := query(
			`SELECT 1::int8 AS i, 1.50::numeric AS d, 'NaN'::float8 AS f, true AS b, NULL AS n, 'é' AS t, '\x00ff'::bytea AS y, '{"a": 9007199254740993}'::jsonb AS j,
			ARRAY[[1,NULL],[3,4]] AS a, '2026-01-02 03:04:05.6+00'::timestamptz AS z, 'infinity'::timestamptz AS inf, interval '1 year 2 days 03:04:05.6' AS v, 9223372036854775807 AS big, ARRAY['a "b"', 'NULL', NULL] AS s`,
			nil,
			sandbox.QueryLimits{},
		)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"i":   int64(1),
			"d":   "1.50",
			"b":   true,
			"n":   nil,
			"t":   "é",
			"y":   []byte{0, 255},
			"j":   `{"a": 9007199254740993}`,
			"a":   []any{[]any{int64(1), nil}, []any{int64(3), int64(4)}},
			"z":   "2026-01-02T03:04:05.6+00:00",
			"inf": "infinity",
			"v":   []any{int64(12), int64(2), int64(11045600000)},
			"big": int64(9223372036854775807),
			"s":   []any{`a "b"`, "NULL", nil},
		}
		for i, c := range rows.Columns {
			if w, ok := want[c.Name]; ok && !reflect.DeepEqual(rows.Data[i][0], w) {
				t.Errorf("%s (%s): got %#v, want %#v", c.Name, c.Kind, rows.Data[i][0], w)
			}
		}
	})

	t.Run("hints for other dialects", func(t *testing.T) {
		for sql, hint := range map[string]string{
			"show tables": "db_tables()", "DESCRIBE users": "db_schema(table)", "PRAGMA table_info(users)": "db_schema(table)",
			"SELECT TOP 5 * FROM users": "LIMIT", "SELECT * FROM users LIMIT 5, 10": "OFFSET", "SELECT `name` FROM users": `"name"`,
			"SELECT * FROM users WHERE id = %s": ":name", "SELECT * FROM users WHERE id = %(id)s": ":name", "SELECT * FROM users WHERE id = ? AND true": ":name",
			"SELECT * FROM users WHERE id IN ?": ":name", "SELECT id, FROM users": "comma", "SELECT * FROM users WHERE id IN (:ids)": "= ANY(:name)",
			`SELECT * FROM users WHERE name = "Bob"`: "'Bob'", "SELECT '2026-13-45'::date": "'2026-01-31'",
			"SELECT `nam` FROM": `"name"`, "SELECT name FROM users WHERE": "", `SELECT "nam" FROM users`: "did you mean name?", "SELECT '%s, ?' + FROM users": "",
		} {
			params := map[string]any{}
			if strings.Contains(sql, ":ids") {
				params["ids"] = []any{json.Number("1")}
			}
			_, err := query(sql, params, sandbox.QueryLimits{})
			var no *sandbox.Refusal
			if !errors.As(err, &no) || hint == "" && no.Hint != "" || !strings.Contains(no.Hint, hint) {
				t.Errorf("%s: got %+v, %v, want a hint with %q", sql, no, err, hint)
			}
		}
	})

	t.Run("parameters", func(t *testing.T) {
		for _, c := range []struct {
			sql    string
			params map[string]any
			want   any
		}{
			{`SELECT :x::text || ':x' -- :x`, map[string]any{"x": "a'b"}, "a'b:x"},
			{`SELECT (ARRAY[1,2,3])[1:2]`, nil, []any{int64(1), int64(2)}},
			{`SELECT count(*) FROM users WHERE id = ANY(:ids)`, map[string]any{"ids": []any{json.Number("1"), json.Number("2")}}, int64(2)},
			{`SELECT :n`, map[string]any{"n": json.Number("9007199254740993")}, int64(9007199254740993)},
			{`SELECT :j ->> 'k'`, map[string]any{"j": map[string]any{"k": "v"}}, "v"},
			{`SELECT $$:no$$ || :a || :a`, map[string]any{"a": "z"}, ":nozz"},
			{`SELECT :d::date + 1`, map[string]any{"d": "2026-01-31"}, "2026-02-01"},
		} {
			rows, err := query(c.sql, c.params, sandbox.QueryLimits{})
			if err != nil || !reflect.DeepEqual(rows.Data[0][0], c.want) {
				t.Errorf("%s: got %v, %v, want %v", c.sql, rows.Data, err, c.want)
			}
		}
		if _, err := query(`SELECT :a`, nil, sandbox.QueryLimits{}); reason(err) != "missing-parameter" {
			t.Errorf("missing parameter: got %v, want missing-parameter", err)
		}
		if _, err := query(`SELECT 1`, map[string]any{"a": true}, sandbox.QueryLimits{}); reason(
			err,
		) != "unused-parameter" {
			t.Errorf("unused parameter: got %v, want unused-parameter", err)
		}
	})

	t.Run("truncation is exact", func(t *testing.T) {
		for n, want := range map[int]bool{499: true, 500: false, 501: false} {
			rows, err := query(`SELECT id FROM users`, nil, sandbox.QueryLimits{MaxRows: n})
			if err != nil || rows.Truncated != want || rows.Rows != min(n, 500) {
				t.Errorf("limit of %d rows: got %d, truncated %v, %v", n, rows.Rows, rows.Truncated, err)
			}
		}
		rows, err := query(`SELECT repeat('x', 1000) FROM users`, nil, sandbox.QueryLimits{MaxBytes: 10_000})
		if err != nil || !rows.Truncated || rows.Rows != 10 {
			t.Errorf(
				"limit of 10 000 bytes: got %d rows, truncated %v, %v, want 10, true",
				rows.Rows,
				rows.Truncated,
				err,
			)
		}
	})

	t.Run("errors have positions and suggestions", func(t *testing.T) {
		_, err := query("SELECT :p,\n nme FROM users", map[string]any{"p": json.Number("1")}, sandbox.QueryLimits{})
		var no *sandbox.Refusal
		if !errors.As(err, &no) || no.Reason != "unknown-column" || no.Nearest != "name" || no.Line != 2 ||
			no.Position != 13 {
			t.Errorf("unknown column: got %+v", no)
		}
		if _, err = query("SELECT * FROM user_activity", nil, sandbox.QueryLimits{}); !errors.As(err, &no) ||
			no.Reason != "unknown-table" {
			t.Errorf("unknown table: got %+v", no)
		}
		if _, err = query("SELECT 1/0", nil, sandbox.QueryLimits{}); !errors.As(err, &no) || no.SQLState != "22012" {
			t.Errorf("division by zero: got %+v", no)
		}
		if _, err = query("SELECT repeat('é', 5000000)::int", nil, sandbox.QueryLimits{}); !errors.As(err, &no) ||
			no.SQLState != "22P02" ||
			len(no.Message) > 40_000 ||
			!strings.Contains(no.Message, "more characters were cut") {
			t.Errorf("huge value in a message: got %.300v", err)
		}
	})

	t.Run("a value above the byte limit is not received", func(t *testing.T) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		rows, err := query(`SELECT 1 AS n UNION ALL SELECT length(repeat('x', 200000000))`, nil, sandbox.QueryLimits{})
		if err != nil || rows.Rows != 2 {
			t.Fatalf("got %d rows, %v, want 2", rows.Rows, err)
		}
		rows, err = query(`SELECT repeat('x', 200000000) FROM users`, nil, sandbox.QueryLimits{MaxBytes: 1 << 20})
		runtime.ReadMemStats(&after)
		if err != nil || !rows.Truncated || rows.Rows != 0 {
			t.Errorf("got %d rows, truncated %v, %v, want 0, true", rows.Rows, rows.Truncated, err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 50<<20 {
			t.Errorf("allocated %d MB, want at most 50", grown>>20)
		}
	})

	t.Run("cancelling the context cancels on the server", func(t *testing.T) {
		admin, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, embedded.DatabaseKnowledge))
		if err != nil {
			t.Fatal(err)
		}
		defer admin.Close(ctx)
		running := func() (n int) {
			if err := admin.QueryRow(ctx, `SELECT count(*)::int FROM pg_stat_activity WHERE query LIKE '%leaves%generate_series%' AND state = 'active' AND pid <> pg_backend_pid()`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		left, leave := context.WithCancel(ctx)
		done := make(chan error)
		go func() {
			_, err := all(
				left,
				r,
				`SELECT count(*) AS leaves FROM generate_series(1, 10000000000)`,
				nil,
				sandbox.QueryLimits{},
			)
			done <- err
		}()
		eventually(t, "the statement runs", func() bool { return running() > 0 })
		leave()
		if err := <-done; reason(err) != "cancelled" {
			t.Errorf("got %v, want cancelled", err)
		}
		eventually(t, "the cancel ends the statement", func() bool { return running() == 0 })
	})

	t.Run("the session is clean after a statement", func(t *testing.T) {
		one, err := dbaccess.Open(
			ctx,
			dbaccess.Config{URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge), MaxConns: 1},
		)
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		pid := func() any {
			rows, err := all(
				ctx,
				one,
				`SELECT pg_backend_pid(), current_setting('search_path'), current_setting('statement_timeout')`,
				nil,
				sandbox.QueryLimits{},
			)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(rows.Data)
		}
		first := pid()
		for _, sql := range []string{"SELECT 1", "SELECT 1/0", "SELECT * FROM nowhere", "SELECT id FROM orders", "SELECT pg_sleep(1)"} {
			_, _ = all(ctx, one, sql, nil, sandbox.QueryLimits{MaxRows: 3, Timeout: 5 * time.Second})
			if now := pid(); now != first {
				t.Errorf("session after %s: got %v, want %v", sql, now, first)
			}
		}
	})

	t.Run("statements per user are limited", func(t *testing.T) {
		turns, err := dbaccess.Open(
			ctx,
			dbaccess.Config{URL: s.URL(embedded.RoleReader, embedded.DatabaseKnowledge), PerUser: 1},
		)
		if err != nil {
			t.Fatal(err)
		}
		defer turns.Close()
		slow, end := context.WithCancel(ctx)
		done := make(chan struct{})
		started := make(chan struct{})
		go func() {
			defer close(done)
			close(started)
			_, _ = all(
				slow,
				turns,
				`SELECT count(*) FROM generate_series(1, 10000000000)`,
				nil,
				sandbox.QueryLimits{User: "a"},
			)
		}()
		<-started
		waited := func(user string, limit time.Duration) bool {
			brief, stop := context.WithTimeout(ctx, limit)
			defer stop()
			_, err := all(brief, turns, `SELECT 1`, nil, sandbox.QueryLimits{User: user})
			return reason(err) == "cancelled"
		}
		for deadline := time.Now().Add(5 * time.Second); !waited("a", 300*time.Millisecond); {
			if time.Now().After(deadline) {
				t.Fatal("a second statement of the same user ran")
			}
		}
		if waited("b", time.Minute) {
			t.Error("a statement of another user waited")
		}
		select {
		case <-done:
			t.Error("a statement of another user waited until the slow one ended")
		default:
		}
		end()
		<-done
		if waited("a", time.Minute) {
			t.Error("the slot was not released")
		}
	})

	t.Run("statement timeout", func(t *testing.T) {
		began := time.Now()
		_, err := query(
			`SELECT count(*) FROM generate_series(1, 10000000000)`,
			nil,
			sandbox.QueryLimits{Timeout: 200 * time.Millisecond},
		)
		if reason(err) != "timeout" || time.Since(began) > time.Minute {
			t.Errorf("got %v after %s, want timeout", err, time.Since(began))
		}
		if _, err := query(`SELECT 1`, nil, sandbox.QueryLimits{}); err != nil {
			t.Errorf("next statement: got %v, want nil", err)
		}
	})

	// This tests the login alone, without the checker.
	t.Run("the login cannot write", func(t *testing.T) {
		conn, err := dbtest.Connect(ctx, s.URL(embedded.RoleReader, embedded.DatabaseKnowledge))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		for _, sql := range []string{"UPDATE users SET name = ''", "CREATE TABLE x (a int)", "CREATE TEMP TABLE x (a int)", "COPY users TO '/tmp/x'", "SELECT pg_read_file('/etc/passwd')", "CREATE SCHEMA s", "SET ROLE glasshouse_owner"} {
			if _, err := conn.Exec(ctx, sql); err == nil {
				t.Errorf("the server allowed %s", sql)
			}
		}
	})

	t.Run("schema", func(t *testing.T) {
		tables, err := r.Tables(ctx)
		if err != nil || !strings.Contains(strings.Join(tables, " "), "user_activities") {
			t.Fatalf("Tables = %v, %v", tables, err)
		}
		described, err := r.Schema(ctx, "user_activities")
		if err != nil || len(described) != 1 {
			t.Fatalf("Schema = %+v, %v", described, err)
		}
		columns := described[0].Columns
		if len(columns) != 6 || columns[0].Name != "id" || !columns[0].PrimaryKey || !columns[0].Unique ||
			columns[1].References == nil ||
			*columns[1].References != "users(id)" ||
			columns[1].IsNullable != "NO" {
			t.Errorf("columns = %+v", columns)
		}
		if n := described[0].RowEstimate; n == nil || *n < 20_000 || *n > 30_000 {
			t.Errorf("row estimate: got %v, want about 25000", n)
		}
		items, err := r.Schema(ctx, "order_items")
		if err != nil || !reflect.DeepEqual(items[0].PrimaryKey, []string{"order_id", "line"}) ||
			!reflect.DeepEqual(
				items[0].ForeignKeys[0],
				sandbox.ForeignKey{Columns: []string{"order_id"}, Table: "orders", ReferencedColumns: []string{"id"}},
			) || *items[0].Comment != "Lines of orders" || items[0].Kind != "table" {
			t.Errorf("order_items = %+v, %v", items, err)
		}
		if all, err := r.Schema(ctx); err != nil || len(all) != len(tables) {
			t.Errorf("Schema: got %d of %d tables, %v", len(all), len(tables), err)
		}
		_, err = r.Schema(ctx, "user_activitie")
		var no *sandbox.Refusal
		if !errors.As(err, &no) || no.Nearest != "user_activities" {
			t.Errorf("unknown table: got %v, want the suggestion user_activities", err)
		}
	})
}
