package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"glasshouse/sandbox"
	"glasshouse/service/run"
)

// InExecution is the path of an execution. It is exported because huma reads exported embedded fields only.
type InExecution struct {
	ID string `path:"id"`
}

func (in InExecution) executionID() string { return in.ID }

type getExecutionInput struct {
	InExecution
	Wait int `query:"wait" minimum:"0" maximum:"300" doc:"Seconds to wait for the end of a running execution"`
	ExecutionForm
	LastEventID string `header:"Last-Event-ID" doc:"With text/event-stream: resume after this event"`
}

type executionsInput struct {
	sandbox.ExecutionFilter
	Kind    kind      `query:"kind"`
	Since   timestamp `query:"since" doc:"Only executions that began at this time or later"`
	Until   timestamp `query:"until" doc:"Only executions that began before this time"`
	Tag     []string  `query:"tag,explode" maxItems:"16" doc:"A tag that they have, as NAME:VALUE; repeatable"`
	Include []string  `query:"include" enum:"record" doc:"record: list whole executions instead of summaries"`
}

// kind is the kind of an execution.
type kind string

// Schema implements huma.SchemaProvider.
func (kind) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, k := range sandbox.Kinds {
		s.Enum = append(s.Enum, string(k))
	}
	s.PrecomputeMessages()
	return s
}

// timestamp is a time in RFC 3339 format, in the years that PostgreSQL, JSON and other programs can hold.
type timestamp struct{ time.Time }

const firstYear, lastYear = 1970, 9999

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *timestamp) UnmarshalText(text []byte) error {
	given, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		return errors.New("expected a time in RFC 3339 format, such as 2026-01-31T12:00:00Z")
	}
	if t.Time = given.UTC(); t.Year() < firstYear || t.Year() > lastYear {
		return fmt.Errorf("expected a year from %d to %d", firstYear, lastYear)
	}
	return nil
}

// Schema implements huma.SchemaProvider.
func (timestamp) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time"}
}

type executionList struct {
	Executions []sandbox.Execution `json:"executions"`
	Next       string              `json:"next,omitempty" doc:"Pass it as after to get the next page"`
}

type executionSummaryList struct {
	Executions []sandbox.ExecutionSummary `json:"executions"`
	Next       string                     `json:"next,omitempty" doc:"Pass it as after to get the next page"`
	LeftOut    int                        `json:"left_out,omitempty" doc:"Of a first page with work; at most 1000"`
}

func (a *api) routeExecutions(r *routes) {
	routeExecution(a, r, r.describe("GET", "/executions/{id}", "getExecution", tagExecutions,
		"Get an execution: as it is, when it has ended, or as events"), a.getExecution)
	route(a, r, r.describe("POST", "/executions/{id}/cancel", "cancelExecution", tagExecutions,
		"Cancel a running execution",
		http.StatusConflict, http.StatusGone), a.cancelExecution)
	list := r.describe("GET", "/executions", "listExecutions", tagExecutions,
		"List executions, newest first: summaries, or whole executions", http.StatusForbidden)
	list.Responses["200"] = &huma.Response{Description: "OK", Content: map[string]*huma.MediaType{
		"application/json": {Schema: &huma.Schema{AnyOf: []*huma.Schema{
			r.schema(reflect.TypeFor[executionSummaryList]()), r.schema(reflect.TypeFor[executionList]()),
		}}},
	}}
	registerResponse(a, r, list, a.listExecutions)
	route(a, r, r.describe("DELETE", "/executions/{id}", "eraseExecution", tagExecutions,
		"Erase an ended execution and all that belongs to it from history; needs an admin's key",
		http.StatusForbidden, http.StatusConflict), a.eraseExecution)
	route(a, r, r.describe("DELETE", "/users/{user_id}/history", "eraseUser", tagExecutions,
		"Erase all that history has of a user; needs an admin's key", http.StatusForbidden, http.StatusConflict),
		a.eraseUser)
	a.routeTitles(r)
	a.routeReplay(r)
	a.routeExecutionFeed(r)
}

func (a *api) getExecution(ctx context.Context, caller sandbox.Key, in *getExecutionInput) (*executionResponse, error) {
	if in.wantsEvents() {
		return a.followResponse(ctx, caller, in)
	}
	if in.Wait > 0 {
		waiting, cancel := context.WithTimeout(ctx, time.Duration(in.Wait)*time.Second)
		a.runs.Await(waiting, caller, in.ID)
		cancel()
	}
	if err := a.access.HoldLarge(ctx, caller.User); err != nil {
		return nil, err
	}
	e, err := a.records.Execution(ctx, caller, in.ID)
	if err != nil {
		return nil, err
	}
	out := struct {
		sandbox.Execution
		Text string `json:"text,omitempty"`
	}{Execution: e}
	if slices.Contains(in.Include, "text") {
		out.Text = run.ModelText(&e, run.DefaultModelTextChars)
	}
	return a.recordResponse(caller.User, out, e.TextBytes()), nil
}

func (a *api) cancelExecution(ctx context.Context, caller sandbox.Key, in *InExecution) (*message, error) {
	return &message{"The execution is being cancelled"}, a.runs.Cancel(ctx, caller, in.ID)
}

func (a *api) listExecutions(ctx context.Context, caller sandbox.Key, in *executionsInput) (*executionResponse, error) {
	filter := in.ExecutionFilter
	filter.Kind, filter.Since, filter.Until = sandbox.Kind(in.Kind), in.Since.Time, in.Until.Time
	for _, text := range in.Tag {
		tag, err := sandbox.ParseTag(text)
		if err != nil {
			return nil, err
		}
		filter.Tags = append(filter.Tags, tag)
	}
	if !slices.Contains(in.Include, "record") {
		list, next, err := a.records.ExecutionSummaries(ctx, caller, filter)
		if err != nil {
			return nil, err
		}
		leftOut := 0
		if filter.IsWork && filter.After == "" {
			leftOut, err = a.records.CountBesidesWork(ctx, caller, filter)
		}
		return summariesResponse(executionSummaryList{list, next, leftOut}), err
	}
	if filter.Order != "" && filter.Order != sandbox.ListNewest {
		return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "order",
			Detail: "whole executions are listed newest first: leave include out"}
	}
	if err := a.access.HoldLarge(ctx, caller.User); err != nil {
		return nil, err
	}
	list, next, err := a.records.Executions(ctx, caller, filter)
	if err != nil {
		return nil, err
	}
	return a.listResponse(caller.User, executionList{list, next}), nil
}

// erasure is the body of a response that confirms an erasure.
type erasure struct {
	Message string         `json:"message"`
	Erased  sandbox.Erased `json:"erased" doc:"How much was erased"`
}

type eraseUserInput struct {
	User string `path:"user_id"`
}

func (a *api) eraseExecution(ctx context.Context, caller sandbox.Key, in *InExecution) (*erasure, error) {
	numbers, err := a.records.EraseExecution(ctx, caller, in.ID)
	return &erasure{"the execution is erased", numbers}, err
}

func (a *api) eraseUser(ctx context.Context, caller sandbox.Key, in *eraseUserInput) (*erasure, error) {
	numbers, err := a.records.EraseUser(ctx, caller, in.User)
	return &erasure{"the user's history is erased; keys and the audit log stay", numbers}, err
}
