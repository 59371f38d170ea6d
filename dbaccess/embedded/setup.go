package embedded

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"glasshouse/policy"
)

// setUp creates the roles and the two databases that are missing. Every statement may run again, so a service that is
// killed in between does no harm.
func (s *Server) setUp(ctx context.Context) error {
	if err := s.withAdmin(ctx, "postgres", s.createRolesAndDatabases); err != nil {
		return err
	}
	return s.withAdmin(ctx, DatabaseKnowledge, s.restrictKnowledge)
}

// withAdmin runs f on a connection of the superuser.
func (s *Server) withAdmin(ctx context.Context, database string, f func(context.Context, *pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.URL(RoleAdmin, database))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return f(ctx, conn)
}

func (s *Server) createRolesAndDatabases(ctx context.Context, conn *pgx.Conn) error {
	for _, role := range []string{RoleHistory, RoleOwner, RoleReader, RoleWriter} {
		const query = `SELECT FROM pg_roles WHERE rolname = $1`
		if err := runIfMissing(ctx, conn, query, role, "CREATE ROLE "+role+" LOGIN"); err != nil {
			return err
		}
	}
	for _, d := range [][2]string{{DatabaseHistory, RoleHistory}, {DatabaseKnowledge, RoleOwner}} {
		const query = `SELECT FROM pg_database WHERE datname = $1`
		if err := runIfMissing(ctx, conn, query, d[0], "CREATE DATABASE "+d[0]+" OWNER "+d[1]); err != nil {
			return err
		}
	}
	// PUBLIC has TEMP in every database and may connect to all by default. The settings of the reader's role are a second
	// line of defence: a client that connects as the reader can change them.
	_, err := conn.Exec(ctx, `
		REVOKE ALL ON DATABASE postgres, template1, history, knowledge FROM PUBLIC;
		GRANT CONNECT ON DATABASE knowledge TO glasshouse_reader, glasshouse_writer;
		ALTER ROLE glasshouse_reader SET default_transaction_read_only = on;
		ALTER ROLE glasshouse_reader SET statement_timeout = '5min';
		ALTER ROLE glasshouse_reader SET idle_in_transaction_session_timeout = '5min';
		ALTER ROLE glasshouse_reader SET temp_file_limit = '1GB';
		ALTER ROLE glasshouse_reader SET log_min_messages = fatal`)
	return err
}

// restrictKnowledge leaves the reader SELECT on the tables that the owner creates, and nothing else. By default, PUBLIC
// may call functions that do more than compute a value, even in a read-only transaction (policy.SQLRevoke).
func (s *Server) restrictKnowledge(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `
		ALTER SCHEMA public OWNER TO glasshouse_owner;
		REVOKE CREATE ON SCHEMA public FROM PUBLIC;
		GRANT USAGE ON SCHEMA public TO glasshouse_reader;
		ALTER DEFAULT PRIVILEGES FOR ROLE glasshouse_owner IN SCHEMA public GRANT SELECT ON TABLES TO glasshouse_reader;
		GRANT USAGE ON SCHEMA public TO glasshouse_writer;
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO glasshouse_writer;
		ALTER DEFAULT PRIVILEGES FOR ROLE glasshouse_owner IN SCHEMA public
			GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO glasshouse_writer;
		ALTER DEFAULT PRIVILEGES FOR ROLE glasshouse_owner IN SCHEMA public
			GRANT USAGE ON SEQUENCES TO glasshouse_writer;
		ALTER DEFAULT PRIVILEGES FOR ROLE glasshouse_owner REVOKE EXECUTE ON ROUTINES FROM PUBLIC;
		`+policy.SQLRevoke)
	return err
}

// runIfMissing runs a statement if the query finds nothing.
func runIfMissing(ctx context.Context, conn *pgx.Conn, query, name, statement string) error {
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS ("+query+")", name).Scan(&exists); err != nil || exists {
		return err
	}
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}
