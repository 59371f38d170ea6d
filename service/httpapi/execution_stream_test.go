package httpapi_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"glasshouse/sandbox"
)

const eventfulProgram = `import time
print('one')
debug('a note', data={'n': 1})
rows = await db_query('SELECT 1 AS n')
print('two é')
display('shown')
print('three')
time.sleep(0.1)
print('four')
rows[0]['n'] + 41
`

func TestStreamHasEventsInOrder(t *testing.T) {
	t.Parallel()
	for _, root := range []string{"", "/api/v1"} {
		c := newUser(t, sandbox.RoleAgent)
		c.prefix = root
		id := c.create(t, nil)
		for path, config := range map[string]any{"/sandbox/" + id + "/execute": nil,
			"/sandbox/agent/quick-execute": map[string]any{"max_rows": 10}} {
			body := map[string]any{"code": eventfulProgram, "context": map[string]any{"x": 1}}
			if config != nil {
				body["config"] = config
			}
			s := c.stream(t, "POST", path, body)
			if ct := s.resp.Header.Get("Content-Type"); s.resp.StatusCode != http.StatusOK ||
				ct != "text/event-stream" {
				t.Fatalf("got HTTP %d with %s, want an event stream", s.resp.StatusCode, ct)
			}
			list := s.all()
			checkEventIDs(t, list, 0)
			want := strings.Fields("started stdout debug query stdout output stdout result done")
			if got := eventNames(list); !reflect.DeepEqual(got, want) {
				t.Errorf("got the events %v", got)
			}
			done := list[len(list)-1].data
			if joinText(list, "stdout") != "one\ntwo é\nthree\nfour\n" ||
				done["stdout"] != "one\ntwo é\nthree\nfour\n" {
				t.Errorf("got the streamed output %q and the final %q", joinText(list, "stdout"), done["stdout"])
			}
			if done["status"] != "completed" || done["result"] != 42.0 || list[len(list)-2].data["result"] != 42.0 ||
				list[0].data["execution_id"] != done["execution_id"] {
				t.Errorf("got the last event %v, want a completed execution with the result", done)
			}
			location := s.resp.Header.Get("Location")
			if want := root + "/executions/" + fmt.Sprint(done["execution_id"]); location != want {
				t.Errorf("got Location %q, want %q", location, want)
			}
			same := client{secret: c.secret}.ok(t, "GET", location, nil)
			if !reflect.DeepEqual(same.body["result"], done["result"]) || same.get("status") != "completed" {
				t.Errorf("history: got %s, want the same result", same.text)
			}
		}
	}
}

