package debugger

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Event is something that happened, numbered from 1.
type Event struct {
	ID   int    `json:"id"`
	Kind string `json:"event"` // as the Debug Adapter Protocol names them
	Body any    `json:"body"`
}

const (
	maxEvents = 10_000   // are kept,
	maxKept   = 16 << 20 // bytes in all
	maxPiece  = 32 << 10 // of what was printed, in one event
	maxSaid   = 10_000   // characters of what a log point or a stop says: the program can forge it
	maxReason = 100
)

// cut shortens a text to a number of characters, and says so.
func cut(text string, most int) string {
	n := 0
	for at := range text {
		if n++; n > most {
			return text[:at] + fmt.Sprintf("... (cut: %d bytes in all)", len(text))
		}
	}
	return text
}

// output is the body of an event of what was printed or said.
type output struct {
	Category string `json:"category"`
	Output   string `json:"output"`
	Line     int    `json:"line,omitempty"` // of a log point
}

// emit adds an event. The caller holds mu.
func (s *Session) emit(kind string, body any) {
	s.events = append(s.events, Event{s.dropped + len(s.events) + 1, kind, body})
	s.kept += weightOf(body)
	if len(s.events) > maxEvents || s.kept > maxKept {
		n := 0
		for ; n < len(s.events)-1 && (len(s.events)-n > maxEvents/2 || s.kept > maxKept/2); n++ {
			s.kept -= weightOf(s.events[n].Body)
		}
		s.events = slices.Clone(s.events[n:])
		s.dropped += n
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// weightOf is about how many bytes an event takes.
func weightOf(body any) int {
	n := 500
	switch body := body.(type) {
	case output:
		n += len(body.Output)
	case map[string]any:
		text, _ := body["text"].(string)
		hits, _ := body["hitBreakpointIds"].([]int)
		n += len(text) + 8*len(hits)
	}
	return n
}

// Events returns the events after one, waiting for the first until ctx ends.
func (s *Session) Events(ctx context.Context, after int) []Event {
	for {
		s.mu.Lock()
		from := min(max(after-s.dropped, 0), len(s.events))
		list, changed := slices.Clone(s.events[from:]), s.changed
		s.taken = s.dropped + len(s.events)
		s.mu.Unlock()
		if len(list) > 0 {
			return list
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// Last returns the number of the last event; 0 before the first.
func (s *Session) Last() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped + len(s.events)
}

// Printed tells what the program has written, or what is said of it. It is added to the
// last event where that is of the same kind and nobody has taken it.
func (s *Session) Printed(category, text string) {
	if text == "" {
		return
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.events); n > 0 && s.dropped+n > s.taken {
		last := &s.events[n-1]
		if before, is := last.Body.(output); is && before.Category == category && before.Line == 0 && len(before.Output)+len(text) <= maxPiece {
			before.Output += text
			last.Body = before
			s.kept += len(text)
			return // who waits for an event was woken by it
		}
	}
	s.emit("output", output{Category: category, Output: text})
}
