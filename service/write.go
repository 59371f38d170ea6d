package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// capture keeps a statement that was refused because it writes, where the sandbox's
// policy says so; ok says that it did. The error is why it may not be kept either.
func (d *desk) capture(ctx context.Context, sql string, params map[string]any, no *sandbox.Refusal, sink sandbox.RowSink) (total sandbox.QuerySummary, ok bool, err error) {
	if d.box.Policy.WritePolicy != policy.WriteCapture || no.Reason != "read-only" {
		return total, false, nil
	}
	if d.captured == maxCaptured {
		return total, false, &sandbox.Refusal{
			Reason: "too-many-writes", Message: "one run may leave 100 writes for an admin, and this is one more",
			Hint: "say it in one statement, such as INSERT ... SELECT or UPDATE ... FROM",
		}
	}
	plan, err := d.service.Writer.Capture(ctx, sql, params)
	var other *sandbox.Refusal
	if errors.As(err, &other) && (other.Reason == "read-only" || other.Reason == "statement-not-allowed") {
		return total, false, nil // it is not of the kind that is captured: the first refusal says it better
	}
	if err != nil {
		return total, false, err
	}
	w := sandbox.PendingWrite{
		ID: d.service.NewID(), SandboxID: d.box.ID, ExecutionID: d.execution.ID, User: d.box.Owner, SQL: sql, Types: map[string]string{},
		Plan: plan.Plan, RowEstimate: plan.Rows, Status: sandbox.WritePending, CreatedAt: d.service.Clock(),
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
		return total, false, err
	}
	if err := d.service.History.AddWrite(ctx, w); err != nil {
		return total, false, err
	}
	d.captured++
	err = sink(sandbox.RowBatch{
		Columns: []sandbox.Column{{Name: "affected_rows", Type: "int4", Kind: "int"}, {Name: "captured", Type: "bool", Kind: "bool"}},
		Data:    []sandbox.ColumnValues{{Ints: []int64{0}}, {Bools: []bool{true}}}, Count: 1,
	})
	return sandbox.QuerySummary{Rows: 1, Fingerprint: plan.Fingerprint}, err == nil, err
}

func onlyAdmins(caller sandbox.Key) error {
	if caller.Role != sandbox.RoleAdmin {
		return sandbox.Errorf(sandbox.FaultForbidden, "only an admin's key sees and decides on pending writes")
	}
	return nil
}

// PendingWrites lists captured statements, of one status or of all.
func (s *Service) PendingWrites(ctx context.Context, caller sandbox.Key, status string) ([]sandbox.PendingWrite, error) {
	if err := onlyAdmins(caller); err != nil {
		return nil, err
	}
	return s.History.Writes(ctx, sandbox.WriteStatus(status))
}

// ApplyWrite runs a pending write, once, by the writing login.
func (s *Service) ApplyWrite(ctx context.Context, caller sandbox.Key, id string) (sandbox.PendingWrite, error) {
	w, err := s.decide(ctx, caller, id, sandbox.WriteApplying)
	if err != nil {
		return w, err
	}
	// From here on it must come to an end, whether or not the caller waits.
	ctx = context.WithoutCancel(ctx)
	var params map[string]any
	dec := json.NewDecoder(bytes.NewReader(w.Parameters))
	dec.UseNumber()
	if err = dec.Decode(&params); err == nil {
		for name, kind := range w.Types {
			params[name] = sandbox.TypedParameter{Type: kind, Value: params[name]}
		}
		w.Affected, err = s.Writer.Apply(ctx, w.SQL, params)
	}
	w.Status = sandbox.WriteApplied
	if err != nil {
		w.Status, w.Error = sandbox.WriteFailed, err.Error()
	}
	if kept := s.History.MoveWrite(ctx, w, sandbox.WriteApplying); kept != nil {
		return w, errors.Join(err, kept)
	}
	return w, err
}

// RejectWrite says that a pending write is not to be run.
func (s *Service) RejectWrite(ctx context.Context, caller sandbox.Key, id string) (sandbox.PendingWrite, error) {
	return s.decide(ctx, caller, id, sandbox.WriteRejected)
}

// decide moves a write out of pending, in the name of an admin.
func (s *Service) decide(ctx context.Context, caller sandbox.Key, id string, to sandbox.WriteStatus) (sandbox.PendingWrite, error) {
	if err := onlyAdmins(caller); err != nil {
		return sandbox.PendingWrite{}, err
	}
	w, err := s.History.Write(ctx, id)
	if err != nil {
		return w, err
	}
	if w.Status != sandbox.WritePending {
		return w, sandbox.Errorf(sandbox.FaultBusy, "the write is %s already", w.Status)
	}
	now := s.Clock()
	w.Status, w.DecidedBy, w.DecidedAt = to, caller.User, &now
	return w, s.History.MoveWrite(ctx, w, sandbox.WritePending)
}
