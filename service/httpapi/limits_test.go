package httpapi_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"glasshouse/sandbox"
)

// newLimitedUser makes a key with its own limits.
func newLimitedUser(t *testing.T, role sandbox.Role, limits map[string]any) client {
	t.Helper()
	a := admin.ok(t, "POST", "/keys", map[string]any{"name": "limited", "user_id": t.Name(), "role": role,
		"limits": limits})
	secret, _ := a.get("key").(string)
	return client{secret: secret}
}

func headerNumber(t *testing.T, a answer, header string) int {
	t.Helper()
	n, err := strconv.Atoi(a.header.Get(header))
	if err != nil {
		t.Errorf("header %s: got %q, want a number: %s", header, a.header.Get(header), a.text)
	}
	return n
}

// The headers count down the remaining requests of a key; then the key gets 429 with Retry-After. Other keys are not
// affected. Keys that the key created share its limit.
func TestRequestRateIsLimited(t *testing.T) {
	t.Parallel()
	c := newLimitedUser(t, sandbox.RoleDeveloper, map[string]any{"requests_per_minute": 5})
	more := client{}
	for n := range 5 {
		var a answer
		if n == 0 {
			a = c.ok(t, "POST", "/keys", map[string]any{"name": "more"})
			more.secret, _ = a.get("key").(string)
		} else {
			a = c.ok(t, "GET", "/executions", nil)
		}
		if headerNumber(t, a, "RateLimit-Limit") != 5 || headerNumber(t, a, "RateLimit-Remaining") != 4-n ||
			headerNumber(t, a, "RateLimit-Reset") < 1 || a.header.Get("RateLimit-Policy") != "5;w=60" {
			t.Errorf("request %d: got the headers %v", n, a.header)
		}
	}
	for _, each := range []client{c, more} {
		a := each.do(t, "GET", "/executions", nil)
		wantProblem(t, a, http.StatusTooManyRequests, "limit-reached", "5 requests per minute")
		if wait := headerNumber(t, a, "Retry-After"); wait < 1 || wait > 12 ||
			headerNumber(t, a, "RateLimit-Remaining") != 0 {
			t.Errorf("got the headers %v, want Retry-After of 1 to 12 and nothing remaining", a.header)
		}
	}
	if a := admin.ok(t, "GET", "/executions", nil); a.header.Get("RateLimit-Limit") != "" {
		t.Errorf("an admin without a limit: got the headers %v, want no RateLimit", a.header)
	}
	if a := (client{}).do(t, "GET", "/healthz", nil); a.status != http.StatusOK {
		t.Errorf("/healthz: got HTTP %d, want 200", a.status)
	}
	developer := newUser(t, sandbox.RoleDeveloper)
	wantProblem(t, developer.do(t, "POST", "/keys", `{"name":"x","limits":{"requests_per_minute":9}}`), 403,
		"forbidden", "limits")
	wantProblem(t, admin.do(t, "POST", "/keys", `{"name":"x","limits":{"requests_per_minute":-1}}`), 422,
		"invalid-input", "requests_per_minute")
}

func TestConcurrentExecutionsAreLimited(t *testing.T) {
	t.Parallel()
	c := newLimitedUser(t, sandbox.RoleAgent, map[string]any{"concurrent_executions": 1})
	first, second := c.create(t, nil), c.create(t, nil)
	var group sync.WaitGroup
	group.Go(func() { c.run(t, first, "open('/session/started', 'w').close()\nimport time; time.sleep(20)") })
	var list []any
	eventually(t, "the run to begin", func() bool {
		list, _ = c.ok(t, "GET", "/executions?status=running", nil).get("executions").([]any)
		return len(list) > 0
	})
	a := c.do(t, "POST", "/sandbox/"+second+"/execute", map[string]any{"code": "1"})
	wantProblem(t, a, http.StatusTooManyRequests, "limit-reached", "1 concurrent executions")
	headerNumber(t, a, "Retry-After")
	c.ok(t, "POST", "/executions/"+list[0].(map[string]any)["execution_id"].(string)+"/cancel", nil)
	group.Wait()
	if a := c.run(t, second, "1"); a.get("status") != "completed" {
		t.Errorf("got %s, want the second execution to run", a.text)
	}
}

