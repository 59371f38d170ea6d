package debugger

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// What can be opened has one number, however often it is asked for; and how much that
// is between two moves has a bound.
func TestReferencesAreBounded(t *testing.T) {
	s := NewSession(journal(t, long(10)), nil, false)
	if err := s.Goto(5); err != nil {
		t.Fatal(err)
	}
	ask := func() []any {
		scopes, err := s.Do(t.Context(), "scopes", json.RawMessage(`{"frameId":1}`))
		if err != nil {
			t.Fatal(err)
		}
		variables, err := s.Do(t.Context(), "variables", json.RawMessage(`{"variablesReference":1}`))
		if err != nil {
			t.Fatal(err)
		}
		value, err := s.Do(t.Context(), "evaluate", json.RawMessage(`{"expression":"y"}`))
		if err != nil {
			t.Fatal(err)
		}
		return []any{scopes, variables, value}
	}
	before := ask()
	if again := ask(); !reflect.DeepEqual(again, before) {
		t.Errorf("%v, not %v", again, before)
	}
	n := 0
	var err error
	for ; err == nil && n < 200_000; n++ {
		_, err = s.refer(ref{object: uint64(n + 2)})
	}
	if !errors.Is(err, ErrRequest) || n < 90_000 {
		t.Errorf("%d references: %v", n, err)
	}
	if _, err = s.Do(t.Context(), "evaluate", json.RawMessage(`{"expression":"y ","frameId":1}`)); !errors.Is(err, ErrRequest) {
		t.Errorf("one more: %v", err)
	}
	n = 0
	for err = s.Goto(6); err == nil && n < 1000; n++ {
		_, err = s.refer(ref{expression: strings.Repeat("y", 100_000+n)})
	}
	if !errors.Is(err, ErrRequest) || n < 200 {
		t.Errorf("%d long expressions are kept: %v", n, err)
	}
}

// What a program says of itself is cut, and what is kept of it is bounded in bytes; the
// numbers of the events go on.
func TestWhatIsSaidIsBounded(t *testing.T) {
	s := NewSession(journal(t, long(1)), nil, true)
	s.Begin(func() {})
	log := []byte(`{"line":1,"text":"` + strings.Repeat("é", 20_000) + `"}`)
	for range 2000 {
		s.Logged(log)
	}
	list, bytes := s.Events(t.Context(), 0), 0
	for i, e := range list {
		text := e.Body.(output).Output
		if bytes += len(text); len(text) > 20_100 || !strings.HasSuffix(text, "(cut: 40000 bytes in all)\n") {
			t.Fatalf("%d bytes: ...%s", len(text), text[len(text)-100:])
		}
		if e.ID != list[0].ID+i {
			t.Fatalf("event %d follows %d", e.ID, list[i-1].ID)
		}
	}
	if bytes > maxKept || bytes < maxKept/4 || list[len(list)-1].ID != 2000 || s.kept > maxKept {
		t.Errorf("%d bytes, %d by our count, up to event %d", bytes, s.kept, list[len(list)-1].ID)
	}
	for range 1000 {
		s.Printed("stdout", strings.Repeat("x", maxPiece-1))
	}
	if bytes := len(s.events) * maxPiece; bytes > maxKept+maxPiece {
		t.Errorf("%d bytes were printed", bytes)
	}

	body, err := json.Marshal(map[string]any{"reason": strings.Repeat("r", 1<<20), "text": strings.Repeat("t", 1<<20), "ids": make([]int, 1<<20)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, over := context.WithCancel(t.Context())
	over()
	if _, err := s.Stopped(ctx, body, nil); err != nil {
		t.Fatal(err)
	}
	if w := s.where; len(w.Reason) > 200 || len(w.Description) > 10_100 || len(w.HitIDs) > maxBreakpoints {
		t.Errorf("a stop has %d, %d and %d", len(w.Reason), len(w.Description), len(w.HitIDs))
	}
}
