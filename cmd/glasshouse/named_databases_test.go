package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

func TestSettingsOfNamedDatabases(t *testing.T) {
	t.Setenv("GLASSHOUSE_DATABASE", "sales=postgres://a@db/sales  hr=postgresql://a@h1,h2/hr?sslmode=require")
	t.Setenv("GLASSHOUSE_MAX_QUERIES", "20,hr:3")
	s, err := parseSettings("--database", "sales=postgres://b@db/sales", "--database=ops=postgres://c@db/ops",
		"--mask-columns", "users.email,sales:public.orders.email hr:people.pay", "--allow-functions",
		"total(int,int), sales:shop.tax(int, text)", "--writer-url", "hr=postgres://w@db/hr", "--writer-url",
		"host=db dbname=x", "--knowledge-url", "host=db dbname=x", "--server-check", "sales")
	if err != nil {
		t.Fatal(err)
	}
	want := []namedURL{{"hr", "postgresql://a@h1,h2/hr?sslmode=require"}, {"sales", "postgres://b@db/sales"},
		{"ops", "postgres://c@db/ops"}}
	if got := s.databases.named.list; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := s.readerConfig("sales", "u"); !reflect.DeepEqual(got.MaskColumns, []string{"public.orders.email"}) ||
		!reflect.DeepEqual(got.AllowFunctions, []string{"shop.tax(int, text)"}) ||
		got.Name != "sales" || !got.ServerCheck {
		t.Errorf("sales: got %+v", got)
	}
	if got := s.readerConfig(sandbox.DefaultDatabase, "u"); !reflect.DeepEqual(got.MaskColumns, []string{"users.email"}) ||
		!reflect.DeepEqual(got.AllowFunctions, []string{"total(int,int)"}) || got.ServerCheck {
		t.Errorf("the default database: got %+v", got)
	}
	if got := s.databases.writers; !reflect.DeepEqual(got, writerURLs{
		"hr": "postgres://w@db/hr", sandbox.DefaultDatabase: "host=db dbname=x",
	}) {
		t.Errorf("got the writing logins %v", got)
	}
	got := []int{s.limits.queries.of("hr"), s.limits.queries.of("sales"), s.limits.queriesPerUser.of("hr")}
	if !reflect.DeepEqual(got, []int{3, 20, 8}) {
		t.Errorf("got the limits %v, want 3, 20 and 8", got)
	}
}

func TestWrongSettingsOfNamedDatabasesAreRefused(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ args, want string }{
		{"--database Sales=postgres://db/x", "Sales"},
		{"--database sales=mysql://db/x", "postgres://"},
		{"--database =postgres://db/x", "NAME=URL"},
		{"--database " + strings.Repeat("x", 64) + "=postgres://db/x", "63"},
		{"--database knowledge=postgres://db/x", "--knowledge-url"},
		{"--mask-columns hr:people.pay", `no database "hr"; the databases are knowledge`},
		{"--allow-functions hr:f(int)", `no database "hr"`},
		{"--writer-url hr=postgres://db/x", `no database "hr"`},
		{"--server-check hr", `no database "hr"`},
		{"--max-queries-per-user 8,hr:2", `no database "hr"`},
		{"--max-queries 0", "at least 1"},
		{"--max-queries 3,knowledge:0", "at least 1"},
		{"--max-queries many", "NAME:NUMBER"},
	} {
		_, err := parseSettings(strings.Split(x.args, " ")...)
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got %v, want an error with %q", x.args, err, x.want)
		}
	}
}

// TestErrorOfAnURLInTheEnvironmentHidesIt matters because the service's log has more readers than its environment.
func TestErrorOfAnURLInTheEnvironmentHidesIt(t *testing.T) {
	t.Setenv("GLASSHOUSE_DATABASE", "sales=mysql://u:hush@db/x")
	_, err := parseSettings()
	if err == nil || !strings.Contains(err.Error(), "GLASSHOUSE_DATABASE") || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v, want the name of the variable, and no password", err)
	}
}

