package embedded

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed demo.sql
var demo string

// setUp makes the roles and the two databases, each where it is missing.
func (s *Server) setUp(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.URL(RoleAdmin, "postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, role := range []string{RoleHistory, RoleOwner, RoleReader} {
		var there bool
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)`, role).Scan(&there); err != nil {
			return err
		}
		if !there {
			if _, err := conn.Exec(ctx, "CREATE ROLE "+role+" LOGIN"); err != nil {
				return err
			}
		}
	}
	for database, owner := range map[string]string{DatabaseHistory: RoleHistory, DatabaseKnowledge: RoleOwner} {
		var there bool
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, database).Scan(&there); err != nil {
			return err
		}
		if there {
			continue
		}
		if _, err := conn.Exec(ctx, "CREATE DATABASE "+database+" OWNER "+owner); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "REVOKE ALL ON DATABASE "+database+" FROM PUBLIC"); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, "GRANT CONNECT ON DATABASE "+DatabaseKnowledge+" TO "+RoleReader); err != nil {
		return err
	}
	// The other databases of the cluster are not the reader's to enter.
	_, err = conn.Exec(ctx, "REVOKE ALL ON DATABASE postgres, template1 FROM PUBLIC")
	return err
}

// LoadDemo makes the demo knowledge base where it is missing, and moves its dates
// up to today.
func (s *Server) LoadDemo(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.URL(RoleOwner, DatabaseKnowledge))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var there bool
		if err := tx.QueryRow(ctx, `SELECT to_regclass('public.demo_anchor') IS NOT NULL`).Scan(&there); err != nil {
			return err
		}
		if !there {
			if _, err := tx.Exec(ctx, demo); err != nil {
				return fmt.Errorf("make the demo data: %w", err)
			}
			return nil
		}
		return shift(ctx, tx)
	})
}

// shift moves every date of the demo by the days that have passed.
func shift(ctx context.Context, tx pgx.Tx) error {
	var anchor time.Time
	if err := tx.QueryRow(ctx, `SELECT day FROM demo_anchor`).Scan(&anchor); err != nil {
		return err
	}
	days := int(time.Now().UTC().Truncate(24*time.Hour).Sub(anchor).Hours() / 24)
	if days <= 0 {
		return nil
	}
	for _, c := range []string{"users.created_at", "user_activities.timestamp", "documents.created_at", "articles.published_at", "customers.created_at", "orders.ordered_at"} {
		var table, column string
		for i := range c {
			if c[i] == '.' {
				table, column = c[:i], c[i+1:]
			}
		}
		if _, err := tx.Exec(ctx, fmt.Sprintf(`UPDATE %s SET %q = %q + make_interval(days => $1)`, table, column, column), days); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `UPDATE demo_anchor SET day = day + $1::int`, days)
	return err
}
