// Package dbaccess runs read-only SQL from user code. Each Reader has one database.
//
//	r, err := dbaccess.Open(ctx, dbaccess.Config{URL: url})
//	if err := r.AuditLogin(ctx); err != nil { ... } // the login can do more than read
//	summary, err := r.Query(ctx, "SELECT :n::int", map[string]any{"n": json.Number("1")}, limits, sink)
//
// Package history reads and writes the service's own tables, with another login.
//
// A statement passes these layers, in this order:
//
//  1. Lexical limits and the parser, in a child process (package parse).
//  2. The check (package check): every node of the tree and everything that a name can mean must be
//     on an allow-list. A masked column may only be selected, which returns ***.
//  3. With Config.ServerCheck, the server's own analysis of the statement (check.Catalog.CheckTree).
//  4. A login that has only SELECT (AuditLogin).
//  5. A READ ONLY transaction with a timeout that always rolls back.
//
// BEGIN, two SET LOCALs, the statement, ROLLBACK and DISCARD ALL are one round trip, or two with
// Config.ServerCheck. The server limits rows; bytes are counted as they arrive. A connection that does not
// answer all of that is closed, and its statement is cancelled on the server.
//
// The goroutine that calls Query reads the rows and passes them to the sink in bounded batches. It
// holds one batch, so a slow sink slows the server down.
package dbaccess

