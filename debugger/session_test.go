package debugger

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"glasshouse/debugger/recording/recordingtest"
)

// A value keeps its reference when a client asks for it again, and the number of references between two moves is
// bounded.
func TestReferencesAreBounded(t *testing.T) {
	t.Parallel()
	s := NewPastSession(recordingOf(t, recordingtest.Loop(10)))
	if err := s.Goto(5); err != nil {
		t.Fatal(err)
	}
	ask := func() []any {
		scopes, err := s.Scopes(1)
		if err != nil {
			t.Fatal(err)
		}
		variables, err := s.Variables(t.Context(), 1, AllParts, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		value, err := s.Evaluate(t.Context(), "y", 0, AnExpression)
		if err != nil {
			t.Fatal(err)
		}
		return []any{scopes, variables, value}
	}
	want := ask()
	if got := ask(); !reflect.DeepEqual(got, want) {
		t.Errorf("asked again: got %v, want %v", got, want)
	}
	n := 0
	var err error
	for ; err == nil && n < 200_000; n++ {
		_, err = s.references.number(reference{object: uint64(n + 2)})
	}
	if !errors.Is(err, ErrRequest) || n < 90_000 {
		t.Errorf("got %d references, %v, want at least 90000, then %v", n, err, ErrRequest)
	}
	if _, err = s.Evaluate(t.Context(), "y ", 1, AnExpression); !errors.Is(err, ErrRequest) {
		t.Errorf("one more: got %v, want %v", err, ErrRequest)
	}
	n = 0
	for err = s.Goto(6); err == nil && n < 1000; n++ {
		_, err = s.references.number(reference{expression: strings.Repeat("y", 100_000+n)})
	}
	if !errors.Is(err, ErrRequest) || n < 200 {
		t.Errorf("got %d long expressions, %v, want at least 200, then %v", n, err, ErrRequest)
	}
}

func TestReadingNeedsAStoppedProgram(t *testing.T) {
	t.Parallel()
	s := NewSession(recordingOf(t, recordingtest.Loop(10)))
	for name, read := range map[string]func() error{
		"Stack":       func() error { _, _, err := s.Stack(0, 0, 0); return err },
		"Scopes":      func() error { _, err := s.Scopes(1); return err },
		"Variables":   func() error { _, err := s.Variables(t.Context(), 1, AllParts, 0, 0); return err },
		"Evaluate":    func() error { _, err := s.Evaluate(t.Context(), "x", 0, AnExpression); return err },
		"SetVariable": func() error { _, err := s.SetVariable(t.Context(), 1, "x", "1"); return err },
		"Exception":   func() error { _, err := s.Exception(); return err },
		"Goto":        func() error { return s.Goto(1) },
		"Move":        func() error { return s.Move(t.Context(), Next) },
	} {
		if err := read(); !errors.Is(err, ErrRunning) {
			t.Errorf("%s: got %v, want %v", name, err, ErrRunning)
		}
	}
	if list, err := s.Threads(); err != nil || len(list) != 1 {
		t.Errorf("Threads: got %v, %v, want the main thread", list, err)
	}
}

// Long texts of a program are cut. The event log is bounded in bytes, and event numbers continue when events are
// dropped.
func TestEventLogIsBounded(t *testing.T) {
	t.Parallel()
	s := NewSession(recordingOf(t, recordingtest.Loop(1)))
	s.Begin(func() {})
	log := []byte(`{"line":1,"text":"` + strings.Repeat("é", 12_000) + `"}`)
	for range 1000 {
		s.Logged(log)
	}
	list, bytes := s.Events(t.Context(), 0), 0
	for i, e := range list {
		text := e.Body.(Output).Text
		if bytes += len(text); len(text) > 20_100 || !strings.HasSuffix(text, "(cut: 24000 bytes in all)\n") {
			t.Fatalf("got %d bytes, ...%s, want a text cut to %d characters", len(text), text[len(text)-100:],
				maxMessageChars)
		}
		if e.ID != list[0].ID+i {
			t.Fatalf("got event %d after event %d", e.ID, list[i-1].ID)
		}
	}
	if bytes > maxEventBytes || bytes < maxEventBytes/4 || list[len(list)-1].ID != 1000 ||
		s.events.bytes > maxEventBytes {
		t.Errorf("got %d bytes up to event %d, want at most %d up to 1000", bytes, list[len(list)-1].ID, maxEventBytes)
	}
	for range 600 {
		s.AddOutput("stdout", strings.Repeat("x", maxOutputBytes-1))
	}
	if bytes := len(s.events.list) * maxOutputBytes; bytes > maxEventBytes+maxOutputBytes {
		t.Errorf("got %d bytes of output, want at most %d", bytes, maxEventBytes+maxOutputBytes)
	}
}

func TestLongStopOfTheGuestIsTruncated(t *testing.T) {
	t.Parallel()
	s := NewSession(recordingOf(t, recordingtest.Loop(1)))
	body, err := json.Marshal(map[string]any{
		"reason": strings.Repeat("r", 1<<17), "text": strings.Repeat("t", 1<<17), "ids": make([]int, 1<<14),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Stopped(ctx, body, nil); err != nil {
		t.Fatal(err)
	}
	if p := s.position; len(p.Reason) > 200 || len(p.Description) > 10_100 || len(p.HitIDs) > maxBreakpoints {
		t.Errorf("got %d, %d and %d bytes or IDs, want the limits", len(p.Reason), len(p.Description), len(p.HitIDs))
	}
}

// A command that waits for a program which an earlier command has ended gets an error at once.
func TestCommandForAnEndedProgramFails(t *testing.T) {
	t.Parallel()
	s := NewSession(recordingOf(t, recordingtest.Loop(1)))
	killed := errors.New("killed")
	ended := make(chan error)
	go func() {
		_, err := s.Stopped(context.Background(), []byte(`{"reason":"entry"}`),
			func(context.Context, time.Duration, any) ([]byte, error) { return nil, killed })
		ended <- err
	}()
	s.WaitForStop(t.Context())
	if _, err := s.Evaluate(t.Context(), "1 + 1", 0, AnExpression); !errors.Is(err, ErrRequest) {
		t.Errorf("evaluate: got %v, want %v", err, ErrRequest)
	}
	if err := <-ended; !errors.Is(err, killed) {
		t.Fatalf("got %v, want %v", err, killed)
	}
	go s.Ended(Exited{})
	if err := s.Move(t.Context(), Continue); err != nil && !errors.Is(err, ErrRequest) {
		t.Errorf("continue: got %v, want %v, or the end", err, ErrRequest)
	}
}
