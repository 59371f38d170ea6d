package service

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// quiet claims a sandbox in which nothing runs for a look at it; FaultBusy where
// something does. A run that comes meanwhile waits for release.
func (s *Service) quiet(ctx context.Context, caller sandbox.Key, id string) (l *live, release func(), err error) {
	l, err = s.find(ctx, caller, id)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	running := l.running
	if !running {
		l.used = s.Clock()
	}
	s.mu.Unlock()
	if running || !l.turn.TryLock() {
		return nil, nil, &sandbox.Error{Fault: sandbox.FaultBusy, Detail: "this sandbox is running something; ask again when it has ended", RetryAfter: 1}
	}
	return l, l.turn.Unlock, nil
}

// Variables pictures what a sandbox holds, without running anything of the user's.
func (s *Service) Variables(ctx context.Context, caller sandbox.Key, id string) (sandbox.Variables, error) {
	l, release, err := s.quiet(ctx, caller, id)
	if err != nil {
		return sandbox.Variables{}, err
	}
	defer release()
	return l.session.InspectVariables(ctx)
}

// Check says what Python and the sandbox's policy would refuse of code, and runs
// nothing.
func (s *Service) Check(ctx context.Context, caller sandbox.Key, id, code string) (sandbox.CheckResult, error) {
	l, release, err := s.quiet(ctx, caller, id)
	if err != nil {
		return sandbox.CheckResult{}, err
	}
	defer release()
	if err := fits(code, l.box.Policy); err != nil {
		return sandbox.CheckResult{}, err
	}
	return l.session.Check(ctx, code)
}

// Complete says what could be written at a cursor: first from the values that the
// sandbox holds; where they do not tell, from the text, with jedi, in a process of
// its own, as it needs more memory than a sandbox may have left.
func (s *Service) Complete(ctx context.Context, caller sandbox.Key, id, code string, cursor *int) (sandbox.Completion, error) {
	length := utf8.RuneCountInString(code)
	at := length
	if cursor != nil {
		at = *cursor
	}
	if at < 0 || at > length {
		return sandbox.Completion{}, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "cursor", Detail: fmt.Sprintf("it counts characters of the code, from 0 to %d", length)}
	}
	l, release, err := s.quiet(ctx, caller, id)
	if err != nil {
		return sandbox.Completion{}, err
	}
	var found sandbox.Completion
	settled, before := true, ""
	if err = fits(code, l.box.Policy); err == nil {
		found, settled, before, err = l.session.Complete(ctx, code, at)
	}
	release()
	if err != nil || settled {
		return found, err
	}
	var more sandbox.Completion
	err = s.tool(ctx, "tool_complete.py", map[string]any{"code": code, "cursor": at, "before": before}, &more)
	if err == nil && len(more.Matches) > 0 {
		found = more
	}
	return found, err
}

// Highlight is code as HTML, and the style sheet of its classes.
func (s *Service) Highlight(ctx context.Context, code string) (html, css string, err error) {
	if err := fits(code, s.Default); err != nil {
		return "", "", err
	}
	var out struct{ HTML, CSS string }
	err = s.tool(ctx, "tool_highlight.py", map[string]any{"code": code}, &out)
	return out.HTML, out.CSS, err
}

func fits(code string, p policy.Policy) error {
	if n := len(code); n > p.MaxCodeSize {
		return &sandbox.Error{Fault: sandbox.FaultTooLarge, Field: "code", Detail: fmt.Sprintf("the code has %d bytes, and max_code_size is %d", n, p.MaxCodeSize)}
	}
	return nil
}

// tool runs a program of ours on input in a fresh process behind the wall, where
// nothing of a user's runs; it is in no history. What it has not answered in time is
// left out.
func (s *Service) tool(ctx context.Context, name string, input, out any) error {
	s.mu.Lock()
	if s.draining {
		s.mu.Unlock()
		return stopping()
	}
	s.work.Add(1) // until its session is closed
	s.mu.Unlock()
	closing := false
	defer func() {
		if !closing {
			s.work.Done()
		}
	}()
	release, err := s.slots.Acquire(ctx, 0)
	if err != nil {
		return &sandbox.Error{Fault: sandbox.FaultFull, Detail: "too many executions are running; try again", RetryAfter: 1}
	}
	defer release()
	given, err := json.Marshal(input)
	if err != nil {
		return err
	}
	p := s.Default
	p.Profile, p.AllowedModules, p.BlockedModules = policy.ProfileUnrestricted, nil, nil
	p.MaxExecutionTime, p.CPUPercent = 8, 100
	box := sandbox.Sandbox{ID: s.NewID(), Policy: p, Ephemeral: true, CreatedAt: s.Clock()}
	code := helpFile(name)
	session, err := s.Supervisor.Open(ctx, box, code)
	if err != nil {
		return err
	}
	e := &sandbox.Execution{ID: s.NewID(), Code: code, Context: given, DebugInfo: sandbox.DebugInfo{Variables: map[string][]sandbox.Note{}}}
	err = session.Run(ctx, e, silent{}, nil, nil)
	closing = true
	go func() {
		defer s.work.Done()
		if err := session.Close(); err != nil {
			s.Log.WithError(err).Warn("close a tool's sandbox")
		}
	}()
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case e.Status == sandbox.StatusTimeout:
		return nil
	case e.Status != sandbox.StatusCompleted:
		return fmt.Errorf("%s: %s: %s", name, e.Status, *e.Error)
	}
	return json.Unmarshal(e.Result, out)
}
