package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// recordTime is how long a history that is away may hold up what is about to be.
const recordTime = 5 * time.Second

// Create opens a sandbox for who with the config in raw, a JSON object whose keys
// are all optional. Errors name the key, FaultFull where there is no room.
func (s *Service) Create(ctx context.Context, caller sandbox.Key, raw []byte) (sandbox.Sandbox, error) {
	p, err := policy.Accept(raw, s.Default, s.Ceiling, s.environments(), caller.Role == sandbox.RoleAdmin)
	if err != nil {
		return sandbox.Sandbox{}, invalid(err)
	}
	if err := s.reserve(caller.User); err != nil {
		return sandbox.Sandbox{}, err
	}
	now := s.Clock()
	box := sandbox.Sandbox{ID: s.NewID(), Owner: caller.User, Policy: p, State: sandbox.StateActive, CreatedAt: now, LastUsed: now}
	recorded := make(chan error, 1)
	go func() {
		recording, done := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
		defer done()
		recorded <- s.History.CreateSandbox(recording, box)
	}()
	session, err := s.Supervisor.Open(ctx, box, "")
	opened, noRecord := err == nil, <-recorded
	if opened {
		err = noRecord
	}
	s.mu.Lock()
	s.release(caller.User)
	if err == nil && s.draining {
		err = stopping()
	}
	if err == nil {
		s.live[box.ID] = &live{box: box, session: session, used: now}
		s.mu.Unlock()
		return box, nil
	}
	s.mu.Unlock()
	if opened {
		err = errors.Join(err, session.Close())
	}
	if noRecord == nil {
		err = errors.Join(err, s.endRecord(box.ID, sandbox.StateLost))
	}
	return sandbox.Sandbox{}, err
}

// endRecord writes that a sandbox has ended, whoever waits for it.
func (s *Service) endRecord(id string, state sandbox.State) error {
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	return s.History.EndSandbox(ctx, id, state, s.Clock())
}

// reserve takes a place among the user's sandboxes; release gives it back, under
// the lock.
func (s *Service) reserve(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return stopping()
	}
	own, all := s.opening[user], 0
	for _, n := range s.opening {
		all += n
	}
	for _, l := range s.live {
		all++
		if l.box.Owner == user {
			own++
		}
	}
	switch {
	case own >= s.PerUser:
		return &sandbox.Error{Fault: sandbox.FaultLimit, Detail: fmt.Sprintf("you have %d sandboxes, which is all that a user may have; delete one", own), RetryAfter: 10}
	case all >= s.InAll:
		return &sandbox.Error{Fault: sandbox.FaultFull, Detail: fmt.Sprintf("there are %d sandboxes, which is all that this service holds; try again soon", all), RetryAfter: 10}
	}
	s.opening[user]++
	return nil
}

func (s *Service) release(user string) {
	if s.opening[user]--; s.opening[user] <= 0 {
		delete(s.opening, user)
	}
}

func invalid(err error) error {
	if field, ok := err.(*policy.FieldError); ok {
		fault := map[policy.Why]sandbox.Fault{policy.WhyForbidden: sandbox.FaultForbidden, policy.WhyMalformed: sandbox.FaultMalformed}[field.Why]
		if fault == "" {
			fault = sandbox.FaultInvalid
		}
		return &sandbox.Error{Fault: fault, Field: field.Field, Detail: field.Detail}
	}
	return err
}

// find returns a live sandbox that who may use. A sandbox that has ended is
// FaultGone with the reason to its owner and to admins; any other is not there.
func (s *Service) find(ctx context.Context, caller sandbox.Key, id string) (*live, error) {
	s.mu.Lock()
	l := s.live[id]
	s.mu.Unlock()
	if l != nil && may(caller, l.box.Owner) {
		return l, nil
	}
	if l == nil {
		box, err := s.record(ctx, caller, id)
		if err != nil {
			return nil, err
		}
		why := map[sandbox.State]string{sandbox.StateDeleted: "it was deleted", sandbox.StateExpired: "its lifetime or idle time ended", sandbox.StateLost: "the service was restarted"}[box.State]
		return nil, sandbox.Errorf(sandbox.FaultGone, "this sandbox is gone: %s. Create another; its history can still be read", why)
	}
	return nil, sandbox.Errorf(sandbox.FaultNotFound, "there is no such sandbox, or it is not yours")
}

