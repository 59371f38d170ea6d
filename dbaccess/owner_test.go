package dbaccess_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

// createDatabase makes an empty database, which the end of the test drops.
func createDatabase(t *testing.T, s roleURLs, name, owner string) {
	t.Helper()
	run := func(sql string) {
		ctx := context.Background()
		server, err := dbtest.Connect(ctx, s.URL(embedded.RoleAdmin, "postgres"))
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close(ctx)
		if _, err := server.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	run("CREATE DATABASE " + name + " TEMPLATE template0 ENCODING UTF8 OWNER " + owner)
	t.Cleanup(func() { run("DROP DATABASE " + name + " WITH (FORCE)") })
}

// ownedDatabase makes a database that the role of the owner owns, and runs statements as that role.
func ownedDatabase(t *testing.T, s roleURLs, name string, statements ...string) {
	t.Helper()
	ctx := context.Background()
	createDatabase(t, s, name, embedded.RoleOwner)
	owner, err := dbtest.Connect(ctx, s.URL(embedded.RoleOwner, name))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close(ctx)
	for _, sql := range statements {
		if _, err := owner.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// The owner of a database can put other objects before those of pg_catalog. The service's own queries find
// PostgreSQL's.
func TestOwnersNamesReachNoQueryOfTheService(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := dbtest.Start(t)
	ownedDatabase(t, s, "shadowed",
		"CREATE TABLE users (id int PRIMARY KEY, name text)",
		`CREATE FUNCTION reached(oid) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'reached'; END $$`,
		"CREATE VIEW pg_class WITH (security_barrier) AS SELECT * FROM pg_catalog.pg_class WHERE reached(oid)",
		"CREATE VIEW pg_attribute WITH (security_barrier) AS "+
			"SELECT attrelid, attname, atttypid, atttypmod, attnotnull, attnum, attisdropped "+
			"FROM pg_catalog.pg_attribute WHERE reached(attrelid)",
		"CREATE VIEW pg_roles AS SELECT rolname, false AS rolsuper, false AS rolbypassrls, false AS rolcreaterole, "+
			"false AS rolcreatedb, false AS rolreplication FROM pg_catalog.pg_roles",
		"GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+embedded.RoleReader,
		"ALTER DATABASE shadowed SET search_path = public, pg_catalog")
	open := func(role string) *dbaccess.Reader {
		return openReader(t, dbaccess.Config{URL: s.URL(role, "shadowed")})
	}
	for _, role := range []string{embedded.RoleAdmin, embedded.RoleOwner} {
		if err := open(role).AuditLogin(ctx); err == nil || !strings.Contains(err.Error(), "CREATE ROLE") {
			t.Errorf("the login %s: got %v, want an error with the SQL of a suitable login", role, err)
		}
	}
	r := open(embedded.RoleReader)
	if err := r.AuditLogin(ctx); err != nil {
		t.Errorf("the reader: %v", err)
	}
	names, err := r.Tables(ctx)
	if err != nil || !slices.Contains(names, "users") {
		t.Errorf("got the tables %v, %v", names, err)
	}
	if tables, err := r.Schema(ctx, "users"); err != nil || len(tables) != 1 || len(tables[0].Columns) != 2 {
		t.Errorf("got %v, %v", tables, err)
	}
}

// The owner of an extension can make own functions and types members of it. They are listed with the extension only if
// a superuser owns them, as what its script makes.
func TestOwnersMembersOfExtensionsAreRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := dbtest.Start(t)
	ownedDatabase(t, s, "extended",
		"CREATE EXTENSION hstore; CREATE EXTENSION isn; CREATE EXTENSION pg_trgm",
		"CREATE TABLE notes (id int)", "INSERT INTO notes VALUES (1)",
		"CREATE FUNCTION own(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
		"CREATE DOMAIN own_domain AS text CHECK (own(1) = 1)",
		"ALTER EXTENSION hstore ADD FUNCTION own(int)", "ALTER EXTENSION hstore ADD DOMAIN own_domain",
		"CREATE VIEW calls AS SELECT own(id) FROM notes",
		"GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+embedded.RoleReader,
		"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC")
	r := openReader(t, dbaccess.Config{URL: s.URL(embedded.RoleReader, "extended")})
	for _, sql := range []string{
		"SELECT own(1)", "SELECT public.own(id) FROM notes", "SELECT (n.id).own FROM notes n", "SELECT * FROM calls",
		"SELECT 'x'::own_domain", "SELECT isn_weak(true)", // the connection would keep it
	} {
		_, err := all(ctx, r, sql, nil, sandbox.QueryLimits{})
		var no *sandbox.Refusal
		if !errors.As(err, &no) || no.Failed && no.SQLState != "42809" { // there is no such column
			t.Errorf("%s: got %v, want it refused", sql, err)
		}
	}
	for _, sql := range []string{
		"SELECT 'a=>1'::hstore -> 'a', similarity('a', 'b')", "SELECT isbn('978-0-393-04002-9')",
	} {
		if _, err := all(ctx, r, sql, nil, sandbox.QueryLimits{}); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
