package history_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"glasshouse/dbaccess/history"
	"glasshouse/sandbox"
)

func everyField(t *testing.T, h *history.Store) {
	e := execution("full")
	done := e.CreatedAt.Add(time.Second)
	why := "ValueError: no"
	e.Status, e.CompletedAt, e.Error = sandbox.StatusFailed, &done, &why
	e.Context, e.Result = json.RawMessage(`{"b":1,"a":2}`), json.RawMessage(`{"z":1,"a":[1e400,9007199254740993]}`)
	e.Exception = &sandbox.Exception{Type: "ValueError", Message: "no", Line: 3, Traceback: []sandbox.Frame{{Line: 3, Function: "<module>", Code: "raise"}}}
	e.ExecutionTime, e.MemoryUsage, e.Usage = 1.5, 12.25, sandbox.Usage{WallMS: 1500, CPUMS: 900, PeakMemoryMB: 12.25}
	e.DebugInfo = sandbox.DebugInfo{Logs: []sandbox.Note{{Time: done, Level: "INFO", Message: "here", Line: 1, Function: "f"}}, Variables: map[string][]sandbox.Note{"x": {{Time: done, Name: "x", Type: "int", Repr: "1"}}}}
	e.Outputs = []sandbox.Output{{Data: map[string]json.RawMessage{"text/plain": json.RawMessage(`"hi"`)}}}
	e.Artifacts, e.ArtifactMap = []sandbox.Artifact{{Path: "a.csv", Size: 3}}, map[string]string{"a.csv": "/artifacts/1"}
	e.Queries = []sandbox.Query{{SQL: "SELECT 1", Status: "ok", Rows: 1, StartedAt: done}}
	e.Connections = []sandbox.Connection{{Host: "example.org", Port: 443, Address: "44.1.1.1:443", Status: sandbox.ConnectionAllowed, BytesSent: 1, BytesReceived: 1 << 40, DurationMS: 0.5, StartedAt: done}}
	e.Truncated, e.Isolation = map[string]int64{"stdout": 7}, sandbox.Isolation{Level: "full", EnforcedBy: map[string]string{"max_memory_mb": "cgroup"}}
	if err := h.Begin(context.Background(), e); err != nil {
		t.Fatal(err)
	}
	begun, err := h.Execution(context.Background(), "full")
	if err != nil || string(begun.Result) != "null" || string(begun.Context) != string(e.Context) || begun.Code != e.Code || begun.Error == nil || begun.CompletedAt != nil {
		t.Errorf("begun: %v, %+v", err, begun)
	}
	keep(t, h, e)
	got, err := h.Execution(context.Background(), "full")
	if err != nil || !reflect.DeepEqual(got, *e) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, got, *e)
	}
}

func anyBytes(t *testing.T, h *history.Store) {
	why := "bad \xff\x00 error"
	e := execution("bytes")
	e.Status, e.Code, e.Error = sandbox.StatusFailed, "print('\x00 \xc3(')", &why
	e.Stdout, e.Stderr = "a\x00b\xff\xfe\u2028<&>", strings.Repeat("\x80", 1000)
	e.Result = json.RawMessage(`"\u0000 \ud800"`)
	keep(t, h, e)
	got, err := h.Execution(context.Background(), "bytes")
	if err != nil || got.Code != e.Code || got.Stdout != e.Stdout || got.Stderr != e.Stderr || *got.Error != why || string(got.Result) != string(e.Result) {
		t.Errorf("%v: %q %q %.20q %s", err, got.Code, got.Stdout, got.Stderr, got.Result)
	}
}
