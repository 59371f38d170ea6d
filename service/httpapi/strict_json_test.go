package httpapi_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// readStrictly is Python's own JSON reader, made as strict as others are by default: it rejects bytes that are not
// UTF-8, integers of more than 4300 digits, NaN, keys that repeat, and lone surrogates. Each line of the input is one
// text in base64; the output has one line for each text that cannot be read.
const readStrictly = `
import base64, json, sys

def unique(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key repeats")
    return dict(pairs)

def no_constant(name):
    raise ValueError(name)

for n, line in enumerate(sys.stdin):
    text = base64.b64decode(line)
    try:
        value = json.loads(text.decode("utf-8"), object_pairs_hook=unique, parse_constant=no_constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        print(n, type(error).__name__, str(error)[:200])
`

// wantStrictJSON checks that strict readers accept all texts. Its name says in a failure which text that is.
func wantStrictJSON(t testing.TB, name string, texts ...[]byte) {
	t.Helper()
	var in strings.Builder
	for _, text := range texts {
		in.WriteString(base64.StdEncoding.EncodeToString(text) + "\n")
	}
	python := exec.CommandContext(t.Context(), os.Getenv("GLASSHOUSE_PYTHON"), "-I", "-c", readStrictly)
	python.Stdin = strings.NewReader(in.String())
	out, err := python.CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%s: a strict reader cannot read it (%v): %.1000s", name, err, out)
	}
}

// readBack returns the answers of every route that shows an execution: to its user, and to an admin in a list.
func (c client) readBack(t testing.TB, sandboxID, executionID string) [][]byte {
	t.Helper()
	return [][]byte{
		c.ok(t, "GET", "/executions/"+executionID, nil).text,
		c.ok(t, "GET", "/executions", nil).text,
		admin.ok(t, "GET", "/executions?sandbox_id="+sandboxID, nil).text,
		c.ok(t, "GET", "/sandbox/"+sandboxID+"/history", nil).text,
		c.ok(t, "GET", "/sandbox/"+sandboxID+"/variables", nil).text,
		c.ok(t, "GET", "/sandbox/"+sandboxID+"/status", nil).text,
	}
}

// sendFrame defines frame(kind, body) in Python, which sends a frame to the supervisor as the guest's own code does.
const sendFrame = `
import os, struct, time
huge = b"1" * 5000
def frame(kind, body):
    rest = memoryview(struct.pack(">IB", len(body), ord(kind)) + body)
    while rest:
        rest = rest[os.write(3, rest):]
`

