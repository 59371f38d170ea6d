package live

import (
	"context"
	"fmt"
	"math"
	"time"

	"glasshouse/sandbox"
)

// Sandbox returns the current state of a sandbox. It returns FaultNotFound or FaultGone if the sandbox does not
// live.
func (s *Service) Sandbox(ctx context.Context, caller sandbox.Key, id string) (sandbox.Sandbox, error) {
	live, err := s.find(ctx, caller, id)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return live.current(), nil
}

// maxLifetime is the maximum lifetime of a sandbox in seconds, as for the key lifetime of a config.
const maxLifetime = 7 * 24 * 3600

// SetEnd makes a sandbox end after a time from now, whether it is used or not. It returns FaultInvalid for a time of
// less than a second, or if the whole lifetime would exceed the operator's limit.
func (s *Service) SetEnd(
	ctx context.Context, caller sandbox.Key, id string, after time.Duration,
) (sandbox.Sandbox, error) {
	live, err := s.find(ctx, caller, id)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	longest := maxLifetime
	if c := s.Ceiling.Lifetime; c > 0 {
		longest = min(longest, c)
	}
	age := s.Clock().Sub(live.sandbox.CreatedAt)
	lifetime := math.Ceil((age + after).Seconds())
	if after < time.Second || lifetime > float64(longest) {
		return sandbox.Sandbox{}, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "timeout", Detail: fmt.Sprintf(
			"a sandbox lives at most %d seconds from its creation: it must be from 1 to %d", longest,
			max(longest-int(math.Ceil(age.Seconds())), 1))}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	live.lifetime = int(lifetime)
	return live.current(), nil
}

// idlePollInterval is how often AwaitIdle looks whether a sandbox is idle.
const idlePollInterval = 5 * time.Millisecond

// AwaitIdle waits until nothing runs in a sandbox, or the sandbox has ended. Another caller may begin a run before this
// one does. It returns false if ctx ends first.
func (s *Service) AwaitIdle(ctx context.Context, id string) bool {
	ticker := time.NewTicker(idlePollInterval)
	defer ticker.Stop()
	for {
		s.mu.Lock()
		live := s.live[id]
		isIdle := live == nil || !live.isBusy
		s.mu.Unlock()
		if isIdle {
			return ctx.Err() == nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
}