// startCluster starts a PostgreSQL in addition to that of the service, with the table orders.
func startCluster(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	conn, err := pgx.Connect(t.Context(), server.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	const orders = `CREATE TABLE IF NOT EXISTS orders AS SELECT 7 AS id, 'a@example.com' AS email`
	if _, err := conn.Exec(t.Context(), orders); err != nil {
		t.Fatal(err)
	}
	return server
}

// TestNamedDatabaseOnAnotherCluster has a second PostgreSQL that is down when the service starts, then runs, stops and
// runs again.
func TestNamedDatabaseOnAnotherCluster(t *testing.T) {
	t.Parallel()
	path, other := binary(t), emptyDataDir(t)
	server := startCluster(t, other)
	url := server.URL(embedded.RoleReader, embedded.DatabaseKnowledge)
	owner := server.URL(embedded.RoleOwner, embedded.DatabaseKnowledge)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	setting := "GLASSHOUSE_DATABASE=sales=" + url
	dir := dataDir(t)
	cmd, c := start(t, path, dir, setting, "--mask-columns=sales:orders.email")
	query := func(database string) error {
		var out struct {
			Results []map[string]any
		}
		body := map[string]any{"query": "SELECT 7 AS id", "database": database}
		if database == "sales" {
			body["query"] = "SELECT id, email FROM orders"
		}
		err := c.call(t.Context(), "POST", "/database/query", body, &out)
		if err == nil && (len(out.Results) != 1 || out.Results[0]["id"] != 7.0 ||
			database == "sales" && out.Results[0]["email"] != "***") {
			err = fmt.Errorf("got %v", out.Results)
		}
		return err
	}
	wantDown := func() {
		t.Helper()
		if err := query("sales"); err == nil || !strings.Contains(err.Error(), `"sales" does not answer`) {
			t.Errorf("got %v, want that sales does not answer", err)
		}
		if err := query(""); err != nil {
			t.Errorf("the default database: %v", err)
		}
		if ready := c.must(t, "GET", "/readyz", nil); ready["unavailable_databases"] != 1.0 {
			t.Errorf("got %v, want one database that does not answer", ready)
		}
	}
	wantDown()
	server = startCluster(t, other)
	eventually(t, func() error { return query("sales") })
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	wantDown()
	startCluster(t, other)
	eventually(t, func() error { return query("sales") })

	for _, x := range []struct{ sql, want string }{
		{"SELECT email FROM orders", "allowed"}, {"SELECT lower(email) FROM orders", "masked"},
		{"SELECT * FROM users", "allowed"}, // whether a table exists, the server says
	} {
		check := exec.Command(path, "check", "sql", "--data-dir", dir, "--database", "sales", "--mask-columns",
			"sales:orders.email", "-")
		check.Stdin, check.Env = strings.NewReader(x.sql), append(check.Environ(), setting)
		if out, _ := check.CombinedOutput(); !strings.Contains(string(out), x.want) {
			t.Errorf("%s: got %s, want %q", x.sql, out, x.want)
		}
	}
	if !testing.Short() {
		prove := exec.Command(path, "prove", "--data-dir", dir, "--database", "sales")
		prove.Env = append(prove.Environ(), setting)
		if out, err := prove.CombinedOutput(); err != nil || !strings.Contains(string(out), "No attack succeeded") {
			t.Errorf("got %v and %s, want no attack that succeeds", err, out)
		}
	}
	stop(t, cmd)

	nowhere := "postgres:///nowhere?host=" + filepath.Join(dir, "nowhere")
	for _, x := range []struct {
		args []string
		want []string
	}{
		{[]string{"--database", "sales=" + owner}, []string{`database "sales"`, "owns or may write", "CREATE ROLE"}},
		{[]string{"--database", "sales=" + url, "--mask-columns", "sales:orders.none"},
			[]string{`database "sales"`, "orders.none"}},
		{[]string{"--knowledge-url", nowhere, "--database", "sales=" + nowhere},
			[]string{`database "knowledge"`, `database "sales"`, "does not answer"}},
		{[]string{"--database", "sales"}, []string{`no database "sales"`}},
	} {
		out, err := commandOutput(t, path, append([]string{"serve", "--data-dir", dir, "--listen", "127.0.0.1:0"},
			x.args...)...)
		if err == nil {
			t.Errorf("%v: the service starts", x.args)
		}
		for _, want := range x.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v: got %s, want %q", x.args, out, want)
			}
		}
	}
}

// commandOutput runs a command that must end by itself.
func commandOutput(t *testing.T, path string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = nil // it has started
	}
	return string(out), err
}

// doctor, prove and the start of the service say which masks PostgreSQL enforces and which rest on the service.
func TestMasksOfTheLoginAreTold(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), dataDir(t)
	server := startCluster(t, emptyDataDir(t))
	conn, err := pgx.Connect(t.Context(), server.URL(embedded.RoleAdmin, embedded.DatabaseKnowledge))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	sql, err := exec.Command(path, "role-sql", "--mask", "orders.email", "masked", embedded.DatabaseKnowledge).Output()
	if err != nil {
		t.Fatal(err)
	}
	const view = "CREATE VIEW buyers AS SELECT id, email AS buyer FROM orders;"
	if _, err := conn.Exec(t.Context(), view+string(sql)); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--mask-columns=sales:orders.email",
		"--database=sales=" + server.URL("masked", embedded.DatabaseKnowledge)}
	wants := []string{
		"PostgreSQL itself keeps public.orders.email from the login", "only the service masks public.buyers.buyer",
	}
	cmd, c := start(t, path, dir, flags...)
	body := map[string]any{"query": "SELECT o.*, buyer FROM orders o JOIN buyers b ON b.id = o.id", "database": "sales"}
	got := fmt.Sprint(c.must(t, "POST", "/database/query", body)["results"])
	if got != "[map[buyer:*** email:*** id:7]]" {
		t.Errorf("got %s, want the row with masks", got)
	}
	stop(t, cmd)
	outputs := map[string]string{"the start": cmd.Stderr.(*bytes.Buffer).String()}
	for _, command := range []string{"doctor", "prove"} {
		args := append([]string{command, "--data-dir", dir}, flags...)
		if command == "prove" {
			args = append(args, "--database=sales")
		}
		out, err := exec.Command(path, args...).CombinedOutput()
		if outputs[command] = string(out); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
	for what, out := range outputs {
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s: got %s, want %q", what, out, want)
			}
		}
	}
}
