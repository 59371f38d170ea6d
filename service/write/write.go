// Package write decides about captured statements: those that would write, and wait for an admin.
//
//	s := write.New(write.Config{...})
//	sample, err := s.Sample(ctx, admin, id, sink)
//	w, err := s.Apply(ctx, admin, id, "checked with sales")
//
// Package run captures them. A Service is safe for concurrent use: history moves a write from one status to the next
// for one caller only.
package write

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/database"
	"glasshouse/service/run"
)

// History stores captured statements.
type History interface {
	MoveWrite(ctx context.Context, w sandbox.PendingWrite, from sandbox.WriteStatus) error
	FinishWrite(context.Context, sandbox.PendingWrite) error
	Write(ctx context.Context, id string) (sandbox.PendingWrite, error)
	Writes(context.Context, sandbox.WriteFilter) (list []sandbox.PendingWrite, next string, err error)
	PendingWrites() int // that wait for a decision
	KeepUndo(context.Context, sandbox.WriteUndo) error
	Undo(ctx context.Context, writeID string) (sandbox.WriteUndo, error)
}

// Config configures a Service.
type Config struct {
	Access    *access.Service
	Databases *database.Service
	Runs      *run.Service // runs the queries of samples
	History   History

	Clock func() time.Time // nil: the machine's clock, in UTC
}

// Service decides about captured statements. New returns one.
type Service struct{ Config }

// New returns a Service.
func New(config Config) *Service {
	if config.Clock == nil {
		config.Clock = func() time.Time { return time.Now().UTC() }
	}
	return &Service{config}
}

const decideWrites = "list and decide pending writes"

// List lists the captured statements that match the filter, newest first, and returns the cursor of the next
// page.
func (s *Service) List(ctx context.Context, caller sandbox.Key, f sandbox.WriteFilter) (
	list []sandbox.PendingWrite, next string, err error) {
	if err := access.RequireAdmin(caller, decideWrites); err != nil {
		return nil, "", err
	}
	return s.History.Writes(ctx, f)
}

// Sample reads at most ten rows that a pending write would affect, as they are now, and counts all of them. An
// UPDATE also has the new value of each column that it sets, under the name "new NAME". Both are queries of the caller:
// they are checked, limited, masked and recorded like any other, and they cannot write or lock. If the count fails, for
// example because it takes too long, the sample has none. The error is FaultBusy if the write is not pending any more,
// and a *sandbox.Refusal if it has no sample. After an error, the rows that sink received are invalid.
func (s *Service) Sample(
	ctx context.Context, caller sandbox.Key, id string, sink sandbox.RowSink,
) (sample sandbox.WriteSample, err error) {
	w, db, params, err := s.pending(ctx, caller, id)
	if err != nil {
		return sample, err
	}
	rows, count, err := db.Writer.SampleQueries(ctx, w.SQL, params)
	if err != nil {
		return sample, err
	}
	query := run.Statement{Database: db.Name, SQL: rows.SQL, Parameters: rows.Parameters}
	summary, err := s.Runs.Query(ctx, caller, query, sink)
	if err != nil {
		return sample, err
	}
	sample = sandbox.WriteSample{Query: rows.SQL, ExecutionID: summary.ExecutionID, Count: summary.Rows}
	query.SQL, query.Parameters = count.SQL, count.Parameters
	_, err = s.Runs.Query(ctx, caller, query, func(batch sandbox.RowBatch) error {
		if n, ok := batch.Data[0].At(0).(int64); ok {
			sample.Affected = &n
		}
		return nil
	})
	if no, ok := errors.AsType[*sandbox.Refusal](err); ok && no.Failed {
		sample.CountError, err = no.Message, nil
	}
	return sample, err
}

