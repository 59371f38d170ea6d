package run

import (
	"context"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// Cancel ends a running execution. It returns before the execution has ended.
func (s *Service) Cancel(ctx context.Context, caller sandbox.Key, id string) error {
	if r := s.runningExecution(caller, id); r != nil {
		r.cancel(nil)
		return nil
	}
	e, err := s.Records.Execution(ctx, caller, id)
	if err != nil {
		return err
	}
	return sandbox.Errorf(sandbox.FaultBusy, "the execution has already ended: %s", e.Status)
}

// Await returns when the execution has ended, or when ctx ends. It returns immediately if the execution does not run or
// the caller may not see it.
func (s *Service) Await(ctx context.Context, caller sandbox.Key, id string) {
	if r := s.runningExecution(caller, id); r != nil {
		select {
		case <-r.ended:
		case <-ctx.Done():
		}
	}
}

// runningExecution returns the run of an execution that the caller may see, or nil if it does not run.
func (s *Service) runningExecution(caller sandbox.Key, id string) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.running[id]; r != nil && access.MaySee(caller, r.sandbox.Owner) {
		return r
	}
	return nil
}

// RunningExecutions implements records.Runs.
func (s *Service) RunningExecutions(user string) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.running {
		if user == "" || r.opening.User == user {
			ids = append(ids, id)
		}
	}
	return ids
}

// Forget implements records.Memory: it removes event logs and events of the feed.
func (s *Service) Forget(isErased func(execution, user string) bool) {
	s.eventLogs.forget(isErased)
	s.feed.forget(isErased)
}
