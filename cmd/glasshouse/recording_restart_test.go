package main

import (
	"context"
	encoding "encoding/binary" // binary is a function of this package
	"fmt"
	"io"
	"net/http"
	"strings"
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
	// The end of the run is the step after the last one.
	want := "{100003 [{100002 [{n 49999} {total 1249975000}]} {100003 [{n 49999} {total 1249975000}]} " +
		"{100004 [{n 49999} {total 1249975000}]}]}"
	if got := fmt.Sprint(page); got != want {
		t.Errorf("the last steps: got %s, want %s", got, want)
	}
	for route, want := range map[string][]string{
		"variables/total/changes?before=100003": {"value:1249975000", "line_number:3", "step:100001"},
		"why?name=total":                        {"value:1249975000", "line_number:3", "step:100001"},
		"explain":                               {"3 x50000", "1249975000"},
	} {
		got := fmt.Sprint(c.must(t, "GET", "/executions/"+execution.ID+"/"+route, nil))
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: got %s, want %s in it", route, got, part)
			}
		}
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
	const steps, size = 100_003, 6 * 100_003 // a line and a depth per step
	if err != nil || response.StatusCode != http.StatusOK || len(body) < size {
		t.Fatalf("the line map: got HTTP %d with %d bytes, %v; want at least %d", response.StatusCode, len(body), err,
			size)
	}
	lines := body[len(body)-size:]
	for step, want := range map[int]uint32{1: 1, 2: 2, 3: 3, steps - 2: 3, steps - 1: 2, steps: 4} {
		if got := encoding.LittleEndian.Uint32(lines[4*(step-1):]); got != want {
			t.Errorf("the line map: got line %d at step %d, want %d", got, step, want)
		}
	}
}
