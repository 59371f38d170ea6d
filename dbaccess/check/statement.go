package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"glasshouse/dbaccess/parse"
	"glasshouse/policy"
	"glasshouse/sandbox"
)

// Statement is the result of checking a statement against one catalog: the text to run, or
// the refusal. It is shared by all callers with the same text and is immutable.
type Statement struct {
	Catalog        *Catalog
	Original       string   // as the caller wrote it
	numbered       string   // with $n in place of :name
	SQL            string   // with qualified names; this text runs
	Explained      int      // offset in SQL of the query that EXPLAIN explains; 0: no EXPLAIN
	SearchPath     string   // search_path to run it with
	ParameterNames []string // by number; a parameter may have several numbers
	JSONParameters []bool   // by number: the parameter is cast to json or jsonb
	MaskedNames    []string // masked columns of the tables in the statement: "users.email"
	mask           *maskUse
	tables         map[*relation]bool
	queryNames     []string // of WITH, for suggestions
	columnNames    []string // that its queries give to columns
	Fingerprint    string
	Schema         string   // fingerprint of the tables and views in it: columns, types, keys, definitions
	Tables         []string // names of the tables and views in it and in its views, sorted; without PostgreSQL's own
	ReadsClock     bool     // it gives other rows at another time
	toNumbered     []parse.Shift
	toSQL          []parse.Shift
	Refusal        *sandbox.Refusal
}

// maskUse is what the server's tree of a statement says about masked columns.
type maskUse struct {
	sync.Once
	isComputedWith bool
}

