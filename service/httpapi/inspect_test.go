package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// completions returns the matches at the | in code.
func (c client) completions(t testing.TB, id, code string) (texts []string, a answer) {
	t.Helper()
	before, after, marked := strings.Cut(code, "|")
	body := map[string]any{"code": before + after}
	if marked {
		body["cursor"] = len([]rune(before))
	}
	a = c.ok(t, "POST", "/sandbox/"+id+"/complete", body)
	matches, _ := a.get("matches").([]any)
	for _, m := range matches {
		texts = append(texts, fmt.Sprint(m.(map[string]any)["text"]))
	}
	return texts, a
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	c.run(t, id, `import pandas as pd, json
df = pd.DataFrame({'price': [1.5], 'two words': [2]})
settings = {'colour': 'red', 'shape': {'corners': 4}}
class Shop:
    """Whose attributes say when they are asked for."""
    open_hours = 9
    def __getattr__(self, name): raise SystemExit('asked for ' + name)
    @property
    def owner(self) -> str: raise SystemExit('asked')
    def sell(self, article, amount=1) -> list: raise SystemExit('ran')
shop = Shop()
shop.__dict__['shelf'] = 'x'
naïve = 1`)
	for code, want := range map[string]string{
		"json.du|":                              "dump dumps",
		"df.pri|":                               "price",
		"df.group|":                             "groupby",
		"df.price.value_c|":                     "value_counts",
		"df['pr|":                               "price",
		`df["tw|`:                               "two words",
		"df[['price']].descr|":                  "describe",
		"df.head().to_par|":                     "to_parquet",
		"df.price.str.upp|":                     "upper",
		"settings['|":                           "colour shape",
		"settings['shape']['|":                  "corners",
		"shop.o|":                               "open_hours owner",
		"shop.sh|":                              "shelf",
		"shop.owner.upp|":                       "upper",
		"shop.sell('x').app|":                   "append",
		"shop.sell(a|":                          "amount= article=",
		"'text'.splitl|":                        "splitlines",
		"'a b'.split().ins|":                    "insert",
		"x = [1]\nx.app|":                       "append",
		"db_q|":                                 "db_query",
		"na|":                                   "naïve",
		"'é'; json.lo|ads":                      "load loads",
		"import statist|":                       "statistics",
		"from urllib.pa|":                       "parse",
		"from json import JSOND|":               "JSONDecodeError JSONDecoder",
		"def f(long_name):\n    return long_n|": "long_name",
		"whi|":                                  "while",
		"# json.du|":                            "",
		"'json.du|":                             "",
		"import os, subpro|":                    "",
	} {
		got, a := c.completions(t, id, code)
		if strings.Join(got, " ") != want && !(want != "" && len(got) >= 1 &&
			strings.HasPrefix(strings.Join(got, " "), want+" ")) {
			t.Errorf("%q: got %q, want %q: %s", code, got, want, a.text)
		}
	}
	if _, a := c.completions(t, id, "é = json.du|mp()"); a.get("cursor_start") != 9.0 || a.get("cursor_end") != 11.0 {
		t.Errorf("got %s, want cursor_start 9 and cursor_end 11", a.text)
	}
}

// jedi completes names that only the text determines, with the code that ran before. Not parallel: beyond its time
// limit of eight seconds it finds nothing. On a busy machine the test asks again.
func TestCompletionByJedi(t *testing.T) {
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	c.run(t, id, "class Shop:\n    open_hours = 9\n    def __getattr__(self, name): raise SystemExit\nshop = Shop()")
	for code, want := range map[string]string{"def f():\n    for value in ['a']:\n        value.capit|": "capitalize",
		"for each in [Shop()]:\n    each.op|": "open_hours"} {
		eventually(t, fmt.Sprintf("jedi to complete %q to %s in time", code, want), func() bool {
			got, _ := c.completions(t, id, code)
			return slices.Contains(got, want)
		})
	}
	if a := c.run(t, id, "shop.open_hours"); a.get("result") != 9.0 {
		t.Errorf("the next execution: got %s", a.text)
	}
}