// Text takes a pipe, notes and outputs a socket. What is printed after a note or an output comes after it, even when
// much is printed and when a debugger records.
func TestStreamHasTextAndOutputsInTheOrderOfTheProgram(t *testing.T) {
	t.Parallel()
	const code = `for n in range(40):
    print('a' * (n * 997 % 50_000), n)
    display(n)
    print('b', n)
    debug('c', data=n)
    print('d', n, end='')
`
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	for _, body := range []map[string]any{{"code": code}, {"code": code, "record": true}} {
		var got []string
		for _, e := range c.stream(t, "POST", "/sandbox/"+id+"/execute", body).all() {
			switch e.name {
			case "stdout":
				got = append(got, strings.Fields(strings.ReplaceAll(fmt.Sprint(e.data["text"]), "a", " "))...)
			case "output":
				text, _ := e.data["data"].(map[string]any)
				got = append(got, "output", fmt.Sprint(text["text/plain"]))
			case "debug":
				got = append(got, "debug", fmt.Sprint(e.data["data"]))
			}
		}
		var want []string
		for n := range 40 {
			for _, kind := range []string{"", "output", "b", "debug", "d"} {
				want = append(want, strings.Fields(fmt.Sprintf("%s %d", kind, n))...)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("recorded %v: got the order %v", body["record"], got)
		}
	}
}

// A client that is cut off repeatedly gets every event once.
func TestStreamResumesAfterInterruptions(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	const lines = 400
	s := c.stream(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": fmt.Sprintf(`import time
for n in range(%d):
    print(n, 'ä', flush=True)
    if n %% 10 == 0:
        debug(f'at {n}')
        time.sleep(0.02)
`, lines)})
	location := s.resp.Header.Get("Location")
	var list []serverEvent
	last := "0"
	for cuts := 0; ; cuts++ {
		for range 3 + cuts%4 {
			event, more := s.next()
			if !more {
				break
			}
			list = append(list, event)
			last = strconv.FormatInt(event.id, 10)
		}
		s.close() // in the middle of the stream
		if list[len(list)-1].name == "done" {
			if cuts < 5 {
				t.Errorf("got %d interruptions, want at least 5", cuts)
			}
			break
		}
		s = c.stream(t, "GET", location, nil, "Last-Event-ID", last)
		if s.resp.StatusCode != http.StatusOK {
			t.Fatalf("got HTTP %d, want 200", s.resp.StatusCode)
		}
	}
	checkEventIDs(t, list, 0)
	var want strings.Builder
	for n := range lines {
		fmt.Fprintf(&want, "%d ä\n", n)
	}
	if got := joinText(list, "stdout"); got != want.String() {
		t.Errorf("got %d bytes of output, want the %d bytes that were printed", len(got), want.Len())
	}
	notes := 0
	for _, e := range list {
		if e.name == "debug" {
			if e.data["message"] != fmt.Sprintf("at %d", notes*10) {
				t.Errorf("note %d: got %v", notes, e.data["message"])
			}
			notes++
		}
	}
	if notes != lines/10 {
		t.Errorf("got %d notes", notes)
	}
	// A late reader gets the same events; a client that has all of them gets 204.
	again := c.stream(t, "GET", location, nil).all()
	if !reflect.DeepEqual(again, list) {
		t.Errorf("a late reader: got %d events, want the same %d", len(again), len(list))
	}
	if s := c.stream(t, "GET", location, nil, "Last-Event-ID", last); s.resp.StatusCode != http.StatusNoContent {
		t.Errorf("after the last event: got HTTP %d, want 204", s.resp.StatusCode)
	}
	for _, bad := range []string{"x", "-1", "999999", "9223372036854775808"} {
		if s := c.stream(t, "GET", location, nil, "Last-Event-ID",
			bad); s.resp.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("Last-Event-ID %s: got HTTP %d, want 422", bad, s.resp.StatusCode)
		}
	}
	if s := newUser(t, sandbox.RoleAgent).stream(t, "GET", location, nil); s.resp.StatusCode != http.StatusNotFound {
		t.Errorf("another user: got HTTP %d, want 404", s.resp.StatusCode)
	}
}

func TestStreamOfUnstreamedExecutionComesFromItsRecord(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	done := c.run(t, c.create(t, nil), eventfulProgram)
	path := "/executions/" + fmt.Sprint(done.get("execution_id"))
	list := c.stream(t, "GET", path, nil).all()
	checkEventIDs(t, list, 0)
	if got := eventNames(list); !reflect.DeepEqual(got, []string{"started", "stdout", "debug", "query", "output",
		"result", "done"}) {
		t.Errorf("got the events %v", got)
	}
	if rest := c.stream(t, "GET", path, nil, "Last-Event-ID", "3").all(); len(rest) != 1 || rest[0].name != "done" ||
		rest[0].data["result"] != 42.0 {
		t.Errorf("after the third event: got %v, want done", rest)
	}
}

// A run can be followed as soon as it is on record, even while the earlier runs of its session run again.
func TestExecutionCanBeFollowedBeforeItsCodeRuns(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	// So long the replay is on record, and its own code does not run.
	c.run(t, id, "import time\nfor n in range(50_000_000):\n    pass")
	running := func(kind string) (path string) {
		eventually(t, "the "+kind, func() bool {
			for _, e := range c.ok(t, "GET", "/executions?status=running&kind="+kind, nil).body["executions"].([]any) {
				path = "/executions/" + e.(map[string]any)["execution_id"].(string)
			}
			return path != ""
		})
		return path
	}
	const code = "print('live')\nwhile True:\n    time.sleep(0.01)"
	ended := make(chan answer, 1)
	go func() {
		ended <- c.do(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code, "timeout": 30})
	}()
	original := running("execute")
	c.stream(t, "GET", original, nil).until("stdout")
	c.ok(t, "POST", original+"/cancel", nil)
	<-ended
	go func() { ended <- c.do(t, "POST", original+"/replay", map[string]any{}) }()
	replay := running("replay")
	list := c.stream(t, "GET", replay, nil).until("stdout")
	if joinText(list, "stdout") != "live\n" || len(ended) > 0 {
		t.Errorf("got %v, ended: %t; want the text while it runs", list, len(ended) > 0)
	}
	c.do(t, "POST", replay+"/cancel", nil)
	<-ended
}

// Somebody else sees what a run prints while it runs, although its client waits for the whole answer.
func TestUnstreamedExecutionCanBeFollowed(t *testing.T) {
	t.Parallel()
	const code = `import time
print('live')
while True:
    try:
        print(open('/data/go').read())
        break
    except FileNotFoundError:
        time.sleep(0.01)`
	for _, kind := range []string{"execute", "quick"} {
		c := newUser(t, sandbox.RoleAgent)
		id := c.create(t, nil)
		ended := make(chan answer, 1)
		path, end := "/sandbox/"+id+"/execute", func(string) { c.ok(t, "PUT", "/sandbox/"+id+"/files/go", "gone") }
		if kind == "quick" {
			path, end = "/sandbox/agent/quick-execute",
				func(execution string) { c.ok(t, "POST", execution+"/cancel", nil) }
		}
		go func() { ended <- c.do(t, "POST", path, map[string]any{"code": code}) }()
		var execution string
		eventually(t, "the run", func() bool {
			for _, e := range c.ok(t, "GET", "/executions?status=running", nil).body["executions"].([]any) {
				execution = "/executions/" + e.(map[string]any)["execution_id"].(string)
			}
			return execution != ""
		})
		s := c.stream(t, "GET", execution, nil)
		if list := s.until("stdout"); !strings.HasPrefix(joinText(list, "stdout"), "live") || len(ended) > 0 {
			t.Errorf("%s: got %v, ended: %t; want the text while it runs", kind, list, len(ended) > 0)
		}
		end(execution)
		if list := s.all(); list[len(list)-1].name != "done" {
			t.Errorf("%s: got the events %v, want done", kind, eventNames(list))
		}
		if a := <-ended; kind == "execute" && a.get("stdout") != "live\ngone\n" {
			t.Errorf("%s: got %s, want all of the text", kind, a.text)
		}
	}
}

func TestStreamedExecutionCanBeCancelled(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	s := c.stream(t, "POST", "/sandbox/"+id+"/execute",
		map[string]any{"code": "import time\nprint('on\\n', end='')\nwhile True: time.sleep(0.1)"}) // one write
	list := s.until("stdout")
	c.ok(t, "POST", "/executions/"+fmt.Sprint(list[0].data["execution_id"])+"/cancel", nil)
	rest := s.all()
	if end := rest[len(rest)-1]; end.name != "done" || end.data["status"] != "cancelled" ||
		end.data["stdout"] != "on\n" {
		t.Errorf("got the last event %v, want a cancelled execution with its output", end)
	}
	if a := c.run(t, id, "1 + 1"); a.get("result") != 2.0 {
		t.Errorf("the next execution: got %s, want 2", a.text)
	}
}

// An error before the execution starts is a problem, not a stream.
func TestStreamThatCannotStartIsAProblem(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	for path, status := range map[string]int{"/sandbox/nobody/execute": 404, "/sandbox/" + id + "/execute": 413} {
		a := c.do(t, "POST", path, map[string]any{"code": strings.Repeat("#", 100_001)}, "Accept", "text/event-stream")
		wantProblem(t, a, status, map[int]string{404: "not-found", 413: "too-large"}[status])
	}
	s := c.stream(t, "POST", "/sandbox/"+id+"/execute",
		map[string]any{"code": "import time\nprint('on')\ntime.sleep(30)"})
	list := s.until("stdout")
	wantProblem(t, c.do(t, "POST", "/sandbox/"+id+"/execute", `{"code":"1"}`, "Accept", "text/event-stream"),
		http.StatusConflict, "busy")
	c.ok(t, "POST", "/executions/"+fmt.Sprint(list[0].data["execution_id"])+"/cancel", nil)
	s.until("done")
}

// Output beyond max_output_size is not streamed; the whole execution has its head and tail.
func TestStreamedOutputIsBounded(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	s := c.stream(t, "POST", "/sandbox/agent/quick-execute",
		map[string]any{"code": "for n in range(40000): print('é', n)\nprint('the end')",
			"config": map[string]any{"max_output_size": 20001}})
	list := s.all()
	checkEventIDs(t, list, 0)
	done := list[len(list)-1].data
	text := joinText(list, "stdout")
	if len(text) > 20001 || len(text) < 19990 || !strings.HasPrefix(text, "é 0\né 1\n") ||
		strings.Contains(text, "\uFFFD") {
		t.Errorf("got %d bytes: %.20q; want 20001 at most, without half a character", len(text), text)
	}
	cuts := 0
	for _, e := range list {
		if e.data["truncated"] == true {
			cuts++
		}
	}
	if kept := fmt.Sprint(done["stdout"]); cuts != 1 || !strings.HasSuffix(kept, "the end\n") {
		t.Errorf("got %d truncated events and the final output's end %q, want 1 and its tail", cuts,
			kept[len(kept)-20:])
	}
}

func TestPreferRespondAsync(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	path := "/sandbox/" + id + "/execute"
	slow := map[string]any{"code": "import time\nprint('on')\ntime.sleep(1)\n'slept'"}
	a := c.do(t, "POST", path, slow, "Prefer", "respond-async")
	location := a.header.Get("Location")
	if a.status != http.StatusAccepted || location == "" || a.get("location") != location ||
		a.get("status") != "running" || a.header.Get("Preference-Applied") != "respond-async" {
		t.Fatalf("got HTTP %d, %v, %s; want 202 with Location", a.status, a.header, a.text)
	}
	if now := c.ok(t, "GET", location, nil); now.get("status") != "running" {
		t.Errorf("polled: got %s, want it running", now.text)
	}
	if list := c.stream(t, "GET", location, nil).all(); list[len(list)-1].data["result"] != "slept" ||
		joinText(list, "stdout") != "on\n" {
		t.Errorf("streamed: got %v, want the output and the result", list)
	}
	if end := c.ok(t, "GET", location+"?wait=20", nil); end.get("status") != "completed" ||
		end.get("result") != "slept" {
		t.Errorf("waited: got %s, want it completed", end.text)
	}
	a = c.do(t, "POST", "/sandbox/agent/quick-execute", slow, "Prefer", "respond-async, wait=0")
	if end := c.ok(t, "GET", a.header.Get("Location")+"?wait=20", nil); a.status != http.StatusAccepted ||
		end.get("result") != "slept" {
		t.Errorf("got HTTP %d and %s, want 202 and the result", a.status, end.text)
	}
	// With wait, the response comes as soon as the execution has ended.
	if a := c.do(t, "POST", path, `{"code":"6*7"}`, "Prefer", "respond-async, wait=20"); a.status != http.StatusOK ||
		a.get("result") != 42.0 {
		t.Errorf("got HTTP %d, want 200 with the result: %s", a.status, a.text)
	}
	// A client that disconnects from a stream does not end the execution.
	s := c.stream(t, "POST", path, slow)
	first := s.until("stdout")[0]
	s.close()
	if end := c.ok(t, "GET", "/executions/"+fmt.Sprint(first.data["execution_id"])+"?wait=20",
		nil); end.get("result") != "slept" {
		t.Errorf("after the client disconnected: got %s, want the result", end.text)
	}
	wantProblem(t, c.do(t, "GET", location+"?wait=9999", nil), 422, "invalid-input", "wait")
}

// Progress bars redraw their line with carriage returns, which are streamed as they are written.
func TestProgressBarsKeepCarriageReturns(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	s := c.stream(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": `import time
from tqdm import tqdm
for n in tqdm(range(8), desc='work', mininterval=0):
    time.sleep(0.1)
'worked'
`})
	list := s.all()
	pieces := 0
	for _, e := range list {
		if e.name == "stderr" {
			pieces++
		}
	}
	text := joinText(list, "stderr")
	done := list[len(list)-1].data
	if done["result"] != "worked" || pieces < 4 || strings.Count(text, "\rwork: ") < 8 ||
		!strings.Contains(text, "8/8") || done["stderr"] != text {
		t.Errorf("got %d events with %q (%v), want at least 4 with each redraw", pieces, text, done["error"])
	}
}

// A slow reader does not delay the execution. If the service closes its connection, it resumes at the same event.
func TestSlowStreamReaderDoesNotDelayTheExecution(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	lines := 300_000
	if testing.Short() {
		lines = 60_000
	}
	s := c.stream(t, "POST", "/sandbox/agent/quick-execute",
		map[string]any{"code": fmt.Sprintf("for n in range(%d): print('x' * 50)\n'printed'", lines),
			"config": map[string]any{"max_output_size": 16 << 20}})
	location := s.resp.Header.Get("Location")
	if end := c.ok(t, "GET", location+"?wait=50", nil); end.get("result") != "printed" {
		t.Errorf("got the status %s with %v, want the result", end.get("status"), end.get("error"))
	}
	list := s.all()
	for len(list) > 0 && list[len(list)-1].name != "done" {
		last := strconv.FormatInt(list[len(list)-1].id, 10)
		list = append(list, c.stream(t, "GET", location, nil, "Last-Event-ID", last).all()...)
	}
	checkEventIDs(t, list, 0)
	if joinText(list, "stdout") != strings.Repeat(strings.Repeat("x", 50)+"\n", lines) {
		t.Errorf("got %d events with %d bytes, want the whole output", len(list), len(joinText(list, "stdout")))
	}
}

// Rich outputs are streamed when they are shown, and a cancelled execution keeps them.
func TestRichOutputsAreStreamedAndKept(t *testing.T) {
	t.Parallel()
	c, began := newUser(t, sandbox.RoleAgent), time.Now()
	s := c.stream(
		t,
		"POST",
		"/sandbox/"+c.create(t, nil)+"/execute",
		map[string]any{
			"code": "import time\nimport pandas as pd\nimport matplotlib.pyplot as plt\ndisplay(pd.DataFrame({'n': [1, 2]}))\nplt.plot([1, 2])\nplt.title('Both')\nplt.show()\nwhile True: time.sleep(0.1)",
		},
	)
	list := append(s.until("output"), s.until("output")...)
	table, figure := list[len(list)-2].data, list[len(list)-1].data
	if !strings.HasPrefix(fmt.Sprint(table["summary"]), "table of 2 rows and 1 columns: n int64") ||
		!strings.Contains(string(mustJSON(t, table["data"])), `"application/vnd.dataresource+json":{"data":`) {
		t.Errorf("the table: got %v", table)
	}
	if figure["summary"] != "figure: 'Both': 1 line" ||
		!strings.Contains(string(mustJSON(t, figure["data"])), `"image/png":"iVBOR`) {
		t.Errorf("the figure: got %v", figure["summary"])
	}
	for _, output := range []map[string]any{table, figure} {
		at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(output["shown_at"]))
		if err != nil || at.Before(began) || at.After(time.Now()) {
			t.Errorf("got shown_at %v, %v, want a time since %v", output["shown_at"], err, began)
		}
	}
	c.ok(t, "POST", "/executions/"+fmt.Sprint(list[0].data["execution_id"])+"/cancel", nil)
	rest := s.all()
	done := rest[len(rest)-1].data
	if outputs, _ := done["outputs"].([]any); done["status"] != "cancelled" || len(outputs) != 2 {
		t.Errorf("got the status %v with %d outputs, want cancelled with 2", done["status"], len(outputs))
	}
}

// The stream has a reference for a large output: to the artifact that the execution has at its end. The artifact can be
// read while the execution runs, and a client may resume after any event.
func TestLargeOutputsAreReferencesInStream(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	s := c.stream(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": `
import time
import numpy as np
from PIL import Image
class Page:
    def __init__(self, n): self.n = n
    def _repr_html_(self): return "<p>" + "é" * self.n
    def _repr_latex_(self): return "x" * self.n
    def __repr__(self): return "page"
display(Page(10))
display(Image.fromarray(np.random.randint(0, 255, (400, 400, 3), np.uint8)))
print("between")
display(Page(300_000))
while True: time.sleep(0.01)`})
	list := s.until("output")
	list = append(list, s.until("output")...)
	list = append(list, s.until("output")...)
	references := func(event serverEvent) map[string]any {
		data, _ := event.data["data"].(map[string]any)
		found, _ := data["application/vnd.glasshouse.artifact+json"].(map[string]any)
		return found
	}
	var shown []serverEvent
	for _, event := range list {
		if size := len(mustJSON(t, event.data)); size > 16<<10 {
			t.Errorf("the event %s has %d bytes, want a reference", event.name, size)
		}
		if event.name == "output" {
			shown = append(shown, event)
		}
	}
	if len(references(shown[0])) != 0 || shown[0].data["data"].(map[string]any)["text/html"] != "<p>éééééééééé" {
		t.Errorf("the small page: got %v, want it in the event", shown[0].data)
	}
	for kind, want := range map[string]string{"image/png": "\x89PNG", "text/html": "<p>" + strings.Repeat("é", 300_000),
		"text/latex": strings.Repeat("x", 300_000)} {
		event := shown[1]
		if kind != "image/png" {
			event = shown[2]
		}
		a, _ := references(event)[kind].(map[string]any)
		if got := c.do(t, "GET", fmt.Sprint(a["url"]), nil); !strings.HasPrefix(string(got.text), want) ||
			float64(len(got.text)) != a["size"] || !strings.HasPrefix(got.header.Get("Content-Type"), kind) {
			t.Errorf("%s, while the execution runs: got HTTP %d, %d bytes, %v", kind, got.status, len(got.text),
				got.header)
		}
	}
	c.ok(t, "POST", "/executions/"+fmt.Sprint(list[0].data["execution_id"])+"/cancel", nil)
	list = append(list, s.all()...)
	checkEventIDs(t, list, 0)
	done := list[len(list)-1].data
	for n, out := range done["outputs"].([]any) {
		if !reflect.DeepEqual(out, any(shown[n].data)) {
			t.Errorf("output %d differs at the end: %.300s", n, compactJSON(out))
		}
	}
	if artifacts, _ := done["artifacts"].([]any); len(artifacts) != 3 || done["status"] != "cancelled" {
		t.Errorf("got the status %v with %d artifacts, want cancelled with 3", done["status"], len(artifacts))
	}
	for after := range list[:len(list)-1] {
		again := c.stream(t, "GET", s.resp.Header.Get("Location"), nil, "Last-Event-ID", strconv.Itoa(after)).all()
		if checkEventIDs(t, again, int64(after)); !reflect.DeepEqual(again, list[after:]) {
			t.Errorf("after event %d: got %d events, want %d", after, len(again), len(list)-after)
		}
	}
}
