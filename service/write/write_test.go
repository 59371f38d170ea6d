package write_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/sirupsen/logrus"

	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/database"
	"glasshouse/service/write"
)

var admin = sandbox.Key{User: "root", Role: sandbox.RoleAdmin}

// kept is a history of one write. It also records the audit log.
type kept struct {
	write.History
	access *auditLog
	write  sandbox.PendingWrite
}

type auditLog struct {
	access.History
	actions []sandbox.AuditAction
}

func (l *auditLog) AddAudit(_ context.Context, e sandbox.AuditEntry) error {
	l.actions = append(l.actions, e.Action)
	return nil
}

func (h *kept) Write(context.Context, string) (sandbox.PendingWrite, error) { return h.write, nil }

func (h *kept) MoveWrite(_ context.Context, w sandbox.PendingWrite, from sandbox.WriteStatus) error {
	if h.write.Status != from {
		return sandbox.Errorf(sandbox.FaultBusy, "it is %s", h.write.Status)
	}
	h.write = w
	return nil
}

func (h *kept) FinishWrite(_ context.Context, w sandbox.PendingWrite) error {
	h.write = w
	return nil
}

// writer applies statements.
type writer struct {
	database.Writer
	apply func(params map[string]any) (int64, error)
}

func (w *writer) ApplyKeepingUndo(_ context.Context, _ string, params map[string]any, _ int64,
	_ func(context.Context, sandbox.WriteUndo) error) (int64, error) {
	return w.apply(params)
}

func start(t *testing.T) (*write.Service, *kept, *writer) {
	t.Helper()
	h, w := &kept{access: &auditLog{}}, &writer{}
	h.write = sandbox.PendingWrite{
		ID: "w1", User: "ada", Database: "knowledge", SQL: "UPDATE t SET n = :n", Status: sandbox.WritePending,
		Parameters: json.RawMessage(`{"n": 9007199254740993}`), Types: map[string]string{"n": "int8"},
	}
	keys := access.New(access.Config{History: h.access, Log: logrus.New()})
	t.Cleanup(keys.Close)
	databases := database.New(database.Config{
		Access: keys, List: []database.Database{{Name: "knowledge", Writer: w}},
	})
	return write.New(write.Config{Access: keys, Databases: databases, History: h}), h, w
}

func wantFault(t *testing.T, err error, want sandbox.Fault) {
	t.Helper()
	if sandbox.FaultOf(err) != want {
		t.Errorf("got %v, want the fault %s", err, want)
	}
}

// A write is on record as applying, with the admin and in the audit log, before it runs. It runs once, with the
// parameters that it was captured with.
func TestWriteRunsOnceAndIsOnRecordBefore(t *testing.T) {
	t.Parallel()
	s, h, w := start(t)
	runs := 0
	w.apply = func(params map[string]any) (int64, error) {
		runs++
		if h.write.Status != sandbox.WriteApplying || h.write.DecidedBy != admin.User ||
			fmt.Sprint(h.access.actions) != fmt.Sprint([]sandbox.AuditAction{sandbox.AuditApplied}) {
			t.Errorf("when it runs: got %+v and the audit log %v, want it applying by the admin", h.write,
				h.access.actions)
		}
		want := sandbox.TypedParameter{Type: "int8", Value: json.Number("9007199254740993")}
		if params["n"] != want {
			t.Errorf("got the parameter %+v, want %+v", params["n"], want)
		}
		return 3, nil
	}
	_, err := s.Apply(t.Context(), sandbox.Key{User: "ada", Role: sandbox.RoleDeveloper}, "w1", "")
	wantFault(t, err, sandbox.FaultForbidden)
	got, err := s.Apply(t.Context(), admin, "w1", " checked ")
	if err != nil || got.Status != sandbox.WriteApplied || got.Affected != 3 || got.Reason != "checked" {
		t.Errorf("got %+v, %v; want 3 rows applied because it was checked", got, err)
	}
	_, err = s.Apply(t.Context(), admin, "w1", "")
	wantFault(t, err, sandbox.FaultBusy)
	_, err = s.Reject(t.Context(), admin, "w1", "")
	wantFault(t, err, sandbox.FaultBusy)
	if runs != 1 || h.write.Status != sandbox.WriteApplied {
		t.Errorf("got %d runs and the status %s, want 1 and %s", runs, h.write.Status, sandbox.WriteApplied)
	}
}

// If nobody knows whether the database has committed a write, only an admin who has looked there goes on.
func TestUnknownWriteWaitsForAnAdmin(t *testing.T) {
	t.Parallel()
	s, h, w := start(t)
	w.apply = func(map[string]any) (int64, error) {
		return 0, errors.Join(errors.New("the connection broke"), sandbox.ErrOutcomeUnknown)
	}
	if _, err := s.Apply(t.Context(), admin, "w1", ""); !errors.Is(err, sandbox.ErrOutcomeUnknown) {
		t.Errorf("got %v, want the error of the database", err)
	}
	if h.write.Status != sandbox.WriteUnknown || h.write.Error == "" {
		t.Errorf("got %+v, want the status %s with the error", h.write, sandbox.WriteUnknown)
	}
	_, err := s.Apply(t.Context(), admin, "w1", "")
	wantFault(t, err, sandbox.FaultBusy)
	if got, err := s.Resolve(t.Context(), admin, "w1", false, "no row has changed"); err != nil ||
		got.Status != sandbox.WritePending {
		t.Errorf("got %+v, %v; want it pending again", got, err)
	}
}
