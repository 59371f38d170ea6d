package dbaccess

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"glasshouse/dbaccess/parse"
	"glasshouse/sandbox"
)

// checkedStatement is the result of checking a statement against one catalog: the text to run, or
// the refusal. It is shared by all callers with the same text and is immutable.
type checkedStatement struct {
	catalog        *catalog
	original       string // as the caller wrote it
	numbered       string // with $n in place of :name
	sql            string // with qualified names; this text runs
	searchPath     string // search_path to run it with
	parameterNames []string
	maskedOutputs  []bool          // one per output column; nil if none is masked
	columnNames    map[string]bool // columns of the tables in the statement, for suggestions
	fingerprint    string
	toNumbered     []parse.Shift
	toSQL          []parse.Shift
	refusal        *sandbox.Refusal
}

// Checker checks statements without a database. Only the names of pg_catalog exist for it.
type Checker struct{ parsers *parse.Pool }

// NewChecker returns a Checker. Close it.
func NewChecker() *Checker { return &Checker{parse.Open(0)} }

// Close ends the parser processes.
func (c *Checker) Close() { c.parsers.Close() }

// Check returns nil if the statement is allowed with any parameters, or a *sandbox.Refusal.
func (c *Checker) Check(ctx context.Context, sql string) error {
	stmt, _, err := parseAndCheck(ctx, c.parsers, parse.Request{SQL: sql, AllowAnyName: true}, nil, false)
	if err == nil && stmt.refusal != nil {
		err = stmt.refusal
	}
	return err
}

// Check checks a statement against the live catalog, for any parameters, without running it. It
// returns nil or a *sandbox.Refusal.
func (r *Reader) Check(ctx context.Context, sql string) error {
	stmt, err := r.checkStatement(ctx, parse.Request{SQL: sql, AllowAnyName: true}, false)
	if err == nil && stmt.refusal != nil {
		err = stmt.refusal
	}
	return err
}

// checkStatement returns the checked statement, from the cache if the same text was checked against
// the current catalog. allowWrites admits statements that write, for Capture and Apply.
func (r *Reader) checkStatement(ctx context.Context, q parse.Request, writes bool) (*checkedStatement, error) {
	if bad := parse.CheckText(q.SQL); bad != nil { // before the text becomes a cache key
		return &checkedStatement{refusal: refusalOf(bad)}, nil
	}
	cat, err := r.currentCatalog(ctx)
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
	if stmt := r.checks.get(key); stmt != nil && stmt.catalog == cat {
		return stmt, nil
	}
	stmt, checker, err := parseAndCheck(ctx, r.parsers, q, cat, writes)
	if err != nil {
		return nil, err
	}
	if stmt.refusal == nil {
		err := r.checkDefinitions(ctx, checker)
		if err == nil {
			err = r.traceMasked(ctx, stmt, checker)
		}
		if err != nil && !errors.As(err, &stmt.refusal) {
			return nil, err
		}
	}
	r.checks.put(key, stmt)
	return stmt, nil
}

