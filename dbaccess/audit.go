package dbaccess

import (
	"context"
	"fmt"

	"glasshouse/dbaccess/check"
	"glasshouse/policy"

	"github.com/jackc/pgx/v5"
)

// AuditLogin returns an error if the login of Config.URL can do more than read, or if the login of
// Config.WriterURL is too powerful. The error has the SQL for a suitable login.
func (r *Reader) AuditLogin(ctx context.Context) error {
	var role, database string
	var super, bypass, create bool
	var writable int
	err := r.pool.QueryRow(ctx, `SELECT current_user::text, current_database()::text, rolsuper, rolbypassrls, rolcreaterole OR rolcreatedb OR rolreplication,
		(SELECT count(*)::int FROM pg_class c WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relnamespace NOT IN (SELECT oid FROM pg_namespace WHERE nspname IN ('pg_catalog', 'information_schema') OR nspname LIKE 'pg\_toast%' OR nspname LIKE 'pg\_temp%')
		 AND (pg_has_role(relowner, 'MEMBER') OR has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER'))) FROM pg_roles WHERE rolname = current_user`).
		Scan(&role, &database, &super, &bypass, &create, &writable)
	if err != nil {
		return check.Unavailable(err)
	}
	if _, err := r.checker.Catalog(ctx); err != nil { // reports a masked column that does not exist
		return err
	}
	if r.writer != nil {
		var powerful bool
		if err := r.writer.QueryRow(ctx, `SELECT rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb FROM pg_roles WHERE rolname = current_user`).Scan(&powerful); err != nil {
			return check.Unavailable(err)
		}
		if powerful {
			return fmt.Errorf(
				"the login of --writer-url is a superuser, has BYPASSRLS, or can create roles or databases: use a login that can only change rows of tables",
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
		"the login %q of the knowledge database %s, but agents must only read. Create a read-only login and set it in --knowledge-url:\n\n%s",
		role,
		why,
		RoleSQL("glasshouse_reader", database),
	)
}

// RoleSQL returns SQL that creates a login which may read the public schema of a database and
// nothing else. The owner of the tables runs it. Its last part needs a superuser: it revokes functions
// that every role may call by default and that have an effect even in a read-only transaction.
func RoleSQL(role, database string) string {
	return fmt.Sprintf(
		`CREATE ROLE %[1]s LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD 'choose-one';
ALTER ROLE %[1]s SET default_transaction_read_only = on;
ALTER ROLE %[1]s SET statement_timeout = '5min';
REVOKE TEMPORARY ON DATABASE %[2]s FROM PUBLIC;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT CONNECT ON DATABASE %[2]s TO %[1]s;
GRANT USAGE ON SCHEMA public TO %[1]s;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO %[1]s;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO %[1]s;
-- Run the rest as a superuser in the same database. Grant a revoked function again to a role that needs it.
%[3]s
`,
		pgx.Identifier{role}.Sanitize(),
		pgx.Identifier{database}.Sanitize(),
		policy.SQLRevoke,
	)
}
