package isolatetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// Invariant 12: a frame that no strict JSON reader accepts, that does not fit its kind, or that ends in the middle, is
// a violation of the protocol. It ends the run, with a reason, and the session can run the next code.
func TestMalformedFramesEndTheRun(t *testing.T) {
	t.Parallel()
	s := NewSession(t, Shared(t), nil)
	for _, c := range []struct{ name, code, why string }{
		{"UTF-8", `frame("D", b'{"result": "\xff"}')`, "byte 12 is not UTF-8"},
		{"grammar", `frame("D", b'{"result": NaN}')`, "not JSON"},
		{"surrogate", `frame("D", b'{"result": "\\ud800"}')`, "lone surrogate"},
		{"integer", `frame("D", b'{"result": ' + b"7" * 4301 + b'}')`, "4301 digits"},
		{"repeated key", `frame("D", b'{"result": {"a": 1, "a": 2}}')`, "twice"},
		{"another type", `frame("D", b'{"exception": []}')`, "cannot be parsed"},
		{"empty", `frame("D", b"")`, "not JSON"},
		{"output", `frame("O", b'{"role": "display", "data": {"text/plain": "\xc0\x80"}}')`, "not UTF-8"},
		// encoding/json merges the two objects, but the supervisor counted only one of them.
		{"output, a negative step", `frame("O", b'{"role": "display", "data": {"a/b": 1}, "step": -1}')`,
			"the step -1"},
		{"output, key in other case", `frame("O", b'{"role": "display", "data": {"a/b": 1}, "DATA": {}}')`,
			`unknown part "DATA"`},
		{"note", `frame("N", b'{"message": "", "data": "\xed\xb0\x80"}')`, "not UTF-8"},
		{"request", `frame("A", b'{"what": "query", "sql": "\xff"}')`, "not UTF-8"},
		{"trailing text", `frame("A", b'{"what": "tables"} {}')`, "not JSON"},
		{"a kind of the supervisor", `frame("J", b"{}")`, "must not send"},
		{"size", `os.write(3, b"\xff\xff\xff\xffD")`, "bytes in a D frame"},
		{"ready again", `frame("R", b"{}")`, "in the middle of a run"},
		{"half a frame", `os.write(3, b"\0\0\0\x10D{")` + "\nos.close(3)", "the connection ended"},
		{"closed", `os.close(3)`, "the connection ended"},
	} {
		e := Run(t, s, forgedFrames+c.code+"\ntime.sleep(60)")
		if e.Status != sandbox.StatusKilled || e.Usage.EndedBy != "protocol" || !strings.Contains(Why(e), c.why) ||
			!e.SessionReset || string(e.Result) != "null" {
			t.Errorf("%s: got %s, ended by %q, %q, result %s; want it killed by protocol: %s",
				c.name, e.Status, e.Usage.EndedBy, Why(e), e.Result, c.why)
		}
	}
	e := Run(t, s, "import os; os.write(3, b'\\0\\0\\0\\x10D{'); os._exit(0)")
	if e.Status != sandbox.StatusKilled || e.Usage.EndedBy != "exit" {
		t.Errorf("an exit in the middle of a frame: got %s, ended by %q (%s)", e.Status, e.Usage.EndedBy, Why(e))
	}
	if e := Run(t, s, "1 + 1"); string(e.Result) != "2" {
		t.Errorf("the next run: got %s %s, want 2", e.Status, Why(e))
	}
}

