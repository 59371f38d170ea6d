package live

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/access"
)

// sessionMeter measures the CPU time of a session, which may be opened later.
type sessionMeter struct {
	session atomic.Pointer[supervisor.Session]
}

// follow begins to measure a session.
func (m *sessionMeter) follow(session *supervisor.Session) {
	session.TakeCPU() // of keys without a limit
	m.session.Store(session)
}

func (m *sessionMeter) take() time.Duration {
	if session := m.session.Load(); session != nil {
		return session.TakeCPU()
	}
	return 0
}

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

// inspect calls f with the session of an idle sandbox. f may use the session, and its CPU time counts for the key.
func (s *Service) inspect(
	ctx context.Context, caller sandbox.Key, id string, f func(context.Context, *liveSandbox) error,
) error {
	live, release, err := s.acquireIdle(ctx, caller, id)
	if err != nil {
		return err
	}
	defer release()
	var cpu sessionMeter
	cpu.follow(live.session)
	ctx, end, err := s.Access.BeginInspection(ctx, caller, access.Meter{TakeCPU: cpu.take})
	if err != nil {
		return err
	}
	defer end()
	if err = f(ctx, live); err != nil {
		return cmp.Or(access.LimitReached(ctx), err)
	}
	return nil
}

// Variables returns a sandbox's variables. It runs no user code.
func (s *Service) Variables(
	ctx context.Context, caller sandbox.Key, id string,
) (v sandbox.Variables, err error) {
	err = s.inspect(ctx, caller, id, func(ctx context.Context, live *liveSandbox) (err error) {
		v, err = live.session.InspectVariables(ctx)
		return err
	})
	return v, err
}

// Rows returns a page of a table of a sandbox. It runs no user code. Its errors are those of supervisor.Session.Rows.
func (s *Service) Rows(
	ctx context.Context, caller sandbox.Key, id string, question sandbox.TableRequest,
) (page sandbox.TablePage, err error) {
	err = s.inspect(ctx, caller, id, func(ctx context.Context, live *liveSandbox) (err error) {
		page, err = live.session.Rows(ctx, question)
		return err
	})
	return page, err
}

// Check returns the parts of code that Python or a sandbox's policy would refuse. It does not run the code. If id is
// "", the policy is that of a new sandbox with config, which Check does not create.
func (s *Service) Check(
	ctx context.Context, caller sandbox.Key, id string, config []byte, code string,
) (result sandbox.CheckResult, err error) {
	check := func(ctx context.Context, session *supervisor.Session) (err error) {
		result, err = session.Check(ctx, code)
		return err
	}
	err = s.inspectCode(ctx, caller, id, config, code, check)
	return result, err
}

// sessionFunc uses a session that nobody else uses meanwhile.
type sessionFunc func(context.Context, *supervisor.Session) error

// inspectCode calls f with the session of an idle sandbox or, if id is "", with a new session that has the policy of a
// new sandbox with config. It returns FaultTooLarge for code over the policy's max_code_size.
func (s *Service) inspectCode(
	ctx context.Context, caller sandbox.Key, id string, config []byte, code string, f sessionFunc,
) error {
	if id != "" {
		return s.inspect(ctx, caller, id, func(ctx context.Context, live *liveSandbox) error {
			if err := sandbox.CheckCodeSize(code, live.sandbox.Policy); err != nil {
				return err
			}
			return f(ctx, live.session)
		})
	}
	p, err := s.accept(caller, config, s.Default)
	if err != nil {
		return err
	}
	if err := sandbox.CheckCodeSize(code, p); err != nil {
		return err
	}
	return s.inspectInNewSession(ctx, caller, p, "", f)
}

// Complete returns the completions at a cursor. The cursor counts characters; nil means the end of code. Complete uses
// the sandbox's values or, if those are not enough, an analysis of the text. The analysis runs in a process of its own,
// because it needs more memory than a sandbox may have left. id and config are those of Check.
func (s *Service) Complete(
	ctx context.Context, caller sandbox.Key, id string, config []byte, code string, cursor *int,
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
	var completion sandbox.Completion
	isFinal, earlier := true, ""
	complete := func(ctx context.Context, session *supervisor.Session) (err error) {
		completion, isFinal, earlier, err = session.Complete(ctx, code, position)
		return err
	}
	err := s.inspectCode(ctx, caller, id, config, code, complete)
	if err != nil || isFinal {
		return completion, err
	}
	var analysed sandbox.Completion
	err = s.runTool(
		ctx,
		caller,
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
func (s *Service) Highlight(ctx context.Context, caller sandbox.Key, code string) (html, css string, err error) {
	if err := sandbox.CheckCodeSize(code, s.Default); err != nil {
		return "", "", err
	}
	var result struct{ HTML, CSS string }
	err = s.runTool(ctx, caller, "tool_highlight.py", map[string]any{"code": code}, &result)
	return result.HTML, result.CSS, err
}
