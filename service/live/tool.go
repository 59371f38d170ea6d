package live

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/access"
	"glasshouse/service/help"
)

// Limits of a run of a tool (runTool).
const (
	// toolSeconds bounds a tool's time. An analysis by jedi takes a second of CPU time: a machine with twelve busy
	// threads for each core needs 12 s for it.
	toolSeconds    = 30
	toolCPUPercent = 100
)

// runTool runs a Python program of the service in a new process, and decodes its result. History does not record the
// run, because it runs no user code. If the program needs more than toolSeconds, or more memory than a sandbox has by
// default, result stays unchanged.
func (s *Service) runTool(ctx context.Context, caller sandbox.Key, name string, input, result any) error {
	given, err := json.Marshal(input)
	if err != nil {
		return err
	}
	p := s.Default
	p.Profile, p.AllowedModules, p.BlockedModules = policy.ProfileUnrestricted, nil, nil
	p.MaxExecutionTime, p.CPUPercent = toolSeconds, toolCPUPercent
	code := help.File(name)
	return s.inspectInNewSession(ctx, caller, p, code, func(ctx context.Context, session *supervisor.Session) error {
		outcome, err := session.Run(ctx, s.NewID(), sandbox.Request{Code: code, Context: given}, supervisor.Callbacks{})
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case outcome.Status == sandbox.StatusTimeout, outcome.Usage.EndedBy == "max_memory_mb":
			return nil
		case outcome.Status != sandbox.StatusCompleted:
			return fmt.Errorf("%s: %s: %s", name, outcome.Status, *outcome.Error)
		}
		return json.Unmarshal(outcome.Result, result)
	})
}

// inspectInNewSession calls f with a new session with policy p, whose CPU time counts for the key. Other callers cannot
// reach the session, and history does not record it. imports is code whose imports the session has warm, if it can.
func (s *Service) inspectInNewSession(
	ctx context.Context, caller sandbox.Key, p policy.Policy, imports string, f sessionFunc,
) error {
	closed, err := s.beginWork() // Drain waits until the session is closed
	if err != nil {
		return err
	}
	var session *supervisor.Session
	defer func() { closeInBackground(session, closed) }()
	var cpu sessionMeter
	ctx, end, err := s.Access.BeginInspection(ctx, caller, access.Meter{TakeCPU: cpu.take})
	if err != nil {
		return err
	}
	defer end()
	if session, err = s.Supervisor.Open(ctx, s.Ephemeral(caller, p), imports); err != nil {
		return cmp.Or(access.LimitReached(ctx), err)
	}
	cpu.follow(session)
	if err = f(ctx, session); err != nil {
		return cmp.Or(access.LimitReached(ctx), err)
	}
	return nil
}
