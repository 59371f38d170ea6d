package live

import (
	"context"
	"errors"

	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/access"
)

// Reopen opens a sandbox again that ended because it was idle or because the service ended. It has its id and its
// policy and is empty: the run that acquires it first restores what its executions left. Reopen returns the error of
// Acquire if the sandbox ended for another reason or its lifetime is over, FaultBusy if another caller opens it, and
// the errors of Create.
func (s *Service) Reopen(ctx context.Context, caller sandbox.Key, id string) error {
	_, gone := s.find(ctx, caller, id)
	if gone == nil { // another caller was faster
		return nil
	}
	sb, err := s.Records.Sandbox(ctx, caller, id)
	if err != nil {
		return err
	}
	now := s.Clock()
	sb.LastUsed = now
	canReopen := (sb.State == sandbox.StateLost || sb.State == sandbox.StateExpired) && !sb.Ephemeral
	if !canReopen || !now.Before(sb.ExpiresAt()) {
		return gone
	}
	if err := s.reserveSandbox(sb.Owner); err != nil {
		return err
	}
	s.mu.Lock()
	isOpen, isOpening := s.live[id] != nil, s.reopening[id]
	if isOpen || isOpening {
		s.releaseReservation(sb.Owner)
		s.mu.Unlock()
		if isOpen { // another caller has opened it since find looked
			return nil
		}
		return &sandbox.Error{
			Fault: sandbox.FaultBusy, Detail: "another request restores this sandbox: wait for it", RetryAfter: 1,
		}
	}
	s.reopening[id] = true
	s.mu.Unlock()
	var session *supervisor.Session
	if err = s.History.ReopenSandbox(ctx, id); err == nil {
		session, err = s.Supervisor.Open(ctx, sb, "")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseReservation(sb.Owner)
	delete(s.reopening, id)
	if err == nil && s.isStopping {
		err = access.ErrStopping()
	}
	if err != nil {
		if session != nil {
			session.Close()
		}
		return errors.Join(err, s.recordEnd(id, sb.Owner, sb.State))
	}
	sb.State = sandbox.StateActive
	s.live[id] = &liveSandbox{
		sandbox: sb, session: session, ended: make(chan struct{}), lastUsed: now, cancelRun: func() {}, isEmpty: true,
	}
	s.liveOf[sb.Owner]++
	return nil
}

// Abandon ends a sandbox that was opened again and cannot be restored.
func (s *Service) Abandon(id string) error {
	s.mu.Lock()
	live := s.live[id]
	s.mu.Unlock()
	if live == nil {
		return nil
	}
	return s.endSandbox(live, sandbox.StateLost, endTimeout)
}