// The end of a run that came before the run began was forged by an earlier one.
func TestRunCannotEndBeforeItBegins(t *testing.T) {
	t.Parallel()
	s := NewSession(t, Shared(t), nil)
	const pack = `import os, select, struct, threading, time
def pack(kind, body): return struct.pack('>IB', len(body), ord(kind)) + body
first, forged = pack('D', b'{"result": 1}'), pack('D', b'{"result": "forged"}')
`
	for _, c := range []struct{ name, code string }{
		{"a whole frame", `os.write(3, first + forged)`},
		{"behind a note", `os.write(3, first + pack('N', b'{"message": "late"}') + forged)`},
		{"behind an inspection", `os.write(3, first + pack('V', b'{"variables": {}, "globals": []}') + forged)`},
		{"a part of the header", `poll = select.poll()
poll.register(3, select.POLLIN)
threading.Thread(target=lambda: (poll.poll(), os.write(3, forged[2:])), daemon=True).start()
os.write(3, first + forged[:2])`},
	} {
		e := Run(t, s, pack+c.code+"\ntime.sleep(60)")
		if e.Status != sandbox.StatusCompleted || string(e.Result) != "1" {
			t.Fatalf("%s: got %s %s, want a forged end of the run", c.name, e.Status, Why(e))
		}
		if c.name == "behind an inspection" {
			if _, err := s.InspectVariables(context.Background()); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		e = Run(t, s, "2")
		if e.Status != sandbox.StatusKilled || e.Usage.EndedBy != "protocol" || string(e.Result) != "null" ||
			!strings.Contains(Why(e), "before the run began") {
			t.Errorf("%s: got %s %s, ended by %q, %q; want it killed by protocol",
				c.name, e.Status, e.Result, e.Usage.EndedBy, Why(e))
		}
	}
}

// Frames of threads that an earlier run left behind do no harm, whenever they come.
func TestLateThreadsHarmNoRun(t *testing.T) {
	t.Parallel()
	s := NewSession(t, Shared(t), nil)
	const writeOn = `import threading
def write_on():
    while True:
        print("late")
        debug("late")
threading.Thread(target=write_on, daemon=True).start()`
	if e := Run(t, s, writeOn); e.Status != sandbox.StatusCompleted {
		t.Fatalf("got %s %s, want completed", e.Status, Why(e))
	}
	for n := range 20 {
		if e := Run(t, s, fmt.Sprint(n)); e.Status != sandbox.StatusCompleted || string(e.Result) != fmt.Sprint(n) {
			t.Fatalf("run %d: got %s %s %s, want its number", n, e.Status, e.Result, Why(e))
		}
	}
}

// A guest that answers an inspection with anything else is ended, and the error says so.
func TestMalformedAnswerToAnInspection(t *testing.T) {
	t.Parallel()
	s := NewSession(t, Shared(t), nil)
	for name, body := range map[string]string{
		"UTF-8":        `b'{"variables": {}, "globals": ["\xff"], "total": 1}'`,
		"another type": `b'{"variables": [], "globals": [], "total": 1}'`,
		"grammar":      `b'{"variables": {}'`,
	} {
		if e := Run(t, s, forgedFrames+`frame("D", b"{}"); frame("V", `+body+")"); e.Status != sandbox.StatusCompleted {
			t.Fatalf("%s: got %s %s, want a forged end of the run", name, e.Status, Why(e))
		}
		_, err := s.InspectVariables(context.Background())
		var gone *sandbox.Error
		if !errors.As(err, &gone) || gone.Fault != sandbox.FaultGone || !strings.Contains(gone.Detail, "protocol") {
			t.Errorf("%s: got %v, want it gone for a violation of the protocol", name, err)
		}
		if v, err := s.InspectVariables(context.Background()); err != nil || v.Total != 0 {
			t.Errorf("%s: got %v and %v, want no variables in the new session", name, v, err)
		}
	}
}

// Names that are not strings end neither a session nor an inspection.
func TestInspectionPassesOverOddNames(t *testing.T) {
	t.Parallel()
	s := NewSession(t, Shared(t), nil)
	e := Run(t, s, "x = 1\nfor odd in (1, b'b', None, (1,), type('Name', (str,), {'__eq__': lambda *a: 1 // 0, "+
		"'__hash__': str.__hash__})('y')):\n    globals()[odd] = 3\ndel odd")
	if e.Status != sandbox.StatusCompleted {
		t.Fatalf("got %s %s, want the odd names set", e.Status, Why(e))
	}
	for range 2 {
		v, err := s.InspectVariables(context.Background())
		if _, ok := v.Variables["x"]; err != nil || !ok || v.Total != 1 {
			t.Errorf("got %v and %v, want x alone", v, err)
		}
	}
}
