package run

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// Event is one event of a streamed execution. IDs count from 1 without a gap. The type of
// Data depends on Name: started has Started, stdout and stderr have Text, debug has a
// sandbox.Note, output a sandbox.Output, query a sandbox.Query, result a Result, and done
// the whole *sandbox.Execution.
type Event struct {
	ID   int64
	Name string
	Data any
}

// Started is the first event.
type Started struct {
	ExecutionID string         `json:"execution_id"`
	SandboxID   string         `json:"sandbox_id"`
	Status      sandbox.Status `json:"status"`
	CreatedAt   time.Time      `json:"created_at"`
}

// Text is a piece of printed text. Truncated is set on the last piece that fits into max_output_size, if more was
// printed.
type Text struct {
	Text      string `json:"text"`
	Truncated bool   `json:"truncated,omitempty"`
	Origin    string `json:"origin,omitempty"` // the earlier execution whose thread printed it; empty: this execution
}

// Result is the outcome of the code.
type Result struct {
	Status    sandbox.Status     `json:"status"`
	Result    json.RawMessage    `json:"result"`
	Error     *string            `json:"error"`
	Exception *sandbox.Exception `json:"exception,omitempty"`
}

// EventLog holds the events of one execution so far, in order. The run appends events without waiting. Any number of
// readers may read, stop and resume. The log holds no more data than the execution itself. An EventLog is a
// supervisor.OutputListener.
type EventLog struct {
	id    string        // of the execution; "" before eventLogs keeps the log
	owner string        // of its sandbox, likewise
	begun chan struct{} // closed when the execution is on record and about to run; nil: nobody waits for that
	over  chan struct{} // closed when the execution has ended and its end is on record

	mu        sync.Mutex
	execution *sandbox.Execution // the opening; after the end, the whole execution
	events    []Event            // the Data of stdout and stderr is a *printed
	read      int64              // ID of the last event that a reader has read; the events up to it do not change
	bytes     int                // approximate size of the events
	changed   chan struct{}      // closed at the next change; nil: no reader waits for one
	ended     bool
	err       error // the service's error that ended the execution

	maxOutput int
	streams   map[string]*TextStream // nil before the first text: most logs of short runs have none
}

// printed is text that may still grow.
type printed struct {
	text      []byte
	truncated bool
	origin    string
}

// maxTextBytes is the maximum text in one event.
const maxTextBytes = 32 << 10

func newEventLog() *EventLog {
	return &EventLog{over: make(chan struct{})}
}

// begin adds the first event. It is called once.
func (l *EventLog) begin(e *sandbox.Execution, maxOutput int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.execution, l.maxOutput = e, maxOutput
	l.append("started", Started{e.ID, e.SandboxID, sandbox.StatusRunning, e.CreatedAt}, len(e.Code)+len(e.Context)+1000)
	if l.begun != nil {
		close(l.begun)
	}
}

// stream returns the stream of this name; nil: there is none, or the execution has not begun. The caller holds mu.
func (l *EventLog) stream(name string) *TextStream {
	if l.streams == nil && l.execution != nil {
		l.streams = NewTextStreams(l.maxOutput)
	}
	return l.streams[name]
}

// append adds an event and wakes the readers. The caller holds mu.
func (l *EventLog) append(name string, data any, size int) {
	l.events = append(l.events, Event{int64(len(l.events) + 1), name, data})
	l.wakeReaders(size)
}

// wakeReaders counts size more bytes and wakes the readers. The caller holds mu.
func (l *EventLog) wakeReaders(size int) {
	l.bytes += size
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

func (l *EventLog) add(name string, data any, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.append(name, data, size)
	}
}

// Print adds text that was printed to stdout or stderr.
func (l *EventLog) Print(name string, text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stream := l.stream(name)
	if stream == nil || stream.IsFull || len(text) == 0 {
		return
	}
	l.appendText(name, "", stream.Take(text), stream.IsFull)
}

// PrintLate adds text that a thread of the execution origin has printed.
func (l *EventLog) PrintLate(origin, name, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if stream := l.stream(name); stream != nil && !stream.IsFull && text != "" {
		l.appendText(name, origin, stream.takeApart(text), stream.IsFull)
	}
}

// appendText adds text to the last event if that event belongs to the same stream and no reader has read it. Otherwise
// it adds a new event. The caller holds mu.
func (l *EventLog) appendText(name, origin string, text []byte, truncated bool) {
	if len(text) == 0 && !truncated {
		return
	}
	if n := int64(len(l.events)); n > l.read && l.events[n-1].Name == name {
		last := l.events[n-1].Data.(*printed)
		if last.origin == origin && len(last.text)+len(text) <= maxTextBytes {
			last.text, last.truncated = append(last.text, text...), truncated
			l.wakeReaders(len(text))
			return
		}
	}
	l.append(name, &printed{text, truncated, origin}, len(text))
}

