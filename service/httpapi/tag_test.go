package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// tagsOf returns the tags of an execution in an answer.
func tagsOf(execution any) map[string]string {
	object, _ := execution.(map[string]any)
	given, _ := object["tags"].(map[string]any)
	tags := map[string]string{}
	for name, value := range given {
		tags[name] = fmt.Sprint(value)
	}
	return tags
}

// Every request that runs a client's code keeps its tags: in the answer, in history and in lists.
func TestTagsComeBack(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	tags := map[string]string{"team": "risk", "ticket": "OPS-12", "a.b_c-D9": "é: any text, <b>", "none": ""}
	body := map[string]any{"code": "1 + 1", "tags": tags}
	executions := map[string]string{}
	for _, path := range []string{"/sandbox/" + id + "/execute", "/sandbox/agent/quick-execute"} {
		a := c.ok(t, "POST", path, body)
		if got := tagsOf(a.body); !maps.Equal(got, tags) {
			t.Errorf("%s: the answer has the tags %v, want %v", path, got, tags)
		}
		executions[path], _ = a.get("execution_id").(string)
	}
	a := c.ok(t, "POST", "/sandbox/"+id+"/debug", body)
	if !strings.Contains(string(a.text), "[DONE]") {
		t.Errorf("debug: got %s, want its end", a.text)
	}
	a = c.ok(t, "POST", "/sandbox/"+id+"/debug/sessions", body)
	executions["debug session"], _ = a.get("execution_id").(string)
	c.server = serveMCP(t)
	a = c.callTool(t, "2025-06-18", "run_python", map[string]any{"session_id": c.create(t, nil), "code": "1 + 1",
		"tags": tags})
	if !strings.Contains(string(a.text), "status=completed") {
		t.Errorf("run_python: got %s", a.text)
	}
	c.server = ""
	for from, execution := range executions {
		if got := tagsOf(c.ok(t, "GET", "/executions/"+execution, nil).body); !maps.Equal(got, tags) {
			t.Errorf("%s: the record has the tags %v, want %v", from, got, tags)
		}
	}
	for _, path := range []string{"/executions", "/executions?include=record"} {
		list, _ := c.ok(t, "GET", path, nil).get("executions").([]any)
		if len(list) != 5 {
			t.Errorf("%s: got %d executions, want 5", path, len(list))
		}
		for _, e := range list {
			if got := tagsOf(e); !maps.Equal(got, tags) {
				t.Errorf("%s: got the tags %v, want %v", path, got, tags)
			}
		}
	}
	a = c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "1"})
	if _, has := a.body["tags"]; has {
		t.Errorf("an execution without tags: got %s, want no key tags", a.text)
	}
}

// A list has the executions with all tags of its filter, and those of the caller only.
func TestTagsFilterLists(t *testing.T) {
	t.Parallel()
	c, other := newUser(t, sandbox.RoleAgent), newUser(t, sandbox.RoleAgent)
	id, theirs := c.create(t, nil), other.create(t, nil)
	team := "of " + id // an admin sees the executions of other tests too
	both := map[string]string{"team": team, "ticket": "OPS:12, 13"}
	for _, each := range []struct {
		c    client
		id   string
		code string
		tags map[string]string
	}{
		{c, id, "'both'", both},
		{c, id, "'team'", map[string]string{"team": team}},
		{c, id, "'another team'", map[string]string{"team": "risk", "ticket": "OPS:12, 13"}},
		{c, id, "'swapped'", map[string]string{"ticket": team}},
		{c, id, "'none'", nil},
		{other, theirs, "'theirs'", both},
	} {
		each.c.ok(t, "POST", "/sandbox/"+each.id+"/execute", map[string]any{"code": each.code, "tags": each.tags})
	}
	teamTag, ticketTag := "tag="+url.QueryEscape("team:"+team), "tag="+url.QueryEscape("ticket:OPS:12, 13")
	for _, l := range []struct {
		by    client
		query string
		want  []string
	}{
		{c, teamTag, []string{"'team'", "'both'"}},
		{c, ticketTag, []string{"'another team'", "'both'"}},
		{c, teamTag + "&" + ticketTag, []string{"'both'"}},
		{c, teamTag + "&" + teamTag, []string{"'team'", "'both'"}},
		{c, teamTag + "&tag=team:risk", nil}, // no execution has two values of a tag
		{c, "tag=team:ris", nil},
		{c, teamTag + "&text=both", []string{"'both'"}},
		{c, teamTag + "&status=failed", nil},
		{c, teamTag + "&sandbox_id=" + theirs, nil},
		{other, teamTag, []string{"'theirs'"}},
		{admin, teamTag, []string{"'theirs'", "'team'", "'both'"}},
	} {
		for _, form := range []string{"", "&include=record"} {
			a := l.by.ok(t, "GET", "/executions?"+l.query+form, nil)
			if got := textsOf(a, "executions", "code"); !reflect.DeepEqual(got, l.want) {
				t.Errorf("%s%s: got %q, want %q", l.query, form, got, l.want)
			}
		}
	}
	first := c.ok(t, "GET", "/executions?limit=1&"+teamTag, nil)
	next, _ := first.get("next").(string)
	second := c.ok(t, "GET", "/executions?limit=1&"+teamTag+"&after="+url.QueryEscape(next), nil)
	got := append(textsOf(first, "executions", "code"), textsOf(second, "executions", "code")...)
	if want := []string{"'team'", "'both'"}; !reflect.DeepEqual(got, want) || second.get("next") != nil {
		t.Errorf("pages: got %q, then %v, want %q and no more", got, second.get("next"), want)
	}
	wantProblem(t, c.do(t, "GET", "/executions?tag=team", nil), http.StatusUnprocessableEntity, "invalid-input",
		"NAME:VALUE", `"tag"`)
}

