package service

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"glasshouse/debugger"
	"glasshouse/debugger/recording/recordingtest"
)

// The janitor asks each session for its state, and a busy session answers late. Other sessions must stay available.
func TestBusySessionDoesNotDelayOthers(t *testing.T) {
	recording, err := debugger.NewRecording("")
	if err != nil {
		t.Fatal(err)
	}
	busy, free, paused, expired := make(chan bool), make(chan bool), make(chan error, 1), make(chan bool)
	d := &DebugSession{Session: debugger.NewSession(recording), ID: "busy"}
	d.Begin(func() { close(busy); <-free })
	var s debugSessions
	if err := s.add(d, func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	go func() { paused <- d.Pause() }() // holds the session until free is closed
	<-busy
	go func() { s.expire(time.Now()); close(expired) }()
	for stacks := make([]byte, 1<<20); ; runtime.Gosched() {
		if text := stacks[:runtime.Stack(stacks, true)]; bytes.Contains(text, []byte("debugger.(*Session).Position(")) {
			break // the janitor waits for the session
		}
	}
	if s.mu.TryLock() {
		s.mu.Unlock()
	} else {
		t.Error("the sessions are locked while the janitor waits for one of them")
	}
	close(free)
	<-expired
	if err := <-paused; err != nil {
		t.Error(err)
	}
}

// Open recordings of past runs with large indexes make room for others: 16 of them could take gigabytes.
func TestOpenRecordingsTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	r, err := debugger.NewRecording("")
	if err == nil {
		err = r.Append(append(recordingtest.New().Stream, bytes.Repeat([]byte{0xc1}, 1<<17)...)) // as many lines
	}
	if err != nil {
		t.Fatal(err)
	}
	r.End()
	chunks := r.TakeChunks()
	for first := chunks[0]; len(chunks) < 24; {
		first.Sequence, first.Definitions = len(chunks), nil
		chunks = append(chunks, first)
	}
	large, err := debugger.OpenRecording("", chunks, nil)
	if err != nil {
		t.Fatal(err)
	}
	if bytes := large.IndexBytes(); bytes < maxCachedIndexBytes/2 {
		t.Fatalf("the indexes take %d bytes, want at least %d", bytes, maxCachedIndexBytes/2)
	}
	small, err := debugger.OpenRecording("", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var o openRecordings
	o.cache("first", &OpenRecording{Recording: large})
	o.cache("small", &OpenRecording{Recording: small})
	o.cache("second", &OpenRecording{Recording: large})
	if o.find("first") != nil || o.find("small") == nil || o.find("second") == nil {
		t.Errorf("got %v, want the least recently used recording with a large index closed", o.order)
	}
}