// Preview runs a pending write in a transaction that is rolled back, and returns rows before and after. The error
// is FaultBusy if the write is not pending any more, and a *sandbox.Refusal if a rollback would not undo all effects.
func (s *Service) Preview(ctx context.Context, caller sandbox.Key, id string) (sandbox.WritePreview, error) {
	w, db, params, err := s.pending(ctx, caller, id)
	if err != nil {
		return sandbox.WritePreview{}, err
	}
	ctx, end, err := s.Access.BeginInspection(ctx, caller, access.Meter{})
	if err != nil {
		return sandbox.WritePreview{}, err
	}
	defer end()
	if err := s.Access.Audit(ctx, caller, sandbox.AuditPreviewed, "pending-write/"+id, w.User); err != nil {
		return sandbox.WritePreview{}, err
	}
	return db.Writer.Preview(ctx, w.SQL, params, sandbox.QueryLimits{User: caller.User})
}

// pending returns a write that waits for a decision, its database and its parameters. The error is FaultBusy if it
// does not wait any more.
func (s *Service) pending(ctx context.Context, caller sandbox.Key, id string) (
	w sandbox.PendingWrite, db *database.Database, params map[string]any, err error,
) {
	if err = access.RequireAdmin(caller, decideWrites); err == nil {
		w, err = s.History.Write(ctx, id)
	}
	if err == nil && w.Status != sandbox.WritePending {
		err = sandbox.Errorf(sandbox.FaultBusy, "the write is already %s: its rows may have changed", w.Status)
	}
	if err == nil {
		db, err = s.Databases.Find(caller, w.Database)
	}
	if err == nil {
		params, err = writeParameters(w)
	}
	return w, db, params, err
}

// writeParameters returns the parameters of a pending write as they were given.
func writeParameters(w sandbox.PendingWrite) (params map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(w.Parameters))
	decoder.UseNumber()
	if err = decoder.Decode(&params); err == nil {
		for name, kind := range w.Types {
			params[name] = sandbox.TypedParameter{Type: kind, Value: params[name]}
		}
	}
	return params, err
}

// Apply runs a pending write once, with the writing login. Before it runs, its status applying is on disk: after a
// crash the status is unknown, and the write never runs by itself. reason says why; it may be "".
func (s *Service) Apply(ctx context.Context, caller sandbox.Key, id, reason string) (sandbox.PendingWrite, error) {
	w, err := s.move(ctx, caller, id, sandbox.WritePending, sandbox.WriteApplying, sandbox.AuditApplied, reason)
	if err != nil {
		return w, err
	}
	db, err := s.Databases.Find(caller, w.Database) // move has found it
	if err != nil {
		return w, err
	}
	// The write must be recorded as applied or failed, even if the caller has left.
	ctx = context.WithoutCancel(ctx)
	params, err := writeParameters(w)
	if err == nil {
		w.Affected, err = db.Writer.ApplyKeepingUndo(ctx, w.SQL, params, w.RowEstimate,
			func(ctx context.Context, u sandbox.WriteUndo) error {
				u.WriteID = w.ID
				err := s.History.KeepUndo(ctx, u)
				w.HasUndo = err == nil
				return err
			})
	}
	w.Status = sandbox.WriteApplied
	if err != nil {
		w.Status, w.Error = sandbox.WriteFailed, err.Error()
	}
	w.HasUndo = w.HasUndo && (err == nil || errors.Is(err, sandbox.ErrOutcomeUnknown))
	if errors.Is(err, sandbox.ErrOutcomeUnknown) {
		w.Status = sandbox.WriteUnknown
	}
	return w, errors.Join(err, s.History.FinishWrite(ctx, w))
}

// Undo returns how an applied write can be undone. The error is FaultNotFound for any other write.
func (s *Service) Undo(ctx context.Context, caller sandbox.Key, id string) (sandbox.WriteUndo, error) {
	if err := access.RequireAdmin(caller, decideWrites); err != nil {
		return sandbox.WriteUndo{}, err
	}
	w, err := s.History.Write(ctx, id)
	if err == nil && !w.HasUndo {
		err = sandbox.Errorf(sandbox.FaultNotFound, "the write is %s: it has no undo script", w.Status)
	}
	if err != nil {
		return sandbox.WriteUndo{}, err
	}
	if err := s.Access.Audit(ctx, caller, sandbox.AuditViewed, "pending-write/"+id, w.User); err != nil {
		return sandbox.WriteUndo{}, err
	}
	return s.History.Undo(ctx, id)
}

