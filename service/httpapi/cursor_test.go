package httpapi_test

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/service/chat/chattest"
)

// Every list of the OpenAPI document with a cursor continues with the next item after its own cursors, and refuses
// those of other lists with an error that says what to do.
func TestCursorsNameTheirList(t *testing.T) {
	t.Parallel()
	s := newChatServer(t, map[string][]chattest.Reply{})
	c := newUser(t, sandbox.RoleDeveloper)
	c.server = s.url
	root := admin
	root.server = s.url
	user, _ := c.ok(t, "GET", "/me", nil).get("user_id").(string)

	// Two items of each list.
	config := map[string]any{"enable_network_access": true, "allowed_hosts": []string{internet.plain()},
		"write_policy": "capture"}
	id, other := c.create(t, config), c.create(t, config)
	for _, box := range []string{id, other} {
		c.run(t, box, `import requests
url = "http://`+internet.plain()+`"
for n in range(2):
    db_query("DELETE FROM raw_data WHERE id = :n", {"n": n})
    requests.get(url + "/csv")
    open(f"artifacts/{n}", "w").write("x")`)
		c.run(t, box, "1")
		c.ok(t, "POST", "/chat/conversations", nil)
	}

	// list has the name of the items, the field that tells them apart, and whether the list is the admin's. Lists with
	// the same order are one list with different filters, so each may begin where another ended.
	type list struct {
		items, field, order string
		query               string
	}
	of := "user_id=" + url.QueryEscape(user)
	lists := map[string]list{
		"/executions":                {"executions", "execution_id", "executions", of},
		"/sandbox/{id}/history":      {"history", "execution_id", "executions", ""},
		"/sandbox/{id}/artifacts":    {"artifacts", "path", "", ""},
		"/sandboxes":                 {"sandboxes", "sandbox_id", "", of},
		"/statements":                {"statements", "number", "", of},
		"/connections":               {"connections", "number", "", of},
		"/artifacts":                 {"artifacts", "artifact_id", "", of},
		"/audit":                     {"entries", "id", "", ""},
		"/pending-writes":            {"pending_writes", "id", "", of},
		"/chat/conversations":        {"conversations", "conversation_id", "", of},
		"/sandbox/{other}/artifacts": {"artifacts", "path", "", ""},
	}
	paths, _ := c.ok(t, "GET", "/openapi.json", nil).get("paths").(map[string]any)
	for path, methods := range paths {
		operation, _ := methods.(map[string]any)["get"].(map[string]any)
		parameters, _ := operation["parameters"].([]any)
		for _, p := range parameters {
			if _, known := lists[path]; p.(map[string]any)["name"] == "after" && !known {
				t.Errorf("GET %s has a cursor and is not in this test", path)
			}
		}
	}

	page := func(path, after string) answer {
		query := lists[path].query + "&limit=1&after=" + after
		if after == "" {
			query = lists[path].query + "&limit=1"
		}
		path = strings.NewReplacer("{id}", id, "{other}", other).Replace(path)
		return root.do(t, "GET", path+"?"+strings.TrimPrefix(query, "&"), nil)
	}
	names := slices.Sorted(maps.Keys(lists))
	for _, from := range names {
		l := lists[from]
		first := page(from, "")
		next, _ := first.get("next").(string)
		if next == "" {
			t.Fatalf("GET %s: got %s, want a page with a cursor", from, first.text)
		}
		for _, to := range names {
			a := page(to, next)
			switch {
			case to == from:
				got, before := textsOf(a, l.items, l.field), textsOf(first, l.items, l.field)
				if a.status != 200 || len(got) != 1 || got[0] == before[0] {
					t.Errorf("GET %s: got the pages %s and %s, want two items", from, first.text, a.text)
				}
			case l.order != "" && l.order == lists[to].order:
				if a.status != 200 {
					t.Errorf("GET %s with the cursor of %s: got %d %s, want a page", to, from, a.status, a.text)
				}
			default:
				if !strings.Contains(string(a.text), "is the cursor of another list, not of ") ||
					!strings.Contains(string(a.text), "leave after out to get the first page") {
					t.Errorf("GET %s with the cursor of %s: got %s, want a remedy", to, from, a.text)
				}
				wantProblem(t, a, 422, "invalid-input", "after")
			}
		}
	}
}
