package live

import (
	"context"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// Limits of the sandboxes of the compatibility APIs, whose clients cannot configure a sandbox: they expect the limits
// of a server of their own. The operator's ceiling may be lower, and the operator's defaults higher.
const (
	compatSeconds      = 300       // of one run
	compatIdleTimeout  = 3600      // seconds: people leave notebooks open
	compatLifetime     = 24 * 3600 // seconds
	maxCompatCodeBytes = 1 << 20
)

// CompatPolicy returns the policy of a sandbox of a compatibility API: plain Python, without import rules and helpers.
func (s *Service) CompatPolicy() policy.Policy {
	p, c := s.Default, s.Ceiling
	p.Profile, p.EnableFileAccess = policy.ProfileCompat, true
	for _, limit := range []struct {
		value             *int
		expected, ceiling int
	}{
		{&p.MaxExecutionTime, compatSeconds, c.MaxExecutionTime},
		{&p.IdleTimeout, compatIdleTimeout, c.IdleTimeout},
		{&p.Lifetime, compatLifetime, c.Lifetime},
		{&p.MaxCodeSize, maxCompatCodeBytes, c.MaxCodeSize},
	} {
		*limit.value = max(*limit.value, limit.expected)
		if limit.ceiling > 0 {
			*limit.value = min(*limit.value, limit.ceiling)
		}
	}
	return p
}

// CreateCompat opens a sandbox for a client of a compatibility API that sends a key: CompatPolicy with the helpers and
// with notebooks' way to show values. config changes that policy as Create's changes the default policy; nil changes
// nothing. Its errors are those of Create.
func (s *Service) CreateCompat(ctx context.Context, caller sandbox.Key, config []byte) (sandbox.Sandbox, error) {
	p := s.CompatPolicy()
	p.Profile = policy.ProfileNotebook
	p, err := s.accept(caller, config, p)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	return s.open(ctx, caller, p)
}

// restartPollInterval is how often Restart looks whether a cancelled run has ended.
const restartPollInterval = 5 * time.Millisecond

// Restart cancels what runs in a sandbox, and ends its Python process. The next run finds no variables, and the files
// of /session.
func (s *Service) Restart(ctx context.Context, caller sandbox.Key, id string) error {
	live, err := s.find(ctx, caller, id)
	if err != nil {
		return err
	}
	for !live.inUse.TryLock() {
		s.mu.Lock()
		live.cancelRun()
		s.mu.Unlock()
		select {
		case <-time.After(restartPollInterval):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer live.inUse.Unlock()
	s.touch(live)
	live.session.Restart()
	return nil
}

// Ended returns a channel that is closed when a sandbox has ended, which it may have already.
func (s *Service) Ended(id string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if live := s.live[id]; live != nil {
		return live.ended
	}
	ended := make(chan struct{})
	close(ended)
	return ended
}

// Touch postpones the idle expiry of a sandbox. Its errors are those of any use of the sandbox.
func (s *Service) Touch(ctx context.Context, caller sandbox.Key, id string) error {
	live, err := s.find(ctx, caller, id)
	if err == nil {
		s.touch(live)
	}
	return err
}
