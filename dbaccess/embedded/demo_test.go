package embedded_test

import (
	"context"
	"fmt"
	"testing"

	"glasshouse/dbaccess/embedded"
)

func TestDemoHasTheDocumentedData(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t, newFolder(t))
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	reader := connect(t, s.URL(embedded.RoleReader, embedded.DatabaseKnowledge))
	for _, condition := range []string{
		"(SELECT count(*) FROM user_activities) >= 20000",
		`(SELECT count(DISTINCT (timestamp AT TIME ZONE 'UTC')::date) FROM user_activities
			WHERE timestamp > now() - interval '7 days') >= 7`,
		`(SELECT min(timestamp) BETWEEN now() - interval '92 days' AND now() - interval '88 days'
			FROM user_activities)`,
		"(SELECT count(*) FROM user_activities WHERE timestamp > now()) = 0",
		"(SELECT count(*) FROM pipeline_input WHERE content IS NULL) > 0",
		"(SELECT count(*) FROM raw_data WHERE content IS NULL) > 0",
		"(SELECT bool_or(processed) AND NOT bool_and(processed) FROM documents)",
		`(SELECT bool_and(attnotnull) FROM pg_attribute
			WHERE attrelid = 'users'::regclass AND attname IN ('email', 'name'))`,
		"(SELECT count(*) FROM information_schema.views WHERE table_schema = 'public') >= 1",
		`(SELECT bool_and(o.total = s.total) FROM orders o
			JOIN (SELECT order_id, sum(quantity * unit_price) total FROM order_items GROUP BY 1) s ON s.order_id = o.id)`,
	} {
		if got := queryValue(t, reader, "SELECT ("+condition+")::text"); got != "true" {
			t.Errorf("got %s, want true: %s", got, condition)
		}
	}
	uncommented := queryValue(t, reader, `SELECT coalesce(string_agg(relname, ', '), '') FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v')
			AND obj_description(oid, 'pg_class') IS NULL`)
	if uncommented != "" {
		t.Errorf("tables without a comment: %s", uncommented)
	}
}

// fingerprint is a query for a checksum of the demo's rows and one of its dates, relative to the newest.
const fingerprint = `SELECT md5(string_agg(id || action || user_id, ',' ORDER BY id)) || ' ' ||
		md5(string_agg((max - timestamp)::text, ',' ORDER BY id))
	FROM user_activities, (SELECT max(timestamp) FROM user_activities) m`

func TestDemoIsCreatedOnceAndItsDatesMove(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := startServer(t, newFolder(t))
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	owner := connect(t, s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	before := queryValue(t, owner, fingerprint)
	newest := queryValue(t, owner, "SELECT max(timestamp)::text FROM user_activities")
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	if got := queryValue(t, owner, "SELECT max(timestamp)::text FROM user_activities"); got != newest {
		t.Errorf("newest date after a second load on the same day: got %s, want %s", got, newest)
	}
	// As if the service had not run for ten and a half days.
	execute(t, owner, "UPDATE glasshouse_demo.made SET dated = dated - interval '10 days 12 hours'")
	for table, column := range map[string]string{
		"user_activities": "timestamp", "orders": "ordered_at", "users": "created_at",
	} {
		execute(t, owner, fmt.Sprintf("UPDATE %s SET %q = %q - interval '10 days 12 hours'", table, column, column))
	}
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	const upToDate = `SELECT (now() - max(timestamp) BETWEEN interval '0' AND interval '1 day')::text FROM user_activities`
	if got := queryValue(t, owner, upToDate); got != "true" {
		t.Error("the newest activity is not of the last day")
	}
	if got := queryValue(t, owner, fingerprint); got != before {
		t.Errorf("fingerprint after the dates moved: got %s, want %s", got, before)
	}
}
