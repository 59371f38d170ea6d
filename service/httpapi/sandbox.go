package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// InSandbox is the path of a sandbox. It is exported because huma reads exported embedded fields only.
type InSandbox struct {
	ID string `path:"id" doc:"The sandbox's id"`
}

// message is the body of a response that confirms something.
type message struct {
	Message string `json:"message"`
}

type createSandboxInput struct {
	Body *struct {
		policy.Policy
		Config *policy.Policy `json:"config,omitempty" doc:"The same fields, here or at the top level, not both"`
	} `required:"false"`
	RawBody []byte
}

type createdSandbox struct {
	SandboxID string               `json:"sandbox_id"`
	Status    string               `json:"status"`
	Message   string               `json:"message"`
	ExpiresAt time.Time            `json:"expires_at"`
	Data      createdSandboxConfig `json:"data"`
}

type createdSandboxConfig struct {
	Config policy.Policy `json:"config"`
}

type sandboxStatus struct {
	SandboxID string            `json:"sandbox_id"`
	Status    string            `json:"status"`
	Message   string            `json:"message"`
	ExpiresAt time.Time         `json:"expires_at"`
	Data      sandboxStatusData `json:"data"`
}

type sandboxStatusData struct {
	ExecutionID   string                      `json:"execution_id" doc:"The last execution"`
	Status        string                      `json:"status" enum:"idle,running"`
	Variables     map[string]sandbox.Variable `json:"variables"`
	Globals       []string                    `json:"globals"`
	DebugInfo     sandbox.DebugInfo           `json:"debug_info"`
	QueryLog      []sandbox.Query             `json:"query_log"`
	ExecutionTime float64                     `json:"execution_time" doc:"Seconds"`
	Usage         map[string]any              `json:"resource_usage"`
	Metadata      sandboxMetadata             `json:"sandbox_metadata"`
}

type sandboxMetadata struct {
	CreatedAt   time.Time                   `json:"created_at"`
	Lifetime    float64                     `json:"lifetime_seconds" doc:"Seconds since its creation"`
	Limits      policy.Policy               `json:"resource_limits"`
	Environment *sandbox.EnvironmentVersion `json:"environment,omitempty" doc:"The Python environment of the sandbox's process"`
}

