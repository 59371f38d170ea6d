package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/service"
)

// place is where routes are registered: the API, and what stands before each path.
type place struct {
	api    huma.API
	prefix string
}

// route registers one operation; what the handler returns as an error becomes a
// problem.
func route[I, O any](a *api, at place, method, path, summary string, handle func(context.Context, sandbox.Key, *I) (*O, error)) {
	huma.Register(at.api, huma.Operation{Method: method, Path: at.prefix + path, Summary: summary, OperationID: method + at.prefix + path, MaxBodyBytes: maxBody},
		func(ctx context.Context, in *I) (*answer[O], error) {
			out, err := handle(ctx, callerFrom(ctx), in)
			if err == nil {
				return &answer[O]{Body: out}, nil
			}
			return nil, a.refuse(ctx, err)
		})
}

// refuse is an error as huma answers it; the service's own is logged.
func (a *api) refuse(ctx context.Context, err error) error {
	id, _ := ctx.Value(ctxRequestID{}).(string)
	p, retry := toProblem(err, id)
	if p.Status == http.StatusInternalServerError {
		a.log.WithError(err).WithField("request_id", id).Error("a request failed")
	}
	if retry > 0 {
		return huma.ErrorWithHeaders(p, http.Header{"Retry-After": {strconv.Itoa(retry)}})
	}
	return p
}

type answer[O any] struct{ Body *O }

// InSandbox is the path of a sandbox. Exported, as huma sees only such fields.
type InSandbox struct {
	ID string `path:"id" doc:"The sandbox's id"`
}

type message struct {
	Message string `json:"message"`
}

type createInput struct {
	Body    *policy.Policy `required:"false"`
	RawBody []byte
}

type created struct {
	SandboxID string        `json:"sandbox_id"`
	Status    string        `json:"status"`
	Message   string        `json:"message"`
	ExpiresAt time.Time     `json:"expires_at"`
	Data      createdConfig `json:"data"`
}

type createdConfig struct {
	Config policy.Policy `json:"config"`
}

type statusAnswer struct {
	SandboxID string     `json:"sandbox_id"`
	Status    string     `json:"status"`
	Message   string     `json:"message"`
	ExpiresAt time.Time  `json:"expires_at"`
	Data      statusData `json:"data"`
}

type statusData struct {
	ExecutionID   string                      `json:"execution_id"`
	Status        string                      `json:"status" doc:"idle or running"`
	Variables     map[string]sandbox.Variable `json:"variables"`
	Globals       []string                    `json:"globals"`
	DebugInfo     *sandbox.DebugInfo          `json:"debug_info"`
	QueryLog      []sandbox.Query             `json:"query_log"`
	ExecutionTime float64                     `json:"execution_time"`
	Usage         map[string]any              `json:"resource_usage"`
	Metadata      metadata                    `json:"sandbox_metadata"`
}

type metadata struct {
	CreatedAt   time.Time                   `json:"created_at"`
	Lifetime    float64                     `json:"lifetime_seconds" doc:"Seconds since its creation"`
	Limits      policy.Policy               `json:"resource_limits"`
	Environment *sandbox.EnvironmentVersion `json:"environment,omitempty" doc:"What the live process has; the next one has the same"`
}

type history struct {
	SandboxID string        `json:"sandbox_id"`
	History   []historyLine `json:"history"`
	Total     int           `json:"total_executions"`
	Next      string        `json:"next,omitempty" doc:"Pass it as after for the next page"`
}

type historyLine struct {
	ExecutionID   string         `json:"execution_id"`
	Status        sandbox.Status `json:"status"`
	Kind          sandbox.Kind   `json:"kind"`
	ExecutionTime float64        `json:"execution_time"`
	CreatedAt     time.Time      `json:"created_at"`
	Error         *string        `json:"error"`
	HasResult     bool           `json:"has_result"`
}

