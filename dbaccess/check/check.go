// Package check decides whether a SQL statement may run. Package dbaccess runs it.
//
//	c := check.New(check.Config{Pool: pool})
//	stmt, err := c.Statement(ctx, parse.Request{SQL: "SELECT now()"}, false)
//	if stmt.Refusal != nil { ... } // why it may not run
//	run(stmt.SQL, stmt.SearchPath)
//
// A statement is checked in this order:
//
//  1. Package parse limits its size and parses it in a child process; tree.go reads the tree.
//  2. The walker visits every node (walker.go). Only listed nodes are allowed (nodes.go). Functions,
//     operators, casts and types are allowed by everything that their names can mean in the live
//     catalog (names.go, attribute.go, from_item.go, catalog.go). Names of other schemas are qualified in the
//     text, and the search path is pg_catalog (path.go).
//  3. The definitions of views, row policies and domains that the statement uses are walked too
//     (definitions.go).
//  4. A table with masked columns is replaced by a subquery that has a constant in place of each (mask*.go). A masked
//     column may be selected. It may not be used in an expression, filter, join or sort.
//
// The result is cached by text and catalog version. The lists of what is allowed are in package policy.
package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
)

// Config configures a Checker.
type Config struct {
	Name           string        // of the database, for errors; it may be ""
	Pool           *pgxpool.Pool // of the database; nil: only the names of pg_catalog exist
	Parsers        *parse.Pool   // nil: the Checker's own
	AllowFunctions []string      // user-defined functions that may be called: "name" or "schema.name", optionally with "(type,type)"
	MaskColumns    []string      // columns whose values are hidden: "schema.table.column" or "table.column"
	AllowViews     []string      // "view" or "schema.view", which may do more with masked columns than pass them on
	ReadsTrees     bool          // Catalog.CheckTree is called
}

// Checker checks statements. It is safe for concurrent use.
type Checker struct {
	name             string
	pool             *pgxpool.Pool
	parsers          *parse.Pool
	ownsParsers      bool
	allowedFunctions map[string]bool
	maskColumns      []string
	allowedViews     map[string]bool
	readsTrees       bool
	cache            cache

	refreshing       chan struct{} // has an element while the catalog is compared with the database
	mu               sync.Mutex
	catalog          *Catalog
	nextVersionCheck time.Time // when to ask again whether the catalog has changed
}

// New returns a Checker. Close it.
func New(c Config) *Checker {
	ownsParsers := c.Parsers == nil
	if ownsParsers {
		c.Parsers = parse.Open()
	}
	return &Checker{
		name:             c.Name,
		pool:             c.Pool,
		parsers:          c.Parsers,
		ownsParsers:      ownsParsers,
		refreshing:       make(chan struct{}, 1),
		allowedFunctions: setOf(c.AllowFunctions),
		maskColumns:      c.MaskColumns,
		allowedViews:     setOf(c.AllowViews),
		readsTrees:       c.ReadsTrees,
	}
}

// Close ends the Checker's own parser processes. The pool stays open.
func (c *Checker) Close() {
	if c.ownsParsers {
		c.parsers.Close()
	}
}

// Check returns nil if the statement may run with any parameters, or a *sandbox.Refusal.
func (c *Checker) Check(ctx context.Context, sql string) error {
	stmt, err := c.Statement(ctx, parse.Request{SQL: sql, AllowAnyName: true}, false)
	if err == nil && stmt.Refusal != nil {
		err = stmt.Refusal
	}
	return err
}

// Statement checks a statement and returns the result, from the cache if the same text was checked against
// the current catalog. A refused statement has a Refusal. writes admits INSERT, UPDATE, DELETE and MERGE
// instead of queries. The error is FaultUnavailable if the database cannot be reached.
func (c *Checker) Statement(ctx context.Context, q parse.Request, writes bool) (*Statement, error) {
	if bad := parse.CheckText(q.SQL); bad != nil { // before the text becomes a cache key
		return &Statement{Refusal: refusalOf(bad)}, nil
	}
	cat, err := c.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(q.Names)
	key := q.SQL + "\x00" + strings.Join(q.Names, "\x00")
	if writes {
		key = "\x00" + key // no statement begins with NUL
	}
	if q.AllowAnyName {
		key += "\x00\x00" // no parameter name is empty
	}
	if stmt := c.cache.get(key); stmt != nil && stmt.Catalog == cat {
		return stmt, nil
	}
	stmt, w, err := parseAndCheck(ctx, c.parsers, q, cat, writes)
	if err != nil {
		return nil, err
	}
	if stmt.Refusal == nil {
		err := c.checkDefinitions(ctx, w)
		if err == nil {
			if no := stmt.bindNames(w); no != nil {
				stmt.refuse(no)
			}
			stmt.Tables = cat.namesOf(w.tables)
			stmt.Schema, stmt.ReadsClock = schemaOf(w.relations), w.readsClock || mentionsClock(w.mentionedNames)
		}
		if err != nil && !errors.As(err, &stmt.Refusal) {
			return nil, err
		}
	}
	c.cache.put(key, stmt)
	return stmt, nil
}

// Derive makes other statements from a statement, as package parse does. They are not checked.
// The error is a *sandbox.Refusal if there is none.
func (c *Checker) Derive(ctx context.Context, q parse.Request) (parse.Result, error) {
	result, err := c.parsers.Parse(ctx, q)
	if errors.Is(err, parse.ErrParserFailed) {
		reason, use := "no-sample", "a sample"
		if q.Derive == parse.Stages {
			reason, use = stages.ReasonNoStages, "its stages"
		} else if q.Derive == parse.Why || q.Derive == parse.WhyNot {
			reason, use = stages.ReasonNotTraceable, "following its rows"
		}
		return result, sandbox.Refusef(reason, "%s: the statement is too long for %s", parse.ErrParserFailed, use)
	}
	if err == nil && result.Fault != nil {
		err = refusalOf(result.Fault)
	}
	return result, err
}

// Unavailable replaces an error that means "server not reachable" (SQLSTATE classes 08, 28, 53, 57,
// or no SQLSTATE) with FaultUnavailable. name is that of the database; it may be "".
func Unavailable(name string, err error) error {
	var pg *pgconn.PgError
	var known *sandbox.Error
	if err == nil || errors.As(err, &known) || errors.As(err, &pg) && !isUnreachable(pg.Code) {
		return err
	}
	if name != "" {
		name = fmt.Sprintf("%q ", name)
	}
	return &sandbox.Error{
		Fault:      sandbox.FaultUnavailable,
		Detail:     "the database " + name + "does not answer; try again soon",
		RetryAfter: 2,
		Cause:      err,
	}
}

func isUnreachable(sqlState string) bool {
	return slices.Contains([]string{"08", "28", "53", "57"}, sqlState[:2])
}
