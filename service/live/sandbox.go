package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/access"
	"glasshouse/service/records"
)

// liveSandbox is a sandbox with a session.
type liveSandbox struct {
	sandbox sandbox.Sandbox // the state at its creation; it never changes
	session *supervisor.Session
	inUse   sync.Mutex    // held by a run or an inspection
	ended   chan struct{} // closed when the sandbox has ended

	isEmpty       bool      // it was opened again, and nothing has restored its state; guarded by Service.mu
	isBusy        bool      // a run has acquired it, or it is being ended; guarded by Service.mu
	lastUsed      time.Time // guarded by Service.mu
	lastExecution string    // guarded by Service.mu
	cancelRun     func()    // cancels the last run; guarded by Service.mu
	lifetime      int       // seconds, if a caller has changed it; else 0; guarded by Service.mu
}

// current returns the sandbox with its last use and its lifetime. The caller holds Service.mu.
func (l *liveSandbox) current() sandbox.Sandbox {
	sb := l.sandbox
	sb.LastUsed = l.lastUsed
	if l.lifetime > 0 {
		sb.Policy.Lifetime, sb.Policy.IdleTimeout = l.lifetime, l.lifetime
	}
	return sb
}

// Limits of the time in which history records the creation and the end of a sandbox.
const (
	recordTimeout    = 5 * time.Second
	endRecordTimeout = 10 * time.Second
)

// Create opens a sandbox for the caller. config is a JSON object with optional keys; an error names the key. Create
// returns FaultFull if there are too many sandboxes.
func (s *Service) Create(ctx context.Context, caller sandbox.Key, config []byte) (sandbox.Sandbox, error) {
	p, err := s.accept(caller, config, s.Default)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	return s.open(ctx, caller, p)
}

// Restrict returns a policy of another sandbox as the caller may have it now: within the ceiling, and with the modules
// of the caller's key. environment is the name of the one that it gets; "": it keeps its own. It returns FaultInvalid
// for a name that does not exist.
func (s *Service) Restrict(caller sandbox.Key, p policy.Policy, environment string) (policy.Policy, error) {
	if environment == "" {
		return s.accept(caller, nil, p)
	}
	config, err := json.Marshal(map[string]string{"environment": environment})
	if err != nil {
		return p, err
	}
	return s.accept(caller, config, p)
}

// CreateWith opens a sandbox for the caller with the policy of another one. It returns FaultFull if there are too many
// sandboxes.
func (s *Service) CreateWith(ctx context.Context, caller sandbox.Key, p policy.Policy) (sandbox.Sandbox, error) {
	return s.open(ctx, caller, p)
}

// accept returns the policy def, restricted to the modules of the caller's key, with the keys of config. Its error is
// FaultInvalid or FaultForbidden and names the key.
func (s *Service) accept(caller sandbox.Key, config []byte, def policy.Policy) (policy.Policy, error) {
	def = def.WithModules(caller.AllowedModules, caller.BlockedModules)
	environments := sandbox.ModulesOf(s.Environments.Environments())
	p, err := policy.Accept(config, def, s.Ceiling, environments, caller.Role == sandbox.RoleAdmin)
	return p, sandbox.PolicyFault(err)
}

// Work is the CPU time that the service, PostgreSQL and the kernel take for a sandbox from its creation to its end.
const Work = 2500 * time.Microsecond

// open opens a sandbox with policy p for the caller.
func (s *Service) open(ctx context.Context, caller sandbox.Key, p policy.Policy) (sandbox.Sandbox, error) {
	if err := s.Supervisor.Full(""); err != nil { // before it is on record
		return sandbox.Sandbox{}, err
	}
	if err := s.reserveSandbox(caller.User); err != nil {
		return sandbox.Sandbox{}, err
	}
	s.Supervisor.Share.Wait(ctx, caller.User, Work)
	now := s.Clock()
	sb := sandbox.Sandbox{
		ID: s.NewID(), Owner: caller.User, Policy: p, State: sandbox.StateActive, CreatedAt: now, LastUsed: now,
	}
	recordCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	recordErr := s.History.CreateSandbox(recordCtx, sb) // appends to the log, which takes microseconds
	cancel()
	var session *supervisor.Session
	err := recordErr
	if err == nil {
		session, err = s.Supervisor.Open(ctx, sb, "")
	}
	s.mu.Lock()
	s.releaseReservation(caller.User)
	if err == nil && s.isStopping {
		err = access.ErrStopping()
	}
	if err == nil {
		s.live[sb.ID] = &liveSandbox{
			sandbox: sb, session: session, ended: make(chan struct{}), lastUsed: now, cancelRun: func() {},
		}
		s.liveOf[sb.Owner]++
		s.mu.Unlock()
		return sb, nil
	}
	s.mu.Unlock()
	if session != nil {
		session.Close()
	}
	if recordErr == nil {
		err = errors.Join(err, s.recordEnd(sb.ID, sb.Owner, sandbox.StateLost))
	}
	return sandbox.Sandbox{}, err
}

// recordEnd records that a sandbox has ended, even if the caller has left.
func (s *Service) recordEnd(id, owner string, state sandbox.State) error {
	ctx, cancel := context.WithTimeout(context.Background(), endRecordTimeout)
	defer cancel()
	return s.History.EndSandbox(ctx, id, owner, state, s.Clock())
}

// reserveSandbox counts a sandbox that is about to be opened against the limits.
func (s *Service) reserveSandbox(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isStopping {
		return access.ErrStopping()
	}
	own, all := s.opening[user]+s.liveOf[user], len(s.live)
	for _, n := range s.opening {
		all += n
	}
	switch {
	case own >= s.PerUser:
		return &sandbox.Error{
			Fault: sandbox.FaultLimit,
			Detail: fmt.Sprintf("you have %d sandboxes, the maximum for one user; delete one",
				own), RetryAfter: 10,
		}
	case all >= s.InAll:
		return &sandbox.Error{
			Fault: sandbox.FaultFull,
			Detail: fmt.Sprintf("the service has %d sandboxes, its maximum; try again soon",
				all), RetryAfter: 10,
		}
	}
	s.opening[user]++
	return nil
}

