package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// TestDeletedSandboxesEndWhileExitsAreLate stops the zygotes, which report the exits of their guests, as an overloaded
// machine does. The sandboxes are deleted all the same, and none of their code runs. What is left of them is counted,
// logged once, and removed when the zygotes go on.
func TestDeletedSandboxesEndWhileExitsAreLate(t *testing.T) {
	t.Parallel()
	const sandboxes = 5
	cmd, c := start(t, binary(t), dataDir(t), "--pool", "2")
	var ids []string
	for range sandboxes {
		ids = append(ids, c.newSandbox(t, nil))
	}
	zygotes := zygotesOf(cmd.Process.Pid, "/glasshouse/zygote.py")
	proceed := func() {
		for _, zygote := range zygotes {
			_ = syscall.Kill(zygote, syscall.SIGCONT)
		}
	}
	defer proceed()
	var guests []process
	for _, zygote := range zygotes {
		if err := syscall.Kill(zygote, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		guests = append(guests, descendants(zygote)...)
	}
	before := len(alive(guests))
	if got := fmt.Sprint(c.must(t, "POST", "/sandbox/cleanup-all", nil)["message"]); !strings.HasPrefix(got, "5 ") {
		t.Errorf("cleanup-all: got %q, want %d sandboxes", got, sandboxes)
	}
	if left := len(alive(guests)); left > before-sandboxes {
		t.Errorf("%d of %d guests live after %d were killed", left, before, sandboxes)
	}
	for _, id := range ids {
		err := c.call(context.Background(), "POST", "/sandbox/"+id+"/execute", map[string]any{"code": "1"}, nil)
		if err == nil || !strings.Contains(err.Error(), "410") {
			t.Fatalf("a run in a deleted sandbox: got %v, want 410", err)
		}
	}
	if got := lateProcesses(t, c); got != sandboxes {
		t.Errorf("late processes: got %v, want %d", got, sandboxes)
	}
	proceed()
	eventually(t, func() error {
		if got := lateProcesses(t, c); got != 0 {
			return fmt.Errorf("%v processes are late after their exits", got)
		}
		return nil
	})
	c.newSandbox(t, nil)
	stop(t, cmd)
	if log := cmd.Stderr.(*bytes.Buffer).String(); strings.Count(log, "has not exited") != 1 {
		t.Errorf("want one line of the late exits in the log:\n%s", log)
	}
}

// lateProcesses returns how many killed processes have not exited in time.
func lateProcesses(t *testing.T, c *client) float64 {
	t.Helper()
	return readMetrics(t, c.address+"/metrics", c.key).series[`glasshouse_late_cleanups{kind="process"}`]
}
