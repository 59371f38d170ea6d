package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// manySteps has more steps than a recording sends at once. Its line 4 is step manyStepsEnd.
const (
	manySteps    = "t = 0\nfor i in range(510000):\n    t += i\nprint(t)\n"
	manyStepsEnd = 1 + 510_001 + 510_000 + 1
	manyTotal    = "130049745000"
)

// A stop behind the budget of recorded steps shows the program's state, and the steps before it can be inspected.
func TestStopBehindTheBudgetIsExact(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	d, _ := c.openDebugSession(t, map[string]any{"code": manySteps, "stop_on_entry": true, "breakpoints": []any{
		4, map[string]any{"line": 3, "condition": "i == 509990"}}}, map[string]any{"cpu_percent": 100})
	a := d.continueLong(t)
	wantStop(t, a, "breakpoint 3")
	if got := fmt.Sprint(a.get("where.step"), a.get("where.variables.i")); got != fmt.Sprint(2*509990+3.0, "509990") {
		t.Errorf("got step and i %s, want the state at the breakpoint: %s", got, a.text)
	}
	a = d.moveLong(t, "next")
	wantStop(t, a, "step 2")
	if got := fmt.Sprint(a.get("where.changed")); got != "[t]" {
		t.Errorf("got the changes %s, want those of the line: %s", got, a.text)
	}
	a = d.continueLong(t)
	wantStop(t, a, "breakpoint 4")
	if a.get("where.step") != float64(manyStepsEnd) || a.get("where.variables.t") != manyTotal {
		t.Errorf("got %s, want step %d with t %s", a.text, manyStepsEnd, manyTotal)
	}
	if reason, _ := a.get("where.gap.reason").(string); !strings.Contains(reason, "budget") {
		t.Errorf("got %s, want the gap before the step", a.text)
	}
	a = d.moveLong(t, "stepBack")
	wantStop(t, a, "step 2")
	if a.get("where.step") != float64(manyStepsEnd-1) || a.get("where.gap.reason") == nil {
		t.Errorf("got %s, want the step before, behind the gap", a.text)
	}
	a = d.moveLong(t, "reverseContinue")
	wantStop(t, a, "breakpoint 3")
	a = d.moveLong(t, "reverseContinue")
	wantStop(t, a, "entry 1")
	if a.get("where.gap") != nil {
		t.Errorf("got %s, want no gap before the first step", a.text)
	}
	wantStop(t, d.continueLong(t), "breakpoint 3")
	wantStop(t, d.continueLong(t), "breakpoint 4")
	a = d.continueLong(t)
	if got := a.get("result.stdout"); got != manyTotal+"\n" {
		t.Errorf("got %s, want the output of the completed program", a.text)
	}
	text := d.ok(t, "GET", "/executions/"+d.execution+"/explain", nil).get("explanation").(string)
	if !strings.Contains(text, "Not recorded: steps 1000001 to ") || !strings.Contains(text, "budget") {
		t.Errorf("got %s, want it to name the gap", text)
	}
	page := d.ok(t, "GET", fmt.Sprintf("/executions/%s/steps?from=%d", d.execution, manyStepsEnd-20), nil)
	if got := page.get("total_steps"); got != float64(manyStepsEnd) {
		t.Errorf("got %v steps, want %d", got, manyStepsEnd)
	}
}

// A recording keeps its last steps when the run is ended while it has stopped behind the budget.
func TestRecordingOfARunThatIsEndedAtAStop(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	d, _ := c.openDebugSession(t, map[string]any{"code": manySteps, "stop_on_entry": true, "breakpoints": []any{4}},
		map[string]any{"cpu_percent": 100})
	wantStop(t, d.continueLong(t), "breakpoint 4")
	d.ok(t, "DELETE", "/debug/sessions/"+d.session, nil)
	a := d.ok(t, "GET", fmt.Sprintf("/executions/%s/steps/%d", d.execution, manyStepsEnd), nil)
	if !strings.Contains(string(a.text), manyTotal) {
		t.Errorf("got %s, want the last step with t %s", a.text, manyTotal)
	}
}

// The end of a recording is told when the run is killed while the recorder holds its last steps.
func TestKilledRunBehindTheBudgetLosesItsLastStepsVisibly(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	// sum does not notice an interrupt. One that comes just before it is caught.
	code := manySteps + "while True:\n  try: sum(range(10 ** 12))\n  except KeyboardInterrupt: pass\n"
	d, a := c.openDebugSession(t, map[string]any{"code": code, "breakpoints": []any{map[string]any{
		"line": 6, "logMessage": "summing"}}}, map[string]any{"cpu_percent": 100})
	stream := c.stream(t, "GET", "/debug/sessions/"+d.session+"/events", nil)
	for {
		if e, ok := stream.next(); !ok {
			t.Fatalf("the stream ended before the last lines ran: %s", a.text)
		} else if text, _ := e.data["output"].(string); e.name == "output" && strings.HasPrefix(text, "summing") {
			break
		}
	}
	d.ok(t, "DELETE", "/debug/sessions/"+d.session, nil)
	text := d.ok(t, "GET", "/executions/"+d.execution+"/explain", nil).get("explanation").(string)
	if !strings.Contains(text, "Not recorded: steps 1000001 to ") || !strings.Contains(text, "killed") {
		t.Errorf("got %s, want it to tell that the last steps are missing", text)
	}
}

// continueLong resumes the program and waits for its next stop, however long that takes.
func (d debugClient) continueLong(t testing.TB) answer {
	t.Helper()
	return d.moveLong(t, "continue")
}

// moveLong moves a program and waits for its next stop, however long that takes: a step behind the budget waits until
// the steps before it are stored.
func (d debugClient) moveLong(t testing.TB, name string) answer {
	t.Helper()
	stream := d.stream(t, "GET", "/debug/sessions/"+d.session+"/events", nil)
	a := d.command(t, name, nil)
	for a.get("where.state") == "running" {
		e, ok := stream.next()
		if !ok {
			t.Fatal("the stream ended before the program stopped")
		}
		if e.name == "stopped" || e.name == "terminated" { // the stream begins with earlier events
			a = d.ok(t, "GET", "/debug/sessions/"+d.session, nil)
		}
	}
	return a
}
