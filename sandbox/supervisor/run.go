package supervisor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/protocol"
)

// Callbacks handle the requests and events of a run. Each may be nil. Without Requests every
// request of the code is refused. Without a Recorder outputs are not changed and connections
// are not recorded. Without Inputs the run cannot be replayed. Without a Debugger the run is not debugged.
type Callbacks struct {
	Requests RequestHandler
	Inputs   Inputs
	Recorder Recorder
	Debugger DebugDriver
	Listener OutputListener

	// Ordered makes the output come to the Listener in the order of the program: text that is printed after a note or
	// a rich output comes after it. The guest waits for an answer to each of them.
	Ordered bool
}

// Run runs code in the session and returns how it ended. Code that fails, hangs or is
// killed is a status of the outcome, not an error, and so is a cancelled ctx. If the cause of
// ctx's end is FaultLimit, the code has as long to end as at its time limit, whatever
// request.CancelTimeout is. Run returns FaultFull if no guest became free in time; any other
// error is internal.
func (s *Session) Run(
	ctx context.Context, executionID string, request sandbox.Request, callbacks Callbacks,
) (sandbox.Outcome, error) {
	if s.supervisor.stub != nil {
		outcome, err := s.supervisor.stub(ctx, executionID, request, callbacks)
		s.cpu.add(time.Duration(outcome.Usage.CPUMS * float64(time.Millisecond)))
		return outcome, err
	}
	process, err := s.guest(ctx, "")
	if err != nil {
		return sandbox.Outcome{}, err
	}
	s.mu.Lock()
	start := s.start
	s.start = nil // the next run did not wait for it
	s.mu.Unlock()
	if err := process.Wake(); err != nil {
		return sandbox.Outcome{}, err
	}
	defer process.Rest() // does nothing if the process was closed
	network, err := s.supervisor.openNetwork(process.Network, s.sandbox.Policy.AllowedHosts, callbacks.Recorder)
	if err != nil {
		return sandbox.Outcome{}, isolate.AsShortage(err)
	}
	meter := s.newWorkMeter(process)
	var pump *recordingPump
	if callbacks.Debugger != nil {
		if pump, err = startRecordingPump(process, callbacks.Debugger, meter); err != nil {
			return sandbox.Outcome{}, errors.Join(isolate.AsShortage(err), network.close(&sandbox.Outcome{}))
		}
	}
	maxOutput := s.sandbox.Policy.MaxOutputSize
	loop := &runLoop{
		process: process, callbacks: callbacks, pump: pump,
		stdout:    newOutputBuffer(process.Stdout, maxOutput, printTo(callbacks.Listener, "stdout")),
		stderr:    newOutputBuffer(process.Stderr, maxOutput, printTo(callbacks.Listener, "stderr")),
		debugInfo: sandbox.DebugInfo{Logs: []sandbox.Note{}, Variables: map[string][]sandbox.Note{}},
		outputs:   []sandbox.Output{}, truncated: map[string]int64{},
		outputBytesLeft: maxOutputBytes, noteBytesLeft: maxNoteBytes, meter: meter,
	}
	loop.stdout.meter, loop.stderr.meter = meter, meter
	if callbacks.Debugger == nil { // a debugger may be busy while it gets output, and must not keep others' turns
		for _, b := range []*outputBuffer{loop.stdout, loop.stderr} {
			b.cpu, b.user = s.supervisor.CPU, s.sandbox.Owner
		}
	}
	loop.isAlone = s.supervisor.runs.Add(1) == 1
	defer s.supervisor.runs.Add(-1)

	started := time.Now()
	done, ended, guestErr := s.exchange(ctx, loop, executionID, request)
	elapsed := time.Since(started) - ended.held
	process.Freeze()
	if limit := process.ExceededLimit(); limit != "" && guestErr == nil {
		guestErr = errors.New("the guest exceeded " + limit) // detected only at the end
	}
	loop.stdout.stop()
	loop.stderr.stop()

	version := process.EnvironmentVersion()
	outcome := sandbox.Outcome{
		Start: start, Began: started, Duration: elapsed, Usage: sandbox.Usage{WallMS: milliseconds(elapsed)},
		DebugInfo: loop.debugInfo, Outputs: loop.outputs, Connections: []sandbox.Connection{}, Truncated: loop.truncated,
		Isolation: s.supervisor.isolator.Isolation(), Environment: &version,
	}
	err = network.close(&outcome)
	if pump != nil {
		var illegal *protocol.IllegalFrame
		if pumpErr := pump.stop(); errors.As(pumpErr, &illegal) {
			guestErr = illegal
		} else {
			err = errors.Join(err, pumpErr)
		}
	}
	if network != nil {
		outcome.Isolation.EnforcedBy = maps.Clone(outcome.Isolation.EnforcedBy)
		outcome.Isolation.EnforcedBy["network"] = "network namespace of its own, seccomp, broker"
	}
	s.conclude(&outcome, request, process, meter, done, guestErr, ended.by)
	outcome.SessionReset = outcome.SessionReset || ended.killed // the Done frame may have come just before the kill
	outcome.Stdout = loop.stdout.text("stdout", outcome.Truncated)
	outcome.Stderr = loop.stderr.text("stderr", outcome.Truncated)
	if outcome.SessionReset {
		s.drop(process)
	}
	return outcome, err
}

