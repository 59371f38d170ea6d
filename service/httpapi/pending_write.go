package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"glasshouse/sandbox"
)

type pendingWriteList struct {
	Writes []sandbox.PendingWrite `json:"pending_writes"`
	Next   string                 `json:"next,omitempty" doc:"Pass it as after to get the next page"`
}

type pendingWritesInput struct {
	Status string `query:"status" enum:"pending,applying,unknown,applied,failed,rejected" doc:"Only with this status"`
	User   string `query:"user_id" doc:"Only statements of this user"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"1000"`
	After  string `query:"after" doc:"Value of next in the previous page"`
}

type decisionInput struct {
	ID   string `path:"id"`
	Body *struct {
		Reason string `json:"reason,omitempty" maxLength:"1000" doc:"Why; it is kept with the decision"`
	} `required:"false"`
}

func (in *decisionInput) reason() string {
	if in.Body == nil {
		return ""
	}
	return in.Body.Reason
}

type resolutionInput struct {
	ID   string `path:"id"`
	Body struct {
		Applied bool   `json:"applied" doc:"Whether the database has its changes; if not, it is pending again"`
		Reason  string `json:"reason,omitempty" maxLength:"1000" doc:"How you know; it is kept with the decision"`
	}
}

type pendingWriteInput struct {
	ID string `path:"id"`
}

type writeSample struct {
	Query       string          `json:"query" doc:"The query that read the sample, under the same checks as any query"`
	Rows        json.RawMessage `json:"rows" doc:"A list of objects, one for each row; at most ten"`
	Count       int             `json:"count" doc:"Of these rows"`
	ExecutionID string          `json:"execution_id" doc:"The query's execution"`
	Affected    *int64          `json:"affected_rows" doc:"All that it would affect, counted; null: not counted"`
	CountError  string          `json:"count_error,omitempty" doc:"Why they were not counted"`
}

func (a *api) routePendingWrites(r *routes) {
	route(a, r, r.describe("GET", "/pending-writes", "listPendingWrites", tagPendingWrites,
		"List captured statements, newest first; needs an admin's key", http.StatusForbidden), a.listPendingWrites)
	route(a, r, r.describe("POST", "/pending-writes/{id}/sample", "samplePendingWrite", tagPendingWrites,
		"Read at most ten rows that a captured statement would affect, as they are now, with the new values of an "+
			"UPDATE, and count all; needs an admin's key", http.StatusForbidden, http.StatusConflict),
		a.samplePendingWrite)
	route(a, r, r.describe("POST", "/pending-writes/{id}/preview", "previewPendingWrite", tagPendingWrites,
		"Run a captured statement in a transaction that is rolled back, and read at most 100 changed rows before and "+
			"after; needs an admin's key", http.StatusForbidden, http.StatusConflict), a.previewPendingWrite)
	route(a, r, r.describe("POST", "/pending-writes/{id}/apply", "applyPendingWrite", tagPendingWrites,
		"Run a captured statement once; needs an admin's key", http.StatusForbidden, http.StatusConflict),
		a.applyPendingWrite)
	route(a, r, r.describe("GET", "/pending-writes/{id}/undo", "getWriteUndo", tagPendingWrites,
		"Get the script that undoes an applied statement; needs an admin's key", http.StatusForbidden), a.getWriteUndo)
	route(a, r, r.describe("GET", "/pending-writes/count", "countPendingWrites", tagPendingWrites,
		"Count the statements that wait for a decision; needs an admin's key", http.StatusForbidden),
		a.countPendingWrites)
	route(a, r, r.describe("POST", "/pending-writes/{id}/reject", "rejectPendingWrite", tagPendingWrites,
		"Reject a captured statement, which is then never run; needs an admin's key", http.StatusForbidden,
		http.StatusConflict), a.rejectPendingWrite)
	route(a, r, r.describe("POST", "/pending-writes/{id}/resolve", "resolvePendingWrite", tagPendingWrites,
		"Record whether a captured statement with the status unknown was applied; needs an admin's key",
		http.StatusForbidden, http.StatusConflict), a.resolvePendingWrite)
}

func (a *api) listPendingWrites(
	ctx context.Context, caller sandbox.Key, in *pendingWritesInput,
) (*pendingWriteList, error) {
	if err := a.access.HoldLarge(ctx, caller.User); err != nil {
		return nil, err
	}
	list, next, err := a.writes.List(ctx, caller, sandbox.WriteFilter{
		Status: sandbox.WriteStatus(in.Status), User: in.User, Limit: in.Limit, After: in.After,
	})
	return &pendingWriteList{list, next}, err
}

func (a *api) samplePendingWrite(ctx context.Context, caller sandbox.Key, in *pendingWriteInput) (*writeSample, error) {
	rows := a.newRowEncoder(caller.User)
	defer rows.close()
	s, err := a.writes.Sample(ctx, caller, in.ID, rows.add)
	if err != nil {
		return nil, err
	}
	return &writeSample{s.Query, rows.json(), s.Count, s.ExecutionID, s.Affected, s.CountError}, nil
}

func (a *api) previewPendingWrite(
	ctx context.Context, caller sandbox.Key, in *pendingWriteInput,
) (*sandbox.WritePreview, error) {
	preview, err := a.writes.Preview(ctx, caller, in.ID)
	return &preview, err
}

func (a *api) applyPendingWrite(
	ctx context.Context, caller sandbox.Key, in *decisionInput,
) (*sandbox.PendingWrite, error) {
	w, err := a.writes.Apply(ctx, caller, in.ID, in.reason())
	return &w, err
}

func (a *api) rejectPendingWrite(
	ctx context.Context, caller sandbox.Key, in *decisionInput,
) (*sandbox.PendingWrite, error) {
	w, err := a.writes.Reject(ctx, caller, in.ID, in.reason())
	return &w, err
}

func (a *api) resolvePendingWrite(
	ctx context.Context, caller sandbox.Key, in *resolutionInput,
) (*sandbox.PendingWrite, error) {
	w, err := a.writes.Resolve(ctx, caller, in.ID, in.Body.Applied, in.Body.Reason)
	return &w, err
}

func (a *api) getWriteUndo(ctx context.Context, caller sandbox.Key, in *pendingWriteInput) (*sandbox.WriteUndo, error) {
	undo, err := a.writes.Undo(ctx, caller, in.ID)
	return &undo, err
}

type pendingWriteCount struct {
	Pending int `json:"pending" doc:"Statements that wait for a decision"`
}

func (a *api) countPendingWrites(_ context.Context, caller sandbox.Key, _ *struct{}) (*pendingWriteCount, error) {
	n, err := a.writes.Waiting(caller)
	return &pendingWriteCount{n}, err
}