// releaseReservation undoes reserveSandbox. The caller holds mu.
func (s *Service) releaseReservation(user string) {
	if s.opening[user]--; s.opening[user] <= 0 {
		delete(s.opening, user)
	}
}

// find returns a live sandbox that the caller may use. For an ended sandbox it returns FaultGone with the reason to its
// owner and to admins, and FaultNotFound to other callers.
func (s *Service) find(ctx context.Context, caller sandbox.Key, id string) (*liveSandbox, error) {
	s.mu.Lock()
	live, endedAs := s.live[id], s.ending[id]
	s.mu.Unlock()
	switch {
	case live == nil:
		sb, err := s.Records.Sandbox(ctx, caller, id)
		if err != nil {
			return nil, err
		}
		if endedAs != "" {
			sb.State = endedAs
		}
		reason := map[sandbox.State]string{
			sandbox.StateDeleted: "it was deleted", sandbox.StateExpired: "its lifetime or idle time ended",
			sandbox.StateLost: "the service was restarted",
		}[sb.State]
		return nil, sandbox.Errorf(sandbox.FaultGone,
			"this sandbox has ended: %s; create another (its history can still be read)", reason)
	case !access.MaySee(caller, live.sandbox.Owner):
		return nil, records.NoSandbox()
	}
	return live, s.Access.AuditView(ctx, caller, "sandbox/"+id, live.sandbox.Owner)
}

// Delete ends a sandbox. When it returns, no code of the sandbox runs any more, and its process and files are removed,
// or else, if the kernel needs longer than endTimeout, soon afterwards.
func (s *Service) Delete(ctx context.Context, caller sandbox.Key, id string) error {
	live, err := s.find(ctx, caller, id)
	if err != nil {
		return err
	}
	return s.endSandbox(live, sandbox.StateDeleted, endTimeout)
}

// DeleteAll ends the caller's own sandboxes and returns their number.
func (s *Service) DeleteAll(_ context.Context, caller sandbox.Key) (int, error) {
	s.mu.Lock()
	var own []*liveSandbox
	for _, live := range s.live {
		if live.sandbox.Owner == caller.User {
			own = append(own, live)
		}
	}
	s.mu.Unlock()
	if err := s.endAll(own, sandbox.StateDeleted); err != nil {
		return 0, err
	}
	return len(own), nil
}

// endConcurrency is how many sandboxes end side by side. An end mostly waits: for the kernel, which frees the mounts of
// a namespace after all CPUs have passed a quiescent state, and for the record of the end to be on disk.
const endConcurrency = 64

// endTimeout is how long the end of a sandbox, or of several together, waits for the exits of processes. On an
// overloaded machine a process that was killed takes longer to exit.
const endTimeout = 10 * time.Second

// endAll ends sandboxes side by side, also after errors, which it returns together.
func (s *Service) endAll(all []*liveSandbox, state sandbox.State) error {
	errs := make([]error, len(all))
	deadline := time.Now().Add(endTimeout)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(endConcurrency, len(all)) {
		workers.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(all); n = int(next.Add(1)) - 1 {
				errs[n] = s.endSandbox(all[n], state, time.Until(deadline))
			}
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// endSandbox removes a sandbox and cancels its run. It waits at most for the timeout until the process has exited.
func (s *Service) endSandbox(live *liveSandbox, state sandbox.State, timeout time.Duration) error {
	s.mu.Lock()
	if s.live[live.sandbox.ID] != live {
		s.mu.Unlock()
		return nil
	}
	delete(s.live, live.sandbox.ID)
	s.ending[live.sandbox.ID] = state
	if s.liveOf[live.sandbox.Owner]--; s.liveOf[live.sandbox.Owner] == 0 {
		delete(s.liveOf, live.sandbox.Owner)
	}
	live.cancelRun()
	s.mu.Unlock()
	defer close(live.ended)
	live.session.CloseWithin(timeout)
	err := s.recordEnd(live.sandbox.ID, live.sandbox.Owner, state)
	s.mu.Lock()
	delete(s.ending, live.sandbox.ID)
	s.mu.Unlock()
	return err
}

// janitorInterval is the time between two runs of the janitor.
const janitorInterval = time.Second

// runJanitor ends expired sandboxes until the service stops. It runs in a goroutine of its own.
func (s *Service) runJanitor() {
	ticker := time.NewTicker(janitorInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			s.Expire()
		}
	}
}

// Expire ends every expired sandbox that is idle.
func (s *Service) Expire() {
	now := s.Clock()
	s.mu.Lock()
	var expired []*liveSandbox
	for _, live := range s.live {
		if now.After(live.current().ExpiresAt()) && !live.isBusy {
			live.isBusy = true
			expired = append(expired, live)
		}
	}
	s.mu.Unlock()
	if err := s.endAll(expired, sandbox.StateExpired); err != nil {
		s.Log.WithError(err).Warn("could not end expired sandboxes")
	}
}

// touch postpones the idle expiry of a sandbox.
func (s *Service) touch(live *liveSandbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live.lastUsed = s.Clock()
}

// markBusy reports whether the sandbox was idle, and marks it as busy.
func (s *Service) markBusy(live *liveSandbox) (wasIdle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wasIdle = !live.isBusy
	live.isBusy = true
	return wasIdle
}

func (s *Service) markIdle(live *liveSandbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live.isBusy = false
}
