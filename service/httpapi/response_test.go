package httpapi_test

import (
	"reflect"
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
			a := c.ok(t, "POST", "/sandbox/agent/quick-execute", body)
			record := c.ok(t, "GET", "/executions/"+a.get("execution_id").(string), nil)
			if name == "no notes" {
				none := map[string]any{"logs": []any{}, "variables": map[string]any{}}
				if reflect.DeepEqual(a.body["debug_info"], none) ||
					!reflect.DeepEqual(record.body["debug_info"], none) {
					t.Errorf("got the notes %v in the response and %v in history, want none in history",
						a.body["debug_info"], record.body["debug_info"])
				}
				record.body["debug_info"] = a.body["debug_info"]
			}
			if !reflect.DeepEqual(a.body, record.body) {
				t.Errorf("got  %s\nwant %s", a.text, record.text)
			}
		})
	}
}
