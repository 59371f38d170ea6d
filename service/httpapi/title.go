package httpapi

import (
	"context"
	"net/http"

	"glasshouse/sandbox"
)

// title is the body of a request that renames something.
type title struct {
	Title string `json:"title" maxLength:"200" doc:"Empty: it has none any more"`
}

type renameExecutionInput struct {
	InExecution
	Body title
}

type renameSandboxInput struct {
	InSandbox
	Body title
}

type activityInput struct {
	Since timestamp `query:"since" doc:"The first hour; by default 24 hours ago, at most 90 days ago"`
	WorkFilter
}

func (a *api) routeTitles(r *routes) {
	route(a, r, r.describe("PUT", "/executions/{id}/title", "renameExecution", tagExecutions,
		"Rename an execution", http.StatusForbidden), a.renameExecution)
	route(a, r, r.describe("PUT", "/sandbox/{id}/title", "renameSandbox", tagSandboxes,
		"Rename a live or ended sandbox", http.StatusForbidden), a.renameSandbox)
	route(a, r, r.describe("GET", "/activity", "getActivity", tagReview,
		"Sum up executions by hour, by user and by key: the caller's or, for an admin, all"), a.getActivity)
}

func (a *api) renameExecution(ctx context.Context, caller sandbox.Key, in *renameExecutionInput) (*title, error) {
	return &in.Body, a.records.RenameExecution(ctx, caller, in.ID, in.Body.Title)
}

func (a *api) renameSandbox(ctx context.Context, caller sandbox.Key, in *renameSandboxInput) (*title, error) {
	return &in.Body, a.records.RenameSandbox(ctx, caller, in.ID, in.Body.Title)
}

func (a *api) getActivity(ctx context.Context, caller sandbox.Key, in *activityInput) (*sandbox.Activity, error) {
	activity, err := a.records.Activity(ctx, caller, in.Since.Time, in.IsWork)
	return &activity, err
}
