package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/service"
)

// CodeBody is code to execute, with its context and files. It is exported because huma reads exported
// embedded fields only.
type CodeBody struct {
	Code    string     `json:"code" maxLength:"4000000" doc:"The body of one module"`
	Context object     `json:"context,omitempty" doc:"Each key is a variable of the code; context is the whole object"`
	Files   []CodeFile `json:"files,omitempty" doc:"Uploads that are in /data before the code runs"`
	Timeout float64    `json:"timeout,omitempty" minimum:"0.1" maximum:"86400" doc:"Seconds; lowers the limit max_execution_time"`
	Record  bool       `json:"record,omitempty" doc:"Record the run, so that its values can be explained"`
}

// CodeFile is an upload that comes with code.
type CodeFile struct {
	Path    string  `json:"path" format:"file-path" doc:"Path below /data"`
	Content *string `json:"content,omitempty" maxLength:"4000000" doc:"Text; either this or content_base64"`
	Base64  base64  `json:"content_base64,omitempty"`
}

// base64 is bytes that JSON has in base64. huma's own schema of bytes refuses "".
type base64 []byte

// Schema implements huma.SchemaProvider.
func (base64) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString, MaxLength: new(4_000_000), PatternDescription: "base64",
		Pattern: `^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`}
	s.PrecomputeMessages()
	return s
}

func (b CodeBody) job(kind sandbox.Kind) (service.Job, error) {
	job := service.Job{
		Code: b.Code, Context: json.RawMessage(b.Context), Kind: kind,
		Timeout: time.Duration(b.Timeout * float64(time.Second)), Record: b.Record,
	}
	for n, f := range b.Files {
		if (f.Content == nil) == (f.Base64 == nil) {
			return job, &sandbox.Error{
				Fault: sandbox.FaultInvalid, Field: fmt.Sprintf("files[%d]", n),
				Detail: "give either content (text) or content_base64",
			}
		}
		body := f.Base64
		if f.Content != nil {
			body = []byte(*f.Content)
		}
		job.Files = append(job.Files, service.JobFile{Path: f.Path, Body: body})
	}
	return job, nil
}

type executeInput struct {
	InSandbox
	ExecutionForm
	Body CodeBody
}

type quickExecuteInput struct {
	ExecutionForm
	Body struct {
		CodeBody
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
	job, err := in.Body.job(sandbox.KindExecute)
	if err != nil {
		return nil, err
	}
	if in.wantsEvents() || in.wantsAsync() {
		log, err := a.service.Start(ctx, caller, in.ID, job, nil)
		return a.startedResponse(ctx, in.ExecutionForm, log, err)
	}
	e, err := a.service.Execute(ctx, caller, in.ID, job)
	return a.answer(in.ExecutionForm, e, err)
}

func (a *api) quickExecuteCode(
	ctx context.Context, caller sandbox.Key, in *quickExecuteInput,
) (*executionResponse, error) {
	job, err := in.Body.job(sandbox.KindQuick)
	if err != nil {
		return nil, err
	}
	config := configOf(in.RawBody)
	if in.wantsEvents() || in.wantsAsync() {
		log, err := a.service.Start(ctx, caller, "", job, config)
		return a.startedResponse(ctx, in.ExecutionForm, log, err)
	}
	e, err := a.service.QuickExecute(ctx, caller, job, config)
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