func (a *api) sandboxes(group place) {
	route(a, group, "POST", "/sandbox/create", "Create a sandbox", func(ctx context.Context, caller sandbox.Key, in *createInput) (*created, error) {
		box, err := a.service.Create(ctx, caller, in.RawBody)
		if err != nil {
			return nil, err
		}
		return &created{box.ID, "created", "The sandbox is ready", box.ExpiresAt(), createdConfig{box.Policy}}, nil
	})
	// Every key is optional, and so is the body.
	group.api.OpenAPI().Paths[group.prefix+"/sandbox/create"].Post.RequestBody.Required = false
	route(a, group, "GET", "/sandbox/{id}/status", "What a sandbox holds now", func(ctx context.Context, caller sandbox.Key, in *InSandbox) (*statusAnswer, error) {
		if err := a.limits.holdRecords(ctx, caller.Account); err != nil {
			return nil, err
		}
		look, err := a.service.Status(ctx, caller, in.ID)
		if err != nil {
			return nil, err
		}
		box := look.Sandbox
		out := &statusAnswer{SandboxID: box.ID, Status: string(box.State), Message: "The sandbox is active", ExpiresAt: box.ExpiresAt()}
		out.Data = statusData{Status: "idle", Variables: look.Variables.Variables, Globals: look.Variables.Globals, QueryLog: []sandbox.Query{}, Usage: look.Usage,
			Metadata: metadata{box.CreatedAt, time.Since(box.CreatedAt).Seconds(), box.Policy, look.Environment}}
		if look.Running {
			out.Data.Status = "running"
		}
		if last := look.Last; last != nil {
			out.Data.ExecutionID, out.Data.DebugInfo, out.Data.QueryLog, out.Data.ExecutionTime = last.ID, &last.DebugInfo, last.Queries, last.ExecutionTime
		}
		return out, nil
	})
	route(a, group, "DELETE", "/sandbox/{id}", "Delete a sandbox: its process and its files are gone when this answers", func(ctx context.Context, caller sandbox.Key, in *InSandbox) (*message, error) {
		return &message{"The sandbox is deleted"}, a.service.Delete(ctx, caller, in.ID)
	})
	route(a, group, "POST", "/sandbox/cleanup-all", "Delete the caller's own sandboxes", func(ctx context.Context, caller sandbox.Key, _ *struct{}) (*message, error) {
		n, err := a.service.DeleteAll(ctx, caller)
		return &message{fmt.Sprintf("%d sandboxes are deleted", n)}, err
	})
	type historyInput struct {
		InSandbox
		Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"50"`
		After string `query:"after" doc:"The cursor that the page before ended with"`
	}
	route(a, group, "GET", "/sandbox/{id}/history", "A sandbox's executions, newest first; it answers for ended sandboxes, too", func(ctx context.Context, caller sandbox.Key, in *historyInput) (*history, error) {
		if err := a.limits.holdRecords(ctx, caller.Account); err != nil {
			return nil, err
		}
		list, next, total, err := a.service.SandboxHistory(ctx, caller, in.ID, in.Limit, in.After)
		if err != nil {
			return nil, err
		}
		out := &history{SandboxID: in.ID, History: []historyLine{}, Total: total, Next: next}
		for _, e := range list {
			out.History = append(out.History, historyLine{e.ID, e.Status, e.Kind, e.ExecutionTime, e.CreatedAt, e.Error, len(e.Result) > 0 && string(e.Result) != "null"})
		}
		return out, nil
	})
	type statisticsAnswer struct {
		Statistics sandbox.Statistics `json:"statistics"`
		User       string             `json:"user_id"`
		Timestamp  time.Time          `json:"timestamp"`
	}
	route(a, group, "GET", "/sandbox/statistics", "Sums over the caller's executions; an admin's are everybody's", func(ctx context.Context, caller sandbox.Key, _ *struct{}) (*statisticsAnswer, error) {
		st, err := a.service.Statistics(ctx, caller)
		return &statisticsAnswer{st, caller.User, time.Now().UTC()}, err
	})
}

type keyInput struct {
	Body struct {
		Name      string            `json:"name" minLength:"1" maxLength:"200"`
		User      string            `json:"user_id,omitempty" maxLength:"200" doc:"The caller's own where it is left out"`
		Role      sandbox.Role      `json:"role,omitempty" enum:"agent,developer,admin" default:"agent"`
		ExpiresAt *time.Time        `json:"expires_at,omitempty"`
		Limits    sandbox.KeyLimits `json:"limits,omitempty" doc:"For admins; the operator's where they are left out"`
	}
}

type newKey struct {
	sandbox.Key
	Secret string `json:"key" doc:"Shown only now"`
}

type keyList struct {
	Keys []sandbox.Key `json:"keys"`
}

func (a *api) keys(group place) {
	route(a, group, "POST", "/keys", "Make a key", func(ctx context.Context, caller sandbox.Key, in *keyInput) (*newKey, error) {
		key, secret, err := a.service.CreateKey(ctx, caller, sandbox.Key{Name: in.Body.Name, User: in.Body.User, Role: in.Body.Role, ExpiresAt: in.Body.ExpiresAt, Limits: in.Body.Limits})
		return &newKey{key, secret}, err
	})
	route(a, group, "GET", "/keys", "The caller's keys; an admin sees all", func(ctx context.Context, caller sandbox.Key, _ *struct{}) (*keyList, error) {
		keys, err := a.service.ListKeys(ctx, caller)
		return &keyList{keys}, err
	})
	type revoke struct {
		ID string `path:"id"`
	}
	route(a, group, "DELETE", "/keys/{id}", "Revoke a key", func(ctx context.Context, caller sandbox.Key, in *revoke) (*message, error) {
		return &message{"The key is revoked"}, a.service.RevokeKey(ctx, caller, in.ID)
	})
}

type helpFunctions struct {
	Functions map[string][]service.Helper `json:"functions"`
	Modules   modules                     `json:"modules"`
	Limits    policy.Policy               `json:"limits"`
	Isolation sandbox.Isolation           `json:"isolation" doc:"The wall, and what holds each limit"`
}

type modules struct {
	Allowed []string          `json:"allowed"`
	Blocked map[string]string `json:"blocked" doc:"Module to what to use instead"`
	Calls   map[string]string `json:"blocked_calls"`
	Note    string            `json:"note"`
}

type helpExamples struct {
	Examples []service.Example `json:"examples"`
	Notes    []string          `json:"usage_notes"`
}

type templateInput struct {
	InSandbox
	Body *struct {
		Type string `json:"processor_type,omitempty" doc:"data_processor, text_analyzer or database_connector"`
	} `required:"false"`
}

type template struct {
	SandboxID    string    `json:"sandbox_id"`
	Type         string    `json:"processor_type"`
	Code         string    `json:"template_code"`
	Instructions []string  `json:"instructions"`
	Timestamp    time.Time `json:"timestamp"`
}

var templateUse = []string{
	"Run it with execute as it is, or write your own return at the line \"# Add your transformation logic here\".",
	"Pass {\"data\": ...} as the run's context to process your own data.",
	"Code that defines a processor and makes none has process called with that data; what it returns is the result.",
}

func (a *api) helps(group place) {
	route(a, group, "GET", "/sandbox/{id}/help/functions", "Helper functions, allowed modules and limits", func(ctx context.Context, caller sandbox.Key, in *InSandbox) (*helpFunctions, error) {
		rules, limits, err := a.service.Rules(ctx, caller, in.ID)
		note := "These rules are a courtesy: they tell an agent early what will not work. The wall is the kernel."
		return &helpFunctions{service.Helpers(), modules{rules.Allowed, rules.Blocked, rules.Calls, note}, limits, a.service.Supervisor.Isolation()}, err
	})
	route(a, group, "GET", "/sandbox/{id}/help/examples", "Examples that run as they are on the demo data", func(ctx context.Context, caller sandbox.Key, in *InSandbox) (*helpExamples, error) {
		_, _, err := a.service.Rules(ctx, caller, in.ID)
		return &helpExamples{service.Examples(), []string{
			"Variables, functions and imports stay from run to run in one sandbox.",
			"The value of the last expression is the result; __result__ = ... overrides it.",
			"db_query only reads. Values go in as :name parameters.",
			"Files in the working folder, which is /session behind a full wall, stay while the sandbox lives; open('name') is in it.",
			"Uploads are in /data, to be read. What a run leaves in the folder artifacts of the working folder is kept, and has a URL.",
		}}, err
	})
	route(a, group, "POST", "/sandbox/{id}/templates/processor", "The code of a processor, to run or to change", func(ctx context.Context, caller sandbox.Key, in *templateInput) (*template, error) {
		kind := ""
		if in.Body != nil {
			kind = in.Body.Type
		}
		used, code, err := a.service.Template(ctx, caller, in.ID, kind)
		return &template{in.ID, used, code, templateUse, time.Now().UTC()}, err
	})
}
