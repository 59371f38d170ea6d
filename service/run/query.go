package run

import (
	"context"
	"errors"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/database"
)

// Statement is a statement to run.
type Statement struct {
	SandboxID  string // the sandbox whose policy it has; "": the default policy
	Database   string // the name of the database; "": the caller's default
	SQL        string
	Parameters map[string]any
	MaxRows    int // lowers the policy's limit; 0: does not
}

// resultByteWork is the CPU time to write a byte of a statement's result for a client, in nanoseconds.
const resultByteWork = 20

// Query runs one statement, and records it as an execution of its own. After an error, the rows that sink received are
// invalid.
func (s *Service) Query(
	ctx context.Context, caller sandbox.Key, q Statement, sink sandbox.RowSink,
) (sandbox.QuerySummary, error) {
	return s.runStatement(ctx, caller, q, nil, sink)
}

// answerFunc answers a question about a statement, which it runs. It returns the summary of the statement.
type answerFunc func(
	ctx context.Context, db *database.Database, sql string, params map[string]any, l sandbox.QueryLimits,
) (sandbox.QuerySummary, error)

// runStatement runs a statement or, if answer is not nil, has it answer. It records it as an execution.
func (s *Service) runStatement(
	ctx context.Context, caller sandbox.Key, q Statement, answer answerFunc, sink sandbox.RowSink,
) (sandbox.QuerySummary, error) {
	sb := s.Live.Ephemeral(caller, s.Live.Default)
	if q.SandboxID != "" {
		var err error
		if sb, err = s.Live.Sandbox(ctx, caller, q.SandboxID); err != nil {
			return sandbox.QuerySummary{}, err
		}
		defer s.Live.TouchSandbox(q.SandboxID)
	}
	if q.MaxRows > 0 {
		sb.Policy.MaxRows = min(sb.Policy.MaxRows, q.MaxRows)
	}
	r, err := s.newRun(caller, sb, sandbox.Request{Code: q.SQL, Kind: sandbox.KindQuery}, observers{})
	if err != nil {
		return sandbox.QuerySummary{}, err
	}
	r.handler.answer, r.opening.IsExplanation = answer, answer != nil
	ctx, end, err := r.begin(ctx)
	if err != nil {
		return sandbox.QuerySummary{}, err
	}
	defer end()
	began := time.Now()
	summary, err := r.handler.Query(ctx, q.Database, q.SQL, q.Parameters, sink)
	s.Share.Charge(caller.User, time.Duration(resultByteWork*summary.Bytes))
	outcome := sandbox.Outcome{Status: sandbox.StatusCompleted, Began: began, Duration: time.Since(began)}
	outcome.Usage.WallMS = outcome.Duration.Seconds() * 1000
	if err != nil {
		outcome.Status, outcome.Error = sandbox.StatusFailed, new(sandbox.Shorten(err.Error(), maxErrorRunes))
	}
	summary.ExecutionID = r.opening.ID
	_, finishErr := r.finish(ctx, outcome, nil)
	return summary, errors.Join(err, finishErr)
}
