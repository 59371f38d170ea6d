package debugger

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"glasshouse/sandbox"
)

// Event is an event of a session. Events are numbered from 1.
type Event struct {
	ID   int
	Body any // Stopped, Continued, Edited, Output, BreakpointChanged, Exited or Terminated
}

// Stopped means that the session has a new position. See Position for the fields.
type Stopped struct {
	Reason, Description string
	Text                string // of an exception: its type and message
	HitIDs              []int
	Step                int
	Line                int64
	Thread              uint64
}

// Continued means that the program runs on.
type Continued struct{ Thread uint64 }

// BreakpointChanged means that a breakpoint can or cannot be hit any more.
type BreakpointChanged struct{ Breakpoint BreakpointView }

// Edited means that a client changed the stopped program.
type Edited struct{ Edit sandbox.Edit }

// Output is text that the program printed, or a message about the program.
type Output struct {
	Category string
	Text     string
	Line     int // of a log point's message, or where an exception was raised; otherwise 0

	IsTraceback bool // the text names the program's file as SourceName
}

// The categories of output. OutputConsole is for messages of log points and of the service. The program prints to
// stdout and stderr, and stderr also has why it ended.
const (
	OutputConsole = "console"
	OutputStderr  = "stderr"
)

// SourceName is the name of the program in tracebacks.
const SourceName = "<string>"

// Exited means that the run is over.
type Exited struct {
	Code      int
	Status    string // of the execution
	Execution string
}

// Terminated is the last event of a run.
type Terminated struct{}

// Limits of the event log. When one is exceeded, the older half is dropped.
const (
	maxEvents      = 10_000
	maxEventBytes  = 16 << 20
	maxOutputBytes = 32 << 10 // of one Output event
	eventOverhead  = 500      // typical bytes of an event without its texts
)

// eventLog holds the latest events.
type eventLog struct {
	list    []Event
	bytes   int
	dropped int // number of events before list
	taken   int // the last event that a client has received; this event must not change
}

// shorten cuts a text to a number of characters. If it cuts, it appends the original size in bytes.
func shorten(text string, maxChars int) string {
	n := 0
	for at := range text {
		if n++; n > maxChars {
			return text[:at] + fmt.Sprintf("... (cut: %d bytes in all)", len(text))
		}
	}
	return text
}

// addEvent adds an event. The caller holds mu.
func (s *Session) addEvent(body any) {
	log := &s.events
	log.list = append(log.list, Event{log.last() + 1, body})
	log.bytes += eventBytes(body)
	if len(log.list) > maxEvents || log.bytes > maxEventBytes {
		n := 0
		for ; n < len(log.list)-1 && (len(log.list)-n > maxEvents/2 || log.bytes > maxEventBytes/2); n++ {
			log.bytes -= eventBytes(log.list[n].Body)
		}
		log.list = slices.Clone(log.list[n:])
		log.dropped += n
	}
	close(s.updated)
	s.updated = make(chan struct{})
}

// eventBytes estimates the memory of an event.
func eventBytes(body any) int {
	switch body := body.(type) {
	case Output:
		return eventOverhead + len(body.Text)
	case BreakpointChanged:
		return eventOverhead + len(body.Breakpoint.Message)
	case Edited:
		bytes := eventOverhead + len(body.Edit.Code)
		for _, c := range body.Edit.Changes {
			bytes += len(c.Name) + len(c.Value) + len(c.Type)
		}
		return bytes
	case Stopped:
		return eventOverhead + len(body.Description) + len(body.Text) + 8*len(body.HitIDs)
	}
	return eventOverhead
}

func (l *eventLog) last() int { return l.dropped + len(l.list) }

// Events returns the events after one, and waits for the first of them until ctx ends.
func (s *Session) Events(ctx context.Context, after int) []Event {
	for {
		s.mu.Lock()
		from := min(max(after-s.events.dropped, 0), len(s.events.list))
		list, updated := slices.Clone(s.events.list[from:]), s.updated
		s.events.taken = s.events.last()
		s.mu.Unlock()
		if len(list) > 0 {
			return list
		}
		select {
		case <-updated:
		case <-ctx.Done():
			return nil
		}
	}
}

// LastEvent returns the number of the last event, and 0 before the first.
func (s *Session) LastEvent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events.last()
}

// AddTraceback adds the text of the exception, or of the limit, that has ended the program. line is where the exception
// was raised; 0 if that is not known.
func (s *Session) AddTraceback(text string, line int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text = shorten(strings.ToValidUTF8(text, "\uFFFD"), maxOutputBytes)
	s.addEvent(Output{Category: OutputStderr, Text: text, Line: line, IsTraceback: true})
}

// AddOutput adds output of a category. It extends the last event if that event has the same category and no client has
// received it yet.
func (s *Session) AddOutput(category, text string) {
	if text == "" {
		return
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	s.mu.Lock()
	defer s.mu.Unlock()
	if log := &s.events; len(log.list) > 0 && log.last() > log.taken {
		last := &log.list[len(log.list)-1]
		out, isOutput := last.Body.(Output)
		if isOutput && out.Category == category && out.Line == 0 && len(out.Text)+len(text) <= maxOutputBytes {
			out.Text += text
			last.Body = out
			log.bytes += len(text)
			return // the waiting clients were woken when the event was added
		}
	}
	s.addEvent(Output{Category: category, Text: text})
}
