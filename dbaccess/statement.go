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

// checkedStatement is a statement that was judged against one catalogue: what to run, or why
// not. It is shared by all who send the same text, and never changed.
type checkedStatement struct {
	catalog        *catalog
	original       string // as the caller wrote it
	numbered       string // with $n for :name
	sql            string // with names bound to what was judged: this is run
	searchPath     string // the search path to run it with
	parameterNames []string
	maskedOutputs  []bool          // of the output columns; nil where none is
	columnNames    map[string]bool // of the tables in it
	fingerprint    string
	toNumbered     []parse.Shift
	toSQL          []parse.Shift
	refusal        *sandbox.Refusal
}

// Checker judges statements offline, with no database: only what PostgreSQL itself
// brings exists.
type Checker struct{ parsers *parse.Pool }

// NewChecker makes a Checker; Close it.
func NewChecker() *Checker { return &Checker{parse.Open(0)} }

// Close ends the processes that it parses in.
func (c *Checker) Close() { c.parsers.Close() }

// Check judges a statement, whatever its parameters are: nil, or a
// *sandbox.Refusal.
func (c *Checker) Check(ctx context.Context, sql string) error {
	stmt, _, err := parseAndCheck(ctx, c.parsers, parse.Request{SQL: sql, AllowAnyName: true}, nil, false)
	if err == nil && stmt.refusal != nil {
		err = stmt.refusal
	}
	return err
}

// Check judges a statement against the live database, whatever its parameters are,
// and does not run it: nil, or a *sandbox.Refusal.
func (r *Reader) Check(ctx context.Context, sql string) error {
	stmt, err := r.checkStatement(ctx, parse.Request{SQL: sql, AllowAnyName: true}, false)
	if err == nil && stmt.refusal != nil {
		err = stmt.refusal
	}
	return err
}

// plan returns the plan of a statement, from the cache where the text was judged
// against this very catalogue before.
func (r *Reader) checkStatement(ctx context.Context, q parse.Request, writes bool) (*checkedStatement, error) {
	if bad := parse.CheckText(q.SQL); bad != nil { // before its text is a key
		return &checkedStatement{refusal: refusalOf(bad)}, nil
	}
	cat, err := r.currentCatalog(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(q.Names)
	key := q.SQL + "\x00" + strings.Join(q.Names, "\x00")
	if writes {
		key = "\x00" + key // no statement begins so
	}
	if q.AllowAnyName {
		key += "\x00\x00" // no name is empty
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

// parseAndCheck parses and judges a statement, its hidden calls left out.
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

// checkParsed judges what was parsed; the walker is nil where it is refused.
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

// qualifyNames writes the statement as it is run: with what the walker inserts, and,
// where a schema's operators must not be found, without that schema in the path
// and with the tables qualified.
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
	// Last, because first is where it would be found otherwise.
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

// locate maps a position of the server's (in characters of sql, from 1) to
// characters and line of the caller's own text.
func (stmt *checkedStatement) locate(position int) (int, int) {
	return characterAndLine(stmt.original, originalOffset(stmt.toNumbered, originalOffset(stmt.toSQL, byteOffset(stmt.sql, position))))
}

// originalOffset maps a byte of the new text to the old.
func originalOffset(shifts []parse.Shift, at int) int {
	for i := len(shifts) - 1; i >= 0; i-- {
		if at >= shifts[i].At {
			return at - shifts[i].Delta
		}
	}
	return at
}

// byteOffset is the byte at which a character begins; characters count from 1.
func byteOffset(text string, position int) int {
	at := 0
	for n := 1; n < position && at < len(text); n++ {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// characterAndLine is the position in characters and the line, both from 1, of a byte.
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

// checkCache keeps the latest plans, in two generations: when the young one is full,
// the old one is forgotten.
type checkCache struct {
	mu         sync.Mutex
	young, old map[string]*checkedStatement
	size       int
}

const checkCacheBytes = 4 << 20 // bytes of text in one generation

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
	// The text is held as key, given, bound and sql, which share it where they can.
	if c.size += 4*len(key) + 1000; c.young == nil || c.size > checkCacheBytes {
		c.old, c.young, c.size = c.young, map[string]*checkedStatement{}, 4*len(key)+1000
	}
	c.young[key] = stmt
}