type sandboxHistoryInput struct {
	InSandbox
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`
	After string `query:"after" doc:"Value of next in the previous page"`
}

type sandboxHistory struct {
	SandboxID string                `json:"sandbox_id"`
	History   []sandboxHistoryEntry `json:"history"`
	Total     int                   `json:"total_executions"`
	Next      string                `json:"next,omitempty" doc:"Pass it as after to get the next page"`
}

type sandboxHistoryEntry struct {
	ExecutionID   string         `json:"execution_id"`
	Status        sandbox.Status `json:"status"`
	Kind          sandbox.Kind   `json:"kind"`
	ExecutionTime float64        `json:"execution_time" doc:"Seconds"`
	CreatedAt     time.Time      `json:"created_at"`
	Error         *string        `json:"error"`
	HasResult     bool           `json:"has_result"`
}

type statisticsResponse struct {
	Statistics sandbox.Statistics `json:"statistics"`
	User       string             `json:"user_id"`
	Timestamp  time.Time          `json:"timestamp"`
}

func (a *api) routeSandboxes(r *routes) {
	route(a, r, r.describe("POST", "/sandbox/create", "createSandbox", tagSandboxes, "Create a sandbox",
		http.StatusForbidden, http.StatusNotFound), a.createSandbox)
	// Every field of the body is optional, and so is the body.
	r.api.OpenAPI().Paths["/sandbox/create"].Post.RequestBody.Required = false
	route(a, r, r.describe("GET", "/sandbox/{id}/status", "getSandboxStatus", tagSandboxes,
		"Get the variables, usage and limits of a sandbox", http.StatusConflict, http.StatusGone), a.getSandboxStatus)
	route(a, r, r.describe("DELETE", "/sandbox/{id}", "deleteSandbox", tagSandboxes,
		"Delete a sandbox, and wait until its process and files are removed", http.StatusConflict, http.StatusGone),
		a.deleteSandbox)
	route(a, r, r.describe("POST", "/sandbox/cleanup-all", "deleteAllSandboxes", tagSandboxes,
		"Delete the caller's own sandboxes",
		http.StatusConflict), a.deleteAllSandboxes)
	route(a, r, r.describe("GET", "/sandbox/{id}/history", "listSandboxExecutions", tagSandboxes,
		"List the executions of a live or ended sandbox, newest first"), a.listSandboxExecutions)
	a.routeForks(r)
	route(a, r, r.describe("GET", "/sandbox/statistics", "getStatistics", tagSandboxes,
		"Get statistics of the caller's executions or, for an admin, of all executions"), a.getStatistics)
}

func (a *api) createSandbox(ctx context.Context, caller sandbox.Key, in *createSandboxInput) (*createdSandbox, error) {
	// The service decodes the config itself, to tell a field that is absent from one that is zero.
	config := in.RawBody
	var body map[string]json.RawMessage
	if in.Body != nil && json.Unmarshal(in.RawBody, &body) == nil && body["config"] != nil {
		if len(body) > 1 {
			return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "config",
				Detail: "the body has config and other fields; give the config's fields in one of the two places"}
		}
		config = body["config"]
	}
	box, err := a.live.Create(ctx, caller, sandbox.WithIntegers(config))
	if err != nil {
		return nil, err
	}
	return &createdSandbox{box.ID, "created", "The sandbox is ready", box.ExpiresAt(),
		createdSandboxConfig{box.Policy}}, nil
}

func (a *api) getSandboxStatus(ctx context.Context, caller sandbox.Key, in *InSandbox) (*sandboxStatus, error) {
	if err := a.access.HoldLarge(ctx, caller.User); err != nil {
		return nil, err
	}
	status, err := a.live.Status(ctx, caller, in.ID)
	if err != nil {
		return nil, err
	}
	box := status.Sandbox
	out := &sandboxStatus{SandboxID: box.ID, Status: string(box.State), Message: "The sandbox is active",
		ExpiresAt: box.ExpiresAt()}
	out.Data = sandboxStatusData{
		Status: "idle", Variables: status.Variables.Variables, Globals: status.Variables.Globals,
		DebugInfo: sandbox.DebugInfo{Logs: []sandbox.Note{}, Variables: map[string][]sandbox.Note{}},
		QueryLog:  []sandbox.Query{}, Usage: status.Usage,
		Metadata: sandboxMetadata{box.CreatedAt, time.Since(box.CreatedAt).Seconds(), box.Policy, status.Environment},
	}
	if status.Running {
		out.Data.Status = "running"
	}
	if last := status.Last; last != nil {
		out.Data.ExecutionID, out.Data.DebugInfo, out.Data.QueryLog, out.Data.ExecutionTime = last.ID, last.DebugInfo,
			last.Queries, last.ExecutionTime
	}
	return out, nil
}

func (a *api) deleteSandbox(ctx context.Context, caller sandbox.Key, in *InSandbox) (*message, error) {
	return &message{"The sandbox is deleted"}, a.live.Delete(ctx, caller, in.ID)
}

func (a *api) deleteAllSandboxes(ctx context.Context, caller sandbox.Key, _ *struct{}) (*message, error) {
	n, err := a.live.DeleteAll(ctx, caller)
	return &message{fmt.Sprintf("%d sandboxes are deleted", n)}, err
}

func (a *api) listSandboxExecutions(
	ctx context.Context, caller sandbox.Key, in *sandboxHistoryInput,
) (*sandboxHistory, error) {
	if err := a.access.HoldLarge(ctx, caller.User); err != nil {
		return nil, err
	}
	list, next, total, err := a.records.SandboxHistory(ctx, caller, in.ID, in.Limit, in.After)
	if err != nil {
		return nil, err
	}
	out := &sandboxHistory{SandboxID: in.ID, History: []sandboxHistoryEntry{}, Total: total, Next: next}
	for _, e := range list {
		hasResult := len(e.Result) > 0 && string(e.Result) != "null"
		out.History = append(out.History, sandboxHistoryEntry{e.ID, e.Status, e.Kind, e.ExecutionTime, e.CreatedAt,
			e.Error, hasResult})
	}
	return out, nil
}

func (a *api) getStatistics(ctx context.Context, caller sandbox.Key, _ *struct{}) (*statisticsResponse, error) {
	st, err := a.records.Statistics(ctx, caller)
	return &statisticsResponse{st, caller.User, time.Now().UTC()}, err
}
