package service

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"

	"glasshouse/sandbox"
)

// Event is one thing that a streamed execution did. IDs count from 1 without a gap.
// What Data is goes by the Name: started has Started, stdout and stderr Text, debug a
// sandbox.Note, output a sandbox.Output, query a sandbox.Query, result Result, done
// the whole *sandbox.Execution.
type Event struct {
	ID   int64
	Name string
	Data any
}

// Started says which execution began.
type Started struct {
	ExecutionID string         `json:"execution_id"`
	SandboxID   string         `json:"sandbox_id"`
	Status      sandbox.Status `json:"status"`
	CreatedAt   time.Time      `json:"created_at"`
}

// Text is what was printed, in the program's own pieces or in larger ones. The last
// that fits into max_output_size says that the rest is not streamed.
type Text struct {
	Text      string `json:"text"`
	Truncated bool   `json:"truncated,omitempty"`
}

// Result is how the code ended.
type Result struct {
	Status    sandbox.Status     `json:"status"`
	Result    json.RawMessage    `json:"result"`
	Error     *string            `json:"error"`
	Exception *sandbox.Exception `json:"exception,omitempty"`
}

// EventLog is what one execution did, in order. The run adds to it and waits for nobody:
// readers may be slow, go away, and come back. It keeps no more than the execution
// itself does.
type EventLog struct {
	owner string
	begun chan struct{} // closed when the execution is on record and about to run
	over  chan struct{} // closed when it has ended, and that is on record

	mu        sync.Mutex
	execution *sandbox.Execution // as it began, and at last as it ended
	events    []Event            // of stdout and stderr the Data is a *printed
	taken     int64              // no event up to this one may change any more
	bytes     int                // what they hold, about
	more      chan struct{}      // closed, and made anew, with each change
	ended     bool
	endedAt   time.Time
	failed    error // the service's own

	streams map[string]*stream
}

// printed is text that may still grow.
type printed struct {
	text      []byte
	truncated bool
}

// maxPiece is how much text one event has at the most.
const maxPiece = 32 << 10

func newFeed() *EventLog {
	return &EventLog{begun: make(chan struct{}), over: make(chan struct{}), more: make(chan struct{})}
}

// begin is the first event. A feed begins once.
func (f *EventLog) begin(e *sandbox.Execution, owner string, maxOutput int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := *e // the run writes on into its own
	f.execution, f.owner = &first, owner
	f.streams = map[string]*stream{"stdout": {room: maxOutput}, "stderr": {room: maxOutput}}
	f.add("started", Started{e.ID, e.SandboxID, sandbox.StatusRunning, e.CreatedAt}, len(e.Code)+len(e.Context)+1000)
	close(f.begun)
}

// add appends an event and wakes who waits. The caller holds mu.
func (f *EventLog) add(name string, data any, size int) {
	f.events = append(f.events, Event{int64(len(f.events) + 1), name, data})
	f.changed(size)
}

func (f *EventLog) changed(size int) {
	f.bytes += size
	close(f.more)
	f.more = make(chan struct{})
}

func (f *EventLog) tell(name string, data any, size int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.add(name, data, size)
	}
}

// Print is host.Listener's.
func (f *EventLog) Print(name string, text []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.streams[name]
	if s == nil || s.over || len(text) == 0 {
		return
	}
	f.print(name, s.take(text), s.over)
}

// print adds text, to the event before where that is nobody's yet. The caller holds mu.
func (f *EventLog) print(name string, text []byte, truncated bool) {
	if len(text) == 0 && !truncated {
		return
	}
	if n := int64(len(f.events)); n > f.taken && f.events[n-1].Name == name {
		if last := f.events[n-1].Data.(*printed); len(last.text)+len(text) <= maxPiece {
			last.text, last.truncated = append(last.text, text...), truncated
			f.changed(len(text))
			return
		}
	}
	f.add(name, &printed{text, truncated}, len(text))
}

// Note is host.Listener's.
func (f *EventLog) Note(n sandbox.Note) {
	f.tell("debug", n, len(n.Message)+len(n.Data)+len(n.Repr)+len(n.Function)+len(n.Name)+len(n.Type)+len(n.Level)+200)
}

// Output is host.Listener's.
func (f *EventLog) Output(o sandbox.Output) {
	size := len(o.Summary) + len(o.Metadata)
	for kind, part := range o.Data {
		size += len(kind) + len(part)
	}
	f.tell("output", o, size)
}

// query tells of one that was answered.
func (f *EventLog) query(q sandbox.Query) {
	f.tell("query", q, len(q.SQL)+len(q.Parameters)+len(q.Error)+200)
}

// end tells how it ended, or what kept the service from knowing.
func (f *EventLog) end(e *sandbox.Execution, err error, now time.Time) {
	if began, _ := f.Execution(); began == nil && err == nil { // cut off before its code ran
		f.begin(e, e.User, 0)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		for _, name := range []string{"stdout", "stderr"} {
			if s := f.streams[name]; !s.over {
				f.print(name, s.partial, false)
			}
		}
		f.execution = e
		exception, _ := json.Marshal(e.Exception) // for its size alone
		f.add("result", Result{e.Status, e.Result, e.Error, e.Exception}, len(e.Result)+len(exception))
		f.add("done", e, len(e.Stdout)+len(e.Stderr))
	}
	f.ended, f.endedAt, f.failed = true, now, err
	f.changed(0)
	close(f.over)
}

// Over is closed when the execution has ended and that is on record.
func (f *EventLog) Over() <-chan struct{} { return f.over }

// Next is the first event after the one with this id (0: the first of all), as soon
// as there is one. The error is io.EOF where there will be none, what the service
// failed with, or FaultInvalid for an id that no event has had.
func (f *EventLog) Next(ctx context.Context, after int64) (Event, error) {
	for {
		event, there, more, err := f.peek(after)
		if there || err != nil {
			return event, err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// Check is the error that Next would return at once, if any.
func (f *EventLog) Check(after int64) error {
	_, _, _, err := f.peek(after)
	return err
}

func (f *EventLog) peek(after int64) (event Event, there bool, more <-chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := int64(len(f.events))
	switch {
	case after < 0 || after > n:
		err = &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "Last-Event-ID", Detail: "no event of this execution has this id"}
	case after < n:
		event = f.events[after]
		f.taken = max(f.taken, event.ID)
		if p, is := event.Data.(*printed); is {
			event.Data = Text{strings.ToValidUTF8(string(p.text), "\uFFFD"), p.truncated}
		}
	case f.failed != nil:
		err = f.failed
	case f.ended:
		err = io.EOF
	}
	return event, event.ID > 0, f.more, err
}

// Err is what the service failed with, once it is over.
func (f *EventLog) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// Execution is the execution as it is known: as it began, or where it has ended,
// whole.
func (f *EventLog) Execution() (e *sandbox.Execution, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.execution, f.ended
}

// replay is the feed of an execution that has ended, made from its record.
func replay(e sandbox.Execution, now time.Time) *EventLog {
	f := newFeed()
	f.begin(&e, e.User, len(e.Stdout)+len(e.Stderr))
	f.Print("stdout", []byte(e.Stdout))
	f.Print("stderr", []byte(e.Stderr))
	for _, n := range e.DebugInfo.Logs {
		f.Note(n)
	}
	for _, list := range e.DebugInfo.Variables {
		for _, n := range list {
			f.Note(n)
		}
	}
	for _, q := range e.Queries {
		f.query(q)
	}
	for _, o := range e.Outputs {
		f.Output(o)
	}
	f.end(&e, nil, now)
	return f
}
