package httpapi_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// The response equals the record in history, apart from notes that history must not keep.
func TestResponseEqualsHistory(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	for name, body := range map[string]map[string]any{
		"artifact": {"code": "print('<a & b>')\nopen('/session/artifacts/x', 'w').write('1')\ndebug('n')\n{'k': [1, 2.5, None]}"},
		"failure":  {"code": "1 / 0"},
		"no UTF-8": {"code": "print('\\udc80')"},
		"context":  {"code": "context", "context": map[string]any{"a": 1e300}},
		"no notes": {"code": "debug('n')", "config": map[string]any{"save_intermediate_results": false}},
	} {
		t.Run(name, func(t *testing.T) {
			const all = "?include=code,context,enforced_by,environment,kind,user_id"
			a := c.ok(t, "POST", "/sandbox/agent/quick-execute"+all, body)
			record := c.ok(t, "GET", "/executions/"+a.get("execution_id").(string), nil)
			delete(record.body, "input_log") // no answer has it
			if name == "no notes" {
				none := map[string]any{"logs": []any{}, "variables": map[string]any{}}
				if reflect.DeepEqual(a.body["debug_info"], none) ||
					!reflect.DeepEqual(record.body["debug_info"], none) {
					t.Errorf("got the notes %v in the response and %v in history, want none in history",
						a.body["debug_info"], record.body["debug_info"])
				}
				delete(a.body, "debug_info")
			}
			if want := withoutEmpty(record.body); !reflect.DeepEqual(withoutEmpty(a.body), want) {
				t.Errorf("got  %s\nwant %s", a.text, record.text)
			}
		})
	}
}

// withoutEmpty returns the parts of an execution that an answer has if all are included.
func withoutEmpty(execution map[string]any) map[string]any {
	out := maps.Clone(execution)
	for name, part := range execution {
		switch part := part.(type) {
		case []any:
			if len(part) == 0 {
				delete(out, name)
			}
		case map[string]any:
			if len(part) == 0 {
				delete(out, name)
			}
		}
	}
	if reflect.DeepEqual(out["debug_info"], map[string]any{"logs": []any{}, "variables": map[string]any{}}) {
		delete(out, "debug_info")
	}
	if out["session_reset"] == false {
		delete(out, "session_reset")
	}
	if out["recorded_steps"] == 0.0 {
		delete(out, "recorded_steps")
	}
	return out
}

// TestAnswersAreLean holds the size of the answer to a small run, and what include adds to it.
func TestAnswersAreLean(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	a := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "1 + 1"})
	if len(a.text) > 550 || a.get("isolation") == "" || a.get("result") != 2.0 {
		t.Errorf("got %d bytes, want at most 550 with the result and the level: %s", len(a.text), a.text)
	}
	for _, part := range []string{"code", "context", "enforced_by", "environment", "kind", "user_id", "outputs"} {
		if _, found := a.body[part]; found {
			t.Errorf("got %s in %s, want it left out", part, a.text)
		}
	}
	a = c.ok(t, "POST", "/sandbox/agent/quick-execute?include=code,enforced_by", map[string]any{"code": "1 + 1"})
	if a.get("code") != "1 + 1" || a.get("enforced_by.max_memory_mb") == nil {
		t.Errorf("include=code,enforced_by: got %s", a.text)
	}
	a = c.ok(t, "POST", "/sandbox/agent/quick-execute?include=text", map[string]any{"code": "print('a')\n1 + 1"})
	id := a.get("execution_id").(string)
	if want := "a\nresult: 2\nexecution_id=" + id + " status=completed"; a.get("text") != want ||
		c.ok(t, "GET", "/executions/"+id+"?include=text", nil).get("text") != want {
		t.Errorf("include=text: got %q, want %q, also from history", a.get("text"), want)
	}
	a = c.do(t, "POST", "/sandbox/agent/quick-execute?include=everything", map[string]any{"code": "1 + 1"})
	if a.status != http.StatusUnprocessableEntity || !strings.Contains(string(a.text), "include") {
		t.Errorf("include=everything: got %d %s, want 422 that names it", a.status, a.text)
	}
}

// TestOutputsHaveRoles shows that a client can tell the value of the last expression from what was displayed.
func TestOutputsHaveRoles(t *testing.T) {
	t.Parallel()
	a := newUser(t, sandbox.RoleAgent).ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": `
import pandas as pd
import matplotlib.pyplot as plt
frame = pd.DataFrame({"n": [1, 2]})
display(frame)
plt.plot([1, 2])
plt.show()
plt.plot([2, 1])
frame`})
	var roles []any
	for _, output := range a.get("outputs").([]any) {
		roles = append(roles, output.(map[string]any)["role"])
	}
	// The figure that is still open is shown when the code has ended, before the value.
	if want := []any{"display", "figure", "figure", "result"}; !reflect.DeepEqual(roles, want) {
		t.Errorf("got the roles %v, want %v", roles, want)
	}
}

// What an execution took before its code ran is in its usage, and fits between its acceptance and its end.
func TestUsageHasTheTimeBeforeTheCode(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	for _, a := range []answer{
		c.run(t, id, "sum(range(10))"),
		c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "1 + 1"}),
	} {
		var e sandbox.Execution
		record := c.ok(t, "GET", "/executions/"+a.get("execution_id").(string), nil)
		if err := json.Unmarshal(record.text, &e); err != nil {
			t.Fatal(err)
		}
		if a.get("usage.start_ms") != e.Usage.StartMS || a.get("usage.queue_ms") != e.Usage.QueueMS {
			t.Errorf("got the usage %v in the answer and %+v in the record, want the same", a.get("usage"), e.Usage)
		}
		total := e.CompletedAt.Sub(e.CreatedAt).Seconds() * 1000
		sum := e.Usage.QueueMS + e.Usage.StartMS + e.Usage.WallMS
		if e.Usage.StartMS <= 0 || e.Usage.QueueMS < 0 || sum > total+0.01 {
			t.Errorf("got %+v, want a start of more than 0 ms, and at most %v ms in all", e.Usage, total)
		}
	}
}
