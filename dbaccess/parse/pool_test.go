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

func pool(t *testing.T) *Pool {
	p := Open(1)
	t.Cleanup(p.Close)
	return p
}

// well says that a pool parses.
func well(t *testing.T, p *Pool) {
	t.Helper()
	const sql = "SELECT :a"
	var got Result
	fingerprint, err := p.Parse(t.Context(), Request{SQL: sql, AllowAnyName: true}, func(r Result) { got = r })
	if want, _ := pg_query.Fingerprint("SELECT $1"); err != nil || got.SQL != "SELECT $1" || !strings.Contains(got.Tree, "ParamRef") || fingerprint != want {
		t.Errorf("%+v, %q, %v", got, fingerprint, err)
	}
}

// Every statement that parses has its fingerprint, and what does not has none; the next
// statement never gets what is left of the last.
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
			t.Errorf("%.20q has the fingerprint %q, want %q: %v, %v", sql, fingerprint, want, got.Fault, err)
		}
	}
}

// A child that was ended is replaced, before a statement and while one is judged.
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

	// now is the child of the moment.
	now := func() *child {
		c := <-p.small
		p.small <- c
		return c
	}
	c = now()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := p.Parse(ctx, Request{SQL: "SELECT 1"}, func(Result) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled statement: %v", err)
	}
	if c.cmd.ProcessState == nil {
		t.Error("the child of a cancelled statement is there")
	}
	well(t, p)

	c = now()
	func() {
		defer func() { _ = recover() }()
		_, _ = p.Parse(t.Context(), Request{SQL: "SELECT 1"}, func(Result) { panic("judging") })
	}()
	if c.cmd.ProcessState == nil {
		t.Error("the child of a judge that panicked is there")
	}
	well(t, p)
}

// zeros never end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// A child that sends without end is not read without end.
func TestPoolBoundsAnswers(t *testing.T) {
	huge := io.MultiReader(strings.NewReader("\xfc\x3f\xff\xff\xff"), zeros{}) // a gob of a gigabyte
	left := &io.LimitedReader{R: huge}
	buf := bufio.NewWriter(io.Discard)
	c := &child{send: gob.NewEncoder(buf), buf: buf, remaining: left, read: gob.NewDecoder(left)}
	if _, err := c.ask(Request{}, func(Result) { t.Error("it was an answer") }); !errors.Is(err, io.ErrUnexpectedEOF) || left.N != 0 {
		t.Errorf("%v, with %d bytes left", err, left.N)
	}
}
