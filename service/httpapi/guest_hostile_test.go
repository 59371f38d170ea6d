package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// A guest that sends frames faster than Python can is killed.
func TestFloodOfFramesKillsTheGuest(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAdmin)
	id := c.create(t, map[string]any{"profile": "unrestricted", "max_execution_time": 120})
	a := c.run(t, id, `
import os, struct
note = struct.pack(">IB", 2, ord("N")) + b"{}"
while True:
    os.write(3, note * 17_000)
`)
	if a.get("status") != "killed" || a.get("usage.ended_by") != "protocol" {
		t.Errorf("got %.500s, want it killed for a protocol violation", a.text)
	}
	if cpu, _ := a.get("usage.cpu_ms").(float64); cpu > 5000 {
		t.Errorf("got %v ms of CPU time, want at most 5000", cpu)
	}
	if a := c.run(t, id, "for n in range(30_000):\n    debug(n)\n'well'"); a.get("result") != "well" {
		t.Errorf("30000 notes of an ordinary program: got %.500s, want the result", a.text)
	}
}

// A forged stop pauses the time limit only while the guest is paused.
func TestForgedStopsDoNotExtendTheTimeLimit(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAdmin)
	id := c.create(t, map[string]any{"profile": "unrestricted", "max_execution_time": 1})
	opened := c.ok(t, "POST", "/sandbox/"+id+"/debug/sessions?wait=0", map[string]any{"code": `
import os, struct, threading
body = b'{"reason":"attention","ids":[],"text":"","step":0}'
def flood():
    for _ in range(3000):
        os.write(3, struct.pack(">IB", len(body), ord("S")) + body)
threading.Thread(target=flood, daemon=True).start()
while True:
    pass
`})
	record := c.finished(t, opened.get("execution_id").(string))
	if record.get("status") != "timeout" && record.get("status") != "killed" {
		t.Errorf("got %.500s, want timeout or killed", record.text)
	}
}

// After evaluate, which has a larger CPU share, the program has its own share again.
func TestCPUShareHoldsAfterEvaluate(t *testing.T) {
	t.Parallel()
	d, _ := newUser(t, sandbox.RoleDeveloper).openDebugSession(t, map[string]any{"code": `
import time
began, used = time.time(), time.process_time()
while time.time() - began < 3:
    pass
print(time.process_time() - used)
`, "stop_on_entry": true}, map[string]any{"cpu_percent": 10})
	endless := map[string]any{"expression": "sum(1 for _ in iter(int, 1))"}
	d.do(t, "POST", "/debug/sessions/"+d.session+"/evaluate", endless)
	d.command(t, "continue", nil)
	record := d.finished(t, d.execution)
	var used float64
	if err := json.Unmarshal([]byte(record.get("stdout").(string)), &used); err != nil || used > 1.5 {
		t.Errorf("got %v s of CPU time in 3 s with a share of 10 %% (%v), want at most 1.5", used, err)
	}
}

// A file that consists mostly of holes takes no space in the sandbox, and is not kept.
func TestSparseArtifactIsNotKept(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	a := c.run(t, c.create(t, nil), `
with open("/session/artifacts/hollow", "wb") as f:
    f.truncate(10 << 20)
with open("/session/artifacts/full", "wb") as f:
    f.write(b"x" * (2 << 20))
with open("/session/artifacts/part", "wb") as f:
    f.write(b"x" * (1 << 20))
    f.truncate(3 << 20)
`)
	if a.get("truncated.artifacts") != 1.0 || !strings.Contains(string(a.text), `"path":"full"`) ||
		!strings.Contains(string(a.text), `"path":"part"`) {
		t.Errorf("got %.1000s, want full and part, and one file truncated", a.text)
	}
}

