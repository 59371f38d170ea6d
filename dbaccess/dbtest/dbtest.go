// Package dbtest gives tests a real PostgreSQL. A package starts one server, and every test gets databases of its own:
//
//	func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }
//
//	db := dbtest.Start(t)
//	url := db.URL(embedded.RoleReader, embedded.DatabaseKnowledge)
//
// A test's databases are made when the test first asks for them, each as a copy of a template. Roles belong to the
// whole server: a test that changes one, or stops the server, uses StartPrivate.
package dbtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess/embedded"
)

// Databases are the databases of one test. They have the roles and privileges of an embedded.Server's.
type Databases struct {
	t      testing.TB
	server *embedded.Server
	names  map[string]string // of embedded.DatabaseHistory and embedded.DatabaseKnowledge; nil: the server is private
}

// emptyKnowledge is the template without the demo; the server's own databases are the other templates.
const emptyKnowledge = "knowledge_empty"

var shared struct {
	used     bool // Main runs the tests
	mu       sync.Mutex
	server   *embedded.Server
	stop     func() error
	hasDemo  bool
	sequence atomic.Int64
}

// Main runs the tests of a package and then stops the server that they shared. It returns the exit code.
func Main(m *testing.M) int {
	shared.used = true
	code := m.Run()
	if shared.stop != nil {
		if err := shared.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "dbtest:", err)
			return max(code, 1)
		}
	}
	return code
}

// Start returns databases for one test, on the server that the package's tests share or, if TestMain does not call
// Main, on a private server.
func Start(t testing.TB) *Databases {
	t.Helper()
	if !shared.used {
		return StartPrivate(t)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		server, stop, err := start()
		if err != nil {
			t.Fatal(err)
		}
		shared.server, shared.stop = server, stop
		create(t, server, emptyKnowledge, embedded.DatabaseKnowledge, embedded.RoleOwner)
	}
	return &Databases{t: t, server: shared.server, names: map[string]string{}}
}

// URL returns a connection URL for a role and one of the test's databases, which it makes if necessary. Other
// databases are the server's own.
func (d *Databases) URL(role, database string) string {
	d.t.Helper()
	if d.names != nil && (database == embedded.DatabaseHistory || database == embedded.DatabaseKnowledge) {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		if d.names[database] == "" {
			template, owner := database, embedded.RoleHistory
			if database == embedded.DatabaseKnowledge {
				template, owner = emptyKnowledge, embedded.RoleOwner
			}
			d.copy(database, template, owner)
		}
		database = d.names[database]
	}
	return d.server.URL(role, database)
}

// LoadDemo makes the test's knowledge database with the demo. It must be called before URL.
func (d *Databases) LoadDemo(ctx context.Context) error {
	d.t.Helper()
	if d.names == nil {
		return d.server.LoadDemo(ctx)
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if d.names[embedded.DatabaseKnowledge] != "" {
		d.t.Fatal("dbtest: LoadDemo was called after the knowledge database was made: call it before URL")
	}
	if !shared.hasDemo {
		if err := shared.server.LoadDemo(ctx); err != nil {
			return err
		}
		shared.hasDemo = true
	}
	d.copy(embedded.DatabaseKnowledge, embedded.DatabaseKnowledge, embedded.RoleOwner)
	return nil
}

// copy makes the test's copy of a template. The caller holds shared.mu: PostgreSQL copies a database only while no
// other session uses it.
func (d *Databases) copy(database, template, owner string) {
	d.t.Helper()
	name := fmt.Sprint(database, "_", shared.sequence.Add(1))
	create(d.t, d.server, name, template, owner)
	d.names[database] = name
}

// create makes a database. The privileges on the database itself are not part of its template.
func create(t testing.TB, server *embedded.Server, name, template, owner string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.URL(embedded.RoleAdmin, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	statements := []string{
		`CREATE DATABASE ` + name + ` TEMPLATE ` + template + ` OWNER ` + owner,
		`REVOKE ALL ON DATABASE ` + name + ` FROM PUBLIC`,
	}
	if owner == embedded.RoleOwner {
		statements = append(statements,
			`GRANT CONNECT ON DATABASE `+name+` TO `+embedded.RoleReader+`, `+embedded.RoleWriter)
	}
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// StartPrivate returns databases on a server of the test's own.
func StartPrivate(t testing.TB) *Databases {
	t.Helper()
	server, stop, err := start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return &Databases{t: t, server: server}
}

// Close stops a private server before the end of the test, as an outage does.
func (d *Databases) Close() error {
	if d.names != nil {
		d.t.Fatal("dbtest: Close on a shared server: use StartPrivate")
	}
	return d.server.Close()
}

func start() (*embedded.Server, func() error, error) {
	dir, err := os.MkdirTemp("", "gh")
	if err != nil {
		return nil, nil, err
	}
	// If the test runs as root, PostgreSQL runs as another account, which must be able to enter the folder.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, nil, err
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	server, err := embedded.Start(context.Background(), embedded.Config{
		Dir: dir, Log: log, Settings: []string{"fsync=off", "full_page_writes=off"},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("start PostgreSQL for a test: %w", err)
	}
	return server, func() error {
		if err := server.Close(); err != nil {
			return err
		}
		return os.RemoveAll(dir)
	}, nil
}

// Connect opens a pgx connection, for tests of what PostgreSQL itself refuses.
func Connect(ctx context.Context, url string) (*pgx.Conn, error) { return pgx.Connect(ctx, url) }
