package service

import (
	"context"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// Limits of the sandboxes of the compatibility APIs, whose clients cannot configure a sandbox: they expect the limits of
// a server of their own. The operator's ceiling may be lower, and the operator's defaults higher.
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

// CreateCompat opens a sandbox for a client of a compatibility API. config changes CompatPolicy as Create's changes the
// default policy; nil changes nothing. Its errors are those of Create.
func (s *Service) CreateCompat(ctx context.Context, caller sandbox.Key, config []byte) (sandbox.Sandbox, error) {
	p, err := policy.Accept(config, s.CompatPolicy(), s.Ceiling, s.environments(), caller.Role == sandbox.RoleAdmin)
	if err != nil {
		return sandbox.Sandbox{}, policyFault(err)
	}
	return s.open(ctx, caller, p)
}
