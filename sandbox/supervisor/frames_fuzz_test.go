package supervisor

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/protocol"
	"glasshouse/sandbox/stages"
)

// honestFrames has frames as our guest code sends them: the kind and the body of each, separated by null bytes.
var honestFrames = []string{
	`D{"result": {"a": [1, -2.5e-3, "\ud83d\ude00", null, true]}, "truncated": {"result": 3}}`,
	`D{"result": null, "exception": {"type": "KeyError", "message": "'x'", "line": 2, "traceback": [{"line": 2, ` +
		`"function": "f", "code": "d['x']", "variables": {"d": "{}"}}], "hint": "did you mean 'y'?", "nearest": "y"}}`,
	`D{"result": 1, "interrupt": true}`,
	`N{"level": "INFO", "message": "read", "timestamp": "2026-01-02T03:04:05+00:00", "line": 1, "function": "f", ` +
		`"data": {"rows": [1, 2]}}` + "\x00" + `N{"name": "x", "type": "list", "size": 88, "repr": "[1]", "line": 3, ` +
		`"function": "<module>"}` + "\x00" + `D{"result": null}`,
	`O{"role": "result", "summary": "a table", "data": {"text/html": "<table>", "text/plain": "a", ` +
		`"application/json": {"b": [{}]}}, "metadata": {"width": 3}}` + "\x00" + `D{"result": null}`,
	`A{"what": "query", "sql": "SELECT :a", "params": {"a": 1, "b": ["x"]}, "types": {"a": "numeric"}, ` +
		`"form": "", "id": 1}` + "\x00" + `A{"what": "tables", "id": 2}` + "\x00" + `A{"what": "schema", "table": "t", "id": 3}` + "\x00" +
		`A{"what": "history", "id": 4}` + "\x00" + `D{"result": []}`,
	"T\x00" + `G{"text": "n is 3", "line": 2}` + "\x00" +
		`S{"reason": "breakpoint", "ids": [1, 2], "text": "", "step": 7}` + "\x00" +
		`N{"message": "in an expression"}` + "\x00" + `V{"value": "3", "type": "int"}` + "\x00" + `D{"result": 3}`,
}

// FuzzFrames sends a guest's frames to a run loop. Nothing that a guest sends makes the supervisor fail, or makes a
// record that a strict JSON reader refuses; every error is a violation of the protocol or the end of the connection.
func FuzzFrames(f *testing.F) {
	for n, frames := range honestFrames {
		f.Add([]byte(frames), n >= 5)
	}
	f.Add([]byte("\xffraw\x00\x00\x00\x02D{}"), false)
	f.Add([]byte("\xffraw\x00\x00\x00\x10D{\"result\""), false)
	f.Fuzz(func(t *testing.T, input []byte, isDebugged bool) {
		stream, isRaw := bytes.CutPrefix(input, []byte("\xffraw"))
		if !isRaw {
			stream = framed(input)
		}
		execution, err := runFrames(t, stream, isDebugged)
		if _, isIllegal := errors.AsType[*protocol.IllegalFrame](err); err != nil && !isIllegal &&
			!errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("got %v, want a violation of the protocol or the end of the connection", err)
		}
		text, err := json.Marshal(execution)
		if err != nil {
			t.Fatal(err)
		}
		if err := sandbox.CheckJSON(text); err != nil || sandbox.JSONDepth(text) > 2*maxDepth {
			t.Fatalf("the record is %d levels deep, %v: %q", sandbox.JSONDepth(text), err, text)
		}
		if len(execution.Outputs) > maxOutputs || len(execution.DebugInfo.Logs) > maxLogs ||
			len(execution.DebugInfo.Variables) > maxVariables {
			t.Fatalf("got %d outputs, %d notes and %d variables", len(execution.Outputs), len(execution.DebugInfo.Logs),
				len(execution.DebugInfo.Variables))
		}
	})
}

// The honest frames reach the end of a run, so that a fuzzer that begins with them reaches everything.
func TestHonestFramesEndTheirRun(t *testing.T) {
	t.Parallel()
	for n, frames := range honestFrames {
		if _, err := runFrames(t, framed([]byte(frames)), n >= 5); err != nil {
			t.Errorf("%.100q: got %v, want the end of the run", frames, err)
		}
	}
	if _, err := runFrames(t, framed([]byte(strings.Repeat(honestFrames[6][:2], 20)+`D{}`)), true); err != nil {
		t.Errorf("many full rings: %v", err)
	}
}

