package service

import (
	"context"
	"errors"
	"time"

	"glasshouse/sandbox"
)

// Query runs one statement on behalf of a sandbox, and records it as an execution of its own. Without a sandboxID the
// statement has the default policy. maxRows lowers the policy's limit of rows unless it is 0. After an error, the
// rows that sink received are invalid.
func (s *Service) Query(
	ctx context.Context, caller sandbox.Key, sandboxID, sql string, params map[string]any, maxRows int,
	sink sandbox.RowSink,
) (sandbox.QuerySummary, error) {
	sb := s.ephemeralSandbox(caller, s.Default)
	if sandboxID != "" {
		live, err := s.find(ctx, caller, sandboxID)
		if err != nil {
			return sandbox.QuerySummary{}, err
		}
		defer s.touch(live)
		sb = live.sandbox
	}
	if maxRows > 0 {
		sb.Policy.MaxRows = min(sb.Policy.MaxRows, maxRows)
	}
	r, err := s.newRun(caller, sb, Job{Code: sql, Kind: sandbox.KindQuery})
	if err != nil {
		return sandbox.QuerySummary{}, err
	}
	ctx, end, err := r.begin(ctx)
	if err != nil {
		return sandbox.QuerySummary{}, err
	}
	defer end()
	began := time.Now()
	summary, err := r.handler.Query(ctx, sql, params, sink)
	outcome := sandbox.Outcome{Status: sandbox.StatusCompleted, Began: began, Duration: time.Since(began)}
	outcome.Usage.WallMS = outcome.Duration.Seconds() * 1000
	if err != nil {
		outcome.Status, outcome.Error = sandbox.StatusFailed, new(sandbox.Shorten(err.Error(), maxErrorRunes))
	}
	summary.ExecutionID = r.opening.ID
	_, finishErr := r.finish(ctx, outcome, nil)
	return summary, errors.Join(err, finishErr)
}

// Schema returns every table that may be read, with its columns. A sandboxID must name a live sandbox; it may be "".
func (s *Service) Schema(ctx context.Context, caller sandbox.Key, sandboxID string) ([]sandbox.Table, error) {
	if sandboxID != "" {
		if _, err := s.find(ctx, caller, sandboxID); err != nil {
			return nil, err
		}
	}
	end, err := s.beginInspection(ctx, caller)
	if err != nil {
		return nil, err
	}
	defer end(0)
	return s.Reader.Schema(ctx)
}
