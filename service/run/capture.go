package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/service/database"
)

// Limits of the writes of one user that wait for a decision. An admin must be able to review them all.
const (
	maxPendingWrites     = 500
	maxPendingWriteBytes = 32 << 20
)

// captureWrite stores a statement that was refused because it writes, if the sandbox's policy captures writes and the
// code does not run again: history has the writes of its first run. ok reports that it did. The error says why the
// statement cannot be captured.
func (h *guestHandler) captureWrite(
	ctx context.Context, db *database.Database, sql string, params map[string]any, l sandbox.QueryLimits,
	refusal *sandbox.Refusal, sink sandbox.RowSink,
) (summary sandbox.QuerySummary, ok bool, err error) {
	if h.sandbox.Policy.WritePolicy != policy.WriteCapture || refusal.Reason != "read-only" || h.isReplay {
		return summary, false, nil
	}
	if h.captured == maxCapturedWrites {
		return summary, false, &sandbox.Refusal{
			Reason:  "too-many-writes",
			Message: fmt.Sprintf("a run may capture at most %d writes", maxCapturedWrites),
			Hint:    "use one statement, such as INSERT ... SELECT or UPDATE ... FROM",
		}
	}
	plan, err := db.Writer.Capture(ctx, sql, params, l)
	var other *sandbox.Refusal
	if errors.As(err, &other) && (other.Reason == "read-only" || other.Reason == "statement-not-allowed") {
		return summary, false, nil // such a statement cannot be captured; the first refusal explains it better
	}
	if err != nil {
		return summary, false, err
	}
	w := sandbox.PendingWrite{
		ID: h.service.NewID(), SandboxID: h.sandbox.ID, ExecutionID: h.execution.ID, User: h.sandbox.Owner,
		Database: db.Name, SQL: sql, Types: map[string]string{}, Plan: plan.Plan, RowEstimate: plan.Rows,
		Alarms: plan.Alarms(), Status: sandbox.WritePending, CreatedAt: h.service.Clock(),
	}
	for name, value := range params {
		if typed, ok := value.(sandbox.TypedParameter); ok {
			w.Types[name] = typed.Type
		}
	}
	if params == nil {
		params = map[string]any{}
	}
	if w.Parameters, err = json.Marshal(params); err != nil {
		return summary, false, err
	}
	err = h.service.History.AddWrite(ctx, w, maxPendingWrites, maxPendingWriteBytes)
	var known *sandbox.Error
	if errors.As(err, &known) && known.Fault == sandbox.FaultLimit {
		return summary, false, &sandbox.Refusal{
			Reason: "too-many-pending-writes",
			Message: fmt.Sprintf("this write is not captured: your captured writes that wait for an admin would "+
				"exceed the limits of %d writes and %d MiB", maxPendingWrites, maxPendingWriteBytes>>20),
			Hint: "ask an admin to apply or reject the waiting writes, then run this again",
		}
	}
	if err != nil {
		return summary, false, err
	}
	h.captured++
	err = sink(sandbox.RowBatch{
		Columns: []sandbox.Column{
			{Name: "affected_rows", Type: "int4", Kind: "int"},
			{Name: "captured", Type: "bool", Kind: "bool"},
		},
		Data: []sandbox.ColumnValues{{Ints: []int64{0}}, {Bools: []bool{true}}}, Count: 1,
	})
	return sandbox.QuerySummary{Rows: 1, Fingerprint: plan.Fingerprint, Tables: plan.Tables}, err == nil, err
}
