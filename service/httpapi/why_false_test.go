package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"glasshouse/debugger"
	"glasshouse/sandbox"
)

// falsehoods are small programs about which an answer could easily say something that is not so.
var falsehoods = []struct {
	about, code, name string
	lines             []int64 // of the steps, the last first; nil: any
	want, refuse      string  // in the text
}{
	{"facts of a Series are not those of a column", `import pandas as pd
p = pd.Series([.1, .2])
t = pd.DataFrame({"qty": [3, 5], "city": ["a", "b"]})
t["price"] = p`, "t", []int64{4, 3, 2}, "t 2, p 2 -> 2", "changed its type"},
	{"a query in a statement over several lines", `row = db_query(
    'SELECT 1 AS one'
)[0]
x = (row['one']
     + 1
     + 2)`, "x", []int64{4, 1}, "Query 1 (step 3, ok, 1 rows)", "ran "},
	{"a statement over several lines in a loop", `x = 0
for n in [1, 2]:
    x = (x +
         n)`, "x", []int64{3, 2, 1}, "ran 2 times", "ran 4 times"},
	{"what a statement over several lines read", `a = [1, 2]
x = (a.pop() +
     a[0])`, "x", []int64{2, 1}, "read a = [1, 2]", ""},
	{"a lambda in the line is not an execution of it", `xs = [3, 1, 2]
x = sorted(xs, key=lambda v: -v)`, "x", []int64{2, 2, 1}, "ran 3 times", "ran 4 times"},
	{"a generator expression in the line is not an execution of it", `xs = [3, 1, 2]
x = sum(v for v in xs)`, "x", []int64{2, 1}, "", "ran "},
	{"a condition that was never true", `n = 0
for x in [1, 2, 3]:
    if x > 5:
        n += 1`, "n", []int64{3, 2, 1}, "n += 1 never ran: if x > 5 (line 3) was never true in 3 times", ""},
	{"a condition that was never false", `n = 0
for x in [1, 2]:
    if x < 5:
        pass
    else:
        n = 1`, "n", []int64{3, 2, 1}, "n = 1 never ran: if x < 5 (line 3) was never false in 2 times", ""},
	{"a condition on the line of its statement that was never true", `n = 0
for x in [1, 2, 3]:
    if x > 5: n += 1`, "n", []int64{3, 2, 1}, "line 3: if x > 5: n += 1 ran 3 times and never changed n", ""},
	{"a condition on the line of its statement that was true", `n = 0
for x in [1, 2, 3]:
    if x > 2: n += 1
m = n`, "n", []int64{3, 2, 1}, "n = 1; ran 3 times", "never changed"},
	{"an assignment on the line of a loop without items", `n = 0
for x in []: n = x`, "n", []int64{2, 1}, "for x in []: n = x ran once and never changed n", "n = x   # n"},
	{"a row of an array has no rows", `import numpy as np
a = np.arange(12).reshape(3, 4)
row = a[1]
x = row[1:]`, "x", []int64{4, 3, 2}, "rows: row 4 -> 3", "3 -> 4"},
	{"a loop without items", `n = 0
xs = []
for x in xs:
    n += x`, "n", []int64{3, 2, 1}, "for x in xs (line 3) had no items", ""},
	{"a loop whose turns end early has items", `n = 0
for x in [1]:
    if x:
        continue
    n += x`, "n", nil, "", "had no items"},
	{"an iterator that any() used in part", `it = iter([1, 5, 7])
found = any(x > 3 for x in it)
rest = list(it)`, "rest", nil, "got those that were left", "nothing was left"},
	{"an iterator that a loop used in part", `it = iter([1, 5, 7])
for x in it:
    if x == 5:
        break
rest = list(it)`, "rest", nil, "got those that were left", "nothing was left"},
	{"an iterator that a loop used up", `it = iter([1, 5, 7])
for x in it:
    pass
rest = list(it)`, "rest", nil, "nothing was left", ""},
	{"an iterator of which next() took one item", `it = iter([1, 5, 7])
first = next(it)
rest = list(it)`, "rest", nil, "got those that were left", "nothing was left"},
	{"an iterator that sum() used up", `it = iter([1, 5, 7])
all_of_it = sum(it)
rest = sum(it)`, "rest", nil, "nothing was left", ""},
	{"an element of a large list", "big = [1] * 1000\nbig[900] = 5\nx = sum(big)", "x", []int64{3, 2, 1},
		"does not show the effect", ""},
	{"an element of a large dict", "big = {i: 1 for i in range(1000)}\nbig[900] = 5\nx = sum(big.values())", "x",
		[]int64{3, 2, 1}, "does not show the effect", ""},
	{"an element of a large array", "import numpy as np\nbig = np.zeros(100000)\nbig[70001] = 5\nx = big.sum()", "x",
		[]int64{4, 3, 2}, "does not show the effect", ""},
	{"a row of a large frame", `import pandas as pd
big = pd.DataFrame({"v": [1.0] * 100000})
big.loc[70002, "v"] = 5.0
x = big["v"].sum()`, "x", []int64{4, 3, 2}, "", ""},
	{"an element in a loop, in a function and through another name", `big = [1] * 1000
ys = big
def put(to, n):
    to[n] = 5
for n in [700, 800]:
    ys[n] = 4
put(big, 900)
x = sum(big)`, "x", nil, "to[n] = 5", ""},
	{"elements of another large list", "big = [1] * 1000\nother = [1] * 1000\nother[900] = 5\nx = sum(big)", "x",
		[]int64{4, 1}, "", "does not show the effect"},
	{"an element of a small list", "xs = [1] * 40\nxs[30] = 5\nx = sum(xs)", "x", []int64{3, 2, 1}, "changed in place",
		"does not show the effect"},
	{"a loop variable of an earlier run", `rows = [["a", 1], ["b", 2], ["b", 3]]
out = []
for row in rows:
    key = row[0]
    out.append((key, row[1]))`, "out", []int64{5, 4, 3, 2, 1}, "", "was not set in this run"},
	{"a variable of an earlier run that the first turn reads", `for n in [1, 2]:
    kept = kept + n`, "kept", nil, "kept was not set in this run", ""},
}

