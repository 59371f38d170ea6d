package httpapi

import (
	"context"

	"glasshouse/sandbox"
)

type writeList struct {
	Writes []sandbox.PendingWrite `json:"pending_writes"`
}

func (a *api) writes(group place) {
	type filter struct {
		Status string `query:"status" enum:"pending,applying,applied,failed,rejected" doc:"Only those; all where it is left out"`
	}
	type one struct {
		ID string `path:"id"`
	}
	route(a, group, "GET", "/pending-writes", "Statements that were captured, newest first; for admins", func(ctx context.Context, caller sandbox.Key, in *filter) (*writeList, error) {
		list, err := a.service.PendingWrites(ctx, caller, in.Status)
		return &writeList{list}, err
	})
	route(a, group, "POST", "/pending-writes/{id}/apply", "Run a captured statement, once; for admins", func(ctx context.Context, caller sandbox.Key, in *one) (*sandbox.PendingWrite, error) {
		w, err := a.service.ApplyWrite(ctx, caller, in.ID)
		return &w, err
	})
	route(a, group, "POST", "/pending-writes/{id}/reject", "Decide that a captured statement is not run; for admins", func(ctx context.Context, caller sandbox.Key, in *one) (*sandbox.PendingWrite, error) {
		w, err := a.service.RejectWrite(ctx, caller, in.ID)
		return &w, err
	})
}
