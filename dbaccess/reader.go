// Package dbaccess is door one: read-only SQL from user code, to the database
// that agents read. (Door two, history, is a package below, with another role.)
//
// A statement passes, in this order: the gate and the parser, in a child process
// (package parse: bytes, nesting and chains by the lexer, :name to $n, the tree);
// the check (every node of the tree allow-listed; functions, operators, casts and
// types by all that their names may mean in the live catalogue; and the same for
// the views, policies and domains that it uses); a login with nothing but SELECT;
// and a READ ONLY transaction with a timeout that always rolls back. What was
// judged is bound: names that could mean something else are qualified in the
// text, and the search path is set to the one that was judged.
// A column that the operator masks is traced through the statement: it may be put
// out, and stands for a mask then, and nothing be done with it.
//
// All of it is one round trip on a connection of its own: BEGIN, two SET LOCALs,
// the statement, ROLLBACK, DISCARD ALL. Rows are counted by the server and bytes as
// they come over the wire. A connection is used again only where it answered all
// of that; else it is closed, and what it still does is cancelled on the server.
//
// Rows are handed over while they come, in parts that are bounded, by the goroutine
// that reads them: it holds one part, and who takes it slowly slows the server.
package dbaccess

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"glasshouse/dbaccess/parse"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// Config says what to read and how much of it.
type Config struct {
	URL            string
	WriterURL      string              // a login that may write, for captured statements; "" is none
	MaxConns       int32               // statements at a time; 0 is 16
	PerUser        int                 // statements of one user at a time; 0 is MaxConns
	PerSandbox     int                 // statements of one sandbox at a time; 0 is MaxConns
	Limits         sandbox.QueryLimits // ceilings; zero fields are 1 000 000 rows, 64 MiB, 30 s
	AllowFunctions []string            // user-defined functions that the operator vouches for: "name" or "schema.name", with "(type,type)" or without
	MaskColumns    []string            // columns whose values agents must not see: "schema.table.column", or "table.column"
}

// Reader runs read-only statements.
type Reader struct {
	config           Config
	pool             *pgxpool.Pool
	writer           *pgxpool.Pool // nil where there is none
	parsers          *parse.Pool
	allowedFunctions map[string]bool // AllowFunctions
	checks           checkCache
	perUser          *limit.Keyed // statements at a time
	perSandbox       *limit.Keyed

	mu               sync.Mutex
	catalog          *catalog
	nextVersionCheck time.Time // when the database's own may have changed
}

// pinned are settings that the lexer and the decoders depend on; user SQL cannot
// change them. Those that the server reports are looked at after every statement.
var pinnedSettings = map[string]string{
	"application_name": "glasshouse-reader", "default_transaction_read_only": "on", "standard_conforming_strings": "on", "client_encoding": "UTF8", "TimeZone": "UTC",
	"DateStyle": "ISO, MDY", "IntervalStyle": "iso_8601", "bytea_output": "hex", "extra_float_digits": "1", "xmlbinary": "base64",
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
	if c.MaxConns <= 0 {
		c.MaxConns = 16
	}
	config.MaxConns = c.MaxConns
	// DISCARD ALL would pull prepared statements from under pgx.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	for key, value := range pinnedSettings {
		config.ConnConfig.RuntimeParams[key] = value
	}
	config.ConnConfig.RuntimeParams["statement_timeout"] = strconv.FormatInt(c.Limits.Timeout.Milliseconds(), 10)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("knowledge database: %w", err)
	}
	r := &Reader{
		config: c, pool: pool, parsers: parse.Open(0), allowedFunctions: setOf(c.AllowFunctions),
		perUser: limit.NewKeyed(c.PerUser), perSandbox: limit.NewKeyed(c.PerSandbox),
	}
	if c.WriterURL != "" {
		if r.writer, err = openWriter(ctx, c.WriterURL); err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

// acquire waits for one of the sandbox's slots and one of the user's, so that no sandbox and no
// user takes every connection. The sandbox's slot comes first: a waiting sandbox holds no slot of
// the user's other sandboxes.
func (r *Reader) acquire(ctx context.Context, l sandbox.QueryLimits) (release func(), err error) {
	releaseSandbox, err := r.perSandbox.Acquire(ctx, l.Sandbox, limit.Forever)
	if err != nil {
		return nil, err
	}
	releaseUser, err := r.perUser.Acquire(ctx, l.User, limit.Forever)
	if err != nil {
		releaseSandbox()
		return nil, err
	}
	return func() { releaseUser(); releaseSandbox() }, nil
}

// Close closes the connections and ends the parsers.
func (r *Reader) Close() {
	r.pool.Close()
	if r.writer != nil {
		r.writer.Close()
	}
	r.parsers.Close()
}

// Ping says whether the database answers.
func (r *Reader) Ping(ctx context.Context) error { return unavailable(r.pool.Ping(ctx)) }

// unavailable turns any failure to reach the server into what a caller can act on.
func unavailable(err error) error {
	var pg *pgconn.PgError
	var told *sandbox.Error
	if err == nil || errors.As(err, &told) || errors.As(err, &pg) && pg.Code[:2] != "57" && pg.Code[:2] != "08" && pg.Code[:2] != "53" && pg.Code[:2] != "28" {
		return err
	}
	return &sandbox.Error{Fault: sandbox.FaultUnavailable, Detail: "the knowledge database does not answer; try again soon", RetryAfter: 2, Cause: err}
}
