package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/protocol"
)

// How long a guest may take to answer between runs before it is interrupted.
const (
	variablesTimeout = time.Second
	codeTimeout      = 3 * time.Second // of a check or a completion
	rowsTimeout      = 8 * time.Second // of a page of a table, which may have to be sorted
)

// InspectVariables returns the session's variables. Call it only between runs. If the guest
// does not answer in time, it is killed and the variables are lost.
func (s *Session) InspectVariables(ctx context.Context) (sandbox.Variables, error) {
	v := sandbox.Variables{Variables: map[string]sandbox.Variable{}, Globals: []string{}}
	s.mu.Lock()
	process := s.process
	s.mu.Unlock()
	if process == nil {
		return v, nil
	}
	select {
	case <-process.Done(): // the guest was killed between runs
		s.drop(process)
		return v, nil
	default:
	}
	err := s.ask(ctx, process, protocol.Inspect{}, variablesTimeout, &v)
	return v, err
}

// Check returns the syntax errors and policy violations of code, without running it. Call it
// only between runs.
func (s *Session) Check(ctx context.Context, code string) (sandbox.CheckResult, error) {
	var v struct {
		sandbox.CheckResult
		Failed string `json:"failed"`
	}
	process, err := s.guest(ctx, "")
	if err == nil {
		err = s.ask(ctx, process, protocol.Inspect{What: "check", Code: code}, codeTimeout, &v)
	}
	if err == nil && v.Failed != "" {
		err = errNotParsed(v.Failed)
	}
	if v.Problems == nil {
		v.Problems = []sandbox.CodeProblem{}
	}
	v.OK = len(v.Problems) == 0
	return v.CheckResult, err
}

// Complete returns the completions at a cursor, counted in characters from 0. Call it only
// between runs. If the session's values do not determine the completions, isFinal is false,
// and earlier has the code of earlier runs, for an analysis of the text.
func (s *Session) Complete(
	ctx context.Context, code string, cursor int,
) (c sandbox.Completion, isFinal bool, earlier string, err error) {
	var v struct {
		sandbox.Completion
		Settled bool   `json:"settled"`
		Before  string `json:"before"`
		Failed  string `json:"failed"`
	}
	process, err := s.guest(ctx, "")
	if err == nil {
		err = s.ask(ctx, process, protocol.Inspect{What: "complete", Code: code, Cursor: cursor}, codeTimeout, &v)
	}
	if err == nil && v.Failed != "" {
		err = errNotParsed(v.Failed)
	}
	if v.Matches == nil {
		v.Matches = []sandbox.CompletionMatch{}
	}
	return v.Completion, v.Settled, v.Before, err
}

// Rows returns a page of a table. Call it only between runs. It returns FaultGone if the session no longer has the
// table, and FaultInvalid if it is none, or takes too long to read.
func (s *Session) Rows(ctx context.Context, question sandbox.TableRequest) (page sandbox.TablePage, err error) {
	s.mu.Lock()
	process := s.process
	s.mu.Unlock()
	if process == nil {
		return page, errNoTable("the session has no process, and so no variables")
	}
	select {
	case <-process.Done(): // the guest was killed between runs
		s.drop(process)
		return page, errNoTable("the session's process has ended, and its variables are lost")
	default:
	}
	var v struct {
		sandbox.TablePage
		Failed string `json:"failed"`
		Reason string `json:"reason"`
	}
	if question.Filters == nil {
		question.Filters = []sandbox.TableFilter{}
	}
	err = s.ask(ctx, process, protocol.Inspect{What: "rows", Rows: &question}, rowsTimeout, &v)
	switch {
	case err != nil:
		return page, err
	case v.Failed == "NoTable":
		return page, errNoTable(sandbox.Shorten(v.Reason, maxReason))
	case v.Failed == "KeyboardInterrupt":
		return page, sandbox.Errorf(sandbox.FaultInvalid, "the rows could not be read within %s: remove the sort or "+
			"the filter, or sort in the code", rowsTimeout)
	case v.Failed != "":
		return page, sandbox.Errorf(sandbox.FaultInvalid, "the rows could not be read: %s", v.Failed)
	}
	if err := sandbox.CheckTablePage(&v.TablePage); err != nil {
		return page, sandbox.Errorf(sandbox.FaultInvalid, "the rows could not be read: %s", err)
	}
	return v.TablePage, nil
}

const maxReason = 300 // characters of a reason of a guest

func errNoTable(why string) error { return sandbox.Errorf(sandbox.FaultGone, "%s", why) }

// errNotParsed returns the error for code that Python could not parse.
func errNotParsed(reason string) error {
	if reason == "KeyboardInterrupt" {
		return sandbox.Errorf(sandbox.FaultInvalid, "Python could not read this code within %s", codeTimeout)
	}
	return sandbox.Errorf(sandbox.FaultInvalid, "Python could not read this code: %s", reason)
}

// ask sends one question to the guest and parses its answer into v. After timeout, or when
// ctx ends, it interrupts the guest. If the guest still does not answer, ask kills it.
func (s *Session) ask(
	ctx context.Context, process *isolate.Process, question protocol.Inspect, timeout time.Duration, v any,
) error {
	if err := process.Wake(); err != nil {
		return err
	}
	defer process.Rest()
	process.EnforceLimits()
	process.Thaw()
	defer process.Freeze()
	answered := make(chan error, 1)
	go func() { // in a goroutine, because a guest that does not read blocks the write
		var kind protocol.Kind
		var body []byte
		err := process.Conn.Write(protocol.KindInspect, question)
		if err == nil {
			kind, body, err = process.Conn.Read()
		}
		if err == nil && kind != protocol.KindValue {
			err = &protocol.IllegalFrame{Why: fmt.Sprintf("a %c frame came as the answer to an inspection", kind)}
		}
		if err == nil {
			err = process.Conn.Decode(kind, body, v)
		}
		answered <- err
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	cancelled := ctx.Done()
	for interrupted := false; ; {
		select {
		case err := <-answered:
			if err != nil {
				reason := "the session's process ended"
				if illegal, ok := errors.AsType[*protocol.IllegalFrame](err); ok {
					reason = illegal.Error()
				}
				s.drop(process)
				return sandbox.Errorf(sandbox.FaultGone, "%s; the session's variables are lost; /session stays", reason)
			}
			return ctx.Err()
		case <-timer.C:
		case <-cancelled:
			cancelled = nil
		}
		if interrupted {
			break
		}
		interrupted = true
		process.Interrupt()
		timer.Reset(timeoutGracePeriod)
	}
	s.drop(process) // closes the connection, which ends the goroutine
	<-answered
	return sandbox.Errorf(sandbox.FaultGone,
		"the session did not answer within %s and was ended; /session stays", timeout)
}