func TestWhySaysNothingFalse(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	for _, p := range falsehoods {
		id, done := c.fresh(t)
		c.run(t, id, "row, key, out, kept = 5, 'b', None, 7")
		y := c.why(t, c.recorded(t, id, p.code), "name="+p.name)
		lines := []int64{}
		for _, s := range y.Steps {
			lines = append(lines, s.Line)
		}
		if p.lines != nil && !slices.Equal(lines, p.lines) || !strings.Contains(y.Text, p.want) ||
			p.refuse != "" && strings.Contains(y.Text, p.refuse) {
			t.Errorf("%s: got lines %v, want %v, the text %q and not %q:\n%s", p.about, lines, p.lines, p.want,
				p.refuse, y.Text)
		}
		done()
	}
}

// Without a name, the answer about a failed run is about its exception.
func TestWhyExplainsAnException(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	for _, p := range []struct {
		code, value string
		want        []string // line and role of steps
	}{
		{"d = {'a': 1}\nk = 'b'\nx = d[k] + 1\ny = 2", "KeyError", []string{"3 raised", "2 set", "1 set"}},
		{"def f(n):\n    return 1 / n\nm = 0\nx = f(m)", "ZeroDivisionError", []string{"2 raised", "4 used", "3 set"}},
		{"n = 0\ntry:\n    x = 1 / n\nfinally:\n    y = 2", "ZeroDivisionError", []string{"3 raised", "1 set"}},
		{"try:\n    1 / 0\nexcept ZeroDivisionError:\n    pass\nraise ValueError('v')", "ValueError: v",
			[]string{"5 raised"}},
		{"5 + int('x')", "ValueError", []string{"1 raised"}},
	} {
		y := c.why(t, c.recorded(t, id, p.code), "")
		var steps []string
		for _, s := range y.Steps {
			steps = append(steps, fmt.Sprintf("%d %s", s.Line, s.Role))
		}
		for _, want := range p.want {
			if !slices.Contains(steps, want) {
				t.Errorf("%q: got the steps %q, want %q:\n%s", p.code, steps, want, y.Text)
			}
		}
		if y.Name != "exception" || !strings.HasPrefix(y.Value, p.value) || steps[0] != p.want[0] && len(p.want) > 2 {
			t.Errorf("%q: got %s = %s and the steps %q, want the exception %s:\n%s", p.code, y.Name, y.Value, steps,
				p.value, y.Text)
		}
	}
}