// exchange sends the request and reads the guest's frames until the Done frame, whose body it
// returns. It returns an error if the watchdog kills the guest or the guest breaks the
// protocol.
func (s *Session) exchange(
	ctx context.Context, loop *runLoop, executionID string, request sandbox.Request,
) (done []byte, ended runEnd, err error) {
	process, debugger := loop.process, loop.callbacks.Debugger
	order := protocol.Run{
		ExecutionID: executionID,
		Code:        request.Code,
		Context:     json.RawMessage(request.Context),
		Watch:       debugger != nil,
		Ordered:     loop.callbacks.Ordered,
		Scope:       request.Scope,
		Facts:       request.Facts,
		Cell:        request.Cell,
	}
	if inputs := loop.callbacks.Inputs; inputs != nil {
		order.Inputs = &protocol.Inputs{Seed: inputs.Seed()}
		if clock := inputs.Clock(); clock != nil {
			order.Inputs.Clock = new(base64.StdEncoding.EncodeToString(clock))
		}
	}
	var fds []int
	if debugger != nil {
		order.Stops = debugger.Begin(func() { process.Signal(unix.SIGUSR1) })
		fds = []int{loop.pump.ring.fd()}
	}
	process.EnforceLimits() // before an interrupt can happen
	// The frame is sent before the guest thaws, so that the guest wakes up only once.
	process.Conn.MarkRun()
	finishWrite := process.Conn.WriteAsync(protocol.KindRun, order, fds...)
	process.Thaw()
	loop.watchdog = newWatchdog(ctx, process, s.limit(request), request, loop.meter.stop)
	if err = finishWrite(); err == nil {
		done, err = loop.run(loop.watchdog.requests)
	}
	return done, loop.watchdog.stop(err != nil), err
}

// limit returns how long a run may take.
func (s *Session) limit(request sandbox.Request) time.Duration {
	limit := time.Duration(s.sandbox.Policy.MaxExecutionTime) * time.Second
	if timeout := request.TimeLimit(); timeout > 0 {
		limit = min(limit, timeout)
	}
	return limit
}

// Bounds of the values in a guest's Done frame.
const (
	maxExceptionBytes = 1 << 20  // JSON; our guest code sends at most fifty frames, with bounded lines and values
	maxResultBytes    = 21 << 20 // JSON; our guest code sends at most 20 MiB (json_values.py)
	maxTruncatedBytes = 1000     // JSON
	maxFactsBytes     = 1 << 18  // JSON; our guest code sends at most 60 facts (fact_probes.py)
	maxCellBytes      = 1 << 19  // JSON; our guest code sends at most 40 steps of 20 cells (cell_walk.py)
	maxClockBytes     = 1 << 19  // base64; our guest code sends at most 256 KiB (inputs.c)
	maxThreads        = 1 << 32  // our guest code counts to less (inputs.c)
	maxMissing        = 1 << 50  // one count in truncated; the sum of two does not overflow
	maxCompileMS      = 1e9      // the outcome has at most the duration of the run
)

// claim is the checked content of a guest's Done frame.
type claim struct {
	result       json.RawMessage
	exception    *sandbox.Exception
	truncated    map[string]int64
	interrupted  bool
	compileTime  time.Duration
	clock        []byte // nil: the guest cannot log its clocks
	clockMissing int64  // readings that are not in clock
	threads      int64  // that the code started
	facts        []sandbox.Fact
	cell         *sandbox.Cell
}

// readClaim checks the size of each part before it parses the part. Its error is a *protocol.IllegalFrame.
func readClaim(body []byte, conn *protocol.Conn) (claim, error) {
	var done protocol.Done
	if err := conn.Decode(protocol.KindDone, body, &done); err != nil {
		return claim{}, err
	}
	c := claim{result: done.Result, interrupted: done.Interrupt}
	if done.CompileMS > 0 { // not for a NaN
		c.compileTime = time.Duration(min(done.CompileMS, maxCompileMS) * float64(time.Millisecond))
	}
	if done.Clock != nil {
		clock, err := base64.StdEncoding.DecodeString(*done.Clock)
		if err != nil || len(*done.Clock) > maxClockBytes {
			if err := conn.Illegal("the end of the run has readings of clocks that are not base64"); err != nil {
				return claim{}, err
			}
		}
		c.clock, c.clockMissing = append([]byte{}, clock...), min(max(done.ClockMissing, 0), maxMissing)
		c.threads = min(max(done.Threads, 0), maxThreads)
	}
	if len(done.Result) > maxResultBytes || len(done.Exception) > maxExceptionBytes ||
		len(done.Truncated) > maxTruncatedBytes || len(done.Facts) > maxFactsBytes ||
		len(done.Cell) > maxCellBytes ||
		sandbox.JSONDepth(done.Result) > maxDepth {
		if err := conn.Illegal("the end of the run has values that are too large or too deep"); err != nil {
			return claim{}, err
		}
	}
	for _, part := range []struct {
		text json.RawMessage
		v    any
	}{{done.Truncated, &c.truncated}, {done.Exception, &c.exception}, {done.Facts, &c.facts},
		{done.Cell, &c.cell}} {
		if len(part.text) == 0 {
			continue
		}
		if err := json.Unmarshal(part.text, part.v); err != nil {
			return claim{}, &protocol.IllegalFrame{Why: "the end of the run cannot be parsed: " + err.Error()}
		}
	}
	if x := c.exception; x != nil {
		setEmptyTraceback(x)
		for n := range x.Chain {
			setEmptyTraceback(&x.Chain[n])
		}
	}
	return c, nil
}