// A statement that a client sends is an execution. Operations that run no user code have a limit of their own.
func TestDirectQueriesAndInspectionsAreLimited(t *testing.T) {
	t.Parallel()
	c := newLimitedUser(t, sandbox.RoleAgent, map[string]any{"concurrent_executions": 1})
	first, second := c.create(t, nil), c.create(t, nil)
	query := map[string]any{"query": "SELECT 1"}
	var group sync.WaitGroup
	group.Go(func() { c.run(t, first, "import time; time.sleep(20)") })
	var list []any
	eventually(t, "the run to begin", func() bool {
		list, _ = c.ok(t, "GET", "/executions?status=running", nil).get("executions").([]any)
		return len(list) > 0
	})
	wantProblem(t, c.do(t, "POST", "/sandbox/"+second+"/database/query", query), http.StatusTooManyRequests,
		"limit-reached", "1 concurrent executions")
	c.ok(t, "POST", "/sandbox/"+second+"/check", map[string]any{"code": "1"})
	c.ok(t, "POST", "/executions/"+list[0].(map[string]any)["execution_id"].(string)+"/cancel", nil)
	group.Wait()
	c.ok(t, "POST", "/sandbox/"+second+"/database/query", query)

	statuses := make(chan int, 8)
	for range cap(statuses) {
		group.Go(func() {
			statuses <- c.do(t, "POST", "/sandbox/highlight", map[string]any{"code": "1"}).status
		})
	}
	group.Wait()
	close(statuses)
	count := map[int]int{}
	for status := range statuses {
		count[status]++
	}
	if count[http.StatusOK] == 0 || count[http.StatusTooManyRequests] == 0 || len(count) > 2 {
		t.Errorf("concurrent highlights: got the statuses %v, want some 200 and some 429", count)
	}
}

// A key that has used its CPU time gets no process and no statement either.
func TestCPUTimeLimitsInspections(t *testing.T) {
	t.Parallel()
	c := newLimitedUser(t, sandbox.RoleDeveloper, map[string]any{"cpu_seconds_per_day": 1})
	id := c.create(t, nil)
	code := map[string]any{"code": "x = 1"}
	recorded := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": "x = 1\ny = x", "record": true})
	execution := "/executions/" + recorded.get("execution_id").(string)
	requests := []struct {
		method, path string
		body         any
	}{
		{"POST", "/sandbox/highlight", code},
		{"POST", "/sandbox/check", code},
		{"POST", "/sandbox/complete", code},
		{"POST", "/sandbox/" + id + "/check", code},
		{"POST", "/sandbox/" + id + "/complete", code},
		{"GET", "/sandbox/" + id + "/variables", nil},
		{"GET", "/sandbox/" + id + "/database/schema", nil},
		{"POST", "/sandbox/" + id + "/database/query", map[string]any{"query": "SELECT 1"}},
		{"GET", execution + "/explain", nil},
		{"GET", execution + "/why?name=y", nil},
		{"GET", execution + "/find?condition=x==1", nil},
		{"GET", execution + "/variables/x/changes", nil},
		{"GET", execution + "/line-map", nil},
	}
	for _, r := range requests {
		c.ok(t, r.method, r.path, r.body)
	}
	past := c.ok(t, "POST", execution+"/debug/sessions", nil)
	d := debugClient{c, past.get("session_id").(string), ""}
	e := dapConnect(t)
	e.mustRequest("attach", map[string]any{"token": c.secret, "execution": recorded.get("execution_id")})
	searches := map[string]map[string]any{
		"continue": nil, "reverseContinue": nil, "stepIn": nil, "stepBack": nil, "gotoTargets": {"line": 1},
		"restartFrame": {"frameId": past.get("where.frame")}, "evaluate": {"expression": "x", "context": "hover"},
	}
	atEnd := func() { // x exists there
		t.Helper()
		d.command(t, "goto", map[string]any{"step": 2})
		e.mustRequest("goto", map[string]any{"step": 2})
	}
	for command, arguments := range searches {
		atEnd()
		d.command(t, command, arguments)
		e.mustRequest(command, arguments)
	}
	atEnd()
	for status := http.StatusOK; status == http.StatusOK; {
		status = c.do(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "sum(range(12_000_000))",
			"config": map[string]any{"cpu_percent": 200}}).status
	}
	for _, r := range requests {
		wantProblem(t, c.do(t, r.method, r.path, r.body), http.StatusTooManyRequests, "limit-reached", "seconds of CPU")
	}
	for command, arguments := range searches {
		wantProblem(t, d.do(t, "POST", "/debug/sessions/"+d.session+"/"+command, arguments),
			http.StatusTooManyRequests, "limit-reached", "seconds of CPU")
		response := e.request(command, arguments)
		if message, _ := response["message"].(string); !strings.Contains(message, "seconds of CPU") {
			t.Errorf("%s in an editor: got %v, want the limit", command, response)
		}
	}
	d.command(t, "stackTrace", nil)
	c.ok(t, "GET", "/sandbox/"+id+"/status", nil)
	c.ok(t, "GET", execution+"/steps", nil)
	c.server = serveMCP(t)
	for _, question := range []string{"failure", "value: y", "line:2", "find: x == 1"} {
		a := c.do(t, "POST", "/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
			"params": map[string]any{"name": "explain_execution", "arguments": map[string]any{
				"execution_id": recorded.get("execution_id"), "question": question}}},
			"Accept", "application/json, text/event-stream")
		if !strings.Contains(string(a.text), "seconds of CPU") {
			t.Errorf("explain_execution with the question %q: got %s, want the limit", question, a.text)
		}
	}
}

