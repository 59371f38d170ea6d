package service

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
)

// acquireIdle acquires an idle sandbox for an inspection, and returns FaultBusy if something runs in it. A run that
// arrives during the inspection waits for release.
func (s *Service) acquireIdle(
	ctx context.Context, caller sandbox.Key, id string,
) (live *liveSandbox, release func(), err error) {
	live, err = s.find(ctx, caller, id)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	isBusy := live.isBusy
	if !isBusy {
		live.lastUsed = s.Clock()
	}
	s.mu.Unlock()
	if isBusy || !live.inUse.TryLock() {
		return nil, nil, &sandbox.Error{
			Fault:  sandbox.FaultBusy,
			Detail: "this sandbox is running something; ask again when it has ended", RetryAfter: 1,
		}
	}
	return live, live.inUse.Unlock, nil
}

// Variables returns a sandbox's variables. It runs no user code.
func (s *Service) Variables(ctx context.Context, caller sandbox.Key, id string) (sandbox.Variables, error) {
	live, release, err := s.acquireIdle(ctx, caller, id)
	if err != nil {
		return sandbox.Variables{}, err
	}
	defer release()
	return live.session.InspectVariables(ctx)
}

// Check returns the parts of code that Python or the sandbox's policy would refuse. It does not run the code.
func (s *Service) Check(ctx context.Context, caller sandbox.Key, id, code string) (sandbox.CheckResult, error) {
	live, release, err := s.acquireIdle(ctx, caller, id)
	if err != nil {
		return sandbox.CheckResult{}, err
	}
	defer release()
	if err := checkCodeSize(code, live.sandbox.Policy); err != nil {
		return sandbox.CheckResult{}, err
	}
	return live.session.Check(ctx, code)
}

// Complete returns the completions at a cursor. The cursor counts characters; nil means the end of code. Complete uses
// the sandbox's values or, if those are not enough, an analysis of the text. The analysis runs in a process of its own,
// because it needs more memory than a sandbox may have left.
func (s *Service) Complete(
	ctx context.Context, caller sandbox.Key, id, code string, cursor *int,
) (sandbox.Completion, error) {
	length := utf8.RuneCountInString(code)
	position := length
	if cursor != nil {
		position = *cursor
	}
	if position < 0 || position > length {
		return sandbox.Completion{}, &sandbox.Error{
			Fault: sandbox.FaultInvalid, Field: "cursor",
			Detail: fmt.Sprintf("it must be a position in characters from 0 to %d", length),
		}
	}
	live, release, err := s.acquireIdle(ctx, caller, id)
	if err != nil {
		return sandbox.Completion{}, err
	}
	var completion sandbox.Completion
	isFinal, earlier := true, ""
	if err = checkCodeSize(code, live.sandbox.Policy); err == nil {
		completion, isFinal, earlier, err = live.session.Complete(ctx, code, position)
	}
	release()
	if err != nil || isFinal {
		return completion, err
	}
	var analysed sandbox.Completion
	err = s.runTool(
		ctx,
		"tool_complete.py",
		map[string]any{"code": code, "cursor": position, "before": earlier},
		&analysed,
	)
	if err == nil && len(analysed.Matches) > 0 {
		completion = analysed
	}
	return completion, err
}

// Highlight returns code as HTML, and the style sheet of its classes.
func (s *Service) Highlight(ctx context.Context, code string) (html, css string, err error) {
	if err := checkCodeSize(code, s.Default); err != nil {
		return "", "", err
	}
	var result struct{ HTML, CSS string }
	err = s.runTool(ctx, "tool_highlight.py", map[string]any{"code": code}, &result)
	return result.HTML, result.CSS, err
}

func checkCodeSize(code string, p policy.Policy) error {
	if n := len(code); n > p.MaxCodeSize {
		return &sandbox.Error{
			Fault: sandbox.FaultTooLarge, Field: "code",
			Detail: fmt.Sprintf("the code has %d bytes; max_code_size is %d", n, p.MaxCodeSize),
		}
	}
	return nil
}

// Limits of a run of a tool (runTool).
const (
	toolSeconds    = 8
	toolCPUPercent = 100
)

// runTool runs a Python program of the service in a new process, and decodes its result. History does not record the
// run, because it runs no user code. If the program does not answer within toolSeconds, result stays unchanged.
func (s *Service) runTool(ctx context.Context, name string, input, result any) error {
	closed, err := s.beginWork() // Drain waits until the session is closed
	if err != nil {
		return err
	}
	var session *supervisor.Session
	defer func() { s.closeInBackground(session, closed) }()
	release, err := s.slots.Acquire(ctx, 0)
	if err != nil {
		return &sandbox.Error{
			Fault: sandbox.FaultFull, Detail: "too many executions are running; try again", RetryAfter: 1,
		}
	}
	defer release()
	given, err := json.Marshal(input)
	if err != nil {
		return err
	}
	p := s.Default
	p.Profile, p.AllowedModules, p.BlockedModules = policy.ProfileUnrestricted, nil, nil
	p.MaxExecutionTime, p.CPUPercent = toolSeconds, toolCPUPercent
	sb := sandbox.Sandbox{ID: s.NewID(), Policy: p, Ephemeral: true, CreatedAt: s.Clock()}
	code := helpFile(name)
	if session, err = s.Supervisor.Open(ctx, sb, code); err != nil {
		return err
	}
	outcome, err := session.Run(
		ctx,
		supervisor.Request{ExecutionID: s.NewID(), Code: code, Context: given},
		supervisor.Callbacks{},
	)
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case outcome.Status == sandbox.StatusTimeout:
		return nil
	case outcome.Status != sandbox.StatusCompleted:
		return fmt.Errorf("%s: %s: %s", name, outcome.Status, *outcome.Error)
	}
	return json.Unmarshal(outcome.Result, result)
}
