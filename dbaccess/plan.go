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

// plan is a statement that was judged against one catalogue: what to run, or why
// not. It is shared by all who send the same text, and never changed.
type plan struct {
	known       *catalogue
	given       string // as the caller wrote it
	bound       string // with $n for :name
	sql         string // with names bound to what was judged: this is run
	path        string // the search path to run it with
	names       []string
	masked      []bool          // of the output columns; nil where none is
	columns     map[string]bool // of the tables in it
	fingerprint string
	toBound     []parse.Shift
	toSQL       []parse.Shift
	refusal     *sandbox.Refusal
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
	p, _, err := draft(ctx, c.parsers, parse.Request{SQL: sql, Any: true}, nil, false)
	if err == nil && p.refusal != nil {
		err = p.refusal
	}
	return err
}

// Check judges a statement against the live database, whatever its parameters are,
// and does not run it: nil, or a *sandbox.Refusal.
func (r *Reader) Check(ctx context.Context, sql string) error {
	p, err := r.plan(ctx, parse.Request{SQL: sql, Any: true}, false)
	if err == nil && p.refusal != nil {
		err = p.refusal
	}
	return err
}

// plan returns the plan of a statement, from the cache where the text was judged
// against this very catalogue before.
func (r *Reader) plan(ctx context.Context, q parse.Request, writes bool) (*plan, error) {
	if bad := parse.Text(q.SQL); bad != nil { // before its text is a key
		return &plan{refusal: asRefusal(bad)}, nil
	}
	known, err := r.known(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(q.Names)
	key := q.SQL + "\x00" + strings.Join(q.Names, "\x00")
	if writes {
		key = "\x00" + key // no statement begins so
	}
	if q.Any {
		key += "\x00\x00" // no name is empty
	}
	if p := r.plans.get(key); p != nil && p.known == known {
		return p, nil
	}
	p, w, err := draft(ctx, r.parsers, q, known, writes)
	if err != nil {
		return nil, err
	}
	if p.refusal == nil {
		err := r.hidden(ctx, w)
		if err == nil {
			err = r.trace(ctx, p, w)
		}
		if err != nil && !errors.As(err, &p.refusal) {
			return nil, err
		}
	}
	r.plans.put(key, p)
	return p, nil
}

// draft parses and judges a statement, its hidden calls left out.
func draft(ctx context.Context, parsers *parse.Pool, q parse.Request, known *catalogue, writes bool) (p *plan, w *walker, err error) {
	fingerprint, err := parsers.Parse(ctx, q, func(parsed parse.Result) { p, w = drafted(q, parsed, known, writes) })
	if errors.Is(err, parse.ErrBroken) {
		no := refuse("too-large", "%s: write it shorter, or pass data as parameters", parse.ErrBroken)
		return &plan{known: known, given: q.SQL, refusal: no}, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	p.fingerprint = fingerprint
	if p.refusal != nil {
		habitual(p.refusal, q.SQL)
	}
	return p, w, nil
}

// drafted judges what was parsed; the walker is nil where it is refused.
func drafted(q parse.Request, parsed parse.Result, known *catalogue, writes bool) (*plan, *walker) {
	p := &plan{known: known, given: q.SQL, bound: parsed.SQL, names: parsed.Names, toBound: parsed.Shifts}
	if bad := parsed.Fault; bad != nil {
		p.refusal = asRefusal(bad)
		if bad.Name != "" {
			p.refusal.Nearest = nearest(bad.Name, keys(set(q.Names)))
			p.refusal.Hint = "pass it as {\"" + bad.Name + "\": ...}"
		}
		if bad.Position > 0 {
			at := bad.Position - 1
			if parsed.InBound {
				at = bytesOf(p.bound, bad.Position)
				at = back(p.toBound, at)
			}
			p.refusal.Position, p.refusal.Line = place(q.SQL, at)
		}
		return p, nil
	}
	for _, name := range q.Names {
		if !slices.Contains(p.names, name) {
			p.refusal = refuse("unused-parameter", "the parameter %q is given, but the statement has no :%s", name, name)
			p.refusal.Hint = "take it out, or use it"
			return p, nil
		}
	}
	w := newWalker(p.bound, known)
	w.writes = writes
	if p.refusal = w.statement(parsed.Tree); p.refusal != nil {
		if p.refusal.Position > 0 {
			p.refusal.Position, p.refusal.Line = place(q.SQL, back(p.toBound, p.refusal.Position-1))
		}
		return p, nil
	}
	p.columns = map[string]bool{}
	for r := range w.relations {
		maps.Copy(p.columns, r.columns)
	}
	p.bindNames(w)
	return p, w
}

// bindNames writes the statement as it is run: with what the walker inserts, and,
// where a schema's operators must not be found, without that schema in the path
// and with the tables qualified.
func (p *plan) bindNames(w *walker) {
	if len(w.drop) > 0 {
		for _, i := range w.tables {
			if !w.ctes[i.name] {
				w.bind(i.at, i.name, i.text)
			}
		}
	}
	path := []string{"pg_catalog"}
	for _, s := range w.path {
		if !w.drop[s] {
			path = append(path, quote(s))
		}
	}
	// Last, because first is where it would be found otherwise.
	p.path = strings.Join(append(path, "pg_temp"), ", ")
	p.sql = p.bound
	if len(w.inserts) == 0 {
		return
	}
	slices.SortFunc(w.inserts, func(a, b insert) int { return a.at - b.at })
	var out strings.Builder
	copied := 0
	for n, i := range w.inserts {
		if n > 0 && i.at == w.inserts[n-1].at {
			continue
		}
		out.WriteString(p.bound[copied:i.at])
		out.WriteString(i.text)
		copied = i.at
		p.toSQL = append(p.toSQL, parse.Shift{At: out.Len(), Delta: out.Len() - copied})
	}
	out.WriteString(p.bound[copied:])
	p.sql = out.String()
}

// locate maps a position of the server's (in characters of sql, from 1) to
// characters and line of the caller's own text.
func (p *plan) locate(position int) (int, int) {
	return place(p.given, back(p.toBound, back(p.toSQL, bytesOf(p.sql, position))))
}

// back maps a byte of the new text to the old.
func back(shifts []parse.Shift, at int) int {
	for i := len(shifts) - 1; i >= 0; i-- {
		if at >= shifts[i].At {
			return at - shifts[i].Delta
		}
	}
	return at
}

// bytesOf is the byte at which a character begins; characters count from 1.
func bytesOf(text string, position int) int {
	at := 0
	for n := 1; n < position && at < len(text); n++ {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// place is the position in characters and the line, both from 1, of a byte.
func place(text string, at int) (position, line int) {
	at = min(max(at, 0), len(text))
	return utf8.RuneCountInString(text[:at]) + 1, strings.Count(text[:at], "\n") + 1
}

func asRefusal(f *parse.Fault) *sandbox.Refusal {
	return &sandbox.Refusal{Reason: f.Reason, Message: f.Message}
}

func refuse(reason, format string, args ...any) *sandbox.Refusal {
	return &sandbox.Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func set(list []string) map[string]bool {
	out := make(map[string]bool, len(list))
	for _, s := range list {
		out[s] = true
	}
	return out
}

// plans keeps the latest plans, in two generations: when the young one is full,
// the old one is forgotten.
type plans struct {
	mu         sync.Mutex
	young, old map[string]*plan
	size       int
}

const plansSize = 4 << 20 // bytes of text in one generation

func (c *plans) get(key string) *plan {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.young[key]; p != nil {
		return p
	}
	p := c.old[key]
	if p != nil {
		c.keep(key, p)
	}
	return p
}

func (c *plans) put(key string, p *plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(key, p)
}

func (c *plans) keep(key string, p *plan) {
	// The text is held as key, given, bound and sql, which share it where they can.
	if c.size += 4*len(key) + 1000; c.young == nil || c.size > plansSize {
		c.old, c.young, c.size = c.young, map[string]*plan{}, 4*len(key)+1000
	}
	c.young[key] = p
}