// The CPU time of a search in a recording counts for the key.
func TestSearchesOfRecordingsUseCPUTime(t *testing.T) {
	t.Parallel()
	c := newLimitedUser(t, sandbox.RoleDeveloper, map[string]any{"cpu_seconds_per_day": 2})
	a := c.ok(t, "POST", "/sandbox/"+c.create(t, nil)+"/execute", map[string]any{
		"code": "t = 0\nfor i in range(20_000):\n    t += i", "record": true})
	path := "/executions/" + a.get("execution_id").(string) + "/find?condition=t%3C0"
	for range 4000 {
		if a := c.do(t, "GET", path, nil); a.status == http.StatusTooManyRequests {
			wantProblem(t, a, http.StatusTooManyRequests, "limit-reached", "seconds of CPU")
			return
		}
	}
	t.Error("got no refusal of 4000 searches of 40 000 steps, which take more than two seconds")
}

// The CPU time of moving a debug session through a recording counts for the key of who moves it.
func TestMovesThroughRecordingsUseCPUTime(t *testing.T) {
	t.Parallel()
	c := newLimitedUser(t, sandbox.RoleDeveloper, map[string]any{"cpu_seconds_per_day": 2})
	a := c.ok(t, "POST", "/sandbox/"+c.create(t, nil)+"/execute", map[string]any{
		"code": "t = 0\nfor i in range(20_000):\n    t += i", "record": true})
	e := dapConnect(t)
	e.mustRequest("attach", map[string]any{"token": c.secret, "execution": a.get("execution_id")})
	e.mustRequest("setBreakpoints", map[string]any{"source": map[string]any{}, "breakpoints": []any{
		map[string]any{"line": 3, "condition": "t < 0"}}})
	for n := range 4000 {
		response := e.request([]string{"continue", "reverseContinue"}[n%2], nil)
		if message, _ := response["message"].(string); message != "" {
			if !strings.Contains(message, "seconds of CPU") {
				t.Errorf("got %v, want the limit", response)
			}
			return
		}
	}
	t.Error("got no refusal of 4000 searches of 40 000 steps, which take more than two seconds")
}

// A search of a recording ends, however long its conditions are.
func TestLongSearchesOfRecordingsEnd(t *testing.T) {
	t.Parallel()
	s := newCompany(t, func(c *companyConfig) {
		c.debug.MaxSearchTime = 100 * time.Millisecond
	})
	c := s.bearer("anna")
	a := c.ok(t, "POST", "/sandbox/"+c.create(t, nil)+"/execute", map[string]any{
		"code": "t = 0\nfor i in range(100_000):\n    t += i", "record": true})
	condition := strings.Repeat("t < 0 or ", 200) + "t < 0"
	execution := "/executions/" + a.get("execution_id").(string)
	wantProblem(t, c.do(t, "GET", execution+"/find?condition="+url.QueryEscape(condition), nil),
		http.StatusUnprocessableEntity, "invalid-input", "takes longer than 100ms")
	d := debugClient{c, c.ok(t, "POST", execution+"/debug/sessions", nil).get("session_id").(string), ""}
	var breakpoints []any
	for range 30 { // all conditions may have 64 KiB
		breakpoints = append(breakpoints, map[string]any{"line": 3, "condition": condition})
	}
	d.command(t, "setBreakpoints", map[string]any{"source": map[string]any{}, "breakpoints": breakpoints})
	wantProblem(t, c.do(t, "POST", "/debug/sessions/"+d.session+"/continue", nil),
		http.StatusUnprocessableEntity, "invalid-input", "takes longer than 100ms")
}

