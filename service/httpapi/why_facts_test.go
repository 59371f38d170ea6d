package httpapi_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"glasshouse/debugger/why"
	"glasshouse/sandbox"
)

// factOf returns the first finding of a kind, and a finding without a text if there is none.
func factOf(y why.Answer, kind string) why.Finding {
	for _, f := range y.Findings {
		if f.Kind == kind {
			return f
		}
	}
	return why.Finding{}
}

// The values between the lines decide: no variable has the values that `or` replaced.
func TestWhySaysWhatExpressionsDid(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	const code = `rows = db_query("SELECT n, CASE WHEN n % 3 > 0 THEN n END AS v FROM generate_series(1, 30) n")
def seconds(row):
    return (row["v"] or 0) / 10
total = 0.0
for row in rows:
    total += seconds(row)
x = total / len(rows)`
	execution := c.recorded(t, id, code)
	y := c.why(t, execution, "name=x")
	f := factOf(y, "replaced")
	if f.Line != 3 || f.Score < evidentScore || !strings.Contains(f.Text, "10 of 30 values") ||
		!strings.Contains(y.Text, "Check first:\n  line 3: ") || len(y.Facts) == 0 {
		t.Errorf("got %+v in\n%s\nwant that 10 of 30 values were replaced in line 3", f, y.Text)
	}
	if q := y.Queries[0]; len(y.NotLooked) > 0 || len(q.Stages) != 1 || !strings.Contains(q.Stages[0], "30") ||
		q.SameResult != "yes" ||
		!strings.Contains(y.Text, "Query 1, same result today as recorded; rows after each stage:\n  l1 main:") {
		t.Errorf("got %q and %+v in\n%s\nwant the stages of the query", y.NotLooked, q, y.Text)
	}
	replay := c.finished(t, y.Replay)
	if replay.get("kind") != "replay" || replay.get("replay.of") != execution ||
		replay.get("replay.grade") != "identical" {
		t.Errorf("got %s, want the replay on record", replay.text)
	}
	y = c.why(t, execution, "name=x&facts=false")
	const notLooked = "what the expressions got and gave (facts=false)"
	if len(y.Facts) > 0 || y.Replay != "" || !strings.Contains(y.Text, notLooked) {
		t.Errorf("without facts: got %v and %q, want none, and that nobody looked:\n%s", y.Facts, y.Replay, y.Text)
	}
	// An earlier execution of the session runs first, and does not change.
	c.run(t, id, "x = 'changed'")
	later := c.recorded(t, id, "y = [int(n) for n in (total, 2.9)]")
	if f := factOf(c.why(t, later, "name=y"), "cut"); f.Line != 1 || !strings.Contains(f.Text, "2.9 -> 2") {
		t.Errorf("in a session: got %+v, want the value that was cut", f)
	}
}

// The results of queries are looked at, whether code awaits them or not.
func TestWhyLooksIntoResultsOfQueries(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	for _, await := range []string{"", "await "} {
		const query = `db_frame("SELECT n, CASE WHEN n % 4 > 0 THEN n END AS v FROM generate_series(1, 40) n")`
		y := c.why(t, c.recorded(t, c.create(t, nil), "frame = "+await+query+`
rows = frame.merge(frame, on="v")
x = len(rows)`), "name=x")
		const want = `line 2: frame.merge(frame, on="v"): v: ` +
			`100 of 130 values were missing (NaN) after this and 10 before`
		if !strings.Contains(y.Text, want) {
			t.Errorf("%q: got\n%s\nwant %q", await, y.Text, want)
		}
	}
}

