package dbaccess

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	auditInterval = time.Second     // between two audits, beyond the first
	auditTimeout  = 5 * time.Second // of an audit that a use of the database begins
)

// loginAudit says whether the login has passed AuditLogin.
type loginAudit struct {
	passed  atomic.Bool
	turn    chan struct{} // has an element while an audit runs; guards what follows
	outcome error         // of the last one; nil: none has ended
	next    time.Time     // when to try again
}

func newLoginAudit() loginAudit { return loginAudit{turn: make(chan struct{}, 1)} }

// ensureAudited returns nil if the login has passed the audit, or needs none. It audits a login that has not: the
// server may not have answered when the service started. The error is FaultUnavailable.
func (r *Reader) ensureAudited(ctx context.Context) error {
	a := &r.audit
	if !r.config.NeedsAudit || a.passed.Load() {
		return nil
	}
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return r.unavailable(ctx.Err())
	}
	if a.passed.Load() {
		return nil
	}
	if time.Now().After(a.next) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout) // others wait for the outcome
		defer cancel()
		before := a.outcome
		r.runAudit(ctx)
		if r.config.Audited != nil && fmt.Sprint(a.outcome) != fmt.Sprint(before) {
			r.config.Audited(a.outcome)
		}
	}
	if a.outcome == nil || sandbox.FaultOf(a.outcome) == sandbox.FaultUnavailable {
		return a.outcome
	}
	return &sandbox.Error{
		Fault: sandbox.FaultUnavailable,
		Detail: fmt.Sprintf("the database %q is not used, because its login may do more than read: the operator "+
			"finds in the service's log what to do", r.config.Name),
	}
}

// AuditLogin returns an error if the login of Config.URL can do more than read, or if the login of
// Config.WriterURL is too powerful. The error has the SQL for a suitable login.
func (r *Reader) AuditLogin(ctx context.Context) error {
	r.audit.turn <- struct{}{}
	defer func() { <-r.audit.turn }()
	return r.runAudit(ctx)
}

// runAudit audits the login. The caller has the turn of the audit.
func (r *Reader) runAudit(ctx context.Context) error {
	a := &r.audit
	a.outcome = r.auditLogin(ctx)
	a.passed.Store(a.outcome == nil)
	a.next = time.Now().Add(auditInterval)
	return a.outcome
}

// readCatalog runs queries of the service itself. Their names are those of pg_catalog, whatever the path of the login
// is: the owner of a database could have a pg_class of another schema found first, or another operator.
func readCatalog(ctx context.Context, pool *pgxpool.Pool, read func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL search_path = pg_catalog, pg_temp"); err != nil {
			return err
		}
		return read(tx)
	})
}

func (r *Reader) auditLogin(ctx context.Context) error {
	var role, database string
	var super, bypass, create bool
	var writable int
	err := readCatalog(ctx, r.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT current_user::text, current_database()::text, rolsuper, rolbypassrls,
		rolcreaterole OR rolcreatedb OR rolreplication,
		(SELECT count(*)::int FROM pg_class c WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relnamespace NOT IN (SELECT oid FROM pg_namespace WHERE nspname IN ('pg_catalog', 'information_schema') OR nspname LIKE 'pg\_toast%' OR nspname LIKE 'pg\_temp%')
		 AND (pg_has_role(relowner, 'MEMBER') OR has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER'))) FROM pg_roles WHERE rolname = current_user`).
			Scan(&role, &database, &super, &bypass, &create, &writable)
	})
	if err != nil {
		return r.unavailable(err)
	}
	if _, err := r.checker.Catalog(ctx); err != nil { // reports a masked column that does not exist
		return err
	}
	if r.writer != nil {
		var powerful bool
		err := readCatalog(ctx, r.writer, func(tx pgx.Tx) error {
			const query = `SELECT rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb FROM pg_roles
				WHERE rolname = current_user`
			return tx.QueryRow(ctx, query).Scan(&powerful)
		})
		if err != nil {
			return r.unavailable(err)
		}
		if powerful {
			return fmt.Errorf(
				"the writing login (--writer-url) is a superuser, has BYPASSRLS, or can create roles or databases: use a " +
					"login that can only change rows of tables",
			)
		}
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
	return fmt.Errorf(
		"the login %q of the database %s, but agents must only read. Create a read-only login and set it in the "+
			"database's URL:\n\n%s",
		role,
		why,
		RoleSQL("glasshouse_reader", database, RoleOptions{}),
	)
}

// LogsTrees reports whether the server writes the trees of Config.ServerCheck to its log.
func (r *Reader) LogsTrees(ctx context.Context) (bool, error) {
	if !r.config.ServerCheck {
		return false, nil
	}
	var logs bool
	err := readCatalog(ctx, r.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT current_setting('log_min_messages') NOT IN ('fatal', 'panic')`).Scan(&logs)
	})
	return logs, r.unavailable(err)
}

// RoleOptions add to RoleSQL.
type RoleOptions struct {
	// RevokeFromPublic revokes functions that every login may call and that do more than compute a value
	// (policy.SQLRevoke).
	RevokeFromPublic bool
	// Mask are columns of tables that the login may not read, "schema.table.column" or "table.column". The owner of the
	// tables runs this part.
	Mask []string
	// ServerCheck keeps the trees of Config.ServerCheck out of the server's log.
	ServerCheck bool
}

// RoleSQL returns SQL that creates a login, unless the server has it for another database, which may read the public
// schema of a database and nothing else. No statement fails if it is run again, so it may run with ON_ERROR_STOP. The
// owner of the tables runs it, and a superuser the parts that say so, which come last.
func RoleSQL(role, database string, o RoleOptions) string {
	quote := "$$"
	for strings.Contains(role, quote) {
		quote = "$q" + quote[1:]
	}
	sql := fmt.Sprintf(
		`DO %[3]s BEGIN
CREATE ROLE %[1]s LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD 'choose-one';
EXCEPTION WHEN duplicate_object OR unique_violation THEN
RAISE NOTICE 'the login exists already and keeps its password';
END %[3]s;
ALTER ROLE %[1]s SET default_transaction_read_only = on;
ALTER ROLE %[1]s SET statement_timeout = '5min';
REVOKE TEMPORARY ON DATABASE %[2]s FROM PUBLIC;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT CONNECT ON DATABASE %[2]s TO %[1]s;
GRANT USAGE ON SCHEMA public TO %[1]s;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO %[1]s;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO %[1]s;
`, pgx.Identifier{role}.Sanitize(), pgx.Identifier{database}.Sanitize(), quote)
	if len(o.Mask) > 0 {
		sql += maskSQL(role, o.Mask)
	}
	if o.ServerCheck {
		sql += `
-- A superuser runs this. The server's log then has no error and no statement of this login: with --server-check the
-- server would write its analysis of each query there, about 10 KB. The service keeps every statement and its error.
ALTER ROLE ` + pgx.Identifier{role}.Sanitize() + ` SET log_min_messages = fatal;
`
	}
	if !o.RevokeFromPublic {
		return sql
	}
	return sql + `
-- A superuser runs the rest, in the same database. Every login of this database that is not a superuser, and not only
-- the new one, loses these functions:
--   ` + strings.Join(policy.SQLRevokeLosses(), "\n--   ") + `
-- GRANT EXECUTE ON FUNCTION pg_advisory_lock(bigint) TO a_login gives a function back. If the service keeps its
-- history in this database, give its owner those for locks and pg_stat_get_activity, pg_lock_status and
-- pg_terminate_backend back.
` + policy.SQLRevoke + "\n"
}
