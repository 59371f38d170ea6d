package debug

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"glasshouse/debugger"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/run"
)

// interactiveRun is the run of a debug session. It is the run's run.Debugger.
type interactiveRun struct {
	session   *Session
	began     chan error // gets nil when the code begins
	isStopped atomic.Bool

	mu      sync.Mutex // stdout and stderr come from goroutines of their own
	streams map[string]*run.TextStream
}

var _ run.Debugger = (*interactiveRun)(nil)

// Begun gives the session its execution.
func (i *interactiveRun) Begun(executionID string, maxOutput int) {
	i.streams = run.NewTextStreams(maxOutput)
	i.session.setExecution(executionID)
}

// IsStopped reports whether the program is stopped.
func (i *interactiveRun) IsStopped() bool { return i.isStopped.Load() }

// Print sends printed text to the debugger's clients.
func (i *interactiveRun) Print(name string, text []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	stream := i.streams[name]
	if stream.IsFull || len(text) == 0 {
		return
	}
	i.session.AddOutput(name, string(stream.Take(text)))
	if stream.IsFull {
		i.session.AddOutput(
			debugger.OutputConsole,
			"more than max_output_size was written to "+name+": the rest is not shown here\n",
		)
	}
}

// PrintLate prints the text of a thread of an earlier run like that of this run.
func (i *interactiveRun) PrintLate(_, name, text string) { i.Print(name, []byte(text)) }

// flush sends the bytes of an incomplete character at the end of the output.
func (i *interactiveRun) flush() {
	for name, stream := range i.streams {
		i.session.AddOutput(name, string(stream.Partial))
	}
}

// StatementEnded tells the session of a statement that its steps can enter.
func (i *interactiveRun) StatementEnded(q sandbox.Query) { i.session.StatementEnded(q) }

// Note does nothing: the execution has the notes at the end.
func (i *interactiveRun) Note(sandbox.Note) {}

// Output does nothing: the execution has the outputs at the end.
func (i *interactiveRun) Output(sandbox.Output) {}

// Begin returns the session's breakpoints.
func (i *interactiveRun) Begin(pause func()) json.RawMessage {
	breakpoints := i.session.Session.Begin(pause)
	i.began <- nil
	return breakpoints
}

// Records tells the session that the recording has grown.
func (i *interactiveRun) Records([]byte, uint64) error {
	i.session.Recorded()
	return nil
}

// Logged sends the message of a log point to the clients.
func (i *interactiveRun) Logged(body []byte) { i.session.Logged(body) }

// Stopped gives the session the stopped program.
func (i *interactiveRun) Stopped(ctx context.Context, location []byte, command supervisor.Command) (any, error) {
	i.isStopped.Store(true)
	defer i.isStopped.Store(false)
	return i.session.Stopped(ctx, location, command)
}