// setEmptyTraceback makes a missing traceback empty: no answer has null for a list.
func setEmptyTraceback(x *sandbox.Exception) {
	if x.Traceback == nil {
		x.Traceback = []sandbox.Frame{}
	}
}

// exitTimeout is how long a process may take to exit after the end of its connection.
const exitTimeout = time.Second

// explainEnd returns why a guest sent no Done frame. If it lives on although its connection has ended, that is a
// violation of the protocol.
func explainEnd(process *isolate.Process, err error) error {
	var illegal *protocol.IllegalFrame
	if errors.As(err, &illegal) {
		return err
	}
	select {
	case <-process.Done():
		return err
	case <-time.After(exitTimeout):
		return &protocol.IllegalFrame{Why: "the connection ended, and the process did not"}
	}
}

// conclude decides how the run ended. Facts from the clock and the kernel take precedence over
// the guest's claim. guestErr says why there is no claim; endedBy says why the watchdog ended
// the run.
func (s *Session) conclude(
	o *sandbox.Outcome, request sandbox.Request, process *isolate.Process, meter *workMeter, done []byte,
	guestErr error, endedBy string,
) {
	var claimed claim
	if guestErr == nil {
		claimed, guestErr = readClaim(done, process.Conn)
	}
	peak := process.Peak()
	if guestErr != nil {
		guestErr = explainEnd(process, guestErr)
		process.Kill()
		<-process.Done() // the kernel does not count the CPU time of a process while it exits
		peak = max(peak, process.Peak())
	}
	o.Usage.CPUMS, o.Usage.PeakMemoryMB = milliseconds(meter.used()), megabytes(peak)

	if guestErr == nil {
		o.Result, o.Exception = claimed.result, claimed.exception
		o.CompileTime = min(claimed.compileTime, o.Duration)
		o.Clock, o.ClockMissing, o.Threads = claimed.clock, claimed.clockMissing, claimed.threads
		o.Facts, o.Cell = claimed.facts, claimed.cell
		// the supervisor counts everything else itself
		for _, name := range []string{"result", "outputs", "rows", "columns", "text"} {
			if n := claimed.truncated[name]; n > 0 {
				o.Truncated[name] += min(n, maxMissing)
			}
		}
		o.Status = sandbox.StatusCompleted
		if o.Exception != nil {
			o.Status, o.Error = sandbox.StatusFailed, new(o.Exception.Summary())
		}
	} else {
		o.SessionReset = true
		o.Status = sandbox.StatusKilled
		o.Usage.EndedBy, o.Error = s.causeOfDeath(process, guestErr)
	}
	// An interrupted run may have completed before the interrupt had an effect.
	if claimed.interrupted || guestErr != nil {
		switch endedBy {
		case endedByTimeout:
			o.Status, o.Usage.EndedBy = sandbox.StatusTimeout, endedByTimeout
			o.Error = new(
				fmt.Sprintf("the run took longer than max_execution_time = %d s", s.sandbox.Policy.MaxExecutionTime),
			)
			if s.limit(request) == request.TimeLimit() {
				o.Usage.EndedBy = "timeout"
				o.Error = new(fmt.Sprintf("the run took longer than its timeout of %s", request.TimeLimit()))
			}
		case endedByCancel:
			o.Status, o.Usage.EndedBy, o.Error = sandbox.StatusCancelled, endedByCancel, new("the run was cancelled")
		}
	}
	if len(o.Result) == 0 {
		o.Result = json.RawMessage("null")
	}
}

// causeOfDeath returns why a guest ended without a Done frame: a value for Usage.EndedBy, and
// a text for the user.
func (s *Session) causeOfDeath(process *isolate.Process, guestErr error) (endedBy string, message *string) {
	endedBy = process.EndedBy()
	text := "the process was ended by " + endedBy
	var illegal *protocol.IllegalFrame
	switch {
	case endedBy == "max_memory_mb":
		text = fmt.Sprintf("out of memory: the run needed more than max_memory_mb = %d; use less at a time, "+
			"or ask for more when creating the sandbox", s.sandbox.Policy.MaxMemoryMB)
	case endedBy == isolate.EndedByMachineMemory:
		text = "the machine has no memory left for all sandboxes together, so the system ended this one: try again " +
			"when others have ended, or use less"
	case errors.As(guestErr, &illegal):
		endedBy, text = "protocol", illegal.Error()
	case endedBy == "exit":
		text = "the process exited without an answer (os._exit or a crash of the interpreter)"
	}
	return endedBy, &text
}