// framed returns the frames of an input. Null bytes separate the frames in it.
func framed(input []byte) (stream []byte) {
	for frame := range bytes.SplitSeq(input, []byte{0}) {
		if len(frame) > 0 {
			stream = binary.BigEndian.AppendUint32(stream, uint32(len(frame)-1))
			stream = append(stream, frame...)
		}
	}
	return stream
}

// runFrames runs a loop whose guest sends a stream and closes its end. It returns the record of the run, and why the
// run has no end of its own.
func runFrames(t *testing.T, stream []byte, isDebugged bool) (*sandbox.Execution, error) {
	t.Helper()
	ours, theirs := socketPair(t)
	defer theirs.Close()
	process := &isolate.Process{Conn: protocol.NewConn(ours)}
	defer process.Conn.Close()
	pipe, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer end.Close()
	loop := &runLoop{
		process: process, callbacks: Callbacks{Requests: answering{}},
		meter:  &workMeter{work: new(limit.Work), user: "guest", process: process},
		stdout: newOutputBuffer(pipe, 100, nil), stderr: newOutputBuffer(pipe, 100, nil),
		debugInfo: sandbox.DebugInfo{Logs: []sandbox.Note{}, Variables: map[string][]sandbox.Note{}},
		truncated: map[string]int64{}, outputBytesLeft: maxOutputBytes, noteBytesLeft: maxNoteBytes,
	}
	if isDebugged {
		loop.callbacks.Debugger = &askingDebugger{}
		if loop.pump, err = startRecordingPump(process, loop.callbacks.Debugger, loop.meter); err != nil {
			t.Fatal(err)
		}
		defer loop.pump.stop()
	}
	loop.watchdog = newWatchdog(t.Context(), process, time.Hour, sandbox.Request{}, func() {})
	defer loop.watchdog.stop(false)
	go func() {
		_, _ = theirs.Write(stream) // fails if the loop has ended
		_ = theirs.CloseWrite()
		_, _ = io.Copy(io.Discard, theirs)
	}()
	done, err := loop.run(t.Context())
	loop.stdout.stop()
	loop.stderr.stop()
	e := &sandbox.Execution{DebugInfo: loop.debugInfo, Outputs: loop.outputs, Truncated: loop.truncated}
	if err == nil {
		var c claim
		if c, err = readClaim(done, process.Conn); err == nil {
			e.Result, e.Exception = c.result, c.exception
		}
	}
	e.FillEmpty()
	return e, err
}

// socketPair returns both ends of the connection of a guest.
func socketPair(t *testing.T) (ours, theirs *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for n, fd := range fds {
		file := os.NewFile(uintptr(fd), "socket pair")
		ends[n], err = net.FileConn(file)
		_ = file.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	return ends[0].(*net.UnixConn), ends[1].(*net.UnixConn)
}

// answering answers every request of the code.
type answering struct{}

func (answering) Query(
	_ context.Context, _, _ string, _ map[string]any, sink sandbox.RowSink,
) (sandbox.QuerySummary, error) {
	return sandbox.QuerySummary{}, sandbox.Errorf(sandbox.FaultUnavailable, "no rows")
}
func (answering) Tables(context.Context, string) ([]string, error) { return []string{"t"}, nil }
func (answering) Stages(context.Context, string, string, map[string]any) (*stages.Stages, error) {
	return &stages.Stages{Text: "stages"}, nil
}

func (answering) Schema(context.Context, string, string) (sandbox.Table, error) {
	return sandbox.Table{}, nil
}
func (answering) History(context.Context) ([]sandbox.Execution, error) { return nil, nil }

// askingDebugger sends one command to a stopped program and resumes it.
type askingDebugger struct{}

func (*askingDebugger) Begin(func()) json.RawMessage { return nil }
func (*askingDebugger) Records([]byte, uint64) error { return nil }
func (*askingDebugger) Logged([]byte)                {}

func (*askingDebugger) Stopped(ctx context.Context, location []byte, command Command) (any, error) {
	var stop struct {
		IDs []int `json:"ids"`
	}
	if err := json.Unmarshal(location, &stop); err != nil {
		return nil, err
	}
	_, err := command(ctx, time.Minute, map[string]any{"do": "evaluate"})
	return map[string]any{"do": "resume"}, err
}
