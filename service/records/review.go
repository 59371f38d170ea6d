package records

import (
	"context"

	"glasshouse/sandbox"
)

// This file lists records for review. Callers other than admins see only their own.

// ExecutionSummaries lists the executions that match the filter, newest first, without their outputs, and returns the
// cursor of the next page.
func (s *Service) ExecutionSummaries(ctx context.Context, caller sandbox.Key, f sandbox.ExecutionFilter) (
	list []sandbox.ExecutionSummary, next string, err error) {
	if caller.Role != sandbox.RoleAdmin {
		f.User = caller.User
	}
	return s.History.ExecutionSummaries(ctx, f)
}

// CountBesidesWork returns the number of replays and explanations that match the filter; 1000 stands for more, too.
func (s *Service) CountBesidesWork(ctx context.Context, caller sandbox.Key, f sandbox.ExecutionFilter) (int, error) {
	if caller.Role != sandbox.RoleAdmin {
		f.User = caller.User
	}
	return s.History.CountBesidesWork(ctx, f)
}

// Sandboxes lists live and ended sandboxes, newest first, and returns the cursor of the next page.
func (s *Service) Sandboxes(ctx context.Context, caller sandbox.Key, f sandbox.RecordFilter) (
	list []sandbox.SandboxSummary, next string, err error) {
	list, next, err = s.History.SandboxSummaries(ctx, ownRecords(caller, f))
	for n := range list {
		b := &list[n]
		live, isLive := s.live.CurrentSandbox(b.ID)
		switch {
		case isLive:
			title, firstRun, runs := b.Title, b.FirstRun, b.Runs
			*b = live.Summary()
			b.Title, b.FirstRun, b.Runs = title, firstRun, runs
		case b.State == sandbox.StateActive: // the service ended before the sandbox did
			b.State, b.ExpiresAt = sandbox.StateLost, nil
		}
	}
	return list, next, err
}

// SandboxDetails returns a live or ended sandbox that the caller may see, without its isolation level.
func (s *Service) SandboxDetails(ctx context.Context, caller sandbox.Key, id string) (sandbox.SandboxDetails, error) {
	sb, err := s.Sandbox(ctx, caller, id)
	if err != nil {
		return sandbox.SandboxDetails{}, err
	}
	list, _, err := s.Sandboxes(ctx, caller, sandbox.RecordFilter{SandboxID: id, Limit: 1})
	if err == nil && len(list) == 0 { // earlier versions recorded sandboxes of one execution, which no list has
		err = NoSandbox()
	}
	if err != nil {
		return sandbox.SandboxDetails{}, err
	}
	return sandbox.SandboxDetails{SandboxSummary: list[0], Config: sb.Policy}, nil
}

// Statements lists the statements of ended executions, newest first, and returns the cursor of the next page.
func (s *Service) Statements(ctx context.Context, caller sandbox.Key, f sandbox.RecordFilter) (
	list []sandbox.Statement, next string, err error) {
	return s.History.Statements(ctx, ownRecords(caller, f))
}

// TopStatements sums up the newest statements of ended executions by fingerprint. It returns how many statements it has
// considered.
func (s *Service) TopStatements(
	ctx context.Context, caller sandbox.Key, f sandbox.RecordFilter, order sandbox.StatementOrder,
) (list []sandbox.StatementStatistics, considered int64, err error) {
	return s.History.TopStatements(ctx, ownRecords(caller, f), order)
}

// Connections lists the network connections of ended executions, newest first, and returns the cursor of the next page.
func (s *Service) Connections(ctx context.Context, caller sandbox.Key, f sandbox.RecordFilter) (
	list []sandbox.ConnectionRecord, next string, err error) {
	return s.History.Connections(ctx, ownRecords(caller, f))
}

// ArtifactRecords lists the artifacts of all sandboxes, newest first, and returns the cursor of the next page.
func (s *Service) ArtifactRecords(ctx context.Context, caller sandbox.Key, f sandbox.RecordFilter) (
	list []sandbox.Artifact, next string, err error) {
	list, next, err = s.History.ArtifactRecords(ctx, ownRecords(caller, f))
	for n := range list {
		list[n].URL = "/artifacts/" + list[n].ID
	}
	return list, next, err
}

// ownRecords returns a filter that selects only what the caller may see.
func ownRecords(caller sandbox.Key, f sandbox.RecordFilter) sandbox.RecordFilter {
	if caller.Role != sandbox.RoleAdmin {
		f.User = caller.User
	}
	return f
}
