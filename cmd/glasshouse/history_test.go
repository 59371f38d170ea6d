package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestHistoryHasTheWorkOfKilledRuns kills the service while one run waits for a query and another for a server.
// History has the finished and the open queries and connections, during the runs and after the kill, and deletes the
// executions after the days of their key.
func TestHistoryHasTheWorkOfKilledRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	address := server.Listener.Addr().String()
	path, dir := binary(t), dataDir(t)
	cmd, c := start(t, path, dir, withPackages(), "--allowed-hosts", address)
	key := map[string]any{"name": "ada", "user_id": "ada", "role": "agent", "limits": map[string]any{"history_days": 2}}
	c.key = fmt.Sprint(c.must(t, "POST", "/keys", key)["key"])
	describe := func(id string) string {
		var e struct {
			Status      string
			Queries     []struct{ Query, Status string }
			Connections []struct {
				Address, Status, Reason string
			}
		}
		text, _ := json.Marshal(c.must(t, "GET", "/executions/"+id, nil))
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatal(err)
		}
		parts := []string{e.Status}
		for _, q := range e.Queries {
			parts = append(parts, q.Query, q.Status)
		}
		for _, c := range e.Connections {
			parts = append(parts, c.Address, c.Status, c.Reason)
		}
		return strings.Join(parts, " | ")
	}
	const endless = "SELECT count(*) FROM generate_series(1, 1000000000000)"
	runs := []struct{ code, during, after, id string }{
		{
			code:   "await db_query('SELECT 1 AS n')\nawait db_query('" + endless + "')",
			during: "running | SELECT 1 AS n | ok | " + endless + " | running",
			after:  "cancelled | SELECT 1 AS n | ok | " + endless + " | cancelled",
		},
		{
			code:   "await db_query('SELECT 2 AS n')\nimport requests\nrequests.get('" + server.URL + "')",
			during: "running | SELECT 2 AS n | ok | " + address + " | open | ",
			after: "cancelled | SELECT 2 AS n | ok | " + address +
				" | allowed | cut: the service ended meanwhile; the number of bytes is not known",
		},
	}
	for n := range runs {
		run := &runs[n]
		id := c.newSandbox(t, map[string]any{"enable_network_access": true, "allowed_hosts": []string{address}})
		go func(c *client) {
			_ = c.call(
				t.Context(),
				"POST",
				"/sandbox/"+id+"/execute",
				map[string]any{"code": run.code},
				&map[string]any{},
			)
		}(c)
		eventually(t, func() error {
			list, _ := c.must(t, "GET", "/sandbox/"+id+"/history", nil)["history"].([]any)
			if len(list) == 0 {
				return fmt.Errorf("%q has not begun", run.code)
			}
			run.id = fmt.Sprint(list[0].(map[string]any)["execution_id"])
			if got := describe(run.id); got != run.during {
				return fmt.Errorf("during the run: got %s, want %s", got, run.during)
			}
			return nil
		})
	}
	kill(cmd)
	_, c = start(t, path, dir)
	for _, run := range runs {
		e := c.must(t, "GET", "/executions/"+run.id, nil)
		created, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(e["created_at"]))
		if want := created.AddDate(0, 0, 2).Format(time.RFC3339Nano); e["expires_at"] != want {
			t.Errorf("after the kill: got expires_at %v, want %s from the key's history_days", e["expires_at"], want)
		}
		if got := describe(run.id); got != run.after {
			t.Errorf("after the kill: got %s, want %s", got, run.after)
		}
	}
}
