package main

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"
)

// A user who had PostgreSQL compute for seconds waits with the next statement while another user sends requests.
func TestLongStatementsCountForTheirUser(t *testing.T) {
	t.Parallel()
	cmd, admin := start(t, binary(t), dataDir(t))
	t.Cleanup(func() { kill(cmd) })
	many, few := admin.newUser(t, "many"), admin.newUser(t, "few")
	query := func(ctx context.Context, c *client, id, sql string) error {
		return c.call(ctx, "POST", "/sandbox/"+id+"/database/query", map[string]any{"query": sql}, &struct{}{})
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		id := few.newSandbox(t, nil)
		for ctx.Err() == nil {
			_ = query(ctx, few, id, "SELECT 1")
		}
	})
	defer all.Wait()
	defer cancel()

	id := many.newSandbox(t, nil)
	var long sync.WaitGroup
	for range 2 * runtime.NumCPU() { // each is charged up to a second of a CPU, half of it at least
		long.Go(func() {
			sql := "SELECT count(*) FROM generate_series(1, 6000000) n"
			if err := query(ctx, many, many.newSandbox(t, nil), sql); err != nil {
				t.Error(err)
			}
		})
	}
	long.Wait()
	began := time.Now()
	if err := query(ctx, many, id, "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	// A quarter of the machine computes that in 4 s; the user may exceed the share by 250 ms.
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Errorf("the next statement took %s, want at least 500 ms", took)
	}
}
