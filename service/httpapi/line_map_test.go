package httpapi_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"glasshouse/debugger"
	"glasshouse/sandbox"
)

type lineMap struct {
	Steps int `json:"total_steps"`
	Count int `json:"count"`
	Last  int `json:"last"`
	Gaps  []struct {
		First, Last int
		Reason      string
	} `json:"gaps"`
	lines  []uint32
	depths []uint16
}

func (c client) lineMap(t testing.TB, execution string) (m lineMap) {
	t.Helper()
	b := c.ok(t, "GET", "/executions/"+execution+"/line-map", nil).text // the HTTP client decompresses it
	head := binary.LittleEndian.Uint32(b)
	if err := json.Unmarshal(b[4:4+head], &m); err != nil {
		t.Fatal(err)
	}
	b = b[4+head:]
	if len(b) != 6*m.Count {
		t.Fatalf("got %d bytes of lines and depths, want 6 for each of %d steps", len(b), m.Count)
	}
	for i := range m.Count {
		m.lines = append(m.lines, binary.LittleEndian.Uint32(b[4*i:]))
		m.depths = append(m.depths, binary.LittleEndian.Uint16(b[4*m.Count+2*i:]))
	}
	return m
}

// A few kilobytes of a recording can make views of megabytes each: a deep recursion with large variables. Then there
// are few in a response, and the caller goes on with the next one.
func TestLargeViewsAreFew(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	locals := ""
	for n := range 60 {
		locals += fmt.Sprintf("    v%d = 'A' * 1000\n", n)
	}
	program := "def f(n):\n" + locals +
		"    if n:\n        f(n - 1)\n    for k in range(0 if n else 4000):\n        pass\nf(60)\n"
	execution := c.debugStream(t, id, map[string]any{"code": program}).execution.ID
	first := c.lineMap(t, execution).Steps / 2 // in the deepest call
	seen := 0
	for from := first; from < first+10; seen++ {
		page := c.views(t, execution, from, 10)
		if n := len(page.Steps); n < 1 || n > 3 || page.Next != from+n {
			t.Fatalf("from step %d: got %d views, and %d as the next one; want 1 to 3, and the one behind them", from,
				n, page.Next)
		}
		from = page.Next
	}
	if got := c.views(t, execution, 1, 10); len(got.Steps) != 10 || got.Next != 0 {
		t.Errorf("from the first step: got %d views, and %d as the next one; want 10 and none", len(got.Steps),
			got.Next)
	}
}

type viewList struct {
	Total int `json:"total_steps"`
	Steps []debugger.StepView
	Next  int
}

