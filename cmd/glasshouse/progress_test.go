package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What a run did is in history while it goes on, and when the service was killed over it.
func TestAKilledServiceHasWhatRunsDid(t *testing.T) {
	held := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-held:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(held)
	address := server.Listener.Addr().String()
	t.Setenv("GLASSHOUSE_ALLOWED_HOSTS", address)
	path, dir := binary(t), dataDir(t)
	cmd, r := start(t, path, dir)
	did := func(id string) string {
		var e struct {
			Status      string
			Queries     []struct{ Query, Status string }
			Connections []struct {
				Address, Status, Reason string
			}
		}
		text, _ := json.Marshal(r.must(t, "GET", "/executions/"+id, nil))
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatal(err)
		}
		list := []string{e.Status}
		for _, q := range e.Queries {
			list = append(list, q.Query, q.Status)
		}
		for _, c := range e.Connections {
			list = append(list, c.Address, c.Status, c.Reason)
		}
		return strings.Join(list, " | ")
	}
	const endless = "SELECT count(*) FROM generate_series(1, 1000000000000)"
	runs := map[string]struct{ while, after string }{
		"await db_query('SELECT 1 AS n')\nawait db_query('" + endless + "')": {
			"running | SELECT 1 AS n | ok | " + endless + " | running", "cancelled | SELECT 1 AS n | ok | " + endless + " | cancelled",
		},
		"await db_query('SELECT 2 AS n')\nimport requests\nrequests.get('" + server.URL + "')": {
			"running | SELECT 2 AS n | ok | " + address + " | open | ", "cancelled | SELECT 2 AS n | ok | " + address + " | allowed | cut: the service ended meanwhile; the number of bytes is not known",
		},
	}
	ids := map[string]string{}
	for code, want := range runs {
		box := fmt.Sprint(r.must(t, "POST", "/sandbox/create", map[string]any{"enable_network_access": true, "allowed_hosts": []string{address}})["sandbox_id"])
		go func() {
			_ = r.call(t.Context(), "POST", "/sandbox/"+box+"/execute", map[string]any{"code": code}, &map[string]any{})
		}()
		eventually(t, func() error {
			list, _ := r.must(t, "GET", "/sandbox/"+box+"/history", nil)["history"].([]any)
			if len(list) == 0 {
				return fmt.Errorf("%q has not begun", code)
			}
			ids[code] = fmt.Sprint(list[0].(map[string]any)["execution_id"])
			if got := did(ids[code]); got != want.while {
				return fmt.Errorf("while it runs: %s", got)
			}
			return nil
		})
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	_, r = start(t, path, dir)
	for code, want := range runs {
		if got := did(ids[code]); got != want.after {
			t.Errorf("after a kill: %s; want %s", got, want.after)
		}
	}
}
