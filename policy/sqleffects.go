package policy

import (
	"fmt"
	"regexp"
	"strings"
)

// effect is a kind of functions of pg_catalog that do more than compute a value from what a login may read, and that
// PostgreSQL lets every login call.
type effect struct {
	kind    string // what the functions do, after "may"
	users   string // what other programs use of them
	pattern string // a regular expression, of Go and PostgreSQL, for the beginning of "name(types)"
	keepers string // a role of PostgreSQL whose members keep the functions when PUBLIC loses them; "": none
}

var effects = []effect{
	{"run a text as SQL", "ts_stat, ts_rewrite with a query as text, query_to_xml and its like",
		`ts_stat\(|ts_rewrite\(tsquery, text\)|(query|cursor|table|schema|database)_to_xml`, ""},
	{"see what others do", "pg_stat_activity, pg_locks, pg_stat_replication; members of pg_monitor keep them",
		`pg_stat_get_(activity|backend_(activity|client|dbid|io|subxact|userid|wait|wal|xact)|progress|` +
			`wal_receiver|wal_sender|subscription\()|pg_lock_status|pg_prepared_xact|` +
			`pg_(safe_snapshot_)?blocking_pids|pg_isolation_test|pg_get_replication_slots`, "pg_read_all_stats"},
	{"cancel or end what others do", "pg_cancel_backend, pg_terminate_backend, also for statements of the same login; " +
		"members of pg_signal_backend keep them", `pg_(cancel|terminate)_backend|pg_log_backend_memory_contexts`,
		"pg_signal_backend"},
	{"take locks", "pg_advisory_lock and its like, which tools for migrations and queues of jobs use",
		`pg_(try_)?advisory_`, ""},
	{"sleep", "pg_sleep", `pg_sleep`, ""},
	{"read or change large objects", "lo_get, lo_put, loread, lowrite and all lo_ functions",
		`lo_|lo(read|write)\(`, ""},
	{"notify others, export a snapshot, take a transaction id, or write to the WAL",
		"pg_notify (not NOTIFY), txid_current, pg_export_snapshot, logical decoding",
		`pg_notify\(|pg_export_snapshot|txid_current\(|pg_current_xact_id\(|pg_logical_|pg_replication_`, ""},
}

// effectPattern matches the beginning of "name(types)" of every function of effects.
var effectPattern = func() *regexp.Regexp {
	patterns := make([]string, len(effects))
	for i, e := range effects {
		patterns[i] = e.pattern
	}
	return regexp.MustCompile("^(?:" + strings.Join(patterns, "|") + ")")
}()

// SQLHasEffect reports whether a function of pg_catalog with this name does more than compute a value.
func SQLHasEffect(name string) bool { return effectPattern.MatchString(name + "(") }

// effectsTable is SQL of a FROM list: f has the functions of pg_catalog that have an effect, by kind.
func effectsTable() string {
	rows := make([]string, len(effects))
	for i, e := range effects {
		rows[i] = fmt.Sprintf("    (%d, '%s', '%s', '^(?:%s)')", i, e.kind, e.keepers, e.pattern)
	}
	return `(VALUES
` + strings.Join(rows, ",\n") + `
  ) AS e (place, kind, keepers, pattern)
  JOIN (SELECT oid, proacl, proowner, proname AS name, proname || '(' || oidvectortypes(proargtypes) || ')' AS signature
    FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace) AS f ON f.signature ~ e.pattern`
}

// SQLReachable is a query of the functions that have an effect and that the login may call. Each row has a kind, which
// says what the functions may do, and their names.
var SQLReachable = `SELECT e.kind, array_agg(DISTINCT f.name)::text[] FROM ` + effectsTable() + `
  WHERE has_function_privilege(f.oid, 'EXECUTE') GROUP BY e.place, e.kind ORDER BY e.place`

// SQLRevoke is SQL that revokes the functions that have an effect from PUBLIC. It needs a superuser, holds for the
// database where it runs, and may run again.
var SQLRevoke = `DO $$ DECLARE one record; BEGIN
  FOR one IN SELECT f.oid::regprocedure AS function, e.keepers FROM ` + effectsTable() + `
    WHERE EXISTS (SELECT FROM aclexplode(coalesce(f.proacl, acldefault('f', f.proowner))) WHERE grantee = 0)
  LOOP
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one.function);
    IF one.keepers <> '' THEN EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', one.function, one.keepers); END IF;
  END LOOP;
END $$;`

// SQLRevokeLosses says what other programs lose by SQLRevoke, one line for each kind of functions.
func SQLRevokeLosses() (lines []string) {
	for _, e := range effects {
		lines = append(lines, e.kind+": "+e.users)
	}
	return lines
}
