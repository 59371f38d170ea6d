package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"glasshouse/debugger"
	"glasshouse/sandbox"
)

const totalsProgram = `total = 0
seen = []
def add(n):
    global total
    half = n / 2
    total += n
    seen.append(half)
    return total
for i in range(200):
    add(i)
total`

// stepsPerIteration is the number of steps of totalsProgram's loop; three lines run before it.
const stepsPerIteration = 6

// A recording is read from history, step by step.
func TestRecordingIsReadStepByStep(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	d := c.debugStream(t, id, map[string]any{"code": totalsProgram})
	c.ok(t, "DELETE", "/sandbox/"+id, nil) // the recording outlives its sandbox
	path := "/executions/" + d.execution.ID

	var page struct {
		Total int            `json:"total_steps"`
		Steps []sandbox.Step `json:"steps"`
		Next  int            `json:"next"`
		Bytes int            `json:"stored_bytes"`
	}
	read := func(from, limit int) {
		t.Helper()
		page.Next, page.Steps = 0, nil
		if err := json.Unmarshal(c.ok(t, "GET", fmt.Sprintf("%s/steps?from=%d&limit=%d", path, from, limit), nil).text,
			&page); err != nil {
			t.Fatal(err)
		}
	}
	read(1, 10)
	if perStep := float64(page.Bytes) / float64(page.Total); perStep < 0.1 || perStep > 6 {
		t.Errorf("got %.2f stored bytes per step, want 0.1 to 6", perStep)
	}
	if got := stepMarks(page.Steps); got != "1 2 3 9 10* 5 6 7 8 9" || page.Next != 11 ||
		page.Total != 3+200*stepsPerIteration+2 {
		t.Errorf("got the steps %s, then %d, of %d", got, page.Next, page.Total)
	}
	read(page.Total-3, 100)
	if got := stepMarks(page.Steps); got != "7 8 9 11" || page.Next != 0 {
		t.Errorf("got the last steps %s, then %d", got, page.Next)
	}

	if got := c.ok(t, "GET", path, nil).get("recorded_steps"); got != float64(page.Total) ||
		d.execution.RecordedSteps != int64(page.Total) {
		t.Errorf("got %v recorded steps in the record and %d in the answer, want %d", got, d.execution.RecordedSteps,
			page.Total)
	}
	summaries := c.ok(t, "GET", "/executions?sandbox_id="+id, nil).text
	if want := fmt.Sprintf(`"recorded_steps":%d,`, page.Total); !strings.Contains(string(summaries), want) {
		t.Errorf("got %s, want a summary with %s", summaries, want)
	}

	var view debugger.StepView
	at := 3 + 100*stepsPerIteration + 5 // the 101st iteration, at seen.append
	if err := json.Unmarshal(c.ok(t, "GET", fmt.Sprintf("%s/steps/%d", path, at), nil).text, &view); err != nil {
		t.Fatal(err)
	}
	if len(view.Frames) != 2 || view.Frames[0].Function != "add" || view.Frames[0].Line != 7 ||
		view.Frames[0].Code != "    seen.append(half)" || view.Frames[1].Line != 10 {
		t.Errorf("got the frames %+v", view.Frames)
	}
	values := map[string]debugger.VariableView{}
	for _, v := range append(view.Globals, view.Frames[0].Variables...) {
		values[v.Name] = v
	}
	if values["n"].Value != "100" || values["half"].Value != "50.0" || values["total"].Value != "5050" ||
		*values["seen"].Length != 100 || values["half"].Type != "float" {
		t.Errorf("got the variables %+v", values)
	}
	if len(view.Source) != 7 || !view.Source[3].Current || view.Source[3].Line != 7 {
		t.Errorf("got the source %+v", view.Source)
	}
	object := c.ok(t, "GET", fmt.Sprintf("%s/steps/%d/objects/%d?start=2&count=2", path, at, values["seen"].Ref), nil)
	if items, _ := object.get("items").([]any); len(items) != 2 || items[0].(map[string]any)["value"] != "1.0" ||
		object.get("length") != 100.0 || object.get("exactness") != "sampled" {
		t.Errorf("the list: got %s", object.text)
	}
	scope := c.ok(t, "GET", fmt.Sprintf("%s/steps/%d/variables?frame=%d&start=1&count=1", path, at,
		view.Frames[0].Frame), nil)
	if string(mustJSON(t, scope.get("variables"))) != `[{"name":"n","type":"int","value":"100"}]` ||
		scope.get("total") != 2.0 {
		t.Errorf("a page of variables: got %s", scope.text)
	}

	last := c.ok(t, "GET", fmt.Sprintf("%s/variables/total/changes?before=%d", path, at), nil)
	var changes struct{ Changes []debugger.ChangeView }
	if err := json.Unmarshal(last.text, &changes); err != nil || len(changes.Changes) != 1 {
		t.Fatalf("got %s (%v), want one change", last.text, err)
	}
	if got := changes.Changes[0]; got.Step != at-1 || got.Line != 6 || got.Value != "5050" || got.Function != "add" ||
		got.Seen != at {
		t.Errorf("the last change of total: got %+v", got)
	}
	all := c.ok(t, "GET", path+"/variables/total/changes?limit=3&from=20", nil)
	if err := json.Unmarshal(all.text, &changes); err != nil || len(changes.Changes) != 3 ||
		changes.Changes[0].Value != "3" || changes.Changes[2].Value != "10" {
		t.Errorf("the changes of total: got %s", all.text)
	}
	found := c.ok(t, "GET", path+"/find?condition="+url.QueryEscape("total > 5000 and n == 100 and seen[0] == 0"), nil)
	if found.get("step") != float64(at) || found.get("at.step") != float64(at) {
		t.Errorf("the first step where the condition holds: got %s, want %d", found.text, at)
	}
	if found := c.ok(t, "GET", path+"/find?condition="+url.QueryEscape("total < 0"), nil); found.get("step") != 0.0 ||
		found.get("at") != nil {
		t.Errorf("a condition that never holds: got %s", found.text)
	}

	back := c.ok(t, "GET", path+"/find?condition="+url.QueryEscape("total > 5000 and n == 100")+
		fmt.Sprintf("&before=%d", page.Total), nil)
	if back.get("step") != float64(at+1) { // the next line of the same call
		t.Errorf("the last step before the end where the condition holds: got %s, want %d", back.text, at+1)
	}
	early := c.ok(t, "GET", path+fmt.Sprintf("/find?condition=n==100&before=%d", at-10), nil)
	if early.get("step") != 0.0 {
		t.Errorf("no step before %d has n == 100: got %s", at-10, early.text)
	}
	misspelt := c.ok(t, "GET", path+"/find?condition="+url.QueryEscape("totl > 3 and n > 1"), nil)
	if got := string(mustJSON(t, misspelt.get("unknown_names"))); got != `[{"name":"totl","nearest":"total"}]` {
		t.Errorf("a misspelt name: got %s", misspelt.text)
	}

	wantProblem(t, c.do(t, "GET", fmt.Sprintf("%s/steps/%d", path, page.Total+2), nil), http.StatusNotFound,
		"not-found", "no such step")
	wantProblem(t, c.do(t, "GET", path+"/steps/1/variables?frame=99", nil), http.StatusNotFound, "not-found",
		"no such frame")
	wantProblem(t, c.do(t, "GET", path+"/find?condition=f()", nil), http.StatusUnprocessableEntity, "invalid-input",
		"condition")
	wantProblem(t, newUser(t, sandbox.RoleDeveloper).do(t, "GET", path+"/steps", nil), http.StatusNotFound, "not-found")
	wantProblem(t, newUser(t, sandbox.RoleAgent).do(t, "GET", path+"/steps", nil), http.StatusForbidden, "forbidden")
}