// A guest can send any bytes. What it sends is never an answer that a strict reader refuses: the run ends as a
// violation of the protocol, which the answer and the admin's list say.
func TestForgedFramesLeaveReadableAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	c := newUser(t, sandbox.RoleAdmin)
	id := c.create(t, map[string]any{"profile": "unrestricted", "max_execution_time": 5})
	for name, code := range map[string]string{
		"a result that is not UTF-8":  `frame("D", b'{"result": "\xff"}')`,
		"a key that is not UTF-8":     `frame("D", b'{"result": {"\xc3": 1}}')`,
		"an overlong encoding":        `frame("D", b'{"result": "\xc0\xaf"}')`,
		"an encoded surrogate":        `frame("D", b'{"result": "\xed\xa0\x80"}')`,
		"a lone surrogate":            `frame("D", b'{"result": "\\ud800"}')`,
		"a lone low surrogate":        `frame("D", b'{"result": ["\\udc00 \\ud83d\\ude00"]}')`,
		"half a pair":                 `frame("D", b'{"result": "\\ud83d\\u0041"}')`,
		"NaN":                         `frame("D", b'{"result": NaN}')`,
		"Infinity":                    `frame("D", b'{"result": [1, -Infinity]}')`,
		"an integer of 4301 digits":   `frame("D", b'{"result": ' + b"9" * 4301 + b'}')`,
		"a negative one, nested":      `frame("D", b'{"result": [{"x": -' + b"9" * 4301 + b'}]}')`,
		"a number without a value":    `frame("D", b'{"result": 1e400}')`,
		"a key that repeats":          `frame("D", b'{"result": {"a": 1, "a": 2}}')`,
		"a key that repeats, escaped": `frame("D", b'{"result": {"a": 1, "\\u0061": 2}}')`,
		"a result that repeats":       `frame("D", b'{"result": 1, "result": 2}')`,
		"a deep result":               `frame("D", b'{"result": ' + b"[" * 1100 + b"]" * 1100 + b'}')`,
		"no JSON":                     `frame("D", b'nonsense')`,
		"half a frame's JSON":         `frame("D", b'{"result": [1, 2')`,
		"another type":                `frame("D", b'[]')`,
		"no exception":                `frame("D", b'{"exception": "no object"}')`,
		"counts of another type":      `frame("D", b'{"truncated": {"result": "many"}}')`,
		"an output that is not UTF-8": `frame("O", b'{"role": "display", "summary": "\xff", "data": {"a/b": 1}}')`,
		"an output's data":            `frame("O", b'{"role": "display", "data": {"text/plain": "\xfe"}}')`,
		"an output's metadata":        `frame("O", b'{"role": "display", "data": {}, "metadata": {"x": "\xff"}}')`,
		"an output's type":            `frame("O", b'{"role": "display", "data": {"\xff": 1}}')`,
		"an output with NaN":          `frame("O", b'{"role": "display", "data": {"a/b": [NaN]}}')`,
		"an output's large integer":   `frame("O", b'{"role": "display", "data": {"a/b": ' + huge + b'}}')`,
		"an output's repeated key":    `frame("O", b'{"role": "display", "data": {"a/b": {"x": 1, "x": 2}}}')`,
		"a note that is not UTF-8":    `frame("N", b'{"level": "INFO", "message": "\xff"}')`,
		"a note's data":               `frame("N", b'{"level": "INFO", "message": "", "data": "\xff"}')`,
		"a note's lone surrogate":     `frame("N", b'{"level": "INFO", "message": "", "data": {"\\ud800": 1}}')`,
		"a note's large integer":      `frame("N", b'{"level": "INFO", "message": "", "data": [' + huge + b']}')`,
		"a statement, not UTF-8":      `frame("A", b'{"id": 1, "what": "query", "sql": "SELECT \'\xff\'"}')`,
		"a parameter, not UTF-8":      `frame("A", b'{"what": "query", "sql": "", "params": {"a": "\xff"}}')`,
		"a parameter's integer":       `frame("A", b'{"what": "query", "sql": "", "params": {"a": ' + huge + b'}}')`,
		"a stop":                      `frame("S", b'{"reason": "step"}')`,
		"a log point":                 `frame("G", b'{"text": "\xff"}')`,
		"an answer to nothing":        `frame("V", b'{}')`,
		"half a frame":                `os.write(3, b"\0\0\0\x10D{")` + "\nos.close(3)",
		"a closed connection":         `os.close(3)`,
	} {
		t.Run(name, func(t *testing.T) {
			a := c.run(t, id, sendFrame+code+"\ntime.sleep(60)")
			if a.get("status") != "killed" || a.get("usage.ended_by") != "protocol" || a.get("session_reset") != true {
				t.Errorf("got %.600s, want it killed for a violation of the protocol", a.text)
			}
			if text, _ := a.get("error").(string); !strings.Contains(text, "protocol") || len(text) < 40 {
				t.Errorf("got the error %q, want a text that an admin understands", text)
			}
			texts := append(c.readBack(t, id, fmt.Sprint(a.get("execution_id"))), a.text)
			wantStrictJSON(t, name, texts...)
			if a := c.run(t, id, "1 + 1"); a.get("result") != 2.0 {
				t.Errorf("the next run: got %.300s, want 2", a.text)
			}
		})
	}
}

