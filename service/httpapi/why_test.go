package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"glasshouse/debugger/why"
	"glasshouse/sandbox"
)

// why asks where a value of an execution comes from.
func (c client) why(t testing.TB, execution, query string) (answer why.Answer) {
	t.Helper()
	text := c.ok(t, "GET", "/executions/"+execution+"/why?"+query, nil).text
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// fresh returns a sandbox for one program, and the function that ends it. The facts replay the earlier executions of
// the session, too, if they took at most 10 s together. On a busy machine many programs take longer.
func (c client) fresh(t testing.TB) (id string, done func()) {
	t.Helper()
	id = c.create(t, nil)
	return id, func() { c.ok(t, "DELETE", "/sandbox/"+id, nil) }
}

// recorded runs code with "record": true in a sandbox, and returns the execution's id.
func (c client) recorded(t testing.TB, id, code string) string {
	t.Helper()
	execution, _ := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code, "record": true}).
		get("execution_id").(string)
	return execution
}

const whyProgram = `prices = {'a': 2, 'b': 'x', 'c': 5}
def price(name):
    found = prices[name]
    return found * 10 - 0
unused = 1
total = start
names = list(prices)
for name in names:
    try:
        total += price(name)
    except TypeError:
        pass
shares = names
shares.append(total)
unused = 2
rows = db_query("SELECT 1 AS one")
total`

// An agent asks about its own ordinary run, which was recorded on request, and gets the steps that made a value.
func TestWhyTellsWhereAValueComesFrom(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	first, _ := c.run(t, id, "start = 7").get("execution_id").(string)
	execution := c.recorded(t, id, whyProgram)
	c.ok(t, "DELETE", "/sandbox/"+id, nil) // the recording outlives its sandbox

	y := c.why(t, execution, "name=total")
	if y.Value != "77" || y.Type != "int" {
		t.Errorf("got the value %s %s, want 77", y.Type, y.Value)
	}
	var steps []string
	for _, s := range y.Steps {
		steps = append(steps, fmt.Sprintf("%d %s %s=%s", s.Line, s.Role, s.Name, s.Value))
	}
	got := strings.Join(steps, "\n")
	for _, want := range []string{"10 set total=77", "4 returned =50", "3 set found=5", "6 set total=7",
		"8 set name='c'"} {
		if !strings.Contains(got, want) {
			t.Errorf("want the step %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "unused") || strings.Contains(got, "shares") {
		t.Errorf("want only steps that made the value, got\n%s", got)
	}
	for _, want := range []string{"line 4: TypeError", "caught and ignored once", "called in line 10",
		"start was not set in this run: execution " + first + " set it to 7 (line 1: start = 7)"} {
		if !strings.Contains(y.Text, want) {
			t.Errorf("want %q in\n%s", want, y.Text)
		}
	}
	if len(y.Text) > 1800 || len(y.Limits) > 0 {
		t.Errorf("got %d bytes and the limits %q, want at most 1800 and none", len(y.Text), y.Limits)
	}

	if y := c.why(t, execution, "name=names"); !strings.Contains(y.Text, "changed in place through shares") {
		t.Errorf("want the change in place, got\n%s", y.Text)
	}
	if y := c.why(t, execution, "name=rows"); len(y.Queries) != 1 || y.Queries[0].Rows != 1 {
		t.Errorf("want the query, got\n%s", y.Text)
	}
	if y := c.why(t, execution, "name=total&step=6"); y.Value != "7" {
		t.Errorf("got %s at step 6, want 7:\n%s", y.Value, y.Text)
	}
	if y := c.why(t, execution, ""); y.Value != "77" || y.Name != "result" {
		t.Errorf("got the result %s, want 77:\n%s", y.Value, y.Text)
	}
	text, _ := c.ok(t, "GET", "/executions/"+execution+"/explain", nil).get("explanation").(string)
	for _, want := range []string{"line 4: TypeError", "was caught once", "start = 7",
		"changed in place: names, shares",
		"unused: lines 5, 15"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in the explanation\n%s", want, text)
		}
	}
	restarted := client{secret: c.secret, server: smallServerURL}
	if y := restarted.why(t, execution, "name=total"); y.Value != "77" {
		t.Errorf("after a restart: got %s, want 77:\n%s", y.Value, y.Text)
	}
	wantProblem(t, c.do(t, "GET", "/executions/"+execution+"/why?name=missing", nil), http.StatusNotFound, "not-found",
		"missing")
	wantProblem(t, c.do(t, "GET", "/executions/"+execution+"/why?name=total&step=999", nil), http.StatusNotFound,
		"not-found",
		"no such step")
	wantProblem(t, c.do(t, "GET", "/executions/"+first+"/why?name=start", nil), http.StatusNotFound, "not-found",
		"record")
	other := newUser(t, sandbox.RoleAgent)
	wantProblem(t, other.do(t, "GET", "/executions/"+execution+"/why?name=total", nil), http.StatusNotFound,
		"not-found")
	wantProblem(t, c.do(t, "GET", "/executions/"+execution+"/steps", nil), http.StatusForbidden, "forbidden")
}

// A sandbox can record every run, and a quick execution one. A sandbox without debugging records none.
func TestRunsAreRecordedOnRequest(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	always := c.create(t, map[string]any{"record": "always"})
	execution, _ := c.run(t, always, "x = 1\ny = x + 1").get("execution_id").(string)
	if y := c.why(t, execution, "name=y"); y.Value != "2" || len(y.Steps) != 2 {
		t.Errorf("got %+v, want y = 2 with two steps", y)
	}
	quick, _ := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "x = 1\ny = x + 1",
		"record": true}).
		get("execution_id").(string)
	if y := c.why(t, quick, "name="+url.QueryEscape("y * 2 + x")); len(y.Steps) != 2 {
		t.Errorf("an expression: got %+v, want two steps", y)
	}
	never := c.create(t, map[string]any{"enable_debugging": false})
	wantProblem(t, c.do(t, "POST", "/sandbox/"+never+"/execute", map[string]any{"code": "1", "record": true}),
		http.StatusForbidden, "forbidden", "debugging off")
	wantProblem(t, c.do(t, "POST", "/sandbox/create",
		map[string]any{"record": "always", "enable_debugging": false}),
		http.StatusUnprocessableEntity, "invalid-input", "record")
}

