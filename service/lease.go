package service

import (
	"context"
	"sync"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// lease is the right to run code in a live sandbox.
type lease struct {
	service  *Service
	live     *liveSandbox
	markIdle func() // lets others acquire the sandbox; they wait until release
}

// acquireSandbox acquires a live sandbox for one run. It returns FaultBusy if another run has the sandbox. A client
// that reads in history that a run has ended may start the next run immediately. Therefore the caller calls markIdle
// before the execution's end is durable, and release afterwards.
func (s *Service) acquireSandbox(
	ctx context.Context, caller sandbox.Key, sandboxID string, o observers,
) (*lease, error) {
	if o.steps != nil {
		if err := access.MayDebug(caller); err != nil {
			return nil, err
		}
	}
	live, err := s.find(ctx, caller, sandboxID)
	if err != nil {
		return nil, err
	}
	if (o.steps != nil || o.debug != nil) && !live.sandbox.Policy.EnableDebugging {
		return nil, errDebuggingOff()
	}
	if !s.markBusy(live) {
		return nil, &sandbox.Error{
			Fault:  sandbox.FaultBusy,
			Detail: "this sandbox is running something else; wait for it, or cancel it", RetryAfter: 1,
		}
	}
	live.inUse.Lock()
	return &lease{s, live, sync.OnceFunc(func() { s.markIdle(live) })}, nil
}

// sandboxPollInterval is the time between two looks of AwaitSandbox.
const sandboxPollInterval = 20 * time.Millisecond

// AwaitSandbox waits until nothing runs in a sandbox. Another run may begin before the caller's does. It returns false
// if ctx ends first.
func (s *Service) AwaitSandbox(ctx context.Context, caller sandbox.Key, sandboxID string) bool {
	ticks := time.NewTicker(sandboxPollInterval)
	defer ticks.Stop()
	for {
		live, err := s.find(ctx, caller, sandboxID)
		if err != nil {
			return ctx.Err() == nil // the next run says what is wrong
		}
		s.mu.Lock()
		isBusy := live.isBusy
		s.mu.Unlock()
		if !isBusy {
			return ctx.Err() == nil
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return false
		}
	}
}

func (l *lease) release() {
	l.service.touch(l.live)
	l.live.inUse.Unlock()
	l.markIdle()
}

// noteExecution sets the last execution of a sandbox.
func (s *Service) noteExecution(live *liveSandbox, executionID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live.lastExecution, live.lastUsed = executionID, s.Clock()
}
