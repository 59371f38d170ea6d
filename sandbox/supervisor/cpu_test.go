package supervisor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/protocol"
)

// Much output, large frames and large uploads are handled in the turn of their user. Others do not wait.
func TestMuchDataTakesTurns(t *testing.T) {
	t.Parallel()
	cpu := limit.NewCPU(2, new(limit.Users))
	output := func(total int64) func() (int, error) {
		pipe, writer := newPipe(t)
		if _, err := writer.WriteString("text"); err != nil {
			t.Fatal(err)
		}
		b := newOutputBuffer(pipe, 1<<10, nil)
		b.total, b.cpu, b.user = total, cpu, "many"
		return func() (int, error) { return b.readInTurn(int(pipe.Fd()), make([]byte, 64<<10)) }
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "upload"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	uploads := newUploads(sandbox.Sandbox{Owner: "many"}, &UploadSpace{}, cpu)
	uploads.directory, uploads.limits.FileMaxBytes, uploads.limits.UploadMaxBytes = &isolate.SessionDir{}, 1<<30, 1<<30
	upload := pendingUpload{uploads: uploads, file: file, hash: sha256.New()}
	data := bytes.Repeat([]byte("x"), 256<<10)

	loop := func() *runLoop {
		return &runLoop{
			process: &isolate.Process{Conn: protocol.NewConn(nil)}, meter: &workMeter{cpu: cpu, user: "many"},
			debugInfo: sandbox.DebugInfo{Variables: map[string][]sandbox.Note{}}, truncated: map[string]int64{},
			outputBytesLeft: 1 << 20, noteBytesLeft: 1 << 20,
		}
	}

	holds, release := make(chan struct{}), make(chan struct{})
	go cpu.Compute("another", len(data), func() { close(holds); <-release })
	<-holds
	if n, err := output(0)(); n != 4 || err != nil {
		t.Errorf("a little output: got %d bytes, %v; want 4 at once", n, err)
	}
	if _, err := upload.Write(data[:1000]); err != nil {
		t.Errorf("a small upload: %v", err)
	}
	type result struct {
		n, want int
		err     error
	}
	done := make(chan result, 5)
	begin := func(want int, f func() (int, error)) {
		go func() {
			n, err := f()
			done <- result{n, want, err}
		}()
	}
	begin(4, output(maxSoonBytes+1))
	begin(len(data), func() (int, error) { return upload.Write(data) })
	begin(1, func() (int, error) {
		l := loop()
		err := l.keepNote(fmt.Appendf(nil, `{"level":"INFO","data":"%s"}`, data))
		return len(l.debugInfo.Logs), err
	})
	begin(1, func() (int, error) {
		l := loop()
		err := l.keepOutput(t.Context(), fmt.Appendf(nil, `{"role":"display","data":{"text/plain":"%s"}}`, data))
		return len(l.outputs), err
	})
	begin(0, func() (int, error) {
		request := fmt.Appendf(nil, `{"id":1,"what":"%s"}`, data)
		err := answer(t.Context(), protocol.NewConn(nil), nil, request, &workMeter{cpu: cpu, user: "many"})
		if _, isUnknown := errors.AsType[*protocol.IllegalFrame](err); isUnknown {
			err = nil
		}
		return 0, err
	})
	for cpu.Waiting("many") < 5 {
		select {
		case r := <-done:
			t.Fatalf("%d bytes, notes or outputs did not wait for their turn: %v", r.n, r.err)
		case <-time.After(time.Millisecond):
		}
	}
	close(release)
	for range 5 {
		if r := <-done; r.n != r.want || r.err != nil {
			t.Errorf("got %d bytes, notes or outputs, %v; want %d", r.n, r.err, r.want)
		}
	}
}

// While another user sends requests, a user's statements wait as soon as they have used up what the user may take.
func TestStatementsLeaveOthersTheMachine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		users := new(limit.Users)
		meter := &workMeter{share: limit.NewShare(users, 2), user: "many"}
		statements := func(ctx context.Context, n int) time.Duration {
			began := time.Now()
			for range n {
				meter.waitForStatement(ctx)
			}
			return time.Since(began)
		}
		if took := statements(t.Context(), 100_000); took != 0 {
			t.Errorf("alone, 100 000 statements waited for %s, want no wait", took)
		}
		time.Sleep(time.Second)
		users.Seen("few", 1)
		// 250 us each of half a CPU, after a burst of 250 ms
		if took := statements(t.Context(), 1800).Round(time.Millisecond); took != 650*time.Millisecond {
			t.Errorf("while another user was active, 1800 statements waited for %s, want 650ms", took)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		users.Seen("few", 1)
		if took := statements(ended, 1800); took != 0 {
			t.Errorf("at the end of the run, statements waited for %s, want no wait", took)
		}
	})
}