// The CPU time of highlighting counts for the key.
func TestInspectionsUseCPUTime(t *testing.T) {
	t.Parallel()
	c := newLimitedUser(t, sandbox.RoleAgent, map[string]any{"cpu_seconds_per_day": 1})
	code := map[string]any{"code": strings.Repeat("x = [1, 2, 3]\n", 5000)}
	for range 100 {
		if a := c.do(t, "POST", "/sandbox/highlight", code); a.status == http.StatusTooManyRequests {
			wantProblem(t, a, http.StatusTooManyRequests, "limit-reached", "seconds of CPU")
			return
		}
	}
	t.Error("got no refusal of 100 highlights of 70 kB, which take more than a second")
}

// burn uses CPU time without end. The code catches the interrupt, and goes on.
const burn = `x = 41
while True:
    try:
        while True:
            x = 42
    except KeyboardInterrupt:
        pass`

// fast is the config of a sandbox that may use the machine's whole CPU time.
var fast = map[string]any{"max_execution_time": 60, "cpu_percent": 200}

// maxOverrun is how much CPU time an execution may use beyond the limit of its key, in milliseconds. It is more than
// docs/files.md says, for a machine that has much else to do.
const maxOverrun = 1500

// Executions end when their key has used its CPU time: also several that run at the same time, and code that catches
// the interrupt.
func TestCPUTimeEndsExecutions(t *testing.T) {
	t.Parallel()
	c := newLimitedUser(t, sandbox.RoleAgent, map[string]any{"cpu_seconds_per_day": 1})
	id := c.create(t, fast)
	c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": "kept = 7"})
	codes := []string{burn, burn, "while True: pass"}
	ended := make(chan answer, len(codes))
	for n, code := range codes {
		go func() {
			if n == 0 {
				ended <- c.do(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code})
				return
			}
			ended <- c.do(t, "POST", "/sandbox/agent/quick-execute", map[string]any{
				"code": code, "config": fast})
		}()
	}
	for range codes {
		a := <-ended
		message, _ := a.get("error").(string)
		if a.status != http.StatusOK || a.get("status") != "killed" ||
			a.get("usage.ended_by") != "cpu_seconds_per_day" || !strings.Contains(message, "1 seconds of CPU time") ||
			!strings.Contains(message, "00:00 UTC") {
			t.Errorf("got %d %s, want killed by cpu_seconds_per_day", a.status, a.text)
		}
		if used, _ := a.get("usage.cpu_ms").(float64); used > 1000+maxOverrun {
			t.Errorf("an execution used %g ms of CPU time, want at most %d", used, 1000+maxOverrun)
		}
		wantProblem(t, c.do(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "1"}),
			http.StatusTooManyRequests, "limit-reached", "seconds of CPU")
	}
}

// Code that lets itself be interrupted keeps its session. A developer's other key has its own limit.
func TestCPUTimeKeepsTheSession(t *testing.T) {
	t.Parallel()
	c := newLimitedUser(t, sandbox.RoleDeveloper, map[string]any{"cpu_seconds_per_day": 1})
	other := newLimitedUser(t, sandbox.RoleDeveloper, nil)
	id := c.create(t, fast)
	a := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": "kept = 7\nwhile True: pass"})
	if a.get("status") != "killed" || a.get("session_reset") == true {
		t.Errorf("got %s, want killed, and the session kept", a.text)
	}
	v := other.ok(t, "GET", "/sandbox/"+id+"/variables", nil)
	if !strings.Contains(string(v.text), "kept") {
		t.Errorf("got the variables %s, want kept", v.text)
	}
}