// record returns the record of a sandbox, live or ended, that who may see.
func (s *Service) record(ctx context.Context, caller sandbox.Key, id string) (sandbox.Sandbox, error) {
	box, err := s.History.Sandbox(ctx, id)
	if err == nil && !may(caller, box.Owner) {
		err = sandbox.Errorf(sandbox.FaultNotFound, "there is no such sandbox, or it is not yours")
	}
	if err == nil && box.State == sandbox.StateActive {
		box.State = sandbox.StateLost // in the record only: nobody lives in it
	}
	return box, err
}

func may(caller sandbox.Key, owner string) bool {
	return caller.Role == sandbox.RoleAdmin || caller.User == owner
}

// Delete ends a sandbox: its process and its files are gone when it returns.
func (s *Service) Delete(ctx context.Context, caller sandbox.Key, id string) error {
	l, err := s.find(ctx, caller, id)
	if err != nil {
		return err
	}
	return s.end(l, sandbox.StateDeleted)
}

// DeleteAll ends the caller's own sandboxes and says how many there were.
func (s *Service) DeleteAll(_ context.Context, caller sandbox.Key) (int, error) {
	s.mu.Lock()
	var own []*live
	for _, l := range s.live {
		if l.box.Owner == caller.User {
			own = append(own, l)
		}
	}
	s.mu.Unlock()
	for _, l := range own {
		if err := s.end(l, sandbox.StateDeleted); err != nil {
			return 0, err
		}
	}
	return len(own), nil
}

// end takes a sandbox away; what runs in it is cut off.
func (s *Service) end(l *live, state sandbox.State) error {
	s.mu.Lock()
	if s.live[l.box.ID] != l {
		s.mu.Unlock()
		return nil
	}
	delete(s.live, l.box.ID)
	if r, ok := s.running[l.last]; ok {
		r.cancel(nil)
	}
	s.mu.Unlock()
	return errors.Join(l.session.Close(), s.endRecord(l.box.ID, state))
}

// janitor ends what has expired, once a second, and forgets what is too old.
func (s *Service) janitor() {
	defer s.work.Done()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.Expire()
			s.sessions.expire(s.Clock())
			s.prune()
		}
	}
}

// Expire ends every sandbox whose time is over and in which nothing runs.
func (s *Service) Expire() {
	now := s.Clock()
	s.mu.Lock()
	var over []*live
	for _, l := range s.live {
		if now.After(l.now().ExpiresAt()) && !l.running {
			l.running = true
			over = append(over, l)
		}
	}
	s.forget(now)
	s.mu.Unlock()
	for _, l := range over {
		if err := s.end(l, sandbox.StateExpired); err != nil {
			s.Log.WithError(err).Warn("end an expired sandbox")
		}
	}
}

// touch says that a sandbox is used now, which puts its idle expiry off.
func (s *Service) touch(l *live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.used = s.Clock()
}

// take claims a sandbox for a run, and says whether it was free.
func (s *Service) take(l *live) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := !l.running
	l.running = true
	return free
}

func (s *Service) giveBack(l *live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.running = false
}

// SandboxStatus is what a sandbox holds now.
type SandboxStatus struct {
	Sandbox     sandbox.Sandbox
	Running     bool
	Variables   sandbox.Variables
	Usage       map[string]any
	Environment *sandbox.EnvironmentVersion // nil where nothing of it lives
	Last        *sandbox.Execution          // nil where nothing ran yet
}

// Status pictures a sandbox; the variables are left out while it runs.
func (s *Service) Status(ctx context.Context, caller sandbox.Key, id string) (SandboxStatus, error) {
	l, err := s.find(ctx, caller, id)
	if err != nil {
		return SandboxStatus{}, err
	}
	s.mu.Lock()
	look := SandboxStatus{Sandbox: l.now(), Variables: sandbox.Variables{Variables: map[string]sandbox.Variable{}, Globals: []string{}}}
	last, running := l.last, l.running
	s.mu.Unlock()
	if !running && l.turn.TryLock() {
		look.Variables, err = l.session.InspectVariables(ctx)
		l.turn.Unlock()
		if err != nil {
			return look, err
		}
	} else {
		look.Running = true
	}
	look.Usage, look.Environment = l.session.Usage(), l.session.Environment()
	if last != "" {
		if e, err := s.History.Execution(ctx, last); err == nil {
			look.Last = &e
		}
	}
	return look, nil
}
