package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The first start makes executions to look at: one with a figure and a file, one that failed, one that is recorded, and
// one whose write waits for a decision. A later start makes no more.
func TestSamplesAreMadeOnce(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	path := binary(t)
	if err := os.Remove(filepath.Join(dir, samplesMarker)); err != nil {
		t.Fatal(err)
	}
	service, c := start(t, path, dir, withPackages())
	type summary struct {
		ID          string  `json:"execution_id"`
		Code        string  `json:"code"`
		Status      string  `json:"status"`
		Artifacts   int     `json:"artifacts"`
		CompletedAt *string `json:"completed_at"`
	}
	list := func(c *client) (ended []summary) {
		var page struct{ Executions []summary }
		if err := c.call(context.Background(), "GET", "/executions", nil, &page); err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(page.Executions, func(e summary) bool { return e.CompletedAt == nil })
	}
	var made []summary
	eventually(t, func() error {
		if made = list(c); len(made) < len(samples) {
			return fmt.Errorf("got %d sample executions, want %d", len(made), len(samples))
		}
		return nil
	})
	statuses := map[string]int{}
	for _, e := range made {
		statuses[e.Status]++
		if strings.Contains(e.Code, "recorded") {
			c.must(t, "GET", "/executions/"+e.ID+"/steps", nil)
		}
		if strings.Contains(e.Code, "figure") && e.Artifacts != 1 {
			t.Errorf("the sample with a file: got %d artifacts, want 1", e.Artifacts)
		}
	}
	if want := map[string]int{"completed": 3, "failed": 1}; !maps.Equal(statuses, want) {
		t.Errorf("got %v, want %v", statuses, want)
	}
	var writes struct {
		Writes []any `json:"pending_writes"`
	}
	err := c.call(context.Background(), "GET", "/pending-writes", nil, &writes)
	if err != nil || len(writes.Writes) != 1 {
		t.Errorf("got %d pending writes, %v; want 1", len(writes.Writes), err)
	}
	stop(t, service)
	_, c = start(t, path, dir, withPackages())
	c.must(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "1"})
	if again := list(c); len(again) != len(made)+1 {
		t.Errorf("after a restart: got %d executions, want %d", len(again), len(made)+1)
	}
}
