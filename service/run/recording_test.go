package run_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"glasshouse/dbaccess/history"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/servicetest"
)

// slowHistory stores a chunk when the test sends its reply.
type slowHistory struct {
	*history.Store
	asked chan int   // receives each chunk's number
	reply chan error // nil: the chunk is stored
}

func (h *slowHistory) KeepChunk(ctx context.Context, execution string, c sandbox.Chunk) error {
	h.asked <- c.Sequence
	if err := <-h.reply; err != nil {
		return err
	}
	return h.Store.KeepChunk(ctx, execution, c)
}

func newSlowHistory(t *testing.T) (*slowHistory, *servicetest.Fixture) {
	h := &slowHistory{asked: make(chan int, 100), reply: make(chan error)}
	return h, servicetest.Start(t, servicetest.WithHistory(func(store *history.Store) servicetest.History {
		h.Store = store
		return h
	}))
}

// recordSteps returns the records of a number of steps. Each step sets a variable to a new text. The first records of a
// recording also describe the program.
func recordSteps(isFirst bool, steps int) []byte {
	var b []byte
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	if isFirst {
		b = append(b, 1, 2)
		text("by hand")
		text("3.11.2")
		b = append(b, 2)
		text("<execution>")
		b = append(b, 3, 1, 1, 1) // code: its file, name and first line
		b = append(b, 4, 1, 0)    // thread
		text("main")
		b = append(b, 5, 0, 1, 1, 0, 0) // push a frame
	}
	for i := range steps {
		b = append(b, 12, 1, 's') // set a variable
		text(string(binary.AppendUvarint(make([]byte, 100), uint64(i))[:100]))
		b = append(b, 0xc0) // line
	}
	return b
}

func executeRecorded(t *testing.T, f *servicetest.Fixture) *sandbox.Execution {
	t.Helper()
	sb := f.Create(t, grace, "")
	request := sandbox.Request{Code: "record", Kind: sandbox.KindExecute}
	e, err := f.Runs.ExecuteSteps(t.Context(), grace, sb.ID, request, func(sandbox.Step) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The program does not wait for history. Only the end of the run waits, and history then has all chunks in order.
func TestRecordingIsWrittenDuringTheRun(t *testing.T) {
	t.Parallel()
	h, s := newSlowHistory(t)
	const batches, steps = 5, 2000
	s.Code.Record = func(debugger supervisor.DebugDriver) error {
		for i := range batches {
			if err := debugger.Records(recordSteps(i == 0, steps), 0); err != nil {
				return err
			}
		}
		if n := <-h.asked; n != 0 { // history has not answered yet
			t.Errorf("got chunk %d first, want 0", n)
		}
		go func() {
			h.reply <- errors.New("unavailable for a moment")
			for {
				h.reply <- nil
			}
		}()
		return nil
	}
	e := executeRecorded(t, s)
	if len(e.Truncated) > 0 {
		t.Errorf("got truncated %v, want none", e.Truncated)
	}
	r, err := s.Records.Recorded(t.Context(), grace, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Steps(), batches*steps; got != want {
		t.Errorf("got %d recorded steps, want %d", got, want)
	}
}

func TestExecutionCountsChunksThatHistoryDidNotStore(t *testing.T) {
	t.Parallel()
	h, s := newSlowHistory(t)
	s.Code.Record = func(debugger supervisor.DebugDriver) error { return debugger.Records(recordSteps(true, 2000), 0) }
	go func() {
		for {
			h.reply <- errors.New("unavailable")
		}
	}()
	e := executeRecorded(t, s)
	if got := e.Truncated["recording"]; got != 3 {
		t.Errorf("got %d missing chunks, want 3", got)
	}
}
