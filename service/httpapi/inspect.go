package httpapi

import (
	"context"
	"net/http"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

type codeInput struct {
	InSandbox
	Body struct {
		Code string `json:"code" maxLength:"4000000"`
	}
}

type checkedCode struct {
	SandboxID string `json:"sandbox_id"`
	sandbox.CheckResult
}

type completeInput struct {
	InSandbox
	Body CompleteBody
}

// CompleteBody is the code and the cursor of a completion. It is exported because huma reads exported embedded fields
// only.
type CompleteBody struct {
	Code   string `json:"code" maxLength:"4000000"`
	Cursor *int   `json:"cursor,omitempty" minimum:"0" doc:"Position in characters from 0, at most the end of the code, which is the default"`
}

type checkWithConfigInput struct {
	Body struct {
		Code   string         `json:"code" maxLength:"4000000"`
		Config *policy.Policy `json:"config,omitempty" doc:"As for POST /sandbox/create"`
	}
	RawBody []byte
}

type completeWithConfigInput struct {
	Body struct {
		CompleteBody
		Config *policy.Policy `json:"config,omitempty" doc:"As for POST /sandbox/create"`
	}
	RawBody []byte
}

type sandboxVariables struct {
	SandboxID string `json:"sandbox_id"`
	sandbox.Variables
}

type highlightInput struct {
	Body struct {
		Code string `json:"code" maxLength:"4000000"`
	}
}

type highlightedCode struct {
	HTML string `json:"html"`
	CSS  string `json:"css" doc:"The style sheet of the HTML's classes"`
}

// routeInspect routes the operations on code and variables that run no user code.
func (a *api) routeInspect(r *routes) {
	busy := []int{http.StatusConflict, http.StatusGone}
	route(a, r, r.describe("POST", "/sandbox/{id}/check", "checkCode", tagSandboxes,
		"Check code against Python's syntax and the sandbox's policy, without running it", busy...), a.checkCode)
	route(a, r, r.describe("POST", "/sandbox/{id}/complete", "completeCode", tagSandboxes, "Complete code at a cursor",
		busy...), a.completeCode)
	fresh := []int{http.StatusForbidden, http.StatusNotFound}
	route(a, r, r.describe("POST", "/sandbox/check", "checkCodeWithConfig", tagSandboxes,
		"Check code against Python's syntax and the policy of a new sandbox, without creating one", fresh...),
		a.checkCodeWithConfig)
	route(a, r, r.describe("POST", "/sandbox/complete", "completeCodeWithConfig", tagSandboxes,
		"Complete code at a cursor as in a new sandbox, without creating one", fresh...), a.completeCodeWithConfig)
	route(a, r, r.describe("GET", "/sandbox/{id}/variables", "getVariables", tagSandboxes,
		"Get the variables of a sandbox, without running the user's code", busy...), a.getVariables)
	route(a, r, r.describe("POST", "/sandbox/highlight", "highlightCode", tagSandboxes, "Highlight code as HTML"),
		a.highlightCode)
}

func (a *api) checkCode(ctx context.Context, caller sandbox.Key, in *codeInput) (*checkedCode, error) {
	result, err := a.live.Check(ctx, caller, in.ID, nil, in.Body.Code)
	return &checkedCode{in.ID, result}, err
}

func (a *api) checkCodeWithConfig(
	ctx context.Context, caller sandbox.Key, in *checkWithConfigInput,
) (*sandbox.CheckResult, error) {
	result, err := a.live.Check(ctx, caller, "", configOf(in.RawBody), in.Body.Code)
	return &result, err
}

func (a *api) completeCode(ctx context.Context, caller sandbox.Key, in *completeInput) (*sandbox.Completion, error) {
	completion, err := a.live.Complete(ctx, caller, in.ID, nil, in.Body.Code, in.Body.Cursor)
	return &completion, err
}

func (a *api) completeCodeWithConfig(
	ctx context.Context, caller sandbox.Key, in *completeWithConfigInput,
) (*sandbox.Completion, error) {
	completion, err := a.live.Complete(ctx, caller, "", configOf(in.RawBody), in.Body.Code, in.Body.Cursor)
	return &completion, err
}

func (a *api) getVariables(ctx context.Context, caller sandbox.Key, in *InSandbox) (*sandboxVariables, error) {
	variables, err := a.live.Variables(ctx, caller, in.ID)
	return &sandboxVariables{in.ID, variables}, err
}

func (a *api) highlightCode(ctx context.Context, caller sandbox.Key, in *highlightInput) (*highlightedCode, error) {
	html, css, err := a.live.Highlight(ctx, caller, in.Body.Code)
	return &highlightedCode{html, css}, err
}