// What a person evaluates in a stopped program counts while it is evaluated. At the limit the evaluation ends, and the
// program stays stopped, but does not run.
func TestCPUTimeLimitsEvaluations(t *testing.T) {
	t.Parallel()
	c := newLimitedUser(t, sandbox.RoleDeveloper, map[string]any{"cpu_seconds_per_day": 1})
	a := c.ok(t, "POST", "/sandbox/"+c.create(t, fast)+"/debug/sessions?wait=60",
		map[string]any{"code": "x = 1\ny = 2\nz = 3\n", "breakpoints": []int{2}})
	d := debugClient{c, a.get("session_id").(string), a.get("execution_id").(string)}
	wantStop(t, a, "breakpoint 2")
	refused := func(command string, arguments map[string]any) {
		t.Helper()
		wantProblem(t, d.do(t, "POST", "/debug/sessions/"+d.session+"/"+command, arguments),
			http.StatusTooManyRequests, "limit-reached", "seconds of CPU")
	}
	evaluations := 0
	for status := 0; status != http.StatusTooManyRequests; evaluations++ { // each takes at most 5 s
		status = d.do(t, "POST", "/debug/sessions/"+d.session+"/evaluate",
			map[string]any{"expression": "sum(1 for _ in iter(int, 1))"}).status
		if evaluations == 20 {
			t.Fatal("got no refusal of 20 evaluations without end")
		}
	}
	refused("evaluate", map[string]any{"expression": "1 + 1"})
	refused("continue", nil)
	refused("next", nil)
	wantProblem(t, c.do(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "1"}),
		http.StatusTooManyRequests, "limit-reached", "seconds of CPU")
	if state := c.ok(t, "GET", "/debug/sessions/"+d.session, nil); state.get("where.state") != "stopped" ||
		state.get("where.live") != true {
		t.Errorf("got %s, want the program stopped at its line", state.text)
	}
	d.command(t, "stackTrace", nil)
	c.ok(t, "DELETE", "/debug/sessions/"+d.session, nil)
	e := c.ok(t, "GET", "/executions/"+d.execution, nil)
	if used, _ := e.get("usage.cpu_ms").(float64); e.get("status") != "cancelled" || used > 1000+maxOverrun {
		t.Errorf("after its session was closed, got the status %v and %g ms of CPU time, want cancelled and at most %d",
			e.get("status"), used, 1000+maxOverrun)
	}
}

// A debugged program that runs ends as any other does.
func TestCPUTimeEndsDebuggedExecutions(t *testing.T) {
	t.Parallel()
	c := newLimitedUser(t, sandbox.RoleDeveloper, map[string]any{"cpu_seconds_per_day": 1})
	a := c.ok(t, "POST", "/sandbox/"+c.create(t, fast)+"/debug/sessions?wait=60",
		map[string]any{"code": "x = 1\nsum(range(10**15))\n"}) // one step: recording many would take longer
	if a.get("where.state") != "ended" || a.get("result.status") != "killed" ||
		a.get("result.usage.ended_by") != "cpu_seconds_per_day" {
		t.Errorf("got %s, want killed by cpu_seconds_per_day", a.text)
	}
}

// The CPU time of a day includes all executions of a key, also failed ones.
func TestCPUTimeIsLimited(t *testing.T) {
	t.Parallel()
	c := newLimitedUser(t, sandbox.RoleAgent, map[string]any{"cpu_seconds_per_day": 1})
	used := 0.0
	for range 20 {
		a := c.do(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "x = sum(range(12_000_000))\n1/0",
			"config": map[string]any{"cpu_percent": 200}})
		if a.status == http.StatusOK {
			ms, _ := a.get("usage.cpu_ms").(float64)
			used += ms
			continue
		}
		wantProblem(t, a, http.StatusTooManyRequests, "limit-reached", "1 seconds of CPU", "00:00 UTC")
		if wait := headerNumber(t, a, "Retry-After"); wait < 1 || wait > 24*3600 {
			t.Errorf("got the headers %v, want Retry-After within a day", a.header)
		}
		if used < 1000 {
			t.Errorf("refused after %g ms of CPU time, want at least 1000", used)
		}
		return
	}
	t.Errorf("got no refusal after %g ms of CPU time", used)
}
