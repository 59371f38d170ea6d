package chat

import (
	"context"
	"io"
	"sync"

	"glasshouse/sandbox"
)

// The names of events.
const (
	EventText    = "text"    // the model wrote more: Delta
	EventCall    = "call"    // the model begins to write a call: CallBegan
	EventStdout  = "stdout"  // the tool's code wrote to stdout: Delta
	EventStderr  = "stderr"  // the tool's code wrote to stderr: Delta
	EventMessage = "message" // a message was stored: *sandbox.ChatMessage
	EventReload  = "reload"  // events are missing: read the conversation again
	EventProblem = "problem" // a problem that could not be stored: Problem
	EventEnd     = "end"     // the answer is over: read the conversation
)

// Delta is a piece of text of the message at a position.
type Delta struct {
	Position  int    `json:"position"`
	Text      string `json:"text"`
	Truncated bool   `json:"truncated,omitempty"` // the last piece while the code runs: the rest is in the execution
}

// CallBegan says which tool the model is about to call in the message at a position.
type CallBegan struct {
	Position int    `json:"position"`
	Tool     string `json:"tool"`
}

// Problem says what went wrong.
type Problem struct {
	Text string `json:"text"`
}

// event is an event of an answer. Data of EventMessage is its position: the message is read from history when the event
// is sent, so that an erased text is not sent.
type event struct {
	name string
	data any
}

// answerLog has the events of one answer. It drops the text of stored messages, so it holds about one message. It is no
// run.EventLog: what an admin erases must leave it, and nothing of a stored message counts against a budget.
type answerLog struct {
	mu       sync.Mutex
	events   []event
	lastRead int           // events up to this number are never changed by adding text
	change   chan struct{} // closed, and replaced, at each change
	hasEnded bool
}

func newAnswerLog() *answerLog { return &answerLog{change: make(chan struct{})} }

// maxDeltaBytes is the size up to which pieces that nobody has read are joined.
const maxDeltaBytes = 16 << 10

func (l *answerLog) add(name string, data any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.events) - 1; last >= l.lastRead && l.events[last].name == name {
		before, isDelta := l.events[last].data.(Delta)
		delta, _ := data.(Delta)
		if isDelta && before.Position == delta.Position && len(before.Text)+len(delta.Text) < maxDeltaBytes {
			delta.Text = before.Text + delta.Text
			l.events[last].data = delta
			l.wake()
			return
		}
	}
	l.events = append(l.events, event{name, data})
	l.wake()
}

// stored adds the event of a stored message and forgets the pieces of its text, unless the message still runs.
func (l *answerLog) stored(m sandbox.ChatMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, e := range l.events {
		if delta, ok := e.data.(Delta); ok && delta.Position == m.Position && m.Status != sandbox.MessageRunning {
			l.events[n].data = Delta{Position: delta.Position}
		}
	}
	l.events = append(l.events, event{EventMessage, m.Position})
	l.wake()
}

func (l *answerLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event{EventEnd, struct{}{}})
	l.hasEnded = true
	l.wake()
}

// wake wakes the readers. The caller holds mu.
func (l *answerLog) wake() {
	close(l.change)
	l.change = make(chan struct{})
}

// next waits for the event after a number. It skips pieces that are forgotten. It returns io.EOF after the last event.
func (l *answerLog) next(ctx context.Context, after int) (e event, number int, err error) {
	for {
		l.mu.Lock()
		for after < len(l.events) {
			e = l.events[after]
			after++
			l.lastRead = max(l.lastRead, after)
			if delta, ok := e.data.(Delta); !ok || delta.Text != "" || delta.Truncated {
				l.mu.Unlock()
				return e, after, nil
			}
		}
		hasEnded, change := l.hasEnded, l.change
		l.mu.Unlock()
		if hasEnded {
			return event{}, after, io.EOF
		}
		select {
		case <-change:
		case <-ctx.Done():
			return event{}, after, ctx.Err()
		}
	}
}

// count returns the number of events so far.
func (l *answerLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.events)
}