// A refusal names the tag and the limit, and nothing has run.
func TestTagsHaveLimits(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	many := func(n int) map[string]string {
		tags := map[string]string{}
		for i := range n {
			tags[fmt.Sprint("t", i)] = "x"
		}
		return tags
	}
	one := func(name, value string) map[string]string { return map[string]string{name: value} }
	paths := []string{"/sandbox/" + id + "/execute", "/sandbox/agent/quick-execute", "/sandbox/" + id + "/debug",
		"/sandbox/" + id + "/debug/sessions"}
	mcp := c
	mcp.server = serveMCP(t)
	for _, refused := range []struct {
		tags  map[string]string
		words []string
	}{
		{many(17), []string{"tags", "16"}},
		{one("a b", "x"), []string{"a b", "64"}},
		{one("", "x"), []string{"tag", "64"}},
		{one(strings.Repeat("n", 65), "x"), []string{strings.Repeat("n", 65), "64"}},
		{one("ok\n", "x"), []string{`ok`, "64"}},
		{one("long", strings.Repeat("é", 129)), []string{"long", "258", "256"}},
		{one("control", "a\x00"), []string{"control", "control character"}},
		{one("control", "a\u0085"), []string{"control", "control character"}},
	} {
		body := map[string]any{"code": "1", "tags": refused.tags}
		for _, path := range paths {
			wantProblem(t, c.do(t, "POST", path, body), http.StatusUnprocessableEntity, "invalid-input", refused.words...)
		}
		a := mcp.callTool(t, "2025-06-18", "run_python", map[string]any{"session_id": id, "code": "1",
			"tags": refused.tags})
		for _, word := range append(refused.words, `"isError":true`) {
			if !strings.Contains(string(a.text), word) {
				t.Errorf("run_python with %.80v: want %q, got %.300s", refused.tags, word, a.text)
			}
		}
	}
	for _, tags := range []any{map[string]any{"team": 1}, []string{"team"}, "team"} {
		for _, path := range paths {
			wantProblem(t, c.do(t, "POST", path, map[string]any{"code": "1", "tags": tags}),
				http.StatusUnprocessableEntity, "invalid-input", "tags")
		}
	}
	if got := textsOf(c.ok(t, "GET", "/executions", nil), "executions", "execution_id"); len(got) != 0 {
		t.Errorf("refused requests: got the executions %q, want none", got)
	}
	for _, tags := range []map[string]string{many(16), one(strings.Repeat("n", 64), strings.Repeat("é", 128)), nil} {
		c.ok(t, "POST", paths[0], map[string]any{"code": "1", "tags": tags})
	}
	c.ok(t, "POST", paths[0], json.RawMessage(`{"code": "1", "tags": null}`))
}
