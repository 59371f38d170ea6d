package httpapi_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// An execution has the title that the client gave or that somebody gives it later, and so has a sandbox.
func TestTitles(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	run := func(body map[string]any) string {
		return c.ok(t, "POST", "/sandbox/"+id+"/execute", body).get("execution_id").(string)
	}
	named := run(map[string]any{"code": "1", "title": "Count the orders"})
	run(map[string]any{"code": "# second\n2"})
	titleOf := func(execution string) any { return c.ok(t, "GET", "/executions/"+execution, nil).get("title") }
	if got := titleOf(named); got != "Count the orders" {
		t.Errorf("got the title %v, want that of the request", got)
	}
	c.ok(t, "PUT", "/executions/"+named+"/title", map[string]any{"title": " Orders of May "})
	list := c.ok(t, "GET", "/executions?text="+url.QueryEscape("orders of m"), nil)
	titles := textsOf(list, "executions", "title")
	if titleOf(named) != "Orders of May" || !slices.Equal(titles, []string{"Orders of May"}) {
		t.Errorf("after a rename: got %v and %s", titleOf(named), list.text)
	}
	box := func() string { return string(c.ok(t, "GET", "/sandboxes", nil).text) }
	if got := box(); !strings.Contains(got, `"first_run":"Orders of May"`) || !strings.Contains(got, `"runs":2`) {
		t.Errorf("got %s, want the sandbox with its first run and two runs", got)
	}
	c.ok(t, "PUT", "/sandbox/"+id+"/title", map[string]any{"title": "Month end"})
	if got := box(); !strings.Contains(got, `"title":"Month end"`) {
		t.Errorf("got %s, want the sandbox with its title", got)
	}
	other := newUser(t, sandbox.RoleDeveloper)
	for _, path := range []string{"/executions/" + named + "/title", "/sandbox/" + id + "/title"} {
		wantProblem(t, other.do(t, "PUT", path, map[string]any{"title": "mine"}), 404, "not-found")
		wantProblem(t, c.do(t, "PUT", path, map[string]any{"title": "a\nb"}), 422, "invalid-input", "title")
		wantProblem(t, c.do(t, "PUT", path, map[string]any{"title": strings.Repeat("é", 201)}), 422, "invalid-input")
		admin.ok(t, "PUT", path, map[string]any{"title": "renamed by an admin"})
	}
	renamed := admin.ok(t, "GET", "/audit?action=renamed&object=execution/"+named, nil)
	if entries, _ := renamed.get("entries").([]any); len(entries) != 1 {
		t.Errorf("got %s, want one entry of the audit log", renamed.text)
	}
}

// A search finds what a run printed and what it returned, in upper or lower case.
func TestSearchInOutput(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	mark := fmt.Sprint("m", c.create(t, nil))
	codes := map[string]string{
		"printed": fmt.Sprintf("print('%s'.upper(), 'Osaka')", mark[:9]),
		"result":  `[{"city": "Ōsaka" + "-` + mark[9:] + `", "n": 12}]`,
		"frame":   "import pandas as pd\npd.DataFrame({'city': ['Kyo' + 'to']})",
	}
	ids := map[string]any{}
	for name, code := range codes {
		ids[name] = c.run(t, id, code).get("execution_id")
	}
	for text, want := range map[string]string{
		strings.ToUpper(mark[:9]): "printed", "ōsaka-" + mark[9:]: "result", "kyoto": "frame",
	} {
		got := textsOf(c.ok(t, "GET", "/executions?text="+url.QueryEscape(text), nil), "executions", "execution_id")
		if want := fmt.Sprint(ids[want]); !slices.Contains(got, want) {
			t.Errorf("text %q: got %v, want %s", text, got, want)
		}
	}
}

// Lists can be in the order of duration or of rows, with pages.
func TestOrderOfExecutions(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	var ids []string
	for _, n := range []int{3, 9, 1, 5} {
		code := fmt.Sprintf("len(db_query('SELECT generate_series(1, %d)'))", n)
		ids = append(ids, c.run(t, id, code).get("execution_id").(string))
	}
	path, got := "/executions?order=rows&limit=3", []string{}
	for pages := 0; path != "" && pages < 3; pages++ {
		page := c.ok(t, "GET", path, nil)
		got = append(got, textsOf(page, "executions", "execution_id")...)
		path = ""
		if next, ok := page.get("next").(string); ok {
			path = "/executions?order=rows&limit=3&after=" + next
		}
	}
	if want := []string{ids[1], ids[3], ids[0], ids[2]}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	list := c.ok(t, "GET", "/executions?order=duration", nil)
	times, _ := list.get("executions").([]any)
	for n := 1; n < len(times); n++ {
		before := times[n-1].(map[string]any)["execution_time"].(float64)
		at := times[n].(map[string]any)["execution_time"]
		if before < at.(float64) {
			t.Errorf("got %v before %v, want the longest first", before, at)
		}
	}
	wantProblem(t, c.do(t, "GET", "/executions?order=rows&include=record", nil), 422, "invalid-input", "order")
}

// Activity has the numbers of the caller's executions, and falls when they are erased.
func TestActivity(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	failed := c.run(t, id, "1 / 0").get("execution_id").(string)
	c.run(t, id, "len(db_query('SELECT generate_series(1, 7)'))")
	sums := func() (runs, failures, rows float64) {
		for _, hour := range c.ok(t, "GET", "/activity", nil).get("hours").([]any) {
			hour := hour.(map[string]any)
			runs, failures, rows = runs+hour["executions"].(float64), failures+hour["failed"].(float64),
				rows+hour["rows_read"].(float64)
		}
		return runs, failures, rows
	}
	if runs, failures, rows := sums(); runs != 2 || failures != 1 || rows != 7 {
		t.Errorf("got %v runs, %v failures and %v rows, want 2, 1 and 7", runs, failures, rows)
	}
	admin.ok(t, "DELETE", "/executions/"+failed, nil)
	if runs, failures, rows := sums(); runs != 1 || failures != 0 || rows != 7 {
		t.Errorf("after an erasure: got %v runs, %v failures and %v rows, want 1, 0 and 7", runs, failures, rows)
	}
	eventually(t, "the CPU time of the key is summed up", func() bool {
		keys, _ := c.ok(t, "GET", "/activity", nil).get("keys").([]any)
		return len(keys) == 1 && keys[0].(map[string]any)["cpu_ms"].(float64) > 0
	})
	if users, _ := admin.ok(t, "GET", "/activity", nil).get("users").([]any); len(users) == 0 {
		t.Error("got no users, want those of all")
	}
}