// Note adds a note of the code.
func (l *EventLog) Note(n sandbox.Note) {
	l.add("debug", n, len(n.Message)+len(n.Data)+len(n.Repr)+len(n.Function)+len(n.Name)+len(n.Type)+len(n.Level)+200)
}

// Output adds a rich output.
func (l *EventLog) Output(o sandbox.Output) {
	size := len(o.Summary) + len(o.Metadata)
	for kind, part := range o.Data {
		size += len(kind) + len(part)
	}
	l.add("output", o, size)
}

// query adds a statement that has ended.
func (l *EventLog) query(q sandbox.Query) {
	l.add("query", q, len(q.SQL)+len(q.Parameters)+len(q.Error)+200)
}

// end adds the last events, or the service's error if it did not run the code. The caller then closes over.
func (l *EventLog) end(e *sandbox.Execution, err error) {
	if began, _ := l.Execution(); began == nil && err == nil { // cancelled before its code ran
		l.begin(e, 0)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		for _, name := range []string{"stdout", "stderr"} {
			if stream := l.streams[name]; stream != nil && !stream.IsFull {
				l.appendText(name, "", stream.Partial, false)
			}
		}
		l.execution = e
		exception, _ := json.Marshal(e.Exception) // only for its size
		l.append("result", Result{e.Status, e.Result, e.Error, e.Exception}, len(e.Result)+len(exception))
		l.append("done", e, len(e.Stdout)+len(e.Stderr))
	}
	l.ended, l.err = true, err
	l.wakeReaders(0)
}

// size returns the approximate size of the events.
func (l *EventLog) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// Over is closed when the execution has ended and its end is on record.
func (l *EventLog) Over() <-chan struct{} { return l.over }

// Next waits for the event that follows the event with this ID; 0 means the first event. It returns io.EOF after the
// last event, FaultInvalid for an unknown ID, ctx's error, or the error that ended the execution.
func (l *EventLog) Next(ctx context.Context, after int64) (Event, error) {
	for {
		event, found, changed, err := l.peek(after)
		if found || err != nil {
			return event, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// Check returns the error that Next would return without waiting, or nil.
func (l *EventLog) Check(after int64) error {
	_, _, _, err := l.peek(after)
	return err
}

func (l *EventLog) peek(after int64) (event Event, found bool, changed <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := int64(len(l.events))
	switch {
	case after < 0 || after > n:
		err = &sandbox.Error{
			Fault: sandbox.FaultInvalid, Field: "Last-Event-ID", Detail: "no event of this execution has this id",
		}
	case after < n:
		event = l.events[after]
		l.read = max(l.read, event.ID)
		if p, is := event.Data.(*printed); is {
			event.Data = Text{strings.ToValidUTF8(string(p.text), "\uFFFD"), p.truncated, p.origin}
		}
	case l.err != nil:
		err = l.err
	case l.ended:
		err = io.EOF
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return event, event.ID > 0, l.changed, err
}

// Err returns the service's error that ended the execution, or nil.
func (l *EventLog) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Execution returns the opening of the execution, or the whole execution if it has ended.
func (l *EventLog) Execution() (e *sandbox.Execution, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.execution, l.ended
}

// replay makes the event log of an execution that has ended from its record.
func replay(e sandbox.Execution) *EventLog {
	l := newEventLog()
	l.begin(&e, len(e.Stdout)+len(e.Stderr))
	l.Print("stdout", []byte(e.Stdout))
	l.Print("stderr", []byte(e.Stderr))
	for _, n := range e.DebugInfo.Logs {
		l.Note(n)
	}
	for _, list := range e.DebugInfo.Variables {
		for _, n := range list {
			l.Note(n)
		}
	}
	for _, q := range e.Queries {
		l.query(q)
	}
	for _, o := range e.Outputs {
		l.Output(o)
	}
	l.end(&e, nil)
	close(l.over)
	return l
}

// Follow returns the event log of an execution, and the ID after which a reader continues that has read the events up
// to after. If the service has no log of the execution, Follow waits for its end and makes the log from its record. A
// reader that has read some events then receives only the last event, which is the whole execution.
func (s *Service) Follow(ctx context.Context, caller sandbox.Key, id string, after int64) (*EventLog, int64, error) {
	l := s.eventLogs.follow(id)
	if l != nil && access.MaySee(caller, l.owner) {
		return l, after, s.Access.AuditView(ctx, caller, "execution/"+id, l.owner)
	}
	s.Await(ctx, caller, id)
	e, err := s.Records.Execution(context.WithoutCancel(ctx), caller, id)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, 0, err
	}
	l = replay(e)
	if after > 0 {
		after = int64(len(l.events)) - 1
	}
	return l, after, nil
}
