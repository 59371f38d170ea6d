package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
)

// A recording is complete after a restart of the service: from history alone, the steps, their values and lines, the
// changes of a variable and the reasons of a value are there.
func TestRecordingAfterARestart(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), dataDir(t)
	service, c := start(t, path, dir)
	var sandbox struct {
		ID string `json:"sandbox_id"`
	}
	var execution struct {
		ID string `json:"execution_id"`
	}
	ctx := context.Background()
	if err := c.call(ctx, "POST", "/sandbox/create", map[string]any{}, &sandbox); err != nil {
		t.Fatal(err)
	}
	if err := c.call(ctx, "POST", "/sandbox/"+sandbox.ID+"/execute", map[string]any{
		"code": "total = 0\nfor n in range(50_000):\n    total += n\ntotal", "record": true,
	}, &execution); err != nil {
		t.Fatal(err)
	}
	stop(t, service)
	_, c = start(t, path, dir)
	var page struct {
		Total int `json:"total_steps"`
		Steps []struct {
			Step    int
			Globals []struct{ Name, Value string }
		}
	}
	if err := c.call(ctx, "GET", "/executions/"+execution.ID+"/views?from=100002&limit=10", nil, &page); err != nil {
		t.Fatal(err)
	}
	want := "{100003 [{100002 [{n 49999} {total 1249975000}]} {100003 [{n 49999} {total 1249975000}]}]}"
	if got := fmt.Sprint(page); got != want {
		t.Errorf("the last steps: got %s, want %s", got, want)
	}
	for _, route := range []string{"variables/total/changes?before=100003", "why?name=total", "explain"} {
		c.must(t, "GET", "/executions/"+execution.ID+"/"+route, nil)
	}
	req, err := http.NewRequestWithContext(ctx, "GET", c.address+"/executions/"+execution.ID+"/line-map", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if want := 6 * 100_003; err != nil || response.StatusCode != http.StatusOK || len(body) < want {
		t.Errorf("the line map: got HTTP %d with %d bytes, %v; want at least %d", response.StatusCode, len(body), err,
			want)
	}
}
