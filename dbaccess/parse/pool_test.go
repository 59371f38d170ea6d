package parse

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"io"
	"runtime"
	"strings"
	"syscall"
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// pool returns a Pool with one child for small statements.
func pool(t *testing.T) *Pool {
	p := open(1)
	t.Cleanup(p.Close)
	return p
}

// well reports an error if the pool does not parse a statement.
func well(t *testing.T, p *Pool) {
	t.Helper()
	const sql = "SELECT :a"
	got, err := p.Parse(t.Context(), Request{SQL: sql, AllowAnyName: true})
	if want, _ := pg_query.Fingerprint("SELECT $1"); err != nil || got.SQL != "SELECT $1" ||
		!strings.Contains(got.Tree, "ParamRef") ||
		got.Fingerprint != want {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestPoolFingerprints expects a fingerprint for every statement that parses and none for others, and
// that no answer reaches the next statement.
func TestPoolFingerprints(t *testing.T) {
	p := pool(t)
	for _, sql := range []string{"SELECT 1", "SELECT", "SELECT (", "SELECT :a", "INSERT INTO t VALUES (1)", "SELECT '", "", "SELECT 2; SELECT 3", "SELECT \x00", "SELECT " + strings.Repeat("a, ", maxSmallStatement) + "a"} {
		got, err := p.Parse(t.Context(), Request{SQL: sql})
		want := ""
		if got.Fault == nil {
			want, _ = pg_query.Fingerprint(sql)
		}
		if err != nil || got.Fingerprint != want || (got.Fault == nil) != (want != "") {
			t.Errorf("fingerprint of %.20q: got %q, want %q: %v, %v", sql, got.Fingerprint, want, got.Fault, err)
		}
	}
}

// TestPoolReplacesChildren kills and cancels, and expects a new child each time.
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

	c = stopChild(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	parsed := make(chan error)
	go func() {
		_, err := p.Parse(ctx, Request{SQL: "SELECT 1"})
		parsed <- err
	}()
	waitUntilTaken(t, p)
	cancel()
	if err := <-parsed; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled statement: got %v, want context.Canceled", err)
	}
	if c.cmd.ProcessState == nil {
		t.Error("the child of a cancelled statement still runs")
	}
	well(t, p)
}

// TestPoolCloses expects Close to end a child that parses, and Parse to return an error then and afterwards.
func TestPoolCloses(t *testing.T) {
	p := pool(t)
	well(t, p)
	c := stopChild(t, p)
	parsed := make(chan error)
	go func() {
		_, err := p.Parse(t.Context(), Request{SQL: "SELECT " + strings.Repeat("1,", maxSmallStatement/4) + "1"})
		parsed <- err
	}()
	waitUntilTaken(t, p)
	p.Close()
	if err := <-parsed; !errors.Is(err, context.Canceled) {
		t.Errorf("statement of a closed pool: got %v, want context.Canceled", err)
	}
	if c.cmd.ProcessState == nil {
		t.Error("the child of a closed pool still runs")
	}
	if _, err := p.Parse(t.Context(), Request{SQL: "SELECT 1"}); !errors.Is(err, context.Canceled) {
		t.Errorf("statement after Close: got %v, want context.Canceled", err)
	}
}

// stopChild stops the child for small statements as an endless statement would.
func stopChild(t *testing.T, p *Pool) *child {
	t.Helper()
	c := <-p.small
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.small <- c
	return c
}

// waitUntilTaken returns when a statement has taken the child.
func waitUntilTaken(t *testing.T, p *Pool) {
	t.Helper()
	for len(p.small) > 0 {
		if t.Context().Err() != nil {
			t.Fatal("no statement has taken the child")
		}
		runtime.Gosched()
	}
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
	if _, err := c.ask(Request{}); !errors.Is(err, io.ErrUnexpectedEOF) || left.N != 0 {
		t.Errorf("got %v with %d bytes left, want io.ErrUnexpectedEOF", err, left.N)
	}
}
