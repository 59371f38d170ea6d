//go:build regress

package check

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/oracle"
	"glasshouse/dbaccess/parse"
)

// TestRegression runs PostgreSQL's own regression files (scripts/regress fetches them). The server
// decides: an allowed statement must have no effect, even for a superuser in a transaction that may
// write. The test also counts harmless statements that are refused. Statements that fail are not
// counted.
func TestRegression(t *testing.T) {
	dir := os.Getenv("GLASSHOUSE_REGRESS")
	if dir == "" {
		t.Fatal("GLASSHOUSE_REGRESS must name src/test/regress of PostgreSQL's source; scripts/regress fetches it")
	}
	ctx := context.Background()
	s := dbtest.Start(t)
	admin, err := pgx.Connect(ctx, s.URL(embedded.RoleAdmin, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	if _, err := admin.Exec(ctx, "CREATE DATABASE regression TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"); err != nil {
		t.Fatal(err)
	}
	url := s.URL(embedded.RoleAdmin, "regression")
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["lock_timeout"] = "200ms" // the session that runs the files may hold locks for long
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	r := New(Config{Pool: pool})
	defer r.Close()
	p := &probe{t: t, r: r, url: url, isCatalogStale: true, refused: map[string]int{}, examples: map[string]string{}}
	p.connect(ctx)
	if p.oracle, err = oracle.Open(ctx, url, embedded.RoleReader); err != nil {
		t.Fatal(err)
	}
	defer p.oracle.Close()
	for _, file := range dbtest.RegressFiles(t, dir) {
		if end, ok := t.Deadline(); ok && time.Until(end) < 30*time.Second {
			t.Errorf("out of time before %s: give it more with -timeout", file)
			break
		}
		main, err := pgconn.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = main.Exec(ctx, "SET statement_timeout = '10s'; SET lock_timeout = '2s'").ReadAll()
		for _, st := range dbtest.RegressStatements(t, dir, file) {
			p.compare(ctx, file, st.SQL)
			if main.IsClosed() {
				break
			}
			brief, cancel := context.WithTimeout(ctx, 30*time.Second)
			if st.Copied != nil {
				_, _ = main.CopyFrom(brief, strings.NewReader(*st.Copied), st.SQL)
			} else {
				_, _ = main.Exec(brief, st.SQL).ReadAll()
			}
			cancel()
			p.isCatalogStale = p.isCatalogStale || !reads.MatchString(st.SQL)
		}
		_ = main.Close(ctx)
		t.Logf(
			"%s: so far %d statements, %d that run allowed, %d harmless ones refused",
			file,
			p.seen,
			p.allowed,
			p.harmless,
		)
	}
	var reasons []string
	for reason := range p.refused {
		reasons = append(reasons, reason)
	}
	sort.Slice(reasons, func(i, j int) bool { return p.refused[reasons[i]] > p.refused[reasons[j]] })
	for _, reason := range reasons {
		t.Logf("%5d refused: %s, as in %s", p.refused[reason], reason, p.examples[reason])
	}
	t.Logf("the oracle judged %d statements; %d call what is not listed", p.judged, p.unlisted)
	if p.allowed < 5000 {
		t.Errorf("only %d statements were allowed and ran", p.allowed)
	}
}

// probe checks statements and runs them on a connection of its own.
type probe struct {
	t              *testing.T
	r              *Checker
	url            string
	conn           *pgx.Conn
	noEffect       string // result of effectSQL for a statement without effect
	isCatalogStale bool   // the catalog may have changed

	oracle                  *oracle.Oracle
	judged, unlisted        int // by the oracle: statements, and those that call what is not listed
	seen, allowed, harmless int
	refused                 map[string]int
	examples                map[string]string
}

// effectSQL describes the effects of a statement on the session and the database.
const effectSQL = `SELECT concat_ws(' ', pg_current_xact_id_if_assigned() IS NOT NULL, (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()), (SELECT count(*) FROM pg_listening_channels()),
	(SELECT count(*) FROM pg_prepared_statements), (SELECT md5(string_agg(name || coalesce(setting, ''), ',')) FROM pg_settings WHERE source = 'session' AND name !~ '^transaction_|^search_path$|_timeout$'))`

const sequencesSQL = `SELECT coalesce(sum(last_value), 0)::text FROM pg_sequences`

func (p *probe) connect(ctx context.Context) {
	config, err := pgx.ParseConfig(p.url)
	if err != nil {
		p.t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	// The session that runs the files may hold locks for long.
	config.RuntimeParams["statement_timeout"], config.RuntimeParams["lock_timeout"] = "5s", "200ms"
	if p.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		p.t.Fatal(err)
	}
	_, p.noEffect, _ = p.effects(ctx, "SELECT 1", "pg_catalog")
}

// effects runs a statement in a transaction that is rolled back.
func (p *probe) effects(ctx context.Context, sql, path string) (ran bool, effect string, err error) {
	var before, after string
	_ = p.conn.QueryRow(ctx, sequencesSQL).Scan(&before)
	pg := p.conn.PgConn()
	if _, err := pg.Exec(ctx, "BEGIN; SET LOCAL search_path = "+path).ReadAll(); err != nil {
		return false, "", err
	}
	_, err = pg.ExecParams(ctx, sql, nil, nil, nil, nil).Close()
	if err == nil {
		ran, err = true, p.conn.QueryRow(ctx, effectSQL).Scan(&effect)
	}
	if pg.IsClosed() {
		p.connect(ctx)
		return false, "", err
	}
	_, _ = pg.Exec(ctx, "ROLLBACK").ReadAll()
	_, _ = pg.Exec(ctx, "DISCARD ALL").ReadAll()
	if _ = p.conn.QueryRow(ctx, sequencesSQL).Scan(&after); ran && before != "" && after != "" && after != before {
		effect += " sequences"
	}
	return ran, effect, err
}

// compare checks a statement and compares the decision with the effect that the statement has.
func (p *probe) compare(ctx context.Context, file, sql string) {
	p.seen++
	if p.isCatalogStale && reads.MatchString(sql) {
		p.r.mu.Lock()
		p.r.nextVersionCheck, p.isCatalogStale = time.Time{}, false
		p.r.mu.Unlock()
	}
	checked, err := p.r.Statement(ctx, parse.Request{SQL: sql}, false)
	if err != nil {
		return // the session that runs the files has locked a view
	}
	if checked.Refusal == nil {
		ran, effect, err := p.effects(ctx, checked.SQL, checked.SearchPath)
		if !ran {
			if ran, effect, _ := p.effects(ctx, sql, "public"); ran && effect == p.noEffect {
				p.lost(fmt.Sprintf("allowed, and it fails on the path %s: %v", checked.SearchPath, err), sql)
			}
			return
		}
		p.allowed++
		if effect != p.noEffect {
			p.t.Errorf("%s: allowed, and it has an effect (%s): %s", file, effect, sql)
		}
		calls, err := p.oracle.Unlisted(ctx, checked.SQL, checked.SearchPath)
		if p.judged++; err != nil {
			p.judged--
		} else if len(calls) > 0 {
			p.unlisted++
			p.t.Logf("%s: allowed, and it calls %s: %s", file, calls, sql)
		}
		return
	}
	if no := checked.Refusal; reads.MatchString(sql) && no.Reason != "syntax-error" {
		if ran, effect, _ := p.effects(ctx, sql, "public"); ran && effect == p.noEffect {
			p.lost(no.Reason+" "+refusedName.FindString(no.Message), sql)
		}
	}
}

var refusedName = regexp.MustCompile(
	`the (function|operator|cast from [^ ]+ to|setting) [^ ]+|[^ ]+ is refused|type [^ ]+`)

// lost counts a harmless statement that does not run.
func (p *probe) lost(why, sql string) {
	p.harmless++
	p.refused[why]++
	p.examples[why] = strings.Join(strings.Fields(sql), " ")
}

var reads = regexp.MustCompile(`(?i)^\s*(--[^\n]*\n\s*)*(select|with|values|table|explain|show)\b`)
