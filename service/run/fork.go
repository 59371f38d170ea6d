package run

import (
	"context"
	"errors"

	"glasshouse/sandbox"
)

// MaxForks is the maximum number of sandboxes that one call of Fork makes.
const MaxForks = 20

// Forked is a sandbox that Fork made, and the execution that restored the state in it.
type Forked struct {
	Sandbox   sandbox.Sandbox
	Execution *sandbox.Execution
}

// Fork makes sandboxes with the policy, the variables and the files that a sandbox of the caller has now: its
// executions run again in each, and then its files are copied. Later changes of one are not in another. It returns
// FaultBusy if the sandbox runs something, FaultGone if its executions cannot run again, FaultInvalid for a bad count,
// and the errors of live.Service.Create. After an error there are no new sandboxes.
func (s *Service) Fork(ctx context.Context, caller sandbox.Key, id string, count int) (list []Forked, err error) {
	if count < 1 || count > MaxForks {
		return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "count", Detail: "it must be from 1 to 20"}
	}
	if !s.InputLog.IsOn() {
		return nil, errNotLogged()
	}
	if _, err := s.Live.Sandbox(ctx, caller, id); sandbox.FaultOf(err) == sandbox.FaultGone { // it may come back
		request := sandbox.Request{Kind: sandbox.KindRestore}
		if _, err := s.executeObserved(ctx, caller, id, request, observers{}); err != nil {
			return nil, err
		}
	}
	ctx, lease, err := s.Live.Acquire(ctx, caller, id) // it does not change meanwhile
	if err != nil {
		return nil, err
	}
	defer lease.Release()
	files, err := lease.Open(ctx)
	if err != nil {
		return nil, err
	}
	base := sandbox.Base{SandboxID: id, Before: s.Clock()}
	defer func() {
		if err != nil {
			for _, f := range list {
				err = errors.Join(err, s.Live.Delete(context.WithoutCancel(ctx), caller, f.Sandbox.ID))
			}
			list = nil
		}
	}()
	for range count {
		sb, err := s.Live.CreateWith(ctx, caller, lease.Sandbox.Policy)
		if err != nil {
			return list, err
		}
		list = append(list, Forked{Sandbox: sb})
		last := &list[len(list)-1]
		request := sandbox.Request{Kind: sandbox.KindRestore}
		observed := observers{base: &base, files: files}
		if last.Execution, err = s.executeObserved(ctx, caller, sb.ID, request, observed); err != nil {
			return list, err
		}
	}
	return list, nil
}

// Rollback gives a sandbox the variables and the files that it had before one of its executions, which stays in
// history. It returns the execution that restored them, and the errors of Fork. After an error the sandbox may be gone.
func (s *Service) Rollback(ctx context.Context, caller sandbox.Key, id, before string) (*sandbox.Execution, error) {
	if !s.InputLog.IsOn() {
		return nil, errNotLogged()
	}
	e, err := s.Records.Execution(ctx, caller, before)
	if err != nil {
		return nil, err
	}
	if e.SandboxID != id {
		return nil, &sandbox.Error{
			Fault: sandbox.FaultInvalid, Field: "before", Detail: "the execution ran in another sandbox",
		}
	}
	request := sandbox.Request{Kind: sandbox.KindRestore}
	return s.executeObserved(ctx, caller, id, request, observers{
		base: &sandbox.Base{SandboxID: id, Before: e.CreatedAt},
	})
}

func errNotLogged() error {
	return sandbox.Errorf(sandbox.FaultForbidden,
		"the operator keeps no inputs of executions (--input-log off), so they cannot run again")
}