// Waiting returns the number of writes that wait for a decision.
func (s *Service) Waiting(caller sandbox.Key) (int, error) {
	if err := access.RequireAdmin(caller, decideWrites); err != nil {
		return 0, err
	}
	return s.History.PendingWrites(), nil
}

// Resolve records whether a write with the status unknown was applied, which an admin has found out in the
// database. If it was not, it is pending again. reason says how the admin knows; it may be "".
func (s *Service) Resolve(
	ctx context.Context, caller sandbox.Key, id string, wasApplied bool, reason string,
) (sandbox.PendingWrite, error) {
	to := sandbox.WritePending
	if wasApplied {
		to = sandbox.WriteApplied
	}
	return s.move(ctx, caller, id, sandbox.WriteUnknown, to, sandbox.AuditResolved, reason)
}

// Reject rejects a pending write, which then never runs. reason says why; it may be "".
func (s *Service) Reject(
	ctx context.Context, caller sandbox.Key, id, reason string,
) (sandbox.PendingWrite, error) {
	return s.move(ctx, caller, id, sandbox.WritePending, sandbox.WriteRejected, sandbox.AuditRejected, reason)
}

// move moves a write from one status to another and records the admin and the reason.
func (s *Service) move(
	ctx context.Context, caller sandbox.Key, id string, from, to sandbox.WriteStatus, action sandbox.AuditAction,
	reason string,
) (sandbox.PendingWrite, error) {
	if err := access.RequireAdmin(caller, decideWrites); err != nil {
		return sandbox.PendingWrite{}, err
	}
	reason = strings.TrimSpace(reason)
	if err := checkReason(reason); err != nil {
		return sandbox.PendingWrite{}, err
	}
	w, err := s.History.Write(ctx, id)
	if err != nil {
		return w, err
	}
	switch {
	case w.Status == from:
	case from == sandbox.WriteUnknown:
		return w, sandbox.Errorf(sandbox.FaultBusy, "the write is %s: only a write with the status unknown is resolved",
			w.Status)
	case w.Status == sandbox.WriteUnknown:
		return w, sandbox.Errorf(sandbox.FaultBusy, "the write may have been applied: resolve it first")
	default:
		return w, sandbox.Errorf(sandbox.FaultBusy, "the write is already %s", w.Status)
	}
	if to == sandbox.WriteApplying {
		if _, err := s.Databases.Find(caller, w.Database); err != nil { // before it is recorded as applying
			return w, err
		}
	}
	detail, err := decisionDetail(action, to, reason)
	if err == nil {
		err = s.Access.AuditDetail(ctx, caller, action, "pending-write/"+id, w.User, detail)
	}
	if err != nil {
		return w, err
	}
	now := s.Clock()
	w.Status, w.Error, w.DecidedBy, w.DecidedAt, w.Reason = to, "", caller.User, &now, reason
	if to == sandbox.WriteApplied {
		w.Error = "an admin recorded that it was applied; the number of changed rows is not known"
	}
	return w, s.History.MoveWrite(ctx, w, from)
}

// decisionDetail returns the detail of an audit entry for a decision, which may be nil.
func decisionDetail(action sandbox.AuditAction, to sandbox.WriteStatus, reason string) (json.RawMessage, error) {
	detail := map[string]string{}
	if reason != "" {
		detail["reason"] = reason
	}
	if action == sandbox.AuditResolved {
		detail["status"] = string(to)
	}
	if len(detail) == 0 {
		return nil, nil
	}
	return json.Marshal(detail)
}

// checkReason returns FaultInvalid for a reason that is too long or cannot be stored.
func checkReason(reason string) error {
	if n := utf8.RuneCountInString(reason); n > sandbox.MaxReasonChars {
		return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "reason",
			Detail: fmt.Sprintf("it has %d characters; shorten it to %d", n, sandbox.MaxReasonChars)}
	}
	if strings.ContainsRune(reason, 0) {
		return &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "reason",
			Detail: "it contains the character U+0000, which PostgreSQL cannot store"}
	}
	return nil
}