func TestCheckRunsNoCode(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	check := func(code string) answer {
		return c.ok(t, "POST", "/sandbox/"+id+"/check", map[string]any{"code": code})
	}
	for _, code := range []string{"", "x = 1\nraise SystemExit", "await db_query('SELECT 1')",
		"def f():\n    return eval_it"} {
		if a := check(code); a.get("ok") != true || a.get("problems") == nil {
			t.Errorf("%q: got %s, want ok", code, a.text)
		}
	}
	a := check("import os\nprint(1)\nexec('1')\nimport json, socket\n")
	problems, _ := a.get("problems").([]any)
	if len(problems) != 3 || a.get("ok") != false {
		t.Fatalf("got %s, want three problems", a.text)
	}
	for n, line := range []float64{1, 3, 4} {
		if p := problems[n].(map[string]any); p["line"] != line || p["kind"] != "policy" || p["hint"] == "" {
			t.Errorf("problem %d: got %v", n, p)
		}
	}
	for code, place := range map[string][2]float64{"x = 1\ny = (1,\n": {2, 5}, "return 1": {1, 1},
		"def f():\n  x = 1\n  nonlocal x": {3, 3}, "a\x00b": {1, 1}} {
		a := check(code)
		p, _ := a.get("problems").([]any)
		if len(p) != 1 || p[0].(map[string]any)["kind"] != "syntax" || p[0].(map[string]any)["line"] != place[0] {
			t.Errorf("%q: got %s, want one syntax error", code, a.text)
		}
	}
	if a := check(strings.Repeat("(", 50_000)); a.get("ok") != false {
		t.Errorf("deeply nested code: got %s, want a problem", a.text)
	}
	// A name that the user has redefined is allowed.
	c.run(t, id, "def compile(x): return x")
	if a := check("compile(1)"); a.get("ok") != true {
		t.Errorf("a name that the user redefined: got %s, want ok", a.text)
	}
	wantProblem(t, c.do(t, "POST", "/sandbox/"+id+"/check", map[string]any{"code": strings.Repeat("#", 100_001)}),
		http.StatusRequestEntityTooLarge, "too-large")
	if past := c.ok(t, "GET", "/sandbox/"+id+"/history", nil); past.get("total_executions") != 1.0 {
		t.Errorf("history: got %s, want one execution", past.text)
	}
}

// A check with a config says what a new sandbox with that config would, and needs no sandbox.
func TestCheckWithConfig(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	inNewSandbox := newUser(t, sandbox.RoleAgent)
	codes := []string{
		"", "x = 1\nraise SystemExit", "import os\nexec('1')\nimport json, nothing_of_this_name\n", "x = 1\ny = (1,\n",
		"import numpy\nnumpy.sum(", "a\x00b", "import socket\ndef compile(x): return x\ncompile(1)",
	}
	configs := []map[string]any{nil, {}, {"profile": "strict"}, {"blocked_modules": []string{"json"}},
		{"max_rows": 10.0, "max_output_size": 2e4}}
	for _, config := range configs {
		id := inNewSandbox.create(t, config)
		for _, code := range codes {
			body := map[string]any{"code": code, "config": config}
			got := c.ok(t, "POST", "/sandbox/check", body)
			want := inNewSandbox.ok(t, "POST", "/sandbox/"+id+"/check", map[string]any{"code": code})
			for _, key := range []string{"ok", "problems", "incomplete"} {
				if got, want := mustJSON(t, got.get(key)), mustJSON(t, want.get(key)); string(got) != string(want) {
					t.Errorf("%q with %v: got %s %s, want %s as in a new sandbox", code, config, key, got, want)
				}
			}
		}
		inNewSandbox.ok(t, "DELETE", "/sandbox/"+id, nil)
	}
	if a := c.ok(t, "POST", "/sandbox/check", map[string]any{"code": "import json"}); a.get("ok") != true {
		t.Errorf("without a config: got %s, want ok", a.text)
	}
	for body, want := range map[string]string{
		`{"code":"1","config":{"max_code_size":3},"code_":"1234"}`:     "code_",
		`{"code":"1","config":{"max_row":3}}`:                          "max_row",
		`{"code":"1","config":{"profile":"none"}}`:                     "profile",
		`{"code":"1","config":{"environment":"nothing-of-this-name"}}`: "environment",
		`{"config":{}}`: "code",
	} {
		a := c.do(t, "POST", "/sandbox/check", body)
		wantProblem(t, a, http.StatusUnprocessableEntity, "invalid-input", want)
	}
	wantProblem(t, c.do(t, "POST", "/sandbox/check", map[string]any{"code": strings.Repeat("#", 100_001)}),
		http.StatusRequestEntityTooLarge, "too-large", "max_code_size")
	if a := c.ok(t, "GET", "/sandboxes", nil); len(a.get("sandboxes").([]any)) != 0 {
		t.Errorf("got the sandboxes %s, want none", a.text)
	}
	if a := c.ok(t, "GET", "/executions", nil); len(a.get("executions").([]any)) != 0 {
		t.Errorf("got the executions %s, want none", a.text)
	}
}