// The answer's first 600 tokens name the cause of small wrong analyses. The head of each program in testdata/why has
// the name to ask for, the line that the answer must name, and the words that it must contain.
func TestWhyNamesTheCauseOfWrongAnalyses(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/why/*.py")
	if err != nil || len(files) < minWrongAnalyses {
		t.Fatalf("got %d programs, %v, want at least %d", len(files), err, minWrongAnalyses)
	}
	c := newUser(t, sandbox.RoleAgent)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".py"), func(t *testing.T) {
			id, done := c.fresh(t)
			defer done()
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head := map[string]string{}
			for _, found := range headField.FindAllStringSubmatch(string(code), -1) {
				head[found[1]] = found[2]
			}
			if head["before"] != "" {
				c.run(t, id, head["before"])
			}
			execution := c.recorded(t, id, string(code))
			y := c.why(t, execution, "name="+head["why"])
			if len(y.Text) > 600*3 {
				t.Errorf("got %d bytes, want at most 600 tokens of 3 bytes", len(y.Text))
			}
			for _, word := range strings.Split(head["words"], "; ") {
				if !strings.Contains(y.Text, word) {
					t.Errorf("want %q in\n%s", word, y.Text)
				}
			}
			if head["line"] != "0" && !strings.Contains(y.Text, "line "+head["line"]+":") {
				t.Errorf("want line %s, got\n%s", head["line"], y.Text)
			}
		})
	}
}

// Correct code is not blamed: columns of Decimal and of dates have the type object, as columns of text have. Facts of a
// variable are not told about a part of its rows, and a merge that keeps each row of its left side drops none.
func TestWhyBlamesNoCorrectCode(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	const tables = "import pandas as pd\n" +
		"a = pd.DataFrame({'id': [3, 1, 2, None, 9, 8], 'v': [1.0, None, 3.0, 4.0, 5.0, 6.0], 'w': range(6)})\n" +
		"b = pd.DataFrame({'id': [1.0, 2, 3, 8, 9], 'w': [9, 8, 7, 6, 5], 'n': list('edcba')})\n"
	for _, code := range []string{
		tables + "x = a[a.id > 0].merge(b, on='id')['w_x'].sum()",
		tables + "x = a.merge(b, on='id').head(2)['n'].count()",
		tables + "m = a.dropna().merge(b[b.id > 1], on='id')\nx = m['n'].count()",
		tables + "a = a[a.id > 0].drop(columns='v')\nm = a.merge(b, on='id', suffixes=('_a', ''))\nx = m['w'].sum()",
		tables + "a = a[a.id > 0].drop(columns='v')\nm = a.merge(b, on='id', sort=True)\nx = m['n'].count()",
		tables + "m = a.dropna().groupby('id')['v'].sum()\nx = m.max()",
		tables + "x = a.dropna()['v'].sum()",
		"orders = await db_frame('SELECT id, total FROM orders LIMIT 50')\nx = orders['total'].sum()",
		"import datetime, pandas as pd\n" +
			"days = pd.DataFrame({'day': [datetime.date(2024, 1, n) for n in range(1, 9)]})\nx = days['day'].max()",
		"flags = 6\nx = flags & 4 == 4",
		"n = {}\nfor name in 'abca':\n    n[name] = n.get(name, 0) + 1\nx = n['a']",
		"rates = {'a': 2}\nx = 0\nfor name in ['a', 'a']:\n    x += rates.get(name, 1)",
		tables + "b['n'] = list('xxyyz')\nx = b.groupby('n')['w'].diff().sum()",
		tables + "x = b['w'].diff().sum()",
	} {
		y := c.why(t, c.recorded(t, id, code), "name=x")
		if len(y.Steps) == 0 || strings.Contains(y.Text, "Check first") {
			t.Errorf("%s\ngot\n%s\nwant its steps, and no finding to check first", code, y.Text)
		}
	}
}

var headField = regexp.MustCompile(`(?m)^# (why|line|words|before): (.*)$`)

const minWrongAnalyses = 30

// A loop changes a list that another name has changed before.
func TestWhyFollowsAChangeThroughAnotherNameBeforeALoop(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	for _, code := range []string{
		"xs = []\nys = xs\nys.append(40)\nfor n in range(3):\n    xs.append(n)\nx = sum(xs)",
		"xs = []\ndef add(to):\n    to.append(40)\nadd(xs)\nfor n in range(3):\n    xs.append(n)\nx = sum(xs)",
	} {
		y := c.why(t, c.recorded(t, id, code), "name=x")
		appends := func(s why.Step) bool { return strings.Contains(s.Code, "append(40)") }
		if !slices.ContainsFunc(y.Steps, appends) {
			t.Errorf("%q: want the line with 40:\n%s", code, y.Text)
		}
	}
}

// In the middle of a loop, the answer does not call its turn the last one.
func TestWhyInTheMiddleOfALoop(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	execution := c.recorded(t, c.create(t, nil), "x = 0\nfor n in range(9):\n    x += n\ny = x")
	y := c.why(t, execution, "name=x&step=7") // x += n has added 0 and 1
	if y.Value != "1" || len(y.Findings) > 0 ||
		!strings.Contains(y.Text, "for n in range(9):   # n = 1; ran 10 times") {
		t.Errorf("got\n%s", y.Text)
	}
}

// Two steps read a variable that this run set. The value that it had before the run is not behind the result.
func TestWhyNamesNoEarlierValueThatTheRunReplaced(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	c.run(t, id, "rows = [7]")
	for _, code := range []string{
		"rows = [1, 2]\nfirst = rows[0]\nx = rows[1] + first",
		"rows = [1, 2]\nfirst = rows[0]\nfor n in rows:\n    x = n + first",
	} {
		if y := c.why(t, c.recorded(t, id, code), "name=x"); len(y.Earlier) > 0 || len(y.Findings) > 0 {
			t.Errorf("%q: got %d earlier variables, want none:\n%s", code, len(y.Earlier), y.Text)
		}
	}
}

// A recording has no change where an assignment gives a variable the object that it has. The answer names the
// assignment nevertheless, if it ended.
func TestWhyNamesAssignmentsOfTheSameValue(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	c.run(t, id, "y = 2")
	for _, run := range []struct {
		code    string
		want    []int64 // lines, the last first
		earlier bool    // the value comes from the earlier run
	}{
		{"x = 1\ny = x + 1\nz = y", []int64{2, 1}, false},
		{"x = 1\ny = x + 1", []int64{2, 1}, false},
		{"y = 2\nx = 0\ny += x", []int64{3, 2, 1}, false},
		{"y = 2\ny = (\n    1 +\n    sum(n for n in [1])\n)", []int64{2}, false},
		{"for n in range(3):\n    y = 2", []int64{2, 1}, false},
		{"try:\n    y = 1 / 0\nexcept ZeroDivisionError:\n    x = 1", nil, true},
		{"if y > 5:\n    y = 2", []int64{1}, true},
		{"for y in [2]:\n    pass", []int64{1}, false},
		{"for y in []:\n    pass", nil, true},
		{"y: int = 2", []int64{1}, false},
		{"y: int", nil, true},
		{"def f():\n    y = 2\n    return y\nx = f()", nil, true},
	} {
		answer := c.why(t, c.recorded(t, id, run.code), "name=y")
		var lines []int64
		for _, s := range answer.Steps {
			lines = append(lines, s.Line)
		}
		if !slices.Equal(lines, run.want) || (len(answer.Earlier) > 0) != run.earlier || answer.Value != "2" {
			t.Errorf("%q: got lines %v, want %v:\n%s", run.code, lines, run.want, answer.Text)
		}
		if run.earlier && answer.Earlier[0].Line == 0 {
			t.Errorf("%q: got no line of the earlier run:\n%s", run.code, answer.Text)
		}
	}

	f := "def f(x):\n    y = x\n    if x:\n        y = x\n    return y\nr = f(3)"
	if y := c.why(t, c.recorded(t, id, f), "name=r"); !strings.Contains(y.Text, "line 4 in f: y = x") {
		t.Errorf("got\n%s\nwant line 4 of f", y.Text)
	}
}

// A program may set its result, whatever its last expression is.
func TestWhyOfAResultThatTheProgramSets(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	execution := c.recorded(t, id, "total = 6\nprint('half')\n__result__ = {'half': total / 2}")
	for _, query := range []string{"", "name=result"} {
		y := c.why(t, execution, query)
		if y.Name != "result" || y.Value != "{'half': 3.0}" || len(y.Steps) == 0 || y.Steps[0].Line != 3 {
			t.Errorf("%q: got %s = %s in %+v, want the result of line 3", query, y.Name, y.Value, y.Steps)
		}
	}
}

// A captured write waits for an admin: the answer says that it changed nothing.
func TestWhySaysThatACapturedWriteDidNotRun(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, map[string]any{"write_policy": "capture"})
	execution := c.recorded(t, id, `done = db_query("UPDATE products SET price = 1 WHERE id = 1")`)
	const want = "query 1 was captured: it had to wait for an admin, and nothing ran"
	y := c.why(t, execution, "name=done")
	if len(y.Findings) == 0 || y.Findings[0].Text != want {
		t.Errorf("got %+v, want %q", y.Findings, want)
	}
}