// parseAndCheck parses and checks a statement, without the definitions that it uses.
func parseAndCheck(ctx context.Context, parsers *parse.Pool, q parse.Request, cat *catalog, writes bool) (stmt *checkedStatement, checker *statementChecker, err error) {
	fingerprint, err := parsers.Parse(ctx, q, func(parsed parse.Result) { stmt, checker = checkParsed(q, parsed, cat, writes) })
	if errors.Is(err, parse.ErrParserFailed) {
		no := refuse("too-large", "%s: write it shorter, or pass data as parameters", parse.ErrParserFailed)
		return &checkedStatement{catalog: cat, original: q.SQL, refusal: no}, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	stmt.fingerprint = fingerprint
	if stmt.refusal != nil {
		addDialectHint(stmt.refusal, q.SQL)
	}
	return stmt, checker, nil
}

// checkParsed checks a parsed statement. The checker is nil if the statement is refused.
func checkParsed(q parse.Request, parsed parse.Result, cat *catalog, writes bool) (*checkedStatement, *statementChecker) {
	stmt := &checkedStatement{catalog: cat, original: q.SQL, numbered: parsed.SQL, parameterNames: parsed.Names, toNumbered: parsed.Shifts}
	if bad := parsed.Fault; bad != nil {
		stmt.refusal = refusalOf(bad)
		if bad.Name != "" {
			stmt.refusal.Nearest = nearestName(bad.Name, keySet(setOf(q.Names)))
			stmt.refusal.Hint = "pass it as {\"" + bad.Name + "\": ...}"
		}
		if bad.Position > 0 {
			at := bad.Position - 1
			if parsed.InNumberedText {
				at = byteOffset(stmt.numbered, bad.Position)
				at = originalOffset(stmt.toNumbered, at)
			}
			stmt.refusal.Position, stmt.refusal.Line = characterAndLine(q.SQL, at)
		}
		return stmt, nil
	}
	for _, name := range q.Names {
		if !slices.Contains(stmt.parameterNames, name) {
			stmt.refusal = refuse("unused-parameter", "the parameter %q is given, but the statement has no :%s", name, name)
			stmt.refusal.Hint = "take it out, or use it"
			return stmt, nil
		}
	}
	checker := newStatementChecker(stmt.numbered, cat)
	checker.allowWrites = writes
	if stmt.refusal = checker.checkStatement(parsed.Tree); stmt.refusal != nil {
		if stmt.refusal.Position > 0 {
			stmt.refusal.Position, stmt.refusal.Line = characterAndLine(q.SQL, originalOffset(stmt.toNumbered, stmt.refusal.Position-1))
		}
		return stmt, nil
	}
	stmt.columnNames = map[string]bool{}
	for r := range checker.relations {
		maps.Copy(stmt.columnNames, r.columns)
	}
	stmt.qualifyNames(checker)
	return stmt, checker
}

// qualifyNames writes the text that runs: with the insertions of the checker, and, if operators of
// a schema must not be found, without that schema in the search path and with qualified tables.
func (stmt *checkedStatement) qualifyNames(checker *statementChecker) {
	if len(checker.droppedSchemas) > 0 {
		for _, i := range checker.qualifications {
			if !checker.cteNames[i.name] {
				checker.qualify(i.at, i.name, i.text)
			}
		}
	}
	path := []string{"pg_catalog"}
	for _, s := range checker.searchPath {
		if !checker.droppedSchemas[s] {
			path = append(path, quoteIdentifier(s))
		}
	}
	// pg_temp is searched first unless the path names it, so it is named last.
	stmt.searchPath = strings.Join(append(path, "pg_temp"), ", ")
	stmt.sql = stmt.numbered
	if len(checker.insertions) == 0 {
		return
	}
	slices.SortFunc(checker.insertions, func(a, b insertion) int { return a.at - b.at })
	var out strings.Builder
	copied := 0
	for n, i := range checker.insertions {
		if n > 0 && i.at == checker.insertions[n-1].at {
			continue
		}
		out.WriteString(stmt.numbered[copied:i.at])
		out.WriteString(i.text)
		copied = i.at
		stmt.toSQL = append(stmt.toSQL, parse.Shift{At: out.Len(), Delta: out.Len() - copied})
	}
	out.WriteString(stmt.numbered[copied:])
	stmt.sql = out.String()
}

// locate maps a position that the server reports (in characters of sql, from 1) to the character
// and line of the caller's text.
func (stmt *checkedStatement) locate(position int) (int, int) {
	return characterAndLine(stmt.original, originalOffset(stmt.toNumbered, originalOffset(stmt.toSQL, byteOffset(stmt.sql, position))))
}

// originalOffset maps a byte offset of the new text to the old text.
func originalOffset(shifts []parse.Shift, at int) int {
	for i := len(shifts) - 1; i >= 0; i-- {
		if at >= shifts[i].At {
			return at - shifts[i].Delta
		}
	}
	return at
}

// byteOffset returns the offset of a character; characters count from 1.
func byteOffset(text string, position int) int {
	at := 0
	for n := 1; n < position && at < len(text); n++ {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// characterAndLine returns the character and line, both from 1, of a byte offset.
func characterAndLine(text string, at int) (position, line int) {
	at = min(max(at, 0), len(text))
	return utf8.RuneCountInString(text[:at]) + 1, strings.Count(text[:at], "\n") + 1
}

func refusalOf(f *parse.Fault) *sandbox.Refusal {
	return &sandbox.Refusal{Reason: f.Reason, Message: f.Message}
}

func refuse(reason, format string, args ...any) *sandbox.Refusal {
	return &sandbox.Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func setOf(list []string) map[string]bool {
	out := make(map[string]bool, len(list))
	for _, s := range list {
		out[s] = true
	}
	return out
}

// checkCache keeps the latest checked statements in two generations. When the young generation is
// full, the old one is dropped.
type checkCache struct {
	mu         sync.Mutex
	young, old map[string]*checkedStatement
	size       int
}

const checkCacheBytes = 4 << 20 // text bytes of one generation

func (c *checkCache) get(key string) *checkedStatement {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stmt := c.young[key]; stmt != nil {
		return stmt
	}
	stmt := c.old[key]
	if stmt != nil {
		c.insert(key, stmt)
	}
	return stmt
}

func (c *checkCache) put(key string, stmt *checkedStatement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.insert(key, stmt)
}

func (c *checkCache) insert(key string, stmt *checkedStatement) {
	// The text is held as key, original, numbered and sql, which share memory where they can.

	if c.size += 4*len(key) + 1000; c.young == nil || c.size > checkCacheBytes {
		c.old, c.young, c.size = c.young, map[string]*checkedStatement{}, 4*len(key)+1000
	}
	c.young[key] = stmt
}
