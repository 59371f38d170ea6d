package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/protocol"
)

const (
	lookTime  = time.Second     // for an answer that asks for nothing but what is there
	thinkTime = 3 * time.Second // for one about code, which is then interrupted
)

// InspectVariables pictures the session's variables; only between runs. A session whose
// child cannot answer in a second has lost it.
func (s *Session) InspectVariables(ctx context.Context) (sandbox.Variables, error) {
	v := sandbox.Variables{Variables: map[string]sandbox.Variable{}, Globals: []string{}}
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if p == nil {
		return v, nil
	}
	select {
	case <-p.Done(): // it died between runs: its variables are gone
		return v, s.drop(p)
	default:
	}
	err := s.ask(ctx, p, protocol.Inspect{}, lookTime, &v)
	return v, err
}

// Check reads code as the session would, without running it; only between runs.
func (s *Session) Check(ctx context.Context, code string) (sandbox.CheckResult, error) {
	var v struct {
		sandbox.CheckResult
		Failed string `json:"failed"`
	}
	p, err := s.child(ctx, "")
	if err == nil {
		err = s.ask(ctx, p, protocol.Inspect{What: "check", Code: code}, thinkTime, &v)
	}
	if err == nil && v.Failed != "" {
		err = unread(v.Failed)
	}
	if v.Problems == nil {
		v.Problems = []sandbox.CodeProblem{}
	}
	v.OK = len(v.Problems) == 0
	return v.CheckResult, err
}

// Complete says what could be written at a cursor, counted in characters from 0; only
// between runs. Where the session's values do not tell, settled is false, and before
// is what ran in it earlier, for who knows more.
func (s *Session) Complete(ctx context.Context, code string, cursor int) (c sandbox.Completion, settled bool, before string, err error) {
	var v struct {
		sandbox.Completion
		Settled bool   `json:"settled"`
		Before  string `json:"before"`
		Failed  string `json:"failed"`
	}
	p, err := s.child(ctx, "")
	if err == nil {
		err = s.ask(ctx, p, protocol.Inspect{What: "complete", Code: code, Cursor: cursor}, thinkTime, &v)
	}
	if err == nil && v.Failed != "" {
		err = unread(v.Failed)
	}
	if v.Matches == nil {
		v.Matches = []sandbox.CompletionMatch{}
	}
	return v.Completion, v.Settled, v.Before, err
}

// unread says why code was not read to its end.
func unread(failed string) error {
	if failed == "KeyboardInterrupt" {
		return sandbox.Errorf(sandbox.FaultInvalid, "Python could not read this code within %s", thinkTime)
	}
	return sandbox.Errorf(sandbox.FaultInvalid, "Python could not read this code: %s", failed)
}

// ask puts one question to the child. One that takes too long is interrupted; a child
// that does not answer then, either, is ended, and the session has lost it.
func (s *Session) ask(ctx context.Context, p *isolate.Process, question protocol.Inspect, limit time.Duration, v any) error {
	p.EnforceLimits()
	p.Thaw()
	defer p.Freeze()
	said := make(chan error, 1)
	go func() { // as one that does not read has perhaps no room for it
		var kind protocol.Kind
		var body []byte
		err := p.Conn.Write(protocol.KindInspect, question)
		if err == nil {
			kind, body, err = p.Conn.Read()
		}
		if err == nil && kind != protocol.KindValue {
			err = &protocol.IllegalFrame{Why: fmt.Sprintf("%c as an answer to a look", kind)}
		}
		if err == nil {
			err = json.Unmarshal(body, v)
		}
		said <- err
	}()
	patience := time.NewTimer(limit)
	defer patience.Stop()
	gone := ctx.Done()
	for interrupted := false; ; {
		select {
		case err := <-said:
			if err != nil {
				return errors.Join(s.drop(p), lost())
			}
			return ctx.Err()
		case <-patience.C:
		case <-gone:
			gone = nil
		}
		if interrupted {
			break
		}
		interrupted = true
		p.Interrupt()
		patience.Reset(timeoutGrace)
	}
	err := s.drop(p)
	<-said // its hatch is closed
	return errors.Join(err, sandbox.Errorf(sandbox.FaultGone, "the session did not answer within %s and was ended; /session stays", limit))
}

func lost() error { return sandbox.Errorf(sandbox.FaultGone, "the session was lost; /session stays") }
