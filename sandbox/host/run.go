package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/hatch"
	"glasshouse/sandbox/isolate"
)

const (
	// grace is how long an interrupted run may take to end before it is killed:
	// after the deadline, and after a cancel.
	timeoutGrace = 300 * time.Millisecond
	cancelGrace  = 30 * time.Millisecond

	maxNotes      = 1000
	maxInspected  = 200
	maxPerName    = 50
	lookTimeLimit = time.Second
)

// Run runs e.Code in the session and fills e's outcome: status, result, output,
// exception, usage, notes, what was cut. desk answers the code's questions;
// watch may be nil. The error is only ever the service's own, or FaultFull; a
// failing, hanging or killed program is a status. A cancelled ctx cancels.
func (s *Session) Run(ctx context.Context, e *sandbox.Execution, desk Desk, watch Watcher) error {
	p, err := s.child(ctx, "")
	if err != nil {
		return err
	}
	pol := s.box.Policy
	network, err := s.host.open(p.Network, pol.AllowedHosts)
	if err != nil {
		return err
	}
	out, errs := newTape(p.Stdout, pol.MaxOutputSize), newTape(p.Stderr, pol.MaxOutputSize)
	began := time.Now()
	p.Thaw() // before anything may interrupt it
	asking, stop := cutter(ctx, p, time.Duration(pol.MaxExecutionTime)*time.Second)
	var body []byte
	failed := p.Hatch.Write(hatch.KindRun, hatch.Run{ExecutionID: e.ID, Code: e.Code, Context: e.Context, Watch: watch != nil})
	if failed == nil {
		body, failed = s.listen(asking, p, e, desk, watch)
	}
	limit, killed := stop()
	wall := time.Since(began)
	p.Freeze()
	if by := p.Overstepped(); by != "" && failed == nil { // found at the end
		failed = errors.New("beyond " + by)
	}
	out.stop()
	errs.stop()
	offline := network.close(e)

	e.Isolation = s.host.isolator.Isolation()
	if network != nil {
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
			return errors.Join(fmt.Errorf("end the child: %w", err), offline)
		}
	}
	return offline
}

