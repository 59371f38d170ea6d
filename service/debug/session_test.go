package debug

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"glasshouse/debugger"
)

// The janitor asks each session for its state, and a busy session answers late. Other sessions must stay available.
func TestBusySessionDoesNotDelayOthers(t *testing.T) {
	recording, err := debugger.NewRecording("")
	if err != nil {
		t.Fatal(err)
	}
	busy, free, paused, expired := make(chan bool), make(chan bool), make(chan error, 1), make(chan bool)
	d := &Session{Session: debugger.NewSession(recording), ID: "busy"}
	d.Begin(func() { close(busy); <-free })
	var s sessions
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
