package servicetest

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync/atomic"

	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
)

// Code runs code without Python, for tests of what the services do before and after a run. The code is the name of an
// action; any other code completes immediately.
type Code struct {
	Started    chan string                        // receives the execution's ID of a run with the code "wait"
	Printed    [][]byte                           // pieces that "print" prints
	AfterPrint func()                             // called after each piece
	Report     func(supervisor.OutputListener)    // action of the code "report"
	Record     func(supervisor.DebugDriver) error // action of a debugged run
	Runs       atomic.Int64
	Closed     atomic.Int64 // sessions
}

// Run is a supervisor.RunFunc.
func (c *Code) Run(
	ctx context.Context, executionID string, request sandbox.Request, callbacks supervisor.Callbacks,
) (sandbox.Outcome, error) {
	c.Runs.Add(1)
	outcome := sandbox.Outcome{Status: sandbox.StatusCompleted}
	if callbacks.Debugger != nil {
		return outcome, c.Record(callbacks.Debugger)
	}
	switch request.Code {
	case "compute":
		outcome.Usage.CPUMS = 700
	case "show":
		page, _ := json.Marshal(strings.Repeat("x", 300_000))
		output := sandbox.Output{Data: map[string]json.RawMessage{"text/html": page, "text/plain": []byte(`"page"`)}}
		outcome.Outputs = []sandbox.Output{callbacks.Recorder.Show(ctx, output)}
	case "report":
		c.Report(callbacks.Listener)
	case "print":
		for n, piece := range c.Printed {
			callbacks.Listener.Print("stdout", piece)
			c.AfterPrint()
			if n%50 == 49 {
				callbacks.Listener.Note(sandbox.Note{Message: strconv.Itoa(n)})
			}
		}
	case "query":
		_, err := callbacks.Requests.Query(ctx, "", "SELECT 1", nil, func(sandbox.RowBatch) error { return nil })
		return outcome, err
	case "wait":
		c.Started <- executionID
		<-ctx.Done()
		outcome.Status = sandbox.StatusCancelled
	}
	return outcome, nil
}
