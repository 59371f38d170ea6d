package history

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// Large records are decoded and encoded in the turn of their user. Small ones do not wait.
func TestLargeRecordsTakeTurns(t *testing.T) {
	t.Parallel()
	cpu := limit.NewCPU(2, new(limit.Users))
	h := openStore(t, Config{URL: databaseURL(t), Dir: t.TempDir(), CPU: cpu})
	of := func(user, stdout string) *sandbox.Execution {
		e := runningExecution("e-" + user)
		e.User, e.Stdout = user, ""
		h.begin(t, e)
		e.Stdout = stdout
		return end(e, sandbox.StatusCompleted)
	}
	text := strings.Repeat("x", 1<<20)
	ctx := context.Background()
	for _, e := range []*sandbox.Execution{of("many", text), of("few", "few")} {
		if err := h.Finish(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	unfinished := of("ends", text)

	holds, release := make(chan struct{}), make(chan struct{})
	go cpu.Compute("another", len(text), func() { close(holds); <-release })
	<-holds
	done := make(chan error, 5)
	read := func(user string, f sandbox.ExecutionFilter) {
		list, _, err := h.Executions(limit.WithUser(ctx, user), f)
		if err == nil && len(list) != 1 {
			err = fmt.Errorf("got %d executions of %s, want 1", len(list), user)
		}
		done <- err
	}
	for range 2 {
		go read("many", sandbox.ExecutionFilter{User: "many"})
	}
	go func() {
		_, err := h.Execution(limit.WithUser(ctx, "many"), "e-many")
		done <- err
	}()
	go func() { done <- h.Finish(ctx, unfinished) }()
	for cpu.Waiting("many") < 3 || cpu.Waiting("ends") < 1 {
		select {
		case err := <-done:
			t.Fatalf("a large record did not wait for its turn: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	read("few", sandbox.ExecutionFilter{User: "few"}) // returns while the others wait
	if cpu.Waiting("many") != 3 {
		t.Errorf("got %d records that wait, want 3", cpu.Waiting("many"))
	}
	close(release)
	for range 5 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Large rows are written to the log in the turn of their user. Small ones do not wait for those that wait.
func TestLargeRowsAreWrittenInTurn(t *testing.T) {
	t.Parallel()
	h := openStore(t, Config{URL: databaseURL(t), Dir: t.TempDir()})
	ctx := context.Background()
	large, small := runningExecution("e-large"), runningExecution("e-small")
	large.User, small.User = "many", "few"
	h.begin(t, large)
	h.begin(t, small)
	large.Stdout = strings.Repeat("x", 64<<10)
	began, release := make(chan struct{}), make(chan struct{})
	go h.writer.large.Compute("another", 64<<10, func() { close(began); <-release })
	<-began
	done := make(chan error, 1)
	go func() { done <- h.Finish(ctx, end(large, sandbox.StatusCompleted)) }()
	for h.writer.large.Waiting("many") < 1 {
		select {
		case err := <-done:
			t.Fatalf("a large row did not wait for its turn: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	if err := h.Finish(ctx, end(small, sandbox.StatusCompleted)); err != nil {
		t.Error(err)
	}
	if n := h.writer.large.Waiting("many"); n != 1 {
		t.Errorf("got %d large rows that wait, want 1", n)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// PostgreSQL compresses large records with LZ4 if it can: its own method takes ten times as long.
func TestLargeRecordsAreCompressedWithLZ4(t *testing.T) {
	t.Parallel()
	h := openStore(t, Config{URL: databaseURL(t), Dir: t.TempDir()})
	ctx := context.Background()
	e := runningExecution("e-large")
	h.begin(t, e)
	e.Stdout = strings.Repeat("x", 1<<20)
	if err := h.Finish(ctx, end(e, sandbox.StatusCompleted)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Execution(ctx, e.ID); err != nil { // it waits until the record is in PostgreSQL
		t.Fatal(err)
	}
	var got, want string
	err := h.pool.QueryRow(ctx, "SELECT (SELECT pg_column_compression(record) FROM executions WHERE id = $1), "+
		"CASE WHEN 'lz4' = ANY (enumvals) THEN 'lz4' ELSE 'pglz' END FROM pg_settings "+
		"WHERE name = 'default_toast_compression'", e.ID).Scan(&got, &want)
	if err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// While another user sends requests, a user's reads wait for what the user's earlier reads have cost. Reads without a
// user, such as that of a key, never wait.
func TestReadsLeaveOthersTheMachine(t *testing.T) {
	t.Parallel()
	users := new(limit.Users)
	share := limit.NewShare(users, 1)
	h := openStore(t, Config{URL: databaseURL(t), Dir: t.TempDir(), Share: share})
	e := runningExecution("e")
	h.begin(t, e)
	e.Stdout = strings.Repeat("x", 500_000) // 10 ms
	if err := h.Finish(t.Context(), end(e, sandbox.StatusCompleted)); err != nil {
		t.Fatal(err)
	}
	read := func(user string) time.Duration {
		t.Helper()
		began := time.Now()
		for range 40 {
			if _, err := h.Execution(limit.WithUser(t.Context(), user), "e"); err != nil {
				t.Fatal(err)
			}
		}
		return time.Since(began)
	}
	read("many") // warms up
	alone := read("many")
	stop := make(chan struct{})
	defer close(stop)
	users.Seen("few", 1)
	go func() {
		for tick := time.Tick(100 * time.Millisecond); ; users.Seen("few", 1) {
			select {
			case <-tick:
			case <-stop:
				return
			}
		}
	}()
	// 400 ms at a quarter of a CPU, after a burst of 250 ms
	if took := read("many"); took < time.Second {
		t.Errorf("while another user was active, 40 reads took %s, want more than 1 s; alone %s", took, alone)
	}
	share.Charge("", time.Hour) // a read that waited for it would not end within the time of the tests
	read("")
}