// conclude decides how the run ended, from the clock and the kernel first.
func (s *Session) conclude(e *sandbox.Execution, p *isolate.Process, body []byte, failed error, limit string) {
	cpu, _, peak := p.Used()
	e.Usage.CPUMS, e.Usage.PeakMemoryMB = ms(cpu-s.cpu), mb(peak)
	e.MemoryUsage = e.Usage.PeakMemoryMB
	s.cpu = cpu

	var outcome sandbox.Outcome
	if failed == nil {
		failed = json.Unmarshal(body, &outcome)
	}
	var illegal *hatch.IllegalFrame
	switch {
	case failed == nil:
		e.Result, e.Exception, e.Outputs = outcome.Result, outcome.Exception, outcome.Outputs
		for what, n := range outcome.Truncated {
			cut(e, what, n)
		}
		e.Status = sandbox.StatusCompleted
		if outcome.Exception != nil {
			e.Status = sandbox.StatusFailed
			text := outcome.Exception.Type
			if outcome.Exception.Message != "" {
				text += ": " + outcome.Exception.Message
			}
			e.Error = &text
		}
	default:
		e.SessionReset = true
		p.Kill()
		<-p.Done()
		e.Status = sandbox.StatusKilled
		e.Usage.EndedBy = p.Ended()
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

// What ends a run from outside.
const (
	limitTime   = "max_execution_time"
	limitCancel = "cancel"
)

// cutter ends what runs in p when its time is over or ctx is cancelled: it
// interrupts, and kills after a grace. asking ends with either, and with the child, so
// that queries are given up, too. stop ends the watch, and says what cut the run short, if anything,
// and whether the child was killed.
func cutter(ctx context.Context, p *isolate.Process, limit time.Duration) (asking context.Context, stop func() (by string, killed bool)) {
	asking, stopAsking := context.WithCancel(context.WithoutCancel(ctx))
	go func() { // the hatch is not read while a question is answered
		select {
		case <-p.Done():
			stopAsking()
		case <-asking.Done():
		}
	}()
	var mu sync.Mutex
	var by string
	var over, killed bool
	cut := func(why string, grace time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if over || by != "" {
			return
		}
		by = why
		stopAsking()
		p.Interrupt()
		time.AfterFunc(grace, func() {
			mu.Lock()
			defer mu.Unlock()
			if !over {
				killed = true
				p.Kill()
			}
		})
	}
	deadline := time.AfterFunc(limit, func() { cut(limitTime, timeoutGrace) })
	release := context.AfterFunc(ctx, func() { cut(limitCancel, cancelGrace) })
	return asking, func() (string, bool) {
		deadline.Stop()
		release()
		stopAsking()
		mu.Lock()
		defer mu.Unlock()
		over = true
		return by, killed
	}
}

// listen reads what the child says until its outcome, whose body it returns; it
// answers questions one by one, as the child asks them one by one.
func (s *Session) listen(ctx context.Context, p *isolate.Process, e *sandbox.Execution, desk Desk, watch Watcher) ([]byte, error) {
	for {
		kind, body, err := p.Hatch.Read()
		if err == nil {
			switch kind {
			case hatch.KindDone:
				return body, nil
			case hatch.KindNote:
				err = keepNote(e, body)
			case hatch.KindStep:
				var step sandbox.Step
				if err = json.Unmarshal(body, &step); err == nil && watch != nil {
					watch.Step(step)
				}
			case hatch.KindAsk:
				err = answer(ctx, p.Hatch, desk, body)
			default:
				err = &hatch.IllegalFrame{Why: fmt.Sprintf("%c in the middle of a run", kind)}
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

func answer(ctx context.Context, conn *hatch.Conn, desk Desk, body []byte) error {
	var ask hatch.Ask
	if err := unmarshalNumbers(body, &ask); err != nil || len(ask.Types) > 0 && ask.Params == nil {
		return &hatch.IllegalFrame{Why: "an unreadable question"}
	}
	reply := hatch.Answer{ID: ask.ID}
	var err error
	switch ask.What {
	case "query":
		for name, kind := range ask.Types {
			ask.Params[name] = sandbox.Typed{Type: kind, Value: ask.Params[name]}
		}
		var rows sandbox.Rows
		if rows, err = desk.Query(ctx, ask.SQL, ask.Params); err == nil {
			return conn.WriteRows(ask.ID, rows, ask.Packed)
		}
	case "tables":
		reply.Value, err = desk.Tables(ctx)
	case "schema":
		reply.Value, err = desk.Schema(ctx, ask.Table)
	case "history":
		reply.Value, err = desk.History(ctx)
	default:
		return &hatch.IllegalFrame{Why: "an unknown question"}
	}
	if err != nil && !errors.As(err, &reply.Refused) {
		var known *sandbox.Error
		message := "the database could not answer; the service's log says more"
		if errors.As(err, &known) {
			message = known.Detail
		} else if ctx.Err() != nil {
			message = "the run was interrupted"
		}
		reply.Refused = &sandbox.Refusal{Reason: "unavailable", Message: message, Failed: true}
	}
	return conn.Write(hatch.KindAnswer, reply)
}

// keepNote adds a note to the execution, within bounds.
func keepNote(e *sandbox.Execution, body []byte) error {
	var n sandbox.Note
	if err := json.Unmarshal(body, &n); err != nil {
		return &hatch.IllegalFrame{Why: "an unreadable note"}
	}
	n.Time = time.Now().UTC()
	if n.Name == "" {
		if len(e.DebugInfo.Logs) >= maxNotes {
			cut(e, "logs", 1)
			return nil
		}
		e.DebugInfo.Logs = append(e.DebugInfo.Logs, n)
		return nil
	}
	seen, known := e.DebugInfo.Variables[n.Name]
	if len(seen) >= maxPerName || !known && len(e.DebugInfo.Variables) >= maxInspected {
		cut(e, "variables", 1)
		return nil
	}
	e.DebugInfo.Variables[n.Name] = append(seen, n)
	return nil
}

// Look pictures the session's variables; only between runs. A session whose
// child cannot answer in a second has lost it.
func (s *Session) Look(ctx context.Context) (sandbox.Variables, error) {
	var v sandbox.Variables
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if p == nil {
		return sandbox.Variables{Variables: map[string]sandbox.Variable{}, Globals: []string{}}, nil
	}
	p.Thaw()
	defer p.Freeze()
	if err := p.Hatch.Write(hatch.KindLook, struct{}{}); err != nil {
		return v, s.drop(p)
	}
	said := make(chan error, 1)
	go func() {
		kind, body, err := p.Hatch.Read()
		if err == nil && kind != hatch.KindValue {
			err = &hatch.IllegalFrame{Why: fmt.Sprintf("%c as an answer to a look", kind)}
		}
		if err == nil {
			err = json.Unmarshal(body, &v)
		}
		said <- err
	}()
	select {
	case err := <-said:
		if err != nil {
			return sandbox.Variables{}, errors.Join(s.drop(p), sandbox.Errorf(sandbox.FaultGone, "the session was lost; /session stays"))
		}
		return v, nil
	case <-time.After(lookTimeLimit):
	case <-ctx.Done():
	}
	err := s.drop(p)
	<-said // its hatch is closed
	return sandbox.Variables{}, errors.Join(err, sandbox.Errorf(sandbox.FaultGone, "the session did not answer within a second and was ended; /session stays"))
}
