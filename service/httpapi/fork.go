package httpapi

import (
	"context"
	"net/http"
	"time"

	"glasshouse/sandbox"
)

type forkInput struct {
	InSandbox
	Body *struct {
		Count int `json:"count,omitempty" minimum:"1" maximum:"20" default:"1" doc:"The number of new sandboxes"`
	} `required:"false"`
}

type forkList struct {
	Sandboxes []forkedSandbox `json:"sandboxes"`
}

type forkedSandbox struct {
	SandboxID   string            `json:"sandbox_id"`
	ExpiresAt   time.Time         `json:"expires_at"`
	ExecutionID string            `json:"execution_id" doc:"The execution that restored its variables and files"`
	Restored    *sandbox.Restored `json:"restored"`
}

type rollbackInput struct {
	InSandbox
	ExecutionForm
	Body struct {
		Before string `json:"before" minLength:"1" doc:"The execution before which the sandbox had the wanted state"`
	}
}

func (a *api) routeForks(r *routes) {
	statuses := []int{http.StatusForbidden, http.StatusConflict, http.StatusGone}
	route(a, r, r.describe("POST", "/sandbox/{id}/fork", "forkSandbox", tagSandboxes,
		"Make sandboxes with the variables and files of a sandbox", statuses...), a.forkSandbox)
	r.api.OpenAPI().Paths["/sandbox/{id}/fork"].Post.RequestBody.Required = false
	routeExecution(a, r, r.describe("POST", "/sandbox/{id}/rollback", "rollBackSandbox", tagSandboxes,
		"Give a sandbox the variables and files that it had before one of its executions", statuses...),
		a.rollBackSandbox)
}

func (a *api) forkSandbox(ctx context.Context, caller sandbox.Key, in *forkInput) (*forkList, error) {
	count := 1
	if in.Body != nil && in.Body.Count > 0 {
		count = in.Body.Count
	}
	list, err := a.runs.Fork(ctx, caller, in.ID, count)
	out := &forkList{Sandboxes: []forkedSandbox{}}
	for _, f := range list {
		out.Sandboxes = append(out.Sandboxes, forkedSandbox{
			SandboxID: f.Sandbox.ID, ExpiresAt: f.Sandbox.ExpiresAt(), ExecutionID: f.Execution.ID,
			Restored: f.Execution.Restored,
		})
	}
	return out, err
}

func (a *api) rollBackSandbox(
	ctx context.Context, caller sandbox.Key, in *rollbackInput,
) (*executionResponse, error) {
	e, err := a.runs.Rollback(ctx, caller, in.ID, in.Body.Before)
	return a.answer(in.ExecutionForm, e, err)
}