// Only the service refers to artifacts from an output: compatibility APIs read what is referred to for their clients.
func TestReferencesThatCodeWritesAreDropped(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	a := c.run(t, c.create(t, nil), fmt.Sprintf(`
reference = {%q: {"image/png": {"artifact_id": "0" * 32}}}
display(reference | {"text/plain": "shown"}, raw=True)
display(reference, raw=True)
display({"text/plain": "large", "text/html": "x" * 300_000}, raw=True)`, sandbox.ArtifactMIME))
	var record sandbox.Execution
	if err := json.Unmarshal(a.text, &record); err != nil || len(record.Outputs) != 3 {
		t.Fatalf("got %d outputs and %v, want 3: %.1000s", len(record.Outputs), err, a.text)
	}
	if data := record.Outputs[0].Data; len(data) != 1 || string(data["text/plain"]) != `"shown"` {
		t.Errorf("got the data %s, want the text alone", data)
	}
	if data := record.Outputs[1].Data; data[sandbox.ArtifactMIME] != nil {
		t.Errorf("got the data %s, want no reference", data)
	}
	if _, ok := record.Outputs[2].Reference("text/html"); !ok {
		t.Errorf("got the data %s, want a reference of the service", record.Outputs[2].Data)
	}
}

// History has the text of every statement, up to the limit on different statements.
func TestEveryStatementKeepsItsText(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	a := c.run(t, c.create(t, map[string]any{"max_execution_time": 300}), `
for n in range(1100):
    db_query("SELECT 1")
db_query("SELECT 'another'")
try:
    for n in range(1100):
        db_query(f"SELECT {n}, 'many'")
except DatabaseError as e:
    told = e.reason, n
told`)
	queries, _ := a.get("queries").([]any)
	if len(queries) != 2000 || !strings.Contains(string(a.text), "SELECT 'another'") ||
		a.get("truncated.queries") != 101.0 ||
		!strings.Contains(string(a.text), `"result":["too-many-statements",999]`) {
		t.Errorf("got %d statements, %v truncated and %v", len(queries), a.get("truncated.queries"), a.get("result"))
	}
}

// An error may contain a value of any size, and parameters may nest to any depth: the record stays small and readable.
func TestLargeStatementRecordsAreCut(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAdmin)
	id := c.create(t, map[string]any{"profile": "unrestricted"})
	a := c.run(t, id, `
for _ in range(3):
    try:
        await db_query("SELECT repeat('<', 20000000)::int")
    except Exception as error:
        print(len(str(error)) > 10)
import os, struct
deep = b'{"what":"query","sql":"SELECT 1","params":{"x":' + b"[" * 9990 + b"]" * 9990 + b"}}"
os.write(3, struct.pack(">IB", len(deep), ord("A")) + deep)
`)
	if len(a.text) > 1<<20 {
		t.Errorf("got a response of %d bytes, want at most 1 MiB", len(a.text))
	}
	record := c.ok(t, "GET", "/executions/"+a.get("execution_id").(string), nil)
	var e struct{ Queries []sandbox.Query }
	if err := json.Unmarshal([]byte(record.text), &e); err != nil || len(e.Queries) < 4 {
		t.Fatalf("got %d statements (%v), want at least 4: %.2000s", len(e.Queries), err, record.text)
	}
	for n, q := range e.Queries[:3] {
		if q.Status != "failed" || len(q.Error) > 70_000 || !strings.Contains(q.Error, "more characters were cut") {
			t.Errorf("statement %d: got %s with an error of %d bytes, want a cut error", n, q.Status, len(q.Error))
		}
	}
	if q := e.Queries[3]; q.Status != "refused" || q.Reason != "invalid-parameter" || q.Parameters != nil {
		t.Errorf("got %.300v, want it refused for its parameter", q)
	}
}

// The errors of statements count towards the limit on statement records.
func TestStatementErrorsCountTowardsTheLimit(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	a := c.run(t, c.create(t, nil), `
for n in range(19): # most of the 16 MiB
    db_query("SELECT length(:text)", {"text": "x" * 800_000})
for n in range(200):
    try:
        db_query(f"SELECT {n}, repeat('é', 17000)::int")
    except DatabaseError as e:
        if e.reason == "too-many-statements":
            break
n`)
	if n, _ := a.get("result").(float64); n < 40 || n > 60 { // 1.5 MiB of 32 KiB each
		t.Errorf("got %v statements, want 40 to 60: %.300s", a.get("result"), a.text)
	}
}

