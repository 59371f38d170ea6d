package service

import (
	"context"

	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
)

// Workspace has the files of a sandbox's /session.
type Workspace = supervisor.Workspace

// Workspace returns the files of a sandbox's /session, and postpones its idle expiry. It may be used while code runs
// there.
func (s *Service) Workspace(ctx context.Context, caller sandbox.Key, id string) (*Workspace, error) {
	live, err := s.findWithFiles(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	return live.session.Workspace(), nil
}
