package httpapi_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"glasshouse/sandbox"
)

// countRuns counts in a session how often it ran.
const countRuns = "runs = globals().get('runs', 0) + 1\nruns"

// A repeat of a request with the same idempotency key returns the first execution in each form, and runs nothing.
func TestRepeatWithAKeyRunsNothing(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	path, body := "/sandbox/"+id+"/execute", map[string]any{"code": countRuns, "context": map[string]any{"x": 1}}
	first := c.do(t, "POST", path, body, "Idempotency-Key", "job 1")
	execution := first.get("execution_id")
	if first.status != http.StatusOK || first.get("result") != 1.0 {
		t.Fatalf("the first request: got HTTP %d and %s, want the result 1", first.status, first.text)
	}
	for _, more := range [][]string{nil, {"Prefer", "respond-async"}, {"Prefer", "respond-async, wait=10"}} {
		a := c.do(t, "POST", path, body, append([]string{"Idempotency-Key", "job 1"}, more...)...)
		if a.get("execution_id") != execution {
			t.Errorf("a repeat with %q: got HTTP %d and %s, want the execution %v", more, a.status, a.text, execution)
		}
	}
	list := c.stream(t, "POST", path, body, "Idempotency-Key", "job 1").all()
	if n := len(list); n == 0 || list[n-1].name != "done" || list[n-1].data["execution_id"] != execution {
		t.Errorf("a repeat as events: got %v, want the end of the execution %v", list, execution)
	}
	if a := c.run(t, id, countRuns); a.get("result") != 2.0 {
		t.Errorf("after four repeats: got the result %v, want 2", a.get("result"))
	}
	if a := c.do(t, "POST", path, body, "Idempotency-Key", "job 2"); a.get("result") != 3.0 {
		t.Errorf("with another key: got the result %v, want 3", a.get("result"))
	}

	for _, code := range []string{"1 +", "1 / 0", "import os; os._exit(1)"} { // a failure is an end, too
		one := c.do(t, "POST", path, map[string]any{"code": code}, "Idempotency-Key", code)
		two := c.do(t, "POST", path, map[string]any{"code": code}, "Idempotency-Key", code)
		if one.status != http.StatusOK || one.get("execution_id") != two.get("execution_id") {
			t.Errorf("%s: got %s, and with the same key %s", code, one.text, two.text)
		}
	}

	quick := map[string]any{"code": "1 + 1"}
	one := c.do(t, "POST", "/sandbox/agent/quick-execute", quick, "Idempotency-Key", "quick")
	two := c.do(t, "POST", "/sandbox/agent/quick-execute", quick, "Idempotency-Key", "quick")
	if one.status != http.StatusOK || !bytes.Equal(one.text, two.text) {
		t.Errorf("a repeat in a fresh sandbox: got %s, want %s", two.text, one.text)
	}
	stranger := newUser(t, sandbox.RoleAgent)
	a := stranger.do(t, "POST", "/sandbox/agent/quick-execute", quick, "Idempotency-Key", "quick")
	if a.status != http.StatusOK || a.get("execution_id") == one.get("execution_id") {
		t.Errorf("another user with the same key: got HTTP %d and %s, want another execution", a.status, a.text)
	}
}

