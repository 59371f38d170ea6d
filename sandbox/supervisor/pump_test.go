package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
)

// blockingDebugger blocks in Records until the test lets it go on.
type blockingDebugger struct {
	called, goOn chan struct{}
	got          []byte
}

func (d *blockingDebugger) Begin(func()) json.RawMessage                          { return nil }
func (d *blockingDebugger) Logged([]byte)                                         {}
func (d *blockingDebugger) Stopped(context.Context, []byte, Command) (any, error) { return nil, nil }

func (d *blockingDebugger) Records(b []byte, _ uint64) error {
	d.called <- struct{}{}
	<-d.goOn
	d.got = append(d.got, b...)
	return nil
}

func TestFullRingWaitsForTheDebuggerOnlyIfMuchIsPending(t *testing.T) {
	t.Parallel()
	debugger := &blockingDebugger{called: make(chan struct{}), goOn: make(chan struct{})}
	p, err := startRecordingPump(nil, debugger, new(workMeter))
	if err != nil {
		t.Fatal(err)
	}
	guest := &ringWriter{ring: p.ring}
	var written []byte
	write := func(i int) {
		records := bytes.Repeat([]byte{byte(i)}, ringSize)
		written = append(written, records...)
		guest.write(records)
	}
	write(0)
	<-debugger.called // the debugger blocks now
	for i := 1; i <= maxPendingBytes/ringSize; i++ {
		write(i)
		if err := p.emptyRing(); err != nil {
			t.Fatal(err)
		}
		if got := guest.counter(ringReadIndex).Load(); got != guest.written {
			t.Fatalf("got %d bytes read from the ring, want %d", got, guest.written)
		}
	}
	write(100)
	emptied := make(chan error)
	go func() { emptied <- p.emptyRing() }()
	select {
	case <-emptied:
		t.Error("emptyRing returned while more than maxPendingBytes waited for the debugger")
	case debugger.goOn <- struct{}{}:
	}
	if err := <-emptied; err != nil { // while the debugger has the next records
		t.Error(err)
	}
	go func() {
		for range debugger.called {
			debugger.goOn <- struct{}{}
		}
	}()
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	close(debugger.called)
	if !bytes.Equal(debugger.got, written) {
		t.Errorf(
			"got %d bytes of records, want the %d that were written, in their order",
			len(debugger.got),
			len(written),
		)
	}
}
