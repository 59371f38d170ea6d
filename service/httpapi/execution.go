package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/service"
)

// CodeBody is a piece of code and what it is given.
type CodeBody struct {
	Code    string     `json:"code" doc:"One module body"`
	Context object     `json:"context,omitempty" doc:"Each key is a variable, and the whole is context"`
	Files   []CodeFile `json:"files,omitempty" doc:"Uploads that come with it, in /data before it runs"`
}

// CodeFile is an upload that comes with a piece of code.
type CodeFile struct {
	Path    string  `json:"path" doc:"Below /data"`
	Content *string `json:"content,omitempty"`
	Base64  []byte  `json:"content_base64,omitempty"`
}

type executeInput struct {
	InSandbox
	Accepts
	Body CodeBody
}

func (b CodeBody) job(kind sandbox.Kind) (service.Job, error) {
	job := service.Job{Code: b.Code, Context: json.RawMessage(b.Context), Kind: kind}
	for n, f := range b.Files {
		if (f.Content == nil) == (f.Base64 == nil) {
			return job, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: fmt.Sprintf("files[%d]", n), Detail: "it needs content, which is text, or content_base64"}
		}
		body := f.Base64
		if f.Content != nil {
			body = []byte(*f.Content)
		}
		job.Files = append(job.Files, service.JobFile{Path: f.Path, Body: body})
	}
	return job, nil
}

type quickInput struct {
	Accepts
	Body struct {
		CodeBody
		Config *policy.Policy `json:"config,omitempty"`
	}
	RawBody []byte
}

type queryInput struct {
	InSandbox
	Body struct {
		Query      string         `json:"query" minLength:"1"`
		Parameters map[string]any `json:"parameters,omitempty"`
	}
	RawBody []byte
}

type queryAnswer struct {
	Query      string          `json:"query"`
	Parameters map[string]any  `json:"parameters"`
	Results    json.RawMessage `json:"results" doc:"A list of objects, one a row"`
	Count      int             `json:"count"`
	Truncated  bool            `json:"truncated"`
	Timestamp  time.Time       `json:"timestamp"`
}

type schemaAnswer struct {
	SandboxID string     `json:"sandbox_id"`
	Schema    schemaBody `json:"schema"`
	Timestamp time.Time  `json:"timestamp"`
}

type schemaBody struct {
	Tables  []string                         `json:"tables"`
	Schema  map[string][]sandbox.TableColumn `json:"schema" doc:"The columns of each table"`
	Details map[string]sandbox.Table         `json:"details" doc:"Of each table: its type, comment, keys and row estimate"`
	Total   int                              `json:"total_tables"`
}

