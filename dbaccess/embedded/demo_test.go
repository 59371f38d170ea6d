package embedded_test

import (
	"context"
	"fmt"
	"testing"

	"glasshouse/dbaccess/embedded"
)

func TestDemoHasWhatItPromises(t *testing.T) {
	ctx := context.Background()
	s := begin(t, folder(t))
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	reader := connect(t, s.URL(embedded.RoleReader, embedded.DatabaseKnowledge))
	for _, truth := range []string{
		"(SELECT count(*) FROM user_activities) >= 20000",
		"(SELECT count(DISTINCT (timestamp AT TIME ZONE 'UTC')::date) FROM user_activities WHERE timestamp > now() - interval '7 days') >= 7",
		"(SELECT min(timestamp) BETWEEN now() - interval '92 days' AND now() - interval '88 days' FROM user_activities)",
		"(SELECT count(*) FROM user_activities WHERE timestamp > now()) = 0",
		"(SELECT count(*) FROM pipeline_input WHERE content IS NULL) > 0",
		"(SELECT count(*) FROM raw_data WHERE content IS NULL) > 0",
		"(SELECT bool_or(processed) AND NOT bool_and(processed) FROM documents)",
		"(SELECT bool_and(attnotnull) FROM pg_attribute WHERE attrelid = 'users'::regclass AND attname IN ('email', 'name'))",
		"(SELECT count(*) FROM information_schema.views WHERE table_schema = 'public') >= 1",
		"(SELECT bool_and(o.total = s.total) FROM orders o JOIN (SELECT order_id, sum(quantity * unit_price) total FROM order_items GROUP BY 1) s ON s.order_id = o.id)",
	} {
		if got := value(t, reader, "SELECT ("+truth+")::text"); got != "true" {
			t.Errorf("not so: %s", truth)
		}
	}
	bare := value(t, reader, `SELECT coalesce(string_agg(relname, ', '), '') FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v') AND obj_description(oid, 'pg_class') IS NULL`)
	if bare != "" {
		t.Errorf("without a comment: %s", bare)
	}
}

// sums is a fingerprint of the demo's facts, and one of its dates relative to anchor.
const sums = `SELECT md5(string_agg(id || action || user_id, ',' ORDER BY id)) || ' ' ||
	md5(string_agg((max - timestamp)::text, ',' ORDER BY id)) FROM user_activities, (SELECT max(timestamp) FROM user_activities) m`

func TestDemoIsMadeOnceAndMovesWithTheDays(t *testing.T) {
	ctx := context.Background()
	s := begin(t, folder(t))
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	owner := connect(t, s.URL(embedded.RoleOwner, embedded.DatabaseKnowledge))
	before := value(t, owner, sums)
	newest := value(t, owner, "SELECT max(timestamp)::text FROM user_activities")
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	if got := value(t, owner, "SELECT max(timestamp)::text FROM user_activities"); got != newest {
		t.Errorf("the same day's start moved the dates from %s to %s", newest, got)
	}
	// As if the service had not run for ten and a half days.
	exec1(t, owner, "UPDATE glasshouse_demo.made SET dated = dated - interval '10 days 12 hours'")
	for _, c := range []string{"user_activities.timestamp", "orders.ordered_at", "users.created_at"} {
		var table, column string
		if _, err := fmt.Sscanf(c, "%s", &table); err != nil {
			t.Fatal(err)
		}
		for i := range c {
			if c[i] == '.' {
				table, column = c[:i], c[i+1:]
			}
		}
		exec1(t, owner, fmt.Sprintf("UPDATE %s SET %q = %q - interval '10 days 12 hours'", table, column, column))
	}
	if err := s.LoadDemo(ctx); err != nil {
		t.Fatal(err)
	}
	if got := value(t, owner, "SELECT (now() - max(timestamp) BETWEEN interval '0' AND interval '1 day')::text FROM user_activities"); got != "true" {
		t.Error("the activities do not reach up to today")
	}
	if got := value(t, owner, sums); got != before {
		t.Errorf("moved data differ:\n%s\n%s", before, got)
	}
}