// An output of a recorded execution has the step whose line showed it, in the stream and on record.
func TestOutputsHaveTheirStep(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	code := "for n in range(2):\n    display(n)\nimport matplotlib.pyplot as plt\n_ = plt.plot([1, 2])"
	steps := func(a answer) string { return strings.Join(textsOf(a, "outputs", "step"), " ") }
	recorded := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code, "record": true})
	record := c.ok(t, "GET", fmt.Sprint("/executions/", recorded.get("execution_id")), nil)
	// Steps 1 and 3 are the loop's line. The figure is shown at the end of the run, whose last step is 7.
	if got, want := []string{steps(recorded), steps(record)}, []string{"2 4 7", "2 4 7"}; !slices.Equal(got, want) {
		t.Errorf("got the steps %q, want %q", got, want)
	}
	s := c.stream(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": "display(1)", "record": true})
	list := s.until("output")
	if got := list[len(list)-1].data["step"]; got != 1.0 {
		t.Errorf("got the step %v in the stream, want 1", got)
	}
	s.all()
	if plain := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code}); steps(plain) !=
		"<nil> <nil> <nil>" {
		t.Errorf("not recorded: got the steps %s, want none", steps(plain))
	}
}

// A client may leave out the steps of comprehensions. The recording keeps them.
func TestStepsOfComprehensionsAreFolded(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	d := c.debugStream(t, c.create(t, nil), map[string]any{"code": `a = [
    i * 2
    for i in range(3)
    if i
]
b = sum(
    i for i in a
)
b`})
	path := "/executions/" + d.execution.ID + "/steps"
	for query, want := range map[string]string{
		"":                             "3 1* 3 4 3 4 2 3 4 2 3 6 7 6* 7 9",
		"?fold=comprehensions":         "3* 6* 9",
		"?fold=comprehensions&limit=5": "3*",
		"?fold=comprehensions&from=5":  "6* 9",
	} {
		var page struct {
			Total int            `json:"total_steps"`
			Steps []sandbox.Step `json:"steps"`
			Next  int            `json:"next"`
		}
		answer := c.ok(t, "GET", path+query, nil)
		if err := json.Unmarshal(answer.text, &page); err != nil {
			t.Fatal(err)
		}
		got, hasNext := stepMarks(page.Steps), strings.Contains(query, "limit")
		if got != want || page.Total != 16 || hasNext != (page.Next == 6) {
			t.Errorf("%s: got %s of %d, next %d; want %s of 16", query, got, page.Total, page.Next, want)
		}
	}
	wantProblem(t, c.do(t, "GET", path+"?fold=all", nil), http.StatusUnprocessableEntity, "invalid-input", "fold")
}