// parseAndCheck parses and checks a statement, without the definitions that it uses and without the text that runs.
func parseAndCheck(
	ctx context.Context, parsers *parse.Pool, q parse.Request, cat *Catalog, writes bool,
) (stmt *Statement, w *walker, err error) {
	parsed, err := parsers.Parse(ctx, q)
	if errors.Is(err, parse.ErrParserFailed) {
		no := sandbox.Refusef("too-large", "%s: write it shorter, or pass data as parameters", parse.ErrParserFailed)
		return &Statement{Catalog: cat, Original: q.SQL, Refusal: no}, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	stmt, w = checkParsed(q, parsed, cat, writes)
	if stmt.Refusal != nil {
		if !addPositionHint(stmt.Refusal, q.SQL, cat) && !addKeywordHint(stmt.Refusal, q.SQL, cat) {
			AddDialectHint(stmt.Refusal, q.SQL, cat)
		}
		addGrammarHint(stmt.Refusal, cat)
	}
	return stmt, w, nil
}

// addGrammarHint says which syntax the parser reads, if the server may read a newer one.
func addGrammarHint(no *sandbox.Refusal, cat *Catalog) {
	isOlder := cat != nil && cat.serverVersion <= parse.GrammarVersion
	if no.Hint == "" && syntaxError.MatchString(no.Message) && !isOlder {
		no.Hint = fmt.Sprintf("this version of the checker reads PostgreSQL %d's syntax", parse.GrammarVersion)
	}
}

// checkParsed checks a parsed statement. The checker is nil if the statement is refused.
func checkParsed(q parse.Request, parsed parse.Result, cat *Catalog, writes bool) (*Statement, *walker) {
	stmt := &Statement{
		Catalog:        cat,
		Original:       q.SQL,
		numbered:       parsed.SQL,
		Explained:      parsed.Explained,
		ParameterNames: parsed.Names,
		JSONParameters: parsed.JSON,
		Fingerprint:    parsed.Fingerprint,
		toNumbered:     parsed.Shifts,
	}
	if bad := parsed.Fault; bad != nil {
		stmt.Refusal = refusalOf(bad)
		if bad.Name != "" {
			stmt.Refusal.Nearest = policy.Nearest(bad.Name, slices.Values(q.Names))
			stmt.Refusal.Hint = "pass it as {\"" + bad.Name + "\": ...}"
		}
		if bad.Position > 0 {
			at := bad.Position - 1
			if parsed.InNumberedText {
				at = byteOffset(stmt.numbered, bad.Position)
				at = originalOffset(stmt.toNumbered, at)
			}
			stmt.Refusal.Position, stmt.Refusal.Line = characterAndLine(q.SQL, at)
		}
		return stmt, nil
	}
	used := setOf(stmt.ParameterNames)
	for _, name := range q.Names {
		if !used[name] {
			stmt.Refusal = sandbox.Refusef("unused-parameter",
				"the parameter %q is given, but the statement has no :%s", name, name)
			stmt.Refusal.Hint = "take it out, or use it"
			return stmt, nil
		}
	}
	w := newWalker(stmt.numbered, cat)
	w.allowWrites = writes
	if no := w.checkStatement(parsed.Tree); no != nil {
		stmt.refuse(no)
		return stmt, nil
	}
	if w.statementNode.GetExplainStmt() != nil && stmt.Explained == 0 {
		stmt.refuse(sandbox.Refusef("statement-not-allowed", "the query that EXPLAIN explains was not found"))
		return stmt, nil
	}
	stmt.addOwnNames(w)
	if w.masks != nil {
		stmt.MaskedNames, stmt.mask = w.masks.names(), &maskUse{}
	}
	return stmt, w
}

// refuse sets the refusal. Its position is that in the numbered text, and becomes that in the caller's.
func (stmt *Statement) refuse(no *sandbox.Refusal) {
	if stmt.Refusal = no; no.Position > 0 {
		no.Position, no.Line = characterAndLine(stmt.Original, originalOffset(stmt.toNumbered, no.Position-1))
	}
}

// Locate maps a position that the server reports (in characters of sql, from 1) to the character
// and line of the caller's text.
func (stmt *Statement) Locate(position int) (int, int) {
	return characterAndLine(stmt.Original,
		originalOffset(stmt.toNumbered, originalOffset(stmt.toSQL, byteOffset(stmt.SQL, position))))
}

// WithPrefix returns a copy of stmt for a text that has prefix in front of stmt.SQL, such as "EXPLAIN ".
// Its positions still refer to the original text.
func (stmt *Statement) WithPrefix(prefix string) *Statement {
	prefixed := *stmt
	prefixed.SQL = prefix + stmt.SQL
	prefixed.toSQL = []parse.Shift{{At: 0, Delta: len(prefix)}}
	for _, s := range stmt.toSQL {
		prefixed.toSQL = append(prefixed.toSQL, parse.Shift{At: s.At + len(prefix), Delta: s.Delta + len(prefix)})
	}
	return &prefixed
}

// WithOwnNumber returns a copy of stmt in which the parameter $number at a position that the server reports has a
// number of its own, the next one. ok is false if the text at the position is not $number.
func (stmt *Statement) WithOwnNumber(position, number int) (split *Statement, ok bool) {
	at, before := byteOffset(stmt.SQL, position), "$"+strconv.Itoa(number)
	rest, ok := strings.CutPrefix(stmt.SQL[at:], before)
	if !ok || rest != "" && '0' <= rest[0] && rest[0] <= '9' {
		return nil, false
	}
	after := "$" + strconv.Itoa(len(stmt.ParameterNames)+1)
	own := *stmt
	own.SQL = stmt.SQL[:at] + after + rest
	own.ParameterNames = append(slices.Clone(stmt.ParameterNames), stmt.ParameterNames[number-1])
	own.JSONParameters = append(slices.Clone(stmt.JSONParameters), stmt.JSONParameters[number-1])
	longer := len(after) - len(before)
	own.toSQL = nil
	inserted := parse.Shift{At: at + len(after), Delta: at - originalOffset(stmt.toSQL, at) + longer}
	for _, s := range stmt.toSQL {
		if s.At > at {
			s.At, s.Delta = s.At+longer, s.Delta+longer
		}
		own.toSQL = append(own.toSQL, s)
	}
	next := slices.IndexFunc(own.toSQL, func(s parse.Shift) bool { return s.At > at })
	if next < 0 {
		next = len(own.toSQL)
	}
	own.toSQL = slices.Insert(own.toSQL, next, inserted)
	return &own, true
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

func setOf(list []string) map[string]bool {
	out := make(map[string]bool, len(list))
	for _, s := range list {
		out[s] = true
	}
	return out
}

// cache keeps the latest checked statements in two generations. When the young generation is
// full, the old one is dropped.
type cache struct {
	mu         sync.Mutex
	young, old map[string]*Statement
	size       int
}

const cacheBytes = 4 << 20 // text bytes of one generation

func (c *cache) get(key string) *Statement {
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

func (c *cache) put(key string, stmt *Statement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.insert(key, stmt)
}

func (c *cache) insert(key string, stmt *Statement) {
	// The text is held as key, original, numbered and sql, which share memory where they can.

	if c.size += 4*len(key) + 1000; c.young == nil || c.size > cacheBytes {
		c.old, c.young, c.size = c.young, map[string]*Statement{}, 4*len(key)+1000
	}
	c.young[key] = stmt
}
