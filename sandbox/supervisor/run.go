package supervisor

import (
	"context"
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

const (
	// grace is how long an interrupted run may take to end before it is killed:
	// after the deadline, and after a cancel.
	timeoutGrace = 300 * time.Millisecond
	cancelGrace  = 30 * time.Millisecond

	maxNotes     = 1000
	maxInspected = 200
	maxPerName   = 50
)

// Run runs e.Code in the session and fills e's outcome: status, result, output,
// exception, usage, notes, what was cut. desk answers the code's questions;
// watch and live may be nil. The error is only ever the service's own, or FaultFull; a
// failing, hanging or killed program is a status. A cancelled ctx cancels.
func (s *Session) Run(ctx context.Context, e *sandbox.Execution, desk RequestHandler, watch DebugDriver, live OutputListener) error {
	p, err := s.child(ctx, "")
	if err != nil {
		return err
	}
	pol := s.box.Policy
	network, err := s.host.open(p.Network, pol.AllowedHosts, desk)
	if err != nil {
		return err
	}
	var records *reel
	if watch != nil {
		if records, err = newReel(p, watch); err != nil {
			return errors.Join(err, network.close(e))
		}
	}
	out, errs := newTape(p.Stdout, pol.MaxOutputSize, printer(live, "stdout")), newTape(p.Stderr, pol.MaxOutputSize, printer(live, "stderr"))
	order := protocol.Run{ExecutionID: e.ID, Code: e.Code, Context: e.Context, Watch: watch != nil}
	var fds []int
	if watch != nil {
		order.Stops = watch.Begin(func() { p.Signal(unix.SIGUSR1) })
		fds = []int{records.ring.fd()}
	}
	alone := s.host.runs.Add(1) == 1
	defer s.host.runs.Add(-1)
	began := time.Now()
	p.EnforceLimits()                                          // before anything may interrupt it
	rest := p.Conn.WriteAsync(protocol.KindRun, order, fds...) // before it goes on, so that it need wake up once only
	p.Thaw()
	limits := newCutter(ctx, p, time.Duration(pol.MaxExecutionTime)*time.Second)
	failed := rest()
	var body []byte
	if failed == nil {
		said := says{process: p, e: e, desk: desk, watch: watch, reel: records, cut: limits, live: live, alone: alone, before: s.cpu}
		said.record = func() { out.begin(); errs.begin() }
		if live != nil {
			said.catchUp = func() { out.catchUp(); errs.catchUp() }
		}
		body, failed = said.listen(limits.asking)
	}
	limit, killed := limits.stop()
	wall := time.Since(began) - limits.stood
	p.Freeze()
	if by := p.ExceededLimit(); by != "" && failed == nil { // found at the end
		failed = errors.New("beyond " + by)
	}
	out.stop()
	errs.stop()
	ours := network.close(e)
	if records != nil {
		var illegal *protocol.IllegalFrame
		if err := records.stop(); errors.As(err, &illegal) {
			failed = illegal
		} else {
			ours = errors.Join(ours, err)
		}
	}

	edition := p.EnvironmentVersion()
	e.Isolation, e.Environment = s.host.isolator.Isolation(), &edition
	if network != nil {
		e.Isolation = sandbox.Isolation{Level: e.Isolation.Level, EnforcedBy: maps.Clone(e.Isolation.EnforcedBy)}
		e.Isolation.EnforcedBy["network"] = "network namespace of its own, seccomp, broker"
	}
	e.Usage.WallMS = ms(wall)
	e.ExecutionTime = wall.Seconds()
	s.conclude(e, p, body, failed, limit)
	e.SessionReset = e.SessionReset || killed // its outcome may have come just before
	var missing int64
	if e.Stdout, missing = out.text(); missing > 0 {
		cut(e, "stdout", missing)
	}
	if e.Stderr, missing = errs.text(); missing > 0 {
		cut(e, "stderr", missing)
	}
	if e.SessionReset {
		if err := s.drop(p); err != nil {
			return errors.Join(fmt.Errorf("end the child: %w", err), ours)
		}
	}
	return ours
}

// maxException is of an outcome's exception as JSON, in bytes: an honest one has fifty
// frames at the most, whose lines and values are bounded.
const maxException = 1 << 20

// maxResult is of its result: an honest child holds a value to 20 MiB of JSON (values.py).
const maxResult = 21 << 20

// maxTruncated is of what it says was cut, as JSON; and maxMissing, which two of them can't
// overflow, the most that is believed of one thing.
const (
	maxTruncated = 1000
	maxMissing   = 1 << 50
)

// outcome is what the child says of the run, which it may have made up.
type outcome struct {
	sandbox.Outcome
	Exception json.RawMessage `json:"exception"`
	Truncated json.RawMessage `json:"truncated"`
}

// read reads it; its parts stay small, or are not read.
func (o *outcome) read(body []byte, from *protocol.Conn) error {
	if err := json.Unmarshal(body, o); err != nil {
		return err
	}
	if len(o.Result) > maxResult || len(o.Exception) > maxException || len(o.Truncated) > maxTruncated || sandbox.JSONDepth(o.Result) > maxDepth {
		if err := from.Illegal("an outcome that no run has"); err != nil {
			return err
		}
	}
	if len(o.Truncated) > 0 {
		if err := json.Unmarshal(o.Truncated, &o.Outcome.Truncated); err != nil {
			return err
		}
	}
	if len(o.Exception) == 0 {
		return nil
	}
	return json.Unmarshal(o.Exception, &o.Outcome.Exception)
}

// conclude decides how the run ended, from the clock and the kernel first.
func (s *Session) conclude(e *sandbox.Execution, p *isolate.Process, body []byte, failed error, limit string) {
	var outcome outcome
	if failed == nil {
		failed = outcome.read(body, p.Conn)
	}
	peak := p.Peak()
	if failed != nil {
		p.Kill()
		<-p.Done() // while it ends, its CPU time is not to be had
		peak = max(peak, p.Peak())
	}
	cpu := p.CPU()
	e.Usage.CPUMS, e.Usage.PeakMemoryMB = ms(max(cpu-s.cpu, 0)), mb(peak) // none is known of one that died with its zygote
	e.MemoryUsage = e.Usage.PeakMemoryMB
	s.cpu = cpu

	var illegal *protocol.IllegalFrame
	switch {
	case failed == nil:
		e.Result, e.Exception = outcome.Result, outcome.Outcome.Exception
		for _, what := range []string{"result", "outputs"} { // what else was cut the service has counted itself
			if n := outcome.Outcome.Truncated[what]; n > 0 {
				cut(e, what, min(n, maxMissing))
			}
		}
		e.Status = sandbox.StatusCompleted
		if e.Exception != nil {
			e.Status = sandbox.StatusFailed
			text := e.Exception.Type
			if e.Exception.Message != "" {
				text += ": " + e.Exception.Message
			}
			e.Error = &text
		}
	default:
		e.SessionReset = true
		e.Status = sandbox.StatusKilled
		e.Usage.EndedBy = p.EndedBy()
		why := "the process was ended by " + e.Usage.EndedBy
		if e.Usage.EndedBy == "max_memory_mb" {
			why = fmt.Sprintf("out of memory: the run needed more than max_memory_mb = %d; use less at a time, or ask for more when creating the sandbox", s.box.Policy.MaxMemoryMB)
		} else if errors.As(failed, &illegal) {
			e.Usage.EndedBy, why = "protocol", failed.Error()
		} else if e.Usage.EndedBy == "exit" {
			why = "the process left without an answer (os._exit or a crash of the interpreter)"
		}
		e.Error = &why
	}
	// An interrupted run may have completed after all: then nothing was cut short.
	interrupted := outcome.Interrupt || failed != nil
	switch {
	case limit == limitTime && interrupted:
		e.Status, e.Usage.EndedBy = sandbox.StatusTimeout, limit
		e.Error = text("the run took longer than max_execution_time = %d s", s.box.Policy.MaxExecutionTime)
	case limit == limitCancel && interrupted:
		e.Status, e.Usage.EndedBy = sandbox.StatusCancelled, limit
		e.Error = text("the run was cancelled")
	}
	if len(e.Result) == 0 || !json.Valid(e.Result) {
		e.Result = json.RawMessage("null")
	}
}
