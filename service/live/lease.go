package live

import (
	"context"
	"sync"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
)

// OpenSession opens a session for a sandbox.
type OpenSession func(context.Context, sandbox.Sandbox) (*supervisor.Session, error)

// Lease is the right to run code once in a sandbox. Release ends it.
type Lease struct {
	Sandbox sandbox.Sandbox
	// HasOwnPolicy is set if the sandbox exists for this run only, so that history has no record of it, and has another
	// policy than the default one.
	HasOwnPolicy bool
	// IsEmpty is set for the first run in a sandbox that was opened again: it must restore the state.
	IsEmpty bool

	service  *Service
	live     *liveSandbox // nil for a sandbox that exists for this run only
	open     OpenSession
	session  *supervisor.Session // nil before Open
	cpu      sessionMeter
	markIdle func()
	release  func()
}

// Acquire acquires a live sandbox for one run. It returns FaultBusy if another run has the sandbox. The run ends when
// the returned context ends, which it does with the sandbox.
func (s *Service) Acquire(
	ctx context.Context, caller sandbox.Key, id string,
) (context.Context, *Lease, error) {
	live, err := s.find(ctx, caller, id)
	if err != nil {
		return nil, nil, err
	}
	if !s.markBusy(live) {
		return nil, nil, &sandbox.Error{
			Fault:  sandbox.FaultBusy,
			Detail: "this sandbox is running something else; wait for it, or cancel it", RetryAfter: 1,
		}
	}
	live.inUse.Lock()
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	live.cancelRun = cancel
	hasEnded, isEmpty := s.live[id] != live, live.isEmpty
	live.isEmpty = false
	s.mu.Unlock()
	if hasEnded {
		cancel()
	}
	markIdle := sync.OnceFunc(func() { s.markIdle(live) })
	return ctx, &Lease{
		Sandbox: live.sandbox, IsEmpty: isEmpty, service: s, live: live, markIdle: markIdle,
		open: func(context.Context, sandbox.Sandbox) (*supervisor.Session, error) { return live.session, nil },
		release: func() {
			s.touch(live)
			live.inUse.Unlock()
			markIdle()
			cancel()
		},
	}, nil
}

// AcquireNew opens a sandbox for one run of code, with the caller's config as JSON; nil means the default one.
func (s *Service) AcquireNew(caller sandbox.Key, config []byte, code string) (*Lease, error) {
	p, err := s.accept(caller, config, s.Default)
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context, sb sandbox.Sandbox) (*supervisor.Session, error) {
		return s.Supervisor.Open(ctx, sb, code)
	}
	lease, err := s.AcquireEphemeral(caller, p, code, open)
	if lease != nil {
		lease.HasOwnPolicy = len(config) > 0 || len(caller.AllowedModules)+len(caller.BlockedModules) > 0
	}
	return lease, err
}

// AcquireEphemeral is AcquireNew with a policy, and a function that opens the session. Release closes the session.
func (s *Service) AcquireEphemeral(
	caller sandbox.Key, p policy.Policy, code string, open OpenSession,
) (*Lease, error) {
	if err := s.Supervisor.Full(code); err != nil { // before it is on record
		return nil, err
	}
	closed, err := s.beginWork() // Close waits until the session is closed
	if err != nil {
		return nil, err
	}
	l := &Lease{Sandbox: s.Ephemeral(caller, p), HasOwnPolicy: true, service: s, open: open, markIdle: func() {}}
	l.release = func() { closeInBackground(l.session, closed) }
	return l, nil
}

// Ephemeral returns a sandbox that exists for one execution.
func (s *Service) Ephemeral(caller sandbox.Key, p policy.Policy) sandbox.Sandbox {
	now := s.Clock()
	return sandbox.Sandbox{
		ID: s.NewID(), Owner: caller.User, Policy: p, Ephemeral: true, State: sandbox.StateActive,
		CreatedAt: now, LastUsed: now,
	}
}

// closeInBackground closes a session, which may be nil, and then calls closed. The caller
// need not wait until the kernel has removed the process.
func closeInBackground(session *supervisor.Session, closed func()) {
	go func() {
		defer closed()
		if session != nil {
			session.Close()
		}
	}()
}

// Open returns the session in which the code runs. It is called once.
func (l *Lease) Open(ctx context.Context) (*supervisor.Session, error) {
	session, err := l.open(ctx, l.Sandbox)
	if err != nil {
		return nil, err
	}
	l.session = session
	l.cpu.follow(session)
	return session, nil
}

// TakeCPU returns the CPU time that the session has used since Open, or since the last call.
func (l *Lease) TakeCPU() time.Duration { return l.cpu.take() }

// SetExecution sets the last execution of the sandbox.
func (l *Lease) SetExecution(id string) {
	if l.live == nil {
		return
	}
	l.service.mu.Lock()
	defer l.service.mu.Unlock()
	l.live.lastExecution, l.live.lastUsed = id, l.service.Clock()
}

// MarkIdle lets other runs acquire the sandbox, which then wait until Release. A client that reads in history that a
// run has ended may start the next run immediately. Therefore a run calls it before the execution's end is durable.
func (l *Lease) MarkIdle() { l.markIdle() }

// Release ends the lease.
func (l *Lease) Release() { l.release() }