// A key that another request had is refused, and one whose request was refused may be used again.
func TestKeyOfAnotherRequestIsRefused(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	path := "/sandbox/" + id + "/execute"
	first := c.do(t, "POST", path, map[string]any{"code": "1"}, "Idempotency-Key", "k")
	named, _ := first.get("execution_id").(string)
	if named == "" {
		t.Fatalf("got HTTP %d: %s", first.status, first.text)
	}
	for _, c2 := range []struct {
		name, path string
		body       map[string]any
	}{
		{"other code", path, map[string]any{"code": "2"}},
		{"another context", path, map[string]any{"code": "1", "context": map[string]any{"x": 1}}},
		{"another sandbox", "/sandbox/" + c.create(t, nil) + "/execute", map[string]any{"code": "1"}},
		{"a fresh sandbox", "/sandbox/agent/quick-execute", map[string]any{"code": "1"}},
	} {
		for _, prefer := range []string{"", "respond-async"} {
			a := c.do(t, "POST", c2.path, c2.body, "Idempotency-Key", "k", "Prefer", prefer)
			if a.status != http.StatusUnprocessableEntity || !strings.Contains(string(a.text), named) ||
				!strings.Contains(string(a.text), "Idempotency-Key") {
				t.Errorf("%s: got HTTP %d and %s, want 422 with the execution %s", c2.name, a.status, a.text, named)
			}
		}
	}
	small := "/sandbox/" + c.create(t, map[string]any{"upload_max_bytes": 1000}) + "/execute"
	large := []any{map[string]any{"path": "f", "content": strings.Repeat("x", 2000)}}
	for n, files := range []any{large, large, nil} {
		body := map[string]any{"code": countRuns}
		if files != nil {
			body["files"] = files
		}
		a := c.do(t, "POST", small, body, "Idempotency-Key", "files")
		if want := files == nil; (a.get("result") == 1.0) != want || a.get("status") == "failed" {
			t.Errorf("request %d: got HTTP %d and %s, want it to run: %v", n, a.status, a.text, want)
		}
	}
	deleted := c.create(t, nil)
	c.ok(t, "DELETE", "/sandbox/"+deleted, nil)
	a := c.do(t, "POST", "/sandbox/"+deleted+"/execute", map[string]any{"code": "1"}, "Idempotency-Key", "later")
	if a.status == http.StatusOK {
		t.Errorf("a deleted sandbox: got HTTP %d", a.status)
	}
	if a = c.do(t, "POST", path, map[string]any{"code": "1"}, "Idempotency-Key", "later"); a.status != http.StatusOK {
		t.Errorf("after a request that did not run: got HTTP %d and %s, want 200", a.status, a.text)
	}
	if a = c.do(t, "POST", path, map[string]any{"code": "1"}, "Idempotency-Key", strings.Repeat("k", 256)); a.status !=
		http.StatusUnprocessableEntity {
		t.Errorf("a key of 256 characters: got HTTP %d, want 422", a.status)
	}
}

// Requests with one key at the same time run once.
func TestConcurrentRepeatsRunOnce(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	path := "/sandbox/" + c.create(t, nil) + "/execute"
	body := map[string]any{"code": "import time; time.sleep(0.2)\n" + countRuns}
	var group sync.WaitGroup
	answers := make([]answer, 8)
	for i := range answers {
		group.Go(func() {
			headers := []string{"Idempotency-Key", "k"}
			if i%2 == 1 {
				headers = append(headers, "Prefer", "respond-async, wait=60")
			}
			answers[i] = c.do(t, "POST", path, body, headers...)
		})
	}
	group.Wait()
	for _, a := range answers {
		if a.get("result") != 1.0 || a.get("execution_id") != answers[0].get("execution_id") {
			t.Errorf("got HTTP %d and %s, want the result 1 of one execution", a.status, a.text)
		}
	}
}

// The run of a request with a key goes on when its client loses the connection, and a repeat gets its end.
func TestRunWithAKeySurvivesItsClient(t *testing.T) {
	t.Parallel()
	for _, accept := range []string{"application/json", "text/event-stream"} {
		t.Run(accept, func(t *testing.T) { testSurvivingRun(t, accept) })
	}
}

func testSurvivingRun(t *testing.T, accept string) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	code := "import pathlib, time\nwhile not pathlib.Path('/data/go').exists(): time.sleep(0.01)\n" + countRuns
	body := map[string]any{"code": code}
	ctx, cancel := context.WithCancel(t.Context())
	lost := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, "POST", serverURL+"/sandbox/"+id+"/execute",
			bytes.NewReader(mustJSON(t, body)))
		if err == nil {
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+c.secret)
			req.Header.Set("Idempotency-Key", "k")
			req.Header.Set("Accept", accept)
			var resp *http.Response
			if resp, err = http.DefaultClient.Do(req); err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
		}
		lost <- err
	}()
	c.awaitRunning(t)
	cancel()
	if err := <-lost; err == nil {
		t.Fatal("the first request was answered, want it lost")
	}
	repeated := make(chan answer, 1)
	go func() { repeated <- c.do(t, "POST", "/sandbox/"+id+"/execute", body, "Idempotency-Key", "k") }()
	c.put(t, id, "go", "")
	if a := <-repeated; a.get("status") != "completed" || a.get("result") != 1.0 {
		t.Errorf("the repeat: got HTTP %d and %s, want the end of the first request's run", a.status, a.text)
	}
}