// The duration of a statement excludes the time in which the guest does not read its rows. Not parallel: it measures
// time.
func TestStatementDurationExcludesItsReader(t *testing.T) {
	c := newUser(t, sandbox.RoleAdmin)
	const unread = 3000 // milliseconds for which the guest reads nothing
	id := c.create(t, map[string]any{"profile": "unrestricted"})
	// On a busy machine the statement itself may take as long. If its reader counted, no run would be shorter.
	for runs := 10; ; runs-- {
		duration := c.unreadStatement(t, id)
		if duration < unread {
			return
		}
		if runs == 1 {
			t.Fatalf("got a statement of %v ms in each run, want one below the %d ms of its reader", duration, unread)
		}
	}
}

// unreadStatement runs a statement whose result the guest reads after 3 s, and returns its recorded milliseconds.
func (c client) unreadStatement(t *testing.T, id string) float64 {
	t.Helper()
	a := c.run(t, id, `
import json, os, select, struct, time
ask = json.dumps({"id": 1, "what": "query", "sql": "SELECT g, repeat('x', 5000) FROM generate_series(1, 1000) g"}).encode()
os.write(3, struct.pack(">IB", len(ask), ord("A")) + ask)
time.sleep(3)
while select.select([3], [], [], 0.5)[0]:
    os.read(3, 1 << 20)`)
	record := c.ok(t, "GET", "/executions/"+a.get("execution_id").(string), nil)
	var e struct{ Queries []sandbox.Query }
	if err := json.Unmarshal([]byte(record.text), &e); err != nil || len(e.Queries) != 1 || e.Queries[0].Rows != 1000 {
		t.Fatalf("got %v and %.1000s, want one statement with 1000 rows", err, record.text)
	}
	return float64(e.Queries[0].DurationMS)
}

// A program may use any object as a name. Debugging it, and looking at its variables, leaves it and its session
// unharmed.
func TestOddNamesHarmNothing(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAdmin)
	const code = `
class Name(str):
    ran = 0
    def __hash__(self):
        Name.ran += 1
        return str.__hash__(self)
    def __eq__(self, other):
        Name.ran += 1
        return self is other
    __str__ = __repr__ = __len__ = lambda self: Name.ran
names = globals()
names[1] = names[b"b"] = names[None] = names[(1,)] = 3
names[Name("total")] = names[Name("context")] = 3
class Kind:
    locals()[1] = locals()[Name("part")] = 3
kind = Kind()
kind.own = 1
kind.__dict__[1] = kind.__dict__[b"b"] = kind.__dict__[Name("own")] = 3
total = 0
for n in range(3):
    names[n] = total = total + n
    kind.own += n
Name.ran = 0
first = Name.ran
`
	for name, run := range map[string]func(id string) string{
		"a run":    func(id string) string { return fmt.Sprint(c.run(t, id, code).get("execution_id")) },
		"a stream": func(id string) string { return c.debugStream(t, id, map[string]any{"code": code}).execution.ID },
	} {
		id := c.create(t, map[string]any{"profile": "unrestricted"})
		record := c.ok(t, "GET", "/executions/"+run(id), nil)
		if record.get("status") != "completed" || record.get("truncated.recording") != nil {
			t.Fatalf("%s: got %.1000s, want it completed, and a whole recording", name, record.text)
		}
		v := c.ok(t, "GET", "/sandbox/"+id+"/variables", nil)
		if v.get("variables.total.repr") != "3" ||
			v.get("variables.kind.repr") != "<Kind own=4>" {
			t.Errorf("%s: got the variables %.1000s, want total and kind", name, v.text)
		}
		before := c.run(t, id, "Name.ran").get("result")
		c.ok(t, "GET", "/sandbox/"+id+"/variables", nil)
		c.ok(t, "GET", "/sandbox/"+id+"/status", nil)
		c.ok(t, "POST", "/sandbox/"+id+"/check", map[string]any{"code": "total +"})
		c.ok(t, "POST", "/sandbox/"+id+"/complete", map[string]any{"code": "kind.ow", "cursor": 7})
		after := c.run(t, id, "Name.ran").get("result")
		a, b := before.(float64), after.(float64)
		again := c.run(t, id, "Name.ran").get("result").(float64)
		if b-a != again-b { // a run itself looks up names
			t.Errorf("%s: looking at variables ran code: the count went from %v to %v, and by a run alone to %v",
				name, a, b, again)
		}
	}
}
