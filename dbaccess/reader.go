// Package dbaccess is door one: read-only SQL from user code, to the database
// that agents read. (Door two, history, is a package below, with another role.)
//
// A statement passes, in this order: the gate (scan: bytes, nesting and chains,
// judged by the lexer, before the C parser sees it), bind (:name to $n), the check
// (every node of the tree allow-listed, functions, types and operators by name
// against the live catalogue), a login with nothing but SELECT, and a READ ONLY
// transaction with a timeout that always rolls back. Rows and bytes are counted
// as they come over the wire. A connection that did not end idle is thrown away.
package dbaccess

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"glasshouse/sandbox"
)

// Config says what to read and how much of it.
type Config struct {
	URL            string
	MaxConns       int32          // 0 is 16
	Limits         sandbox.Limits // ceilings; zero fields are 1 000 000 rows, 64 MiB, 30 s
	AllowFunctions []string       // user-defined functions that the operator vouches for, "name" or "schema.name"
}

// Reader runs read-only statements.
type Reader struct {
	config Config
	pool   *pgxpool.Pool

	mu        sync.Mutex
	catalogue *catalogue
}

// Open makes a Reader; it connects when it is first used.
func Open(ctx context.Context, c Config) (*Reader, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, fmt.Errorf("knowledge database: %w", err)
	}
	if c.Limits.MaxRows == 0 {
		c.Limits.MaxRows = 1_000_000
	}
	if c.Limits.MaxBytes == 0 {
		c.Limits.MaxBytes = 64 << 20
	}
	if c.Limits.Timeout == 0 {
		c.Limits.Timeout = 30 * time.Second
	}
	config.MaxConns = max(c.MaxConns, 0)
	if config.MaxConns == 0 {
		config.MaxConns = 16
	}
	// The lexer and the decoders depend on these; user SQL cannot change them.
	for key, value := range map[string]string{
		"application_name": "glasshouse-reader", "default_transaction_read_only": "on", "standard_conforming_strings": "on", "client_encoding": "UTF8", "TimeZone": "UTC",
		"DateStyle": "ISO", "IntervalStyle": "iso_8601", "bytea_output": "hex", "extra_float_digits": "1",
	} {
		config.ConnConfig.RuntimeParams[key] = value
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("knowledge database: %w", err)
	}
	return &Reader{config: c, pool: pool}, nil
}

// Close closes the connections.
func (r *Reader) Close() { r.pool.Close() }

// Ping says whether the database answers.
func (r *Reader) Ping(ctx context.Context) error { return unavailable(r.pool.Ping(ctx)) }

// Posture refuses a login that could do more than read. The error says how, and
// how to make a right one.
func (r *Reader) Posture(ctx context.Context) error {
	var role, database string
	var super, bypass, create bool
	var writable int
	err := r.pool.QueryRow(ctx, `SELECT current_user::text, current_database()::text, rolsuper, rolbypassrls, rolcreaterole OR rolcreatedb OR rolreplication,
		(SELECT count(*)::int FROM pg_class c WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relnamespace NOT IN (SELECT oid FROM pg_namespace WHERE nspname IN ('pg_catalog', 'information_schema') OR nspname LIKE 'pg\_toast%' OR nspname LIKE 'pg\_temp%')
		 AND (pg_has_role(relowner, 'MEMBER') OR has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER'))) FROM pg_roles WHERE rolname = current_user`).
		Scan(&role, &database, &super, &bypass, &create, &writable)
	if err != nil {
		return unavailable(err)
	}
	why := ""
	switch {
	case super:
		why = "is a superuser"
	case bypass:
		why = "has BYPASSRLS"
	case create:
		why = "may create roles or databases, or replicate"
	case writable > 0:
		why = fmt.Sprintf("owns or may write %d tables", writable)
	default:
		return nil
	}
	return fmt.Errorf("the login %q of the knowledge database %s, and agents must only read; make one that does, and use it in --knowledge-url:\n\n%s", role, why, RoleSQL("glasshouse_reader", database))
}

// RoleSQL is the SQL that makes a login which may read the public schema of the
// database and nothing else. An owner of the tables runs it.
func RoleSQL(role, database string) string {
	return fmt.Sprintf(`CREATE ROLE %[1]s LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD 'choose-one';
REVOKE TEMPORARY ON DATABASE %[2]s FROM PUBLIC;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT CONNECT ON DATABASE %[2]s TO %[1]s;
GRANT USAGE ON SCHEMA public TO %[1]s;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO %[1]s;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO %[1]s;
`, role, database)
}

// unavailable turns any failure to reach the server into what a caller can act on.
func unavailable(err error) error {
	var pg *pgconn.PgError
	if err == nil || errors.As(err, &pg) && pg.Code[:2] != "57" && pg.Code[:2] != "08" && pg.Code[:2] != "53" && pg.Code[:2] != "28" {
		return err
	}
	return &sandbox.Error{Fault: sandbox.FaultUnavailable, Detail: "the knowledge database does not answer; try again soon", RetryAfter: 2, Cause: err}
}