// A completion with a config offers what a new sandbox with that config would, and needs no sandbox.
func TestCompletionWithConfig(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	for _, x := range []struct {
		code   string
		config any
		want   string // the first match
	}{
		{"import math\nmath.flo", nil, "floor"}, {"db_q", map[string]any{}, "db_query"}, {"'é'; pri", nil, "print"},
		{"", nil, "abs"}, {"import math\nmath.nothing", nil, ""},
		{"import subpro", nil, ""}, {"import subpro", map[string]any{"profile": "none"}, "invalid-input"},
	} {
		a := c.do(t, "POST", "/sandbox/complete", map[string]any{"code": x.code, "config": x.config})
		first, _ := a.get("matches").([]any)
		got := ""
		if len(first) > 0 {
			got = fmt.Sprint(first[0].(map[string]any)["text"])
		} else if a.status != http.StatusOK {
			got = "invalid-input"
		}
		if got != x.want {
			t.Errorf("%q with %v: got %q, want %q: %.300s", x.code, x.config, got, x.want, a.text)
		}
	}
	wantProblem(t, c.do(t, "POST", "/sandbox/complete", `{"code":"1","cursor":2}`), http.StatusUnprocessableEntity,
		"invalid-input", "cursor")
	if a := c.ok(t, "GET", "/sandboxes", nil); len(a.get("sandboxes").([]any)) != 0 {
		t.Errorf("got the sandboxes %s, want none", a.text)
	}
}

func TestVariablesAreShownWithoutRunningCode(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	c.run(
		t,
		id,
		"import numpy as np\nx = 41\ngrid = np.zeros((3, 4))\nclass Loud:\n    def __repr__(self): raise SystemExit\nloud = Loud()",
	)
	a := c.ok(t, "GET", "/sandbox/"+id+"/variables", nil)
	if a.get("variables.x.repr") != "41" || a.get("variables.grid.type") != "numpy.ndarray" ||
		string(mustJSON(t, a.get("variables.grid.shape"))) != "[3,4]" || a.get("variables.loud.repr") != "<Loud>" ||
		a.get("total") != 4.0 {
		t.Errorf("got %s, want the four variables", a.text)
	}
	// While code runs, nothing can be inspected.
	s := c.stream(t, "POST", "/sandbox/"+id+"/execute",
		map[string]any{"code": "import time\nprint('on')\nwhile True: time.sleep(0.1)"})
	first := s.until("stdout")[0]
	for _, path := range []string{"GET /variables", "POST /check", "POST /complete"} {
		method, path, _ := strings.Cut(path, " ")
		var body any
		if method == "POST" {
			body = `{"code":"1"}`
		}
		wantProblem(t, c.do(t, method, "/sandbox/"+id+path, body), http.StatusConflict, "busy")
	}
	c.ok(t, "POST", "/executions/"+fmt.Sprint(first.data["execution_id"])+"/cancel", nil)
	s.until("done")
}

func TestHighlight(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	a := c.ok(t, "POST", "/sandbox/highlight", map[string]any{"code": "def f(x):\n    return '<b>' + x  # done"})
	html, _ := a.get("html").(string)
	if !strings.HasPrefix(html, `<div class="highlight">`) || !strings.Contains(html, `<span class="k">def</span>`) ||
		strings.Contains(html, "<b>") {
		t.Errorf("got %s, want highlighted HTML", a.text)
	}
	if css, _ := a.get("css").(string); !strings.Contains(css, ".highlight .k ") {
		t.Errorf("got %.300s, want a style sheet", css)
	}
}

// jedi fails on some texts; then there are no completions.
func TestCompletionOfTextsOnWhichJediFails(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	for _, code := range []string{strings.Repeat("-", 90_000) + "1|", strings.Repeat("(", 90_000) + "1|"} {
		if got, a := c.completions(t, id, code); len(got) > 0 {
			t.Errorf("%.20s: got %q, want nothing: %s", code, got, a.text)
		}
	}
}

// An integer may be written in every way that JSON Schema takes for one, and one out of range is named.
func TestIntegersOfABody(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	path := "/sandbox/" + c.create(t, nil) + "/complete"
	for _, cursor := range []string{"1", "1.0", "1e0", "10.0E-1"} {
		if a := c.ok(t, "POST", path, `{"code":"pri","cursor":`+cursor+`}`); a.get("cursor_end") != 1.0 {
			t.Errorf("with the cursor %s: got %s, want completions at 1", cursor, a.text)
		}
	}
	for _, cursor := range []string{"1e18", "1e30", "9223372036854775808", "-1e30", "1.5"} {
		wantProblem(t, c.do(t, "POST", path, `{"code":"pri","cursor":`+cursor+`}`), http.StatusUnprocessableEntity,
			"invalid-input", "cursor: ")
	}
}