// A body that a strict reader refuses is refused with a text that says why: its context would be part of the record.
func TestBodiesAreStrictJSON(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	session := c.ok(t, "POST", "/sandbox/"+id+"/debug/sessions", map[string]any{"code": "x = 1", "stop_on_entry": true})
	evaluate := fmt.Sprintf("/debug/sessions/%s/evaluate", session.get("session_id"))
	routes := map[string]string{
		"/sandbox/" + id + "/execute":        `{"code": "1", "context": {"x": %s}}`,
		"/sandbox/" + id + "/debug":          `{"code": "1", "context": {"x": %s}}`,
		"/sandbox/" + id + "/debug/sessions": `{"code": "1", "context": {"x": %s}}`,
		"/sandbox/agent/quick-execute":       `{"code": "1", "context": {"x": %s}}`,
		"/sandbox/" + id + "/database/query": `{"query": "SELECT :x", "parameters": {"x": %s}}`,
		"/sandbox/create":                    `{"max_rows": 1, "user_id": %s}`,
		"/sandbox/" + id + "/check":          `{"code": %s}`,
		evaluate:                             `{"expression": %s}`,
	}
	for value, why := range map[string]string{
		"\"\xff\"":                "not UTF-8",
		"\"\xed\xa0\x80\"":        "not UTF-8",
		`"\ud800"`:                "lone surrogate",
		strings.Repeat("7", 4301): "4301 digits",
		`{"a": 1, "a": 2}`:        "twice",
		"NaN":                     "malformed",
	} {
		for path, body := range routes {
			a := c.do(t, "POST", path, fmt.Sprintf(body, value))
			if why == "twice" { // the problem names the key
				wantProblem(t, a, http.StatusUnprocessableEntity, "invalid-input", why, `.a"`)
			} else {
				wantProblem(t, a, http.StatusBadRequest, "malformed", why)
			}
			wantStrictJSON(t, path, a.text)
		}
	}
	c.ok(t, "DELETE", "/debug/sessions/"+fmt.Sprint(session.get("session_id")), nil)
	a := c.do(t, "POST", "/sandbox/"+id+"/execute",
		`{"code": "[len(str(x)), y]", "context": {"x": `+strings.Repeat("7", 300)+
			`, "y": "\ud83d\ude00 \u0000"}}`)
	if got := compactJSON(a.get("result")); got != `[300,"😀 \u0000"]` {
		t.Errorf("an ordinary context: got %s %.300s, want its values", got, a.text)
	}
	wantStrictJSON(t, "context", append(c.readBack(t, id, fmt.Sprint(a.get("execution_id"))), a.text)...)
}

// A stopped program whose answers or reports cannot be read is ended, and its client hears why. None is an internal
// error.
func TestForgedAnswersOfAStoppedProgram(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAdmin)
	for name, forged := range map[string]string{
		"a value of another type": `frame("V", b'{"value": 5}')`,
		"no object":               `frame("V", b'[]')`,
		"a list as a name":        `frame("V", b'{"items": [{"name": []}], "value": {}}')`,
		"UTF-8":                   `frame("V", b'{"value": "\xff"}')`,
		"a stop":                  `frame("S", b'{"reason": []}')`,
		"a location":              `frame("S", b'{"reason": "step", "ids": ["x"]}')`,
		"a log point":             `frame("G", b'{"text": "\xff"}')`,
		"records":                 `frame("T", b"x" * 100); frame("D", b'{"result": NaN}')`,
	} {
		t.Run(name, func(t *testing.T) {
			body := map[string]any{"code": sendFrame + "x = 1\ny = 2\nz = 3", "breakpoints": []int{10}}
			d, _ := c.openDebugSession(t, body, map[string]any{"profile": "unrestricted"})
			path := "/debug/sessions/" + d.session
			for _, request := range []struct {
				command string
				body    any
			}{
				{"evaluate", map[string]any{"expression": forged}}, {"stackTrace", nil}, {"threads", nil},
				{"scopes", nil}, {"next", nil}, {"continue", nil}, {"evaluate", map[string]any{"expression": "x"}},
			} {
				a := d.do(t, "POST", path+"/"+request.command, request.body)
				if a.status >= http.StatusInternalServerError {
					t.Errorf("%s: got HTTP %d, want no internal error: %s", request.command, a.status, a.text)
				}
				wantStrictJSON(t, request.command, a.text)
			}
			record := d.ok(t, "GET", "/executions/"+d.execution+"?wait=30", nil)
			if record.get("status") != "killed" || record.get("usage.ended_by") != "protocol" {
				t.Errorf("got %.600s, want it killed for a violation of the protocol", record.text)
			}
			wantStrictJSON(t, name, c.readBack(t, fmt.Sprint(record.get("sandbox_id")), d.execution)...)
			c.ok(t, "DELETE", "/sandbox/"+fmt.Sprint(record.get("sandbox_id")), nil)
		})
	}
}
