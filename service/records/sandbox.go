package records

import (
	"context"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// Sandbox returns the record of a sandbox, live or ended, that the caller may see.
func (s *Service) Sandbox(ctx context.Context, caller sandbox.Key, id string) (sandbox.Sandbox, error) {
	sb, err := s.History.Sandbox(ctx, id)
	if err == nil && !access.MaySee(caller, sb.Owner) {
		err = NoSandbox()
	}
	if err == nil && sb.State == sandbox.StateActive {
		sb.State = sandbox.StateLost // the service ended before the sandbox did
	}
	if err == nil {
		err = s.Access.AuditView(ctx, caller, "sandbox/"+id, sb.Owner)
	}
	return sb, err
}

// NoSandbox returns the error for a sandbox that does not exist, or that the caller may not see.
func NoSandbox() error {
	return sandbox.Errorf(sandbox.FaultNotFound, "there is no such sandbox, or it is not yours")
}
