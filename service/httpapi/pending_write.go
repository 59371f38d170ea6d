package httpapi

import (
	"context"
	"net/http"

	"glasshouse/sandbox"
)

type pendingWriteList struct {
	Writes []sandbox.PendingWrite `json:"pending_writes"`
}

type pendingWritesInput struct {
	Status string `query:"status" enum:"pending,applying,applied,failed,rejected" doc:"Only statements with this status"`
}

type pendingWriteInput struct {
	ID string `path:"id"`
}

func (a *api) routePendingWrites(r *routes) {
	route(a, r, r.describe("GET", "/pending-writes", "listPendingWrites", tagPendingWrites,
		"List captured statements, newest first; needs an admin's key", http.StatusForbidden), a.listPendingWrites)
	route(a, r, r.describe("POST", "/pending-writes/{id}/apply", "applyPendingWrite", tagPendingWrites,
		"Run a captured statement once; needs an admin's key", http.StatusForbidden, http.StatusConflict),
		a.applyPendingWrite)
	route(a, r, r.describe("POST", "/pending-writes/{id}/reject", "rejectPendingWrite", tagPendingWrites,
		"Reject a captured statement, which is then never run; needs an admin's key", http.StatusForbidden,
		http.StatusConflict), a.rejectPendingWrite)
}

func (a *api) listPendingWrites(
	ctx context.Context, caller sandbox.Key, in *pendingWritesInput,
) (*pendingWriteList, error) {
	list, err := a.service.PendingWrites(ctx, caller, in.Status)
	return &pendingWriteList{list}, err
}

func (a *api) applyPendingWrite(
	ctx context.Context, caller sandbox.Key, in *pendingWriteInput,
) (*sandbox.PendingWrite, error) {
	w, err := a.service.ApplyWrite(ctx, caller, in.ID)
	return &w, err
}

func (a *api) rejectPendingWrite(
	ctx context.Context, caller sandbox.Key, in *pendingWriteInput,
) (*sandbox.PendingWrite, error) {
	w, err := a.service.RejectWrite(ctx, caller, in.ID)
	return &w, err
}