func TestExecutionWithoutDebuggingHasNoSteps(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	e, _ := c.run(t, id, "1").get("execution_id").(string)
	wantProblem(t, c.do(t, "GET", "/executions/"+e+"/steps", nil), http.StatusNotFound, "not-found", "not debugged")
}

// The explanation is short for an execution of any length, and shows the steps that led to a failure.
func TestExplainIsShortAndNamesTheCause(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, map[string]any{"cpu_percent": 100})
	d := c.debugStream(t, id, map[string]any{"code": `prices = {'a': 2, 'b': 3}
unused = 1
def cost(name, n):
    each = prices[name]
    return each * n
total = 0
for i in range(300):
    total += cost('a', i)
wanted = 'c'
order = [wanted, 2]
cost(order[0], order[1])`})
	text, _ := c.ok(t, "GET", "/executions/"+d.execution.ID+"/explain", nil).get("explanation").(string)
	for _, want := range []string{"line 4 in cost: KeyError: c", "each = prices[name]",
		"line 11: cost(order[0], order[1]) (calls cost)   # name = 'c'", "line 10: order = [wanted, 2]",
		"line 9: wanted = 'c'",
		"called 301 times", "returned 0, 2, ..., 596, 598; left by an exception 1 times",
		"x300      total += cost('a', i)   # total = 2, 6, ..., 89102, 89700"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	if chain, _, _ := strings.Cut(text, "Functions:"); strings.Contains(chain, "unused") ||
		strings.Contains(text, "<function>") || len(text) > 3000 {
		t.Errorf("got %d bytes, want at most 3000 and only what led to the failure:\n%s", len(text), text)
	}
	short, _ := c.ok(t, "GET", "/executions/"+d.execution.ID+"/explain?budget=150", nil).get("explanation").(string)
	if len(short) > 450 || !strings.Contains(short, "KeyError") || !strings.Contains(short, "more lines") {
		t.Errorf("got %d bytes, want at most 450 with the failure:\n%s", len(short), short)
	}
}

// The Python that scripts/setup builds has the recorder in C, which must work in the sandbox.
func TestCRecorderIsUsedWhereItIsBuilt(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	out, err := exec.Command(
		os.Getenv("GLASSHOUSE_PYTHON"),
		"-c",
		"import sys; sys.path.insert(0, '../../sandbox/python/guest'); import recorder_factory; print(recorder_factory._fast is not None)",
	).Output()
	if err != nil {
		t.Fatal(err)
	}
	// On Python 3.11, only the recorder in C reads variables that an inner function shares.
	const code = "def outer():\n    shared = 7\n    def inner():\n        return shared\n    return inner()\nouter()"
	built := strings.TrimSpace(string(out)) == "True"
	d, read := c.debugStream(t, c.create(t, nil), map[string]any{"code": code}), false
	for _, step := range d.steps {
		read = read || step.State.Variables["shared"] == "7"
	}
	if built && !read {
		t.Errorf("the extension is built and does not record: got %+v", d.steps)
	}
}
