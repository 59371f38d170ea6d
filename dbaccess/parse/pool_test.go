package parse

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"io"
	"strings"
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// pool returns a Pool with one child for small statements.
func pool(t *testing.T) *Pool {
	p := &Pool{small: make(chan *child, 1), large: make(chan *child, 1)}
	p.small <- nil
	p.large <- nil
	t.Cleanup(p.Close)
	return p
}

// well reports an error if the pool does not parse a statement.
func well(t *testing.T, p *Pool) {
	t.Helper()
	const sql = "SELECT :a"
	var got Result
	fingerprint, err := p.Parse(t.Context(), Request{SQL: sql, AllowAnyName: true}, func(r Result) { got = r })
	if want, _ := pg_query.Fingerprint("SELECT $1"); err != nil || got.SQL != "SELECT $1" ||
		!strings.Contains(got.Tree, "ParamRef") ||
		fingerprint != want {
		t.Errorf("got %+v, fingerprint %q, %v", got, fingerprint, err)
	}
}

// TestPoolFingerprints expects a fingerprint for every statement that parses and none for others, and
// that no answer reaches the next statement.
func TestPoolFingerprints(t *testing.T) {
	p := pool(t)
	for _, sql := range []string{"SELECT 1", "SELECT", "SELECT (", "SELECT :a", "INSERT INTO t VALUES (1)", "SELECT '", "", "SELECT 2; SELECT 3", "SELECT \x00", "SELECT " + strings.Repeat("a, ", maxSmallStatement) + "a"} {
		var got Result
		fingerprint, err := p.Parse(t.Context(), Request{SQL: sql}, func(r Result) { got = r })
		want := ""
		if got.Fault == nil {
			want, _ = pg_query.Fingerprint(sql)
		}
		if err != nil || fingerprint != want || (got.Fault == nil) != (want != "") {
			t.Errorf("fingerprint of %.20q: got %q, want %q: %v, %v", sql, fingerprint, want, got.Fault, err)
		}
	}
}

// TestPoolReplacesChildren kills, cancels and panics, and expects a new child each time.
func TestPoolReplacesChildren(t *testing.T) {
	p := pool(t)
	well(t, p)
	c := <-p.small
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = c.cmd.Process.Wait()
	p.small <- c
	well(t, p)

	// now returns the current child.
	now := func() *child {
		c := <-p.small
		p.small <- c
		return c
	}
	c = now()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := p.Parse(ctx, Request{SQL: "SELECT 1"}, func(Result) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled statement: got %v, want context.Canceled", err)
	}
	if c.cmd.ProcessState == nil {
		t.Error("the child of a cancelled statement still runs")
	}
	well(t, p)

	c = now()
	func() {
		defer func() { _ = recover() }()
		_, _ = p.Parse(t.Context(), Request{SQL: "SELECT 1"}, func(Result) { panic("judging") })
	}()
	if c.cmd.ProcessState == nil {
		t.Error("the child still runs after take panicked")
	}
	well(t, p)
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// TestPoolBoundsAnswers expects an endless answer to be cut off.
func TestPoolBoundsAnswers(t *testing.T) {
	huge := io.MultiReader(strings.NewReader("\xfc\x3f\xff\xff\xff"), zeros{}) // announces a gob of a gigabyte
	left := &io.LimitedReader{R: huge}
	buf := bufio.NewWriter(io.Discard)
	c := &child{send: gob.NewEncoder(buf), buf: buf, remaining: left, read: gob.NewDecoder(left)}
	if _, err := c.ask(Request{}, func(Result) { t.Error("take was called for a cut answer") }); !errors.Is(
		err,
		io.ErrUnexpectedEOF,
	) ||
		left.N != 0 {
		t.Errorf("got %v with %d bytes left, want io.ErrUnexpectedEOF", err, left.N)
	}
}