func (a *api) agents(group place) {
	runRoute(a, group, "POST", "/sandbox/{id}/execute", "Run code in a sandbox", func(ctx context.Context, caller sandbox.Key, in *executeInput) (*runAnswer, error) {
		job, err := in.Body.job(sandbox.KindExecute)
		if err != nil {
			return nil, err
		}
		if in.plain() {
			return whole(a.service.Execute(ctx, caller, in.ID, job))
		}
		f, err := a.service.Start(ctx, caller, in.ID, job, nil)
		return a.begun(ctx, group, in.Accepts, f, err)
	})
	runRoute(a, group, "POST", "/sandbox/agent/quick-execute", "Run code in a fresh sandbox that is gone afterwards", func(ctx context.Context, caller sandbox.Key, in *quickInput) (*runAnswer, error) {
		job, err := in.Body.job(sandbox.KindQuick)
		if err != nil {
			return nil, err
		}
		var body struct {
			Config json.RawMessage `json:"config"`
		}
		if in.Body.Config != nil {
			_ = json.Unmarshal(in.RawBody, &body)
		}
		if in.plain() {
			return whole(a.service.QuickExecute(ctx, caller, job, body.Config))
		}
		f, err := a.service.Start(ctx, caller, "", job, body.Config)
		return a.begun(ctx, group, in.Accepts, f, err)
	})
	type analyzeInput struct {
		Table string `query:"table_name"`
		Kind  string `query:"analysis_type"`
		Limit int    `query:"limit" minimum:"0" maximum:"10000"`
		Body  *struct {
			Table string `json:"table_name,omitempty"`
			Kind  string `json:"analysis_type,omitempty" doc:"summary, schema, or anything else for the list of tables"`
			Limit int    `json:"limit,omitempty" minimum:"1" maximum:"10000"`
		} `required:"false"`
	}
	route(a, group, "POST", "/sandbox/agent/analyze-data", "Look at a table", func(ctx context.Context, caller sandbox.Key, in *analyzeInput) (*sandbox.Execution, error) {
		if b := in.Body; b != nil {
			in.Table, in.Kind, in.Limit = first(b.Table, in.Table), first(b.Kind, in.Kind), max(b.Limit, in.Limit)
		}
		if in.Limit == 0 {
			in.Limit = 100
		}
		return a.service.Analyze(ctx, caller, in.Table, first(in.Kind, "summary"), in.Limit)
	})
	route(a, group, "POST", "/sandbox/{id}/database/query", "Run one read-only statement", func(ctx context.Context, caller sandbox.Key, in *queryInput) (*queryAnswer, error) {
		var body struct {
			Parameters map[string]any `json:"parameters"`
		}
		dec := json.NewDecoder(bytes.NewReader(in.RawBody))
		dec.UseNumber()
		_ = dec.Decode(&body)
		var list results
		total, err := a.service.Query(ctx, caller, in.ID, in.Body.Query, body.Parameters, list.take)
		if err != nil {
			return nil, err
		}
		if body.Parameters == nil {
			body.Parameters = map[string]any{}
		}
		return &queryAnswer{in.Body.Query, body.Parameters, list.json(), total.Rows, total.Truncated, time.Now().UTC()}, nil
	})
	route(a, group, "GET", "/sandbox/{id}/database/schema", "Every table that may be read, with its columns", func(ctx context.Context, caller sandbox.Key, in *InSandbox) (*schemaAnswer, error) {
		tables, err := a.service.Schema(ctx, caller, in.ID)
		out := &schemaAnswer{SandboxID: in.ID, Schema: schemaBody{Tables: []string{}, Schema: map[string][]sandbox.TableColumn{}, Details: map[string]sandbox.Table{}, Total: len(tables)}, Timestamp: time.Now().UTC()}
		for _, t := range tables {
			out.Schema.Tables = append(out.Schema.Tables, t.Name)
			out.Schema.Schema[t.Name] = t.Columns
			t.Columns = nil
			out.Schema.Details[t.Name] = t
		}
		return out, err
	})
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

type executionList struct {
	Executions []sandbox.Execution `json:"executions"`
	Next       string              `json:"next,omitempty"`
}

func (a *api) executions(group place) {
	type one struct {
		ID string `path:"id"`
	}
	runRoute(a, group, "GET", "/executions/{id}", "One execution: as it is now, when it has ended, or as it goes on", func(ctx context.Context, caller sandbox.Key, in *followInput) (*runAnswer, error) {
		if in.events() {
			return a.follow(ctx, caller, in)
		}
		if in.Wait > 0 {
			waiting, enough := context.WithTimeout(ctx, time.Duration(in.Wait)*time.Second)
			a.service.Await(waiting, caller, in.ID)
			enough()
		}
		if err := a.limits.holdRecords(ctx, caller.Account); err != nil {
			return nil, err
		}
		e, err := a.service.Execution(ctx, caller, in.ID)
		return whole(&e, err)
	})
	route(a, group, "POST", "/executions/{id}/cancel", "End a running execution", func(ctx context.Context, caller sandbox.Key, in *one) (*message, error) {
		return &message{"The execution is being cancelled"}, a.service.Cancel(ctx, caller, in.ID)
	})
	type filter struct {
		User    string    `query:"user_id" doc:"For admins"`
		Sandbox string    `query:"sandbox_id"`
		Status  string    `query:"status" enum:"created,running,completed,failed,timeout,cancelled,killed"`
		Since   time.Time `query:"since"`
		Until   time.Time `query:"until"`
		Text    string    `query:"text" doc:"In the code or the error"`
		Limit   int       `query:"limit" minimum:"1" maximum:"1000" default:"50"`
		After   string    `query:"after"`
	}
	route(a, group, "GET", "/executions", "Executions, newest first", func(ctx context.Context, caller sandbox.Key, in *filter) (*executionList, error) {
		if err := a.limits.holdRecords(ctx, caller.Account); err != nil {
			return nil, err
		}
		list, next, err := a.service.Executions(ctx, caller, sandbox.ExecutionFilter{User: in.User, SandboxID: in.Sandbox, Status: sandbox.Status(in.Status), Since: in.Since, Until: in.Until, Text: in.Text, Limit: in.Limit, After: in.After})
		return &executionList{list, next}, err
	})
}
