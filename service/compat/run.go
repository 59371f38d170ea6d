package compat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/run"
)

// WhenIdle calls begin, which starts a run in a sandbox, and calls it again when the sandbox's earlier runs have ended
// as long as it returns FaultBusy. If ctx ends meanwhile, it returns the cause.
func (c Config) WhenIdle(ctx context.Context, sandboxID string, begin func() error) error {
	for {
		err := begin()
		if ctx.Err() != nil && err != nil {
			return context.Cause(ctx)
		}
		if err == nil || sandbox.FaultOf(err) != sandbox.FaultBusy {
			return err
		}
		c.Live.AwaitIdle(ctx, sandboxID)
	}
}

// keepAliveInterval is the time after which Output.KeepAlive is called.
const keepAliveInterval = 5 * time.Second

// Output receives what an execution prints and shows.
type Output struct {
	Print     func(stream, text string)              // stream is stdout or stderr
	PrintLate func(executionID, stream, text string) // of a thread of an earlier execution; nil: Print
	Show      func(sandbox.Output)                   // whole, without references to artifacts
	KeepAlive func()                                 // called after keepAliveInterval without output; nil: not
}

// Follow sends the output of an execution to out, and returns the execution when it has ended. Notes in the output say
// what is missing. If ctx ends, Follow cancels the execution, and still waits for its end. It returns the error of the
// service that ended the execution.
func (c Config) Follow(
	ctx context.Context, caller sandbox.Key, log *run.EventLog, out Output,
) (*sandbox.Execution, error) {
	begun, _ := log.Execution()
	toTheEnd := context.WithoutCancel(ctx)
	stop := context.AfterFunc(ctx, func() {
		_ = c.Runs.Cancel(toTheEnd, caller, begun.ID) // an error says that the execution has ended
	})
	defer stop()
	for last := int64(0); ; {
		waiting, cancel := context.WithTimeout(toTheEnd, keepAliveInterval)
		event, err := log.Next(waiting, last)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			if out.KeepAlive != nil {
				out.KeepAlive()
			}
			continue
		}
		if err != nil { // after the event with the execution there is io.EOF, which is not reached
			return nil, err
		}
		last = event.ID
		switch data := event.Data.(type) {
		case run.Text:
			switch {
			case data.Text == "":
			case data.Origin != "" && out.PrintLate != nil:
				out.PrintLate(data.Origin, event.Name, data.Text)
			default:
				out.Print(event.Name, data.Text)
			}
		case sandbox.Output:
			whole, err := c.Records.WholeOutput(toTheEnd, caller, data)
			if err != nil {
				c.Log.WithError(err).Warn("a part of an output cannot be read")
				out.Print("stderr", "[a part of this output could not be read; the log of the service says why]\n")
			}
			out.Show(whole)
		case *sandbox.Execution:
			printMissing(data, out)
			return data, nil
		}
	}
}

// printMissing prints notes that say which output of an execution is missing.
func printMissing(e *sandbox.Execution, out Output) {
	for _, stream := range []string{"stdout", "stderr"} {
		if missing := e.Truncated[stream]; missing > 0 {
			out.Print(stream, fmt.Sprintf("\n[... %d more bytes exceed max_output_size and were left out; "+
				"execution %s has the end ...]\n", missing, e.ID))
		}
	}
	if missing := e.Truncated["outputs"]; missing > 0 {
		out.Print("stderr", fmt.Sprintf("[%d more outputs were left out: too many, or too large]\n", missing))
	}
}

// Failure describes why an execution did not complete, in the words of an exception.
type Failure struct{ Name, Message, Traceback string }

// FailureOf returns why an execution did not complete. names has the API's names for the ends that its code did not
// choose.
func FailureOf(e *sandbox.Execution, names map[sandbox.Status]string) Failure {
	if x := e.Exception; x != nil && e.Status == sandbox.StatusFailed {
		return Failure{x.Type, x.Message, x.TracebackText(fileName)}
	}
	text := *e.Error
	if e.SessionReset {
		text += "; the variables are lost, the files in /session stay"
	}
	name := cmp.Or(names[e.Status], "SandboxError")
	return Failure{name, text, name + ": " + text + "\n"}
}

// fileName is the name of the code in tracebacks.
const fileName = "<string>"

// Stderr returns what Python would print about the end of an execution: nothing if it completed or called sys.exit.
func Stderr(e *sandbox.Execution) string { return e.EndText(fileName) }

// PistonRun is the end of an execution in the form of a Piston server, which LibreChat uses, too.
type PistonRun struct {
	Stdout   string  `json:"stdout"`
	Stderr   string  `json:"stderr"`
	Output   string  `json:"output"`
	Code     int     `json:"code"`
	Signal   *string `json:"signal"`
	Message  *string `json:"message"`
	Status   *string `json:"status"`
	Memory   int64   `json:"memory"`    // bytes
	CPUTime  float64 `json:"cpu_time"`  // milliseconds
	WallTime float64 `json:"wall_time"` // milliseconds
}