// The answer says so if the values could not be looked at, and has what the recording tells.
func TestWhySaysThatItDidNotLook(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	killed := c.do(t, "POST", "/sandbox/"+id+"/execute", map[string]any{
		"code": "n = 1\nx = n + 1\nimport time\nwhile True:\n    time.sleep(1)", "record": true, "timeout": 1,
	}).get("execution_id").(string)
	y := c.why(t, killed, "name=x&step=3")
	if len(y.Steps) != 2 || y.Replay == "" {
		t.Errorf("a run that a limit ended: got %+v, want its steps and a replay", y)
	}
	threads := c.recorded(t, id, `import threading, time
at = []
thread = threading.Thread(target=lambda: at.append(time.time_ns()))
thread.start(); thread.join()
x = at[0] * 2
print(x)`)
	if y = c.why(t, threads, "name=x"); !strings.Contains(strings.Join(y.Limits, "; "), "not identical with the run") {
		t.Errorf("got the limits %q, want that the replay is not identical", y.Limits)
	}
	edited := c.ok(t, "POST", "/executions/"+threads+"/replay", map[string]any{"code": "x = 1", "record": true})
	y = c.why(t, edited.get("execution_id").(string), "name=x")
	if got := strings.Join(y.NotLooked, "; "); len(y.Steps) == 0 || !strings.Contains(got, "cannot run again") ||
		!strings.Contains(y.Text, "Not looked at: ") {
		t.Errorf("got %q and\n%s\nwant why the values were not looked at", got, y.Text)
	}
	copied := c.ok(t, "POST", "/executions/"+threads+"/replay", map[string]any{"record": true})
	if y = c.why(t, copied.get("execution_id").(string), "name=x"); len(y.Facts) == 0 {
		t.Errorf("a replay: got %+v, want facts", y)
	}
	wantProblem(t, newUser(t, sandbox.RoleAgent).do(t, "GET", "/executions/"+threads+"/why?name=x", nil),
		http.StatusNotFound, "not-found")
}

// A model that reads only texts finds a wrong number, repairs the code, and tests the repair on the same rows.
func TestModelRepairsAWrongNumber(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	c.server = serveMCP(t)
	ask := func(tool string, arguments map[string]any) string {
		t.Helper()
		return c.toolText(t, mcpVersion, tool, arguments)
	}
	read := func(pattern, text string) []string {
		t.Helper()
		found := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("got\n%s\nwant a match of %s", text, pattern)
		}
		return found
	}
	const code = `rows = await db_query("SELECT n, CASE WHEN n % 4 > 0 THEN n END AS ms FROM generate_series(1, 40) n")
average = sum(row["ms"] or 0 for row in rows) / len(rows)
average`
	ran := ask("run_python", map[string]any{"code": code})
	wrong, id := read(`result: ([\d.]+)`, ran)[1], read(`execution_id=(\w+)`, ran)[1]
	why := ask("explain_execution", map[string]any{"execution_id": id, "question": "value:average"})
	found := read(`line 2: (.+): 10 of 40 values were missing`, why)
	const without = "rows = [row for row in rows if row[\"ms\"] is not None]\naverage ="
	repaired := strings.Replace(code, "average =", without, 1)
	repaired = strings.ReplaceAll(repaired, found[1], `row["ms"]`)
	again := ask("replay_execution", map[string]any{"execution_id": id, "code": repaired})
	values := read(`result\n\s+original\s+([\d.]+)\n\s+replay\s+([\d.]+)`, again)
	if wrong != "15" && wrong != "15.0" || values[1] != wrong || values[2] != "20" && values[2] != "20.0" {
		t.Errorf("got %s and then %q, want 15 and after the repair 20", wrong, values[1:])
	}
}

// The condition of a statement has a cause of its own, although the value does not come from what sets it.
func TestWhyLooksAtConditions(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	const code = `users = [{'at': n % 3, 'on': n % 5 > 0, 'flags': {'mail': n % 4 == 0}} for n in range(60)]
reached = {}
for user in users:
    if not user['on']:
        continue
    flags = user['flags'] or {}
    wanted = bool(flags)
    entry = reached.setdefault(user['at'], {'all': 0, 'mail': 0})
    entry['all'] += 1
    if wanted:
        entry['mail'] += 1
mail = sum(e['mail'] for e in reached.values())
every = sum(e['all'] for e in reached.values())
x = round(100 * mail / every, 1)`
	y := c.why(t, c.recorded(t, c.create(t, nil), code), "name=x")
	if f := factOf(y, "truth"); f.Line != 7 || !strings.Contains(f.Text, "36 of 48 times") {
		t.Errorf("got %+v in\n%s\nwant line 7, where dicts without a true value count as true", f, y.Text)
	}
}

// A reader of many findings follows none of them.
func TestWhyShowsThreeFindings(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	y := c.why(t, c.recorded(t, c.create(t, nil), `a = [n or 0 for n in (1, None, 3)]
b = [n or 5 for n in (1, None, 3)]
d = [n or 6 for n in (1, None, 3)]
e = [n or 7 for n in (1, None, 3)]
x = sum(a + b + d + e)`), "name=x")
	shown := strings.Count(y.Text, "were missing (None or NaN) and became")
	if len(y.Findings) < 4 || shown != 3 || !strings.Contains(y.Text, "more in findings") {
		t.Errorf("got %d findings, %d of them in\n%s\nwant three in the text", len(y.Findings), shown, y.Text)
	}
}
