package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The long statements of one user together have the weight of one process, and other processes of PostgreSQL keep
// theirs.
func TestLongStatementsOfAUserHaveTheWeightOfOne(t *testing.T) {
	t.Parallel()
	both := []int{3, 3} // 1/1.25^3 is about 1/2
	if os.Geteuid() != 0 {
		both = nil // an ordinary user could not lower the values again
	}
	cmd, admin := start(t, binary(t), dataDir(t))
	t.Cleanup(func() { kill(cmd) })
	postgres := childrenOf(cmd.Process.Pid, "postgres")
	if len(postgres) != 1 {
		t.Fatalf("got %d processes of PostgreSQL, want 1", len(postgres))
	}
	reading := func(want ...int) func() error {
		return func() error {
			var got []int
			for _, pid := range childrenOf(postgres[0], "") {
				stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
				_, rest, _ := strings.Cut(string(stat), ") ")
				if fields := strings.Fields(rest); len(fields) > 16 {
					if nice, _ := strconv.Atoi(fields[16]); nice != 0 {
						got = append(got, nice)
					}
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				return fmt.Errorf("got the nice values %v, want %v", got, want)
			}
			return nil
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var statements sync.WaitGroup
	for user, n := range map[string]int{"many": 2, "few": 1} {
		c := admin.newUser(t, user)
		for range n {
			id := c.newSandbox(t, nil)
			statements.Go(func() {
				query := map[string]any{"query": "SELECT count(*) FROM generate_series(1, 1000000000) n"}
				_ = c.call(ctx, "POST", "/sandbox/"+id+"/database/query", query, nil)
			})
		}
	}
	eventually(t, reading(both...))
	cancel()
	statements.Wait()
	eventually(t, reading())
}