func (c client) views(t testing.TB, execution string, from, limit int) (out viewList) {
	t.Helper()
	text := c.ok(t, "GET", fmt.Sprintf("/executions/%s/views?from=%d&limit=%d", execution, from, limit), nil).text
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The line map and the views say the same about each step as the steps themselves, with generators that go on in
// another caller, and exceptions that end frames.
func TestLineMapAgreesWithTheSteps(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	const program = `def numbers(n):
    for i in range(n):
        yield inner(i)
def inner(i):
    if i == 3:
        raise ValueError(i)
    return i * 2
def deeper(g):
    return next(g)
total = 0
shared = numbers(3)
total += next(shared)
total += deeper(shared)
try:
    for each in numbers(9):
        total += each
except ValueError:
    total += 1
for k in range(2000):
    total += inner(4)
total`
	d := c.debugStream(t, id, map[string]any{"code": program})
	execution := d.execution.ID
	m := c.lineMap(t, execution)
	if m.Count != m.Steps || m.Last != m.Steps || len(m.Gaps) != 0 {
		t.Fatalf("got %d lines of %d steps up to %d, gaps %v; want all", m.Count, m.Steps, m.Last, m.Gaps)
	}
	for from := 1; from <= m.Steps; from += 100 {
		page := c.views(t, execution, from, 100)
		if last := len(page.Steps) - 1; page.Steps[last].IsEnd {
			page.Steps = page.Steps[:last]
		}
		if want := min(100, m.Steps-from+1); len(page.Steps) != want || page.Total != m.Steps {
			t.Fatalf("from step %d: got %d views of %d steps, want %d of %d", from, len(page.Steps), page.Total, want,
				m.Steps)
		}
		for i, view := range page.Steps {
			f := view.Frames[0]
			want := uint32(f.Line)
			if at := from + i - 1; view.Step != from+i || m.lines[at] != want || int(m.depths[at]) != len(view.Frames) {
				t.Fatalf("step %d: got line %d, depth %d; want step %d, line %d, depth %d", from+i, m.lines[at],
					m.depths[at], view.Step, want, len(view.Frames))
			}
		}
	}
	var single debugger.StepView
	if err := json.Unmarshal(c.ok(t, "GET", "/executions/"+execution+"/steps/50", nil).text, &single); err != nil {
		t.Fatal(err)
	}
	if got := c.views(t, execution, 50, 1).Steps[0]; string(mustJSON(t, got)) != string(mustJSON(t, single)) {
		t.Errorf("the view of step 50: got %s, want %s", mustJSON(t, got), mustJSON(t, single))
	}
	for _, route := range []string{"/line-map", "/views"} {
		path := "/executions/" + execution + route
		wantProblem(t, newUser(t, sandbox.RoleDeveloper).do(t, "GET", path, nil), http.StatusNotFound, "not-found")
		wantProblem(t, newUser(t, sandbox.RoleAgent).do(t, "GET", path, nil), http.StatusForbidden, "forbidden")
	}
}

// The line map of a run behind the budget of steps says which steps are missing.
func TestLineMapHasTheGap(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	a := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{
		"code": "t = 0\nfor i in range(600_000):\n    t += i\nt", "record": true,
	})
	execution, _ := a.get("execution_id").(string)
	m := c.lineMap(t, execution)
	if len(m.Gaps) != 1 || !strings.Contains(m.Gaps[0].Reason, "budget") ||
		m.Count+m.Gaps[0].Last-m.Gaps[0].First+1 != m.Steps {
		t.Fatalf("got %d lines of %d steps, gaps %+v; want one gap with the steps that have no line", m.Count, m.Steps,
			m.Gaps)
	}
	if m.lines[0] != 1 || m.lines[m.Count-1] != 4 {
		t.Errorf("got the lines %d and %d at the ends, want 1 and 4", m.lines[0], m.lines[m.Count-1])
	}
	gap := m.Gaps[0]
	if got := c.views(t, execution, gap.First-2, 10).Steps; len(got) != 2 || got[1].Step != gap.First-1 {
		t.Errorf("views at the gap: got %d, want the two steps before it", len(got))
	}
	if got := c.views(t, execution, gap.Last, 2).Steps; len(got) != 1 || got[0].Step != gap.Last+1 {
		t.Errorf("views at the end of the gap: got %d, want the step after it", len(got))
	}
}

// A recorded DataFrame has its columns with their types, and the rows that the recording kept.
func TestRecordedTable(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	d := c.debugStream(t, id, map[string]any{"code": "import pandas as pd\n" +
		"df = pd.DataFrame({'amt': [1.5, None] * 50, 'city': ['a', 'b'] * 50})\ns = df['amt']\n1"})
	view := c.views(t, d.execution.ID, c.lineMap(t, d.execution.ID).Steps, 1).Steps[0]
	tables := map[string]debugger.ObjectView{}
	for _, v := range view.Globals {
		if v.Ref == 0 {
			continue
		}
		var object debugger.ObjectView
		text := c.ok(t, "GET", fmt.Sprintf("/executions/%s/steps/%d/objects/%d?start=1&count=2", d.execution.ID,
			view.Step, v.Ref), nil).text
		if err := json.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		tables[v.Name] = object
	}
	for name, want := range map[string]string{
		"df": `{"columns":[{"name":"amt","dtype":"float64","missing":50},{"name":"city","dtype":"str","missing":0}],` +
			`"rows":[{"label":"1","cells":["nan","'b'"]},{"label":"2","cells":["1.5","'a'"]}],"kept":100,` +
			`"total_columns":2}`,
		"s": `{"columns":[{"name":"amt","dtype":"float64","missing":50}],` +
			`"rows":[{"label":"1","cells":["nan"]},{"label":"2","cells":["1.5"]}],"kept":100,"total_columns":1}`,
	} {
		if got := string(mustJSON(t, tables[name].Table)); got != want || *tables[name].Length != 100 {
			t.Errorf("%s: got %s of %d rows, want %s of 100", name, got, *tables[name].Length, want)
		}
	}
}
