package service

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"glasshouse/debugger"
)

// A session that is busy with itself keeps the janitor waiting, and nobody else.
func TestABusySessionHoldsUpNoOther(t *testing.T) {
	journal, err := debugger.NewJournal()
	if err != nil {
		t.Fatal(err)
	}
	busy, free, paused, expired := make(chan bool), make(chan bool), make(chan error, 1), make(chan bool)
	d := &DebugSession{Session: debugger.NewSession(journal, nil, true), ID: "busy"}
	d.Begin(func() { close(busy); <-free })
	var s sessions
	if err := s.add(d); err != nil {
		t.Fatal(err)
	}
	go func() { paused <- d.Pause() }() // it is busy as long as the program is told
	<-busy
	go func() { s.expire(time.Now()); close(expired) }()
	for stacks := make([]byte, 1<<20); ; runtime.Gosched() {
		if text := stacks[:runtime.Stack(stacks, true)]; bytes.Contains(text, []byte("debugger.(*Session).Where(")) {
			break // the janitor asks it where it stands
		}
	}
	if s.mu.TryLock() {
		s.mu.Unlock()
	} else {
		t.Error("nobody else gets at a session")
	}
	close(free)
	<-expired
	if err := <-paused; err != nil {
		t.Error(err)
	}
}
