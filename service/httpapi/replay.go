package httpapi

import (
	"context"
	"net/http"

	"glasshouse/sandbox"
	"glasshouse/service/run"
)

type replayInput struct {
	InExecution
	ExecutionForm
	Body struct {
		Code   *string       `json:"code,omitempty" maxLength:"4000000" doc:"Runs in place of the original's code"`
		Rows   string        `json:"rows,omitempty" enum:"log,now" default:"log" doc:"now: ask the databases again"`
		Edits  []run.RowEdit `json:"edits,omitempty" maxItems:"100" doc:"Other rows for statements"`
		Record bool          `json:"record,omitempty" doc:"Record the run, so that it can be stepped"`
		// Environment is checked with the names that there are.
		Environment string `json:"environment,omitempty" maxLength:"63" doc:"Run it with the packages of another one"`
	}
}

func (a *api) routeReplay(r *routes) {
	routeExecution(a, r, r.describe("POST", "/executions/{id}/replay", "replayExecution", tagExecutions,
		"Run an ended execution again with the inputs that it had, and compare both",
		http.StatusForbidden, http.StatusConflict, http.StatusGone), a.replayExecution)
	route(a, r, r.describe("GET", "/executions/{id}/diff/{other}", "diffExecutions", tagExecutions,
		"Compare the outputs, results and statements of two executions", http.StatusConflict), a.diffExecutions)
}

type diffInput struct {
	InExecution
	Other string `path:"other" doc:"The execution that is compared with it"`
}

type executionDiff struct {
	Differences []sandbox.Difference `json:"differences" doc:"The first twenty; replay has the values of the other one"`
}

func (a *api) diffExecutions(ctx context.Context, caller sandbox.Key, in *diffInput) (*executionDiff, error) {
	list, err := a.runs.Diff(ctx, caller, in.ID, in.Other)
	return &executionDiff{Differences: append([]sandbox.Difference{}, list...)}, err
}

func (a *api) replayExecution(ctx context.Context, caller sandbox.Key, in *replayInput) (*executionResponse, error) {
	options := run.ReplayOptions{
		Code: in.Body.Code, RowsNow: in.Body.Rows == "now", Edits: in.Body.Edits, Record: in.Body.Record,
		Environment: in.Body.Environment,
	}
	if in.wantsEvents() || in.wantsAsync() {
		log, err := a.runs.StartReplay(ctx, caller, in.ID, options)
		return a.startedResponse(ctx, in.ExecutionForm, log, err)
	}
	e, err := a.runs.Replay(ctx, caller, in.ID, options)
	return a.answer(in.ExecutionForm, e, err)
}