import (
	"cmp"
	"context"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"glasshouse/dbaccess/check"
	"glasshouse/dbaccess/parse"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// Config configures a Reader.
type Config struct {
	Name           string // of the database, for errors; it may be ""
	URL            string
	WriterURL      string              // login that may write, for captured statements; "" if there is none
	MaxConns       int32               // concurrent statements; 0 means 16
	PerUser        int                 // concurrent statements of one user; 0 means MaxConns
	PerSandbox     int                 // concurrent statements of one sandbox; 0 means MaxConns
	Limits         sandbox.QueryLimits // ceilings; zero fields mean 1 000 000 rows, 64 MiB, 30 s
	AllowFunctions []string            // user-defined functions that may be called: "name" or "schema.name", optionally with "(type,type)"
	MaskColumns    []string            // columns whose values are hidden: "schema.table.column" or "table.column"
	AllowViews     []string            // that may do more with masked columns than pass them on

	// ServerCheck has the server analyse each query first, and refuses one whose tree calls what is not allowed. It
	// costs a round trip. The server writes each tree to its log unless the login has log_min_messages = fatal.
	ServerCheck bool

	Checked func(took time.Duration) // called after each check of a statement, by several goroutines; nil: not
	Parsers *Parsers                 // that several readers share; nil: the reader's own

	// NeedsAudit makes the reader use the database only after AuditLogin has succeeded. Until then, each use audits the
	// login, at most once in auditInterval. Audited is called with the outcome if it is another than before.
	NeedsAudit bool
	Audited    func(error)

	// Overdue is called when the server still runs a statement long after it was cancelled, and when it has
	// ended such a statement. Nil: it is not called.
	Overdue func(Overdue)

	// CPUTime returns the CPU time that the server's process with a pid has used, and false if it is not known. Users
	// are charged for it. Nil: the server's processes are not in reach, and a statement counts as a short one.
	CPUTime func(pid uint32) (used time.Duration, isKnown bool)

	Users *limit.Users // who share the connections and the server's CPU time; nil: all have the same weight
	Share *limit.Share // is charged for statements; nil: nothing is

	// Results bounds the memory that results of a user take before they are encoded. nil: nothing does.
	Results *limit.Results
}

// Parsers are the processes that parse statements. They are started when they are first needed. Several readers can
// share them.
type Parsers struct {
	pool  *parse.Pool
	turns *limit.Shared // concurrent checks of all users
}

// maxChecks bounds concurrent checks. Few parsers run, so one user's checks must not queue before them.
const maxChecks = 5

// NewParsers returns Parsers that users share. Close them.
func NewParsers(users *limit.Users) *Parsers {
	return &Parsers{parse.Open(), limit.NewShared(maxChecks, users)}
}

// Close ends the processes, also those that parse a statement.
func (p *Parsers) Close() { p.pool.Close() }

// Reader checks and runs read-only statements. It is safe for concurrent use.
type Reader struct {
	config     Config
	pool       *pgxpool.Pool
	writer     *pgxpool.Pool // nil without a writing login
	checker    *check.Checker
	perUser    *limit.Keyed // concurrent statements
	perSandbox *limit.Keyed
	statements *limit.Shared // connections for statements of all users
	stageUsers *limit.Keyed  // concurrent calls of Stages of one user
	stageSets  *limit.Keyed  // of all users
	budget     stageBudget   // of the statements that are derived from one
	ownParsers *Parsers      // nil: the configuration's
	audit      loginAudit
	overdue    overdue
	close      context.CancelFunc
}

// connectTimeout bounds an attempt to connect, unless the URL has a connect_timeout. A server that does not answer must
// not hold up readers for longer.
const connectTimeout = 10 * time.Second

// pinnedSettings are settings that the lexer and the decoders depend on. User SQL cannot change
// them. After every statement the Reader compares those that the server reports.
var pinnedSettings = map[string]string{
	"application_name": "glasshouse-reader", "default_transaction_read_only": "on", "standard_conforming_strings": "on", "client_encoding": "UTF8", "TimeZone": "UTC",
	"DateStyle": "ISO, MDY", "IntervalStyle": "iso_8601", "bytea_output": "hex", "extra_float_digits": "1", "xmlbinary": "base64",
}

// Open returns a Reader. It connects when it is first used. Close it.
func Open(ctx context.Context, c Config) (*Reader, error) {
	config, err := parsePool(c.URL)
	if err != nil {
		return nil, err
	}
	c.Limits.MaxRows = cmp.Or(c.Limits.MaxRows, 1_000_000)
	c.Limits.MaxBytes = cmp.Or(c.Limits.MaxBytes, 64<<20)
	c.Limits.Timeout = cmp.Or(c.Limits.Timeout, 30*time.Second)
	if c.MaxConns <= 0 {
		c.MaxConns = 16
	}
	config.MaxConns, config.BeforeConnect = c.MaxConns, countMessages
	// DISCARD ALL drops prepared statements, so pgx must not cache any.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	maps.Copy(config.ConnConfig.RuntimeParams, pinnedSettings)
	config.ConnConfig.RuntimeParams["statement_timeout"] = strconv.FormatInt(c.Limits.Timeout.Milliseconds(), 10)
	if c.ServerCheck { // the tree of a statement comes as a message of level LOG
		config.ConnConfig.RuntimeParams["client_min_messages"] = "log"
		config.ConnConfig.RuntimeParams["debug_pretty_print"] = "off"
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	closing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &Reader{
		config: c, pool: pool, close: cancel,
		perUser: limit.NewKeyed(c.PerUser), perSandbox: limit.NewKeyed(c.PerSandbox),
		statements: limit.NewShared(int(c.MaxConns), c.Users), audit: newLoginAudit(),
		stageUsers: limit.NewKeyed(1), stageSets: limit.NewKeyed(maxStageSets),
		budget: defaultStageBudget,
		overdue: overdue{
			report: c.Overdue, closing: closing, ofUser: map[string]int{}, ofSandbox: map[string]int{},
		},
	}
	if c.Parsers == nil {
		r.ownParsers = NewParsers(c.Users)
		r.config.Parsers = r.ownParsers
	}
	r.checker = check.New(check.Config{
		Name: c.Name, Pool: pool, Parsers: r.config.Parsers.pool,
		AllowFunctions: c.AllowFunctions, MaskColumns: c.MaskColumns, AllowViews: c.AllowViews,
		ReadsTrees: c.ServerCheck,
	})
	if c.WriterURL != "" {
		if r.writer, err = openWriter(ctx, c.WriterURL); err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

// parsePool returns the configuration of a pool of connections.
func parsePool(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	return config, nil
}

// acquire waits for one of the sandbox's slots, one of the user's and one of all, so that no sandbox
// and no user takes every connection. The sandbox's slot comes first: a waiting sandbox holds no slot
// of the user's other sandboxes. The error is a *sandbox.Refusal.
func (r *Reader) acquire(ctx context.Context, l sandbox.QueryLimits) (release func(), err error) {
	if err := r.overdueRefusal(l); err != nil {
		return nil, err
	}
	releaseSandbox, err := r.perSandbox.Acquire(ctx, l.Sandbox, limit.Forever)
	if err != nil {
		return nil, errCancelledWaiting()
	}
	releaseUser, err := r.perUser.Acquire(ctx, l.User, limit.Forever)
	if err != nil {
		releaseSandbox()
		return nil, errCancelledWaiting()
	}
	releaseShared, err := r.statements.Acquire(ctx, l.User, limit.Forever)
	if err != nil {
		releaseUser()
		releaseSandbox()
		return nil, errCancelledWaiting()
	}
	return func() { releaseShared(); releaseUser(); releaseSandbox() }, nil
}

// Close closes the connections and ends the parser processes.
func (r *Reader) Close() {
	r.close()
	r.pool.Close()
	if r.writer != nil {
		r.writer.Close()
	}
	r.checker.Close()
	if r.ownParsers != nil {
		r.ownParsers.Close()
	}
}

// Status returns the version of the server, such as "15.14". It returns FaultUnavailable if the database does not
// answer, or is not used because of its login.
func (r *Reader) Status(ctx context.Context) (serverVersion string, err error) {
	if err := r.ensureAudited(ctx); err != nil {
		return "", err
	}
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		return "", r.unavailable(err)
	}
	defer conn.Release()
	if err := conn.Ping(ctx); err != nil {
		return "", r.unavailable(err)
	}
	serverVersion, _, _ = strings.Cut(conn.Conn().PgConn().ParameterStatus("server_version"), " ")
	return serverVersion, nil
}

// unavailable replaces an error that means "server not reachable" with FaultUnavailable.
func (r *Reader) unavailable(err error) error { return check.Unavailable(r.config.Name, err) }

// Check checks a statement for any parameters, without running it. It returns nil or a
// *sandbox.Refusal.
func (r *Reader) Check(ctx context.Context, sql string) error {
	if err := r.ensureAudited(ctx); err != nil {
		return err
	}
	return r.checker.Check(ctx, sql)
}

// Bind checks a statement like Check and returns the text and the search path that it would run with.
func (r *Reader) Bind(ctx context.Context, sql string) (text, searchPath string, err error) {
	if err := r.ensureAudited(ctx); err != nil {
		return "", "", err
	}
	stmt, err := r.checker.Statement(ctx, parse.Request{SQL: sql, AllowAnyName: true}, false)
	if err == nil && stmt.Refusal != nil {
		err = stmt.Refusal
	}
	if err != nil {
		return "", "", err
	}
	return stmt.SQL, stmt.SearchPath, nil
}
