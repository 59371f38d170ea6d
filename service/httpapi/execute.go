package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// base64 has the schema of sandbox.Base64. huma's own schema of bytes refuses "".
type base64 struct{}

// Schema implements huma.SchemaProvider.
func (base64) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, MaxLength: new(4_000_000), PatternDescription: "base64",
		Pattern: `^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`}
	s.PrecomputeMessages()
	return s
}

// OnceForm has the header that keeps a repeat of a request from running again. It is exported as huma reads exported
// embedded fields only.
type OnceForm struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"A repeat with the same key runs nothing"`
}

type executeInput struct {
	InSandbox
	ExecutionForm
	OnceForm
	Body sandbox.Request
}

type quickExecuteInput struct {
	ExecutionForm
	OnceForm
	Body struct {
		sandbox.Request
		Config *policy.Policy `json:"config,omitempty"`
	}
	RawBody []byte
}

func (a *api) routeExecute(r *routes) {
	statuses := []int{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusGone}
	routeExecution(a, r, r.describe("POST", "/sandbox/{id}/execute", "executeCode", tagExecutions,
		"Execute code in a sandbox", statuses...), a.executeCode)
	routeExecution(a, r, r.describe("POST", "/sandbox/agent/quick-execute", "quickExecuteCode", tagExecutions,
		"Execute code in a new sandbox, which is deleted afterwards", statuses...), a.quickExecuteCode)
}

func (a *api) executeCode(ctx context.Context, caller sandbox.Key, in *executeInput) (*executionResponse, error) {
	in.Body.Kind, in.Body.IdempotencyKey = sandbox.KindExecute, in.IdempotencyKey
	if in.wantsEvents() || in.wantsAsync() {
		log, err := a.runs.Start(ctx, caller, in.ID, in.Body, nil)
		return a.startedResponse(ctx, in.ExecutionForm, log, err)
	}
	e, err := a.runs.Execute(ctx, caller, in.ID, in.Body)
	return a.answer(in.ExecutionForm, e, err)
}

func (a *api) quickExecuteCode(
	ctx context.Context, caller sandbox.Key, in *quickExecuteInput,
) (*executionResponse, error) {
	in.Body.Kind, in.Body.IdempotencyKey = sandbox.KindQuick, in.IdempotencyKey
	config := configOf(in.RawBody)
	if in.wantsEvents() || in.wantsAsync() {
		log, err := a.runs.Start(ctx, caller, "", in.Body.Request, config)
		return a.startedResponse(ctx, in.ExecutionForm, log, err)
	}
	e, err := a.runs.QuickExecute(ctx, caller, in.Body.Request, config)
	return a.answer(in.ExecutionForm, e, err)
}

// configOf returns the field config of a body that huma has decoded; nil if there is none or it is null. The service
// decodes it itself, to tell a field that is absent from one that is zero.
func configOf(rawBody []byte) []byte {
	var body struct {
		Config *json.RawMessage `json:"config"`
	}
	if json.Unmarshal(rawBody, &body) != nil || body.Config == nil {
		return nil
	}
	return sandbox.WithIntegers(*body.Config)
}