// What the last line sets is in the steps, the changes and the views of a recording, and each of them says what the
// recording has in part.
func TestTheLastLineIsRecorded(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	for _, p := range []struct {
		code, name, value, exactness string
		step                         int // whose line set it last
	}{
		{"x = 1\ny = x + 1", "y", "2", "", 2},
		{"y = 3", "y", "3", "", 1},
		{"def f():\n    return 4\ny = f()", "y", "4", "", 2},
		{"y = [0] * 100\ny[3] = 5", "y", "[0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...]", "sampled", 2},
		{"y = [0] * 30", "y", "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...]", "truncated", 1},
		{"y = 5\n1 / 0", "y", "5", "", 1},
		{"y = 1\ny = 6\ny", "y", "6", "", 2},
	} {
		path := "/executions/" + c.recorded(t, id, p.code)
		var steps struct {
			Total int            `json:"total_steps"`
			Steps []sandbox.Step `json:"steps"`
		}
		var changes struct {
			Changes []debugger.ChangeView `json:"changes"`
		}
		var views struct {
			Steps []debugger.StepView `json:"steps"`
		}
		c.into(t, path+"/steps", &steps)
		c.into(t, path+"/variables/"+p.name+"/changes", &changes)
		c.into(t, fmt.Sprintf("%s/views?from=%d", path, steps.Total), &views)
		set := steps.Steps[p.step-1].State
		if set.Variables[p.name] != p.value || set.Exactness[p.name] != p.exactness ||
			!slices.Contains(set.Changed, p.name) {
			t.Errorf("%q: got the step %+v, want %s", p.code, set, p.value)
		}
		if len(changes.Changes) == 0 {
			t.Fatalf("%q: got no change of %s", p.code, p.name)
		}
		last := changes.Changes[len(changes.Changes)-1]
		if last.Value != p.value || last.Step != p.step || last.Seen > steps.Total+1 {
			t.Errorf("%q: got the last change %+v, want %s by step %d", p.code, last, p.value, p.step)
		}
		end := views.Steps[len(views.Steps)-1]
		is := func(v debugger.VariableView) bool {
			return v.Name == p.name && v.Value == p.value && v.Exactness == p.exactness
		}
		if end.Step != steps.Total+1 || !end.IsEnd || len(end.Frames) == 0 || !slices.ContainsFunc(end.Globals, is) {
			t.Errorf("%q: got the last view %+v, want the end with %s", p.code, end, p.value)
		}
		wantProblem(t, c.do(t, "GET", fmt.Sprintf("%s/steps/%d", path, steps.Total+2), nil), http.StatusNotFound,
			"not-found")
	}
}

// into decodes an answer.
func (c client) into(t testing.TB, path string, out any) {
	t.Helper()
	if err := json.Unmarshal(c.ok(t, "GET", path, nil).text, out); err != nil {
		t.Fatal(err)
	}
}

// A write through a view of an array is a change of the array, at the line that made it.
func TestWhyFollowsAViewOfAnArray(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	execution := c.recorded(t, c.create(t, nil), `import numpy as np
a = np.arange(12).reshape(3, 4)
row = a[1]
row[0] = 100
b = 1
x = a[1, 0]`)
	for _, name := range []string{"a", "x"} {
		y := c.why(t, execution, "name="+name)
		if !strings.Contains(y.Text, "line 4: row[0] = 100") ||
			!strings.Contains(y.Text, "changed in place through row") {
			t.Errorf("%s: got\n%s\nwant the change in line 4", name, y.Text)
		}
	}
}
