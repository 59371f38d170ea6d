package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"glasshouse/debugger"
	"glasshouse/debugger/expr"
	"glasshouse/debugger/recording"
	"glasshouse/sandbox"
	"glasshouse/service/records"
)

type stepsInput struct {
	InExecution
	From  int `query:"from" minimum:"1" default:"1" doc:"The first step"`
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"The number of steps, before they are folded"`

	Fold string `query:"fold" enum:"comprehensions" doc:"Leave out the steps of comprehensions and generator expressions"`
}

type stepPage struct {
	ExecutionID string         `json:"execution_id"`
	Total       int            `json:"total_steps"`
	Steps       []sandbox.Step `json:"steps"`
	Next        int            `json:"next,omitempty" doc:"Pass it as from to get the next page"`
	Bytes       int64          `json:"stored_bytes,omitempty" doc:"Size of the stored recording, when the execution has ended"`
}

// InStep is the path of one step. It is exported because huma reads exported embedded fields only.
type InStep struct {
	InExecution
	Step int `path:"step" minimum:"1"`
}

type stepViewsInput struct {
	InExecution
	From  int `query:"from" minimum:"1" default:"1" doc:"The first step"`
	Limit int `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"The number of steps"`
}

type stepViews struct {
	Total int                 `json:"total_steps"`
	Steps []debugger.StepView `json:"steps" doc:"Without steps that were not recorded; few if they are large"`
	Next  int                 `json:"next,omitempty" doc:"The step to go on with, if there are fewer for their size"`
}

// compressed is a body that is stored compressed.
type compressed struct {
	Type     string `header:"Content-Type"`
	Encoding string `header:"Content-Encoding"`
	Body     []byte
}

type stepVariablesInput struct {
	InStep
	Frame uint64 `query:"frame" doc:"0 is the global namespace"`
	Start int    `query:"start" minimum:"0"`
	Count int    `query:"count" minimum:"1" maximum:"1000" default:"100"`
}

type stepVariables struct {
	Variables []debugger.VariableView `json:"variables"`
	Total     int                     `json:"total"`
}

type stepObjectInput struct {
	InStep
	Ref   uint64 `path:"ref"`
	Start int    `query:"start" minimum:"0"`
	Count int    `query:"count" minimum:"1" maximum:"1000" default:"100"`
}

type explainInput struct {
	InExecution
	Budget string `query:"budget" pattern:"^[0-9]{2,5}$" doc:"Maximum length in tokens; 1000 by default"`
}

const defaultExplainBudget = 1000 // tokens

type explanation struct {
	ExecutionID string `json:"execution_id"`
	Total       int    `json:"total_steps"`
	Explanation string `json:"explanation"`
}

type changesInput struct {
	InExecution
	Name   string `path:"name"`
	Before int    `query:"before" minimum:"1" doc:"Only the last change before this step's line ran"`
	From   int    `query:"from" minimum:"1" default:"1" doc:"The first step"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	Frame  uint64 `query:"frame" doc:"By default that of step before, the namespace, or the only call with it"`
}

type variableChanges struct {
	Name    string                `json:"name"`
	Changes []debugger.ChangeView `json:"changes"`
}

type findStepInput struct {
	InExecution
	Condition string `query:"condition" required:"true" maxLength:"10000" format:"python-expression" doc:"An expression over variables, such as: total > 100 and 'x' in names"`
	Function  string `query:"function" doc:"Only in this function"`
	From      int    `query:"from" minimum:"1" default:"1" doc:"The first step"`
	Before    int    `query:"before" minimum:"1" doc:"Find the last step before this one instead; from does not count"`
}

type foundStep struct {
	Step    int                    `json:"step" doc:"0 if the condition never held"`
	Unknown int                    `json:"unknown" doc:"Steps at which the condition could not be evaluated"`
	Names   []debugger.UnknownName `json:"unknown_names,omitempty" doc:"Names in it that are not variables at any step"`
	At      *debugger.StepView     `json:"at,omitempty"`
}

// The maximum number of variables in the view of a step.
const (
	stepViewVariables      = 100
	foundStepViewVariables = 20
)

func (a *api) routeRecordings(r *routes) {
	const step = "/steps/{step}"
	routeRecording(a, r, "/steps", "listSteps", "List the steps of a debugged execution, as its stream showed them",
		a.listSteps)
	routeRecording(a, r, step, "getStep", "Get one step: the call stack, and the variables before its line ran",
		getStep)
	routeRecording(a, r, step+"/variables", "listStepVariables", "List the variables of one frame at a step",
		listStepVariables)
	routeRecording(a, r, step+"/objects/{ref}", "getStepObject", "Get the content of an object at a step",
		getStepObject)
	routeRecording(a, r, "/views", "listStepViews",
		"List consecutive steps, each with the call stack and the variables before its line ran", listStepViews)
	a.routeLineMap(r)
	a.routeWhy(r)
	a.routeExplain(r)
	routeSearch(a, r, "/variables/{name}/changes", "listVariableChanges", "List the changes of a variable",
		listVariableChanges)
	routeSearch(a, r, "/find", "findStep",
		"Find the first step at which a condition holds, or the last one before a step", findStep)
}

// openRecording opens the recording of an execution for a caller.
type openRecording func(context.Context, sandbox.Key, string) (*records.OpenRecording, error)

// routeExplain registers the explanation of a run, which agents may read of their own executions.
func (a *api) routeExplain(r *routes) {
	routeOpened(a, r, "/explain", "explainExecution",
		"Explain a debugged execution briefly: its outcome, the steps to a failure, returned and assigned values",
		a.records.Explainable, a.explainExecution)
}

// routeRecording registers an operation on the recording of an execution, at a path below the execution's.
func routeRecording[I interface{ executionID() string }, O any](
	a *api, r *routes, path, id, summary string, handle func(context.Context, *records.OpenRecording, *I) (*O, error),
) {
	routeOpened(a, r, path, id, summary, a.records.Recorded,
		func(ctx context.Context, _ sandbox.Key, opened *records.OpenRecording, in *I) (*O, error) {
			return handle(ctx, opened, in)
		})
}

// routeSearch is routeRecording for an operation that may read all steps of a recording.
func routeSearch[I interface{ executionID() string }, O any](
	a *api, r *routes, path, id, summary string, search func(context.Context, *records.OpenRecording, *I) (*O, error),
) {
	routeOpened(a, r, path, id, summary, a.records.Recorded,
		func(ctx context.Context, caller sandbox.Key, opened *records.OpenRecording, in *I) (out *O, err error) {
			err = a.debug.SearchRecording(ctx, caller, func(ctx context.Context) error {
				out, err = search(ctx, opened, in)
				return err
			})
			return out, err
		})
}

func routeOpened[I interface{ executionID() string }, O any](
	a *api, r *routes, path, id, summary string, open openRecording,
	handle func(context.Context, sandbox.Key, *records.OpenRecording, *I) (*O, error),
) {
	op := r.describe("GET", "/executions/{id}"+path, id, tagRecordings, summary, http.StatusForbidden,
		http.StatusGone) // gone: the recording was pruned
	route(a, r, op, func(ctx context.Context, caller sandbox.Key, in *I) (*O, error) {
		if err := a.access.HoldLarge(ctx, caller.User); err != nil {
			return nil, err
		}
		opened, err := open(ctx, caller, (*in).executionID())
		if err != nil {
			return nil, err
		}
		out, err := handle(ctx, caller, opened, in)
		return out, recordingError(err)
	})
}

// recordingError turns the errors of a recording into the API's.
func recordingError(err error) error {
	if errors.Is(err, recording.ErrNoStep) || errors.Is(err, recording.ErrNoFrame) ||
		errors.Is(err, recording.ErrNoObject) {
		return sandbox.Errorf(sandbox.FaultNotFound, "%v", err)
	}
	return err
}

func (a *api) listSteps(_ context.Context, opened *records.OpenRecording, in *stepsInput) (*stepPage, error) {
	steps, err := a.records.Steps(opened, in.From, in.Limit, in.Fold != "")
	out := &stepPage{ExecutionID: in.ID, Total: opened.Steps(), Steps: steps, Bytes: opened.Bytes}
	if in.From+in.Limit <= out.Total {
		out.Next = in.From + in.Limit
	}
	return out, err
}

func getStep(_ context.Context, opened *records.OpenRecording, in *InStep) (*debugger.StepView, error) {
	view, err := opened.View(in.Step, stepViewVariables)
	return &view, err
}

func listStepViews(ctx context.Context, opened *records.OpenRecording, in *stepViewsInput) (*stepViews, error) {
	views, next, err := opened.Views(ctx, in.From, in.Limit, stepViewVariables)
	return &stepViews{opened.Steps(), views, next}, err
}

// routeLineMap registers the operation that returns the lines of all steps.
func (a *api) routeLineMap(r *routes) {
	op := r.describe("GET", "/executions/{id}/line-map", "getLineMap", tagRecordings,
		"Get the line and the stack's depth of each step, as binary data", http.StatusForbidden, http.StatusGone)
	op.Description = "The answer is compressed with gzip. It has a uint32 with the length of a head, the head, and " +
		"then for each recorded step its line as uint32 and, behind all lines, the number of frames as uint16; all " +
		"are little-endian. The head is JSON: total_steps, count, last (the last step that is covered) and gaps " +
		"(first, last, reason). Steps in gaps have no entries. A line is 0 if the step is in another file."
	op.Responses["200"] = &huma.Response{Description: "The lines", Content: binaryContent()}
	huma.Register(r.api, op, func(ctx context.Context, in *InExecution) (*compressed, error) {
		caller := callerFrom(ctx)
		var opened *records.OpenRecording
		err := a.access.HoldLarge(ctx, caller.User)
		if err == nil {
			opened, err = a.records.Recorded(ctx, caller, in.ID)
		}
		var zip []byte
		if err == nil {
			err = a.debug.SearchRecording(ctx, caller, func(context.Context) (err error) {
				zip, err = opened.LineMap()
				return err
			})
		}
		if err := a.humaError(ctx, recordingError(err)); err != nil {
			return nil, err
		}
		return &compressed{"application/octet-stream", "gzip", zip}, nil
	})
}

func listStepVariables(
	_ context.Context, opened *records.OpenRecording, in *stepVariablesInput,
) (*stepVariables, error) {
	list, total, err := opened.Scope(in.Step, in.Frame, in.Start, in.Count)
	return &stepVariables{list, total}, err
}

func getStepObject(_ context.Context, opened *records.OpenRecording, in *stepObjectInput) (*debugger.ObjectView,
	error) {
	view, err := opened.Object(in.Step, in.Ref, in.Start, in.Count)
	return &view, err
}

func (a *api) explainExecution(
	ctx context.Context, caller sandbox.Key, opened *records.OpenRecording, in *explainInput,
) (*explanation, error) {
	budget, err := strconv.Atoi(in.Budget)
	if err != nil { // not given: huma has checked the pattern
		budget = defaultExplainBudget
	}
	text, err := a.debug.Explain(ctx, caller, opened, budget)
	return &explanation{in.ID, opened.Steps(), text}, err
}

// maxNamedFrames is how many frames with a variable are searched for, to tell whether there is only one.
const maxNamedFrames = 2

func listVariableChanges(
	_ context.Context, opened *records.OpenRecording, in *changesInput,
) (*variableChanges, error) {
	variable := debugger.Variable{Frame: in.Frame, Name: in.Name}
	if in.Before == 0 {
		list, err := opened.Changes(variable, in.From, in.Limit)
		if err != nil || len(list) > 0 || in.Frame != 0 {
			return &variableChanges{in.Name, list}, err
		}
		frames, err := opened.FramesWith(in.Name, maxNamedFrames)
		if err == nil && len(frames) == 1 { // it can only be this one
			list, err = opened.Changes(debugger.Variable{Frame: frames[0], Name: in.Name}, in.From, in.Limit)
		} else if err == nil && len(frames) > 1 {
			err = &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "frame", Detail: fmt.Sprintf(
				"%s is a local variable of several calls: name one by its frame, such as %d or %d; the steps have them",
				in.Name, frames[0], frames[1])}
		}
		return &variableChanges{in.Name, list}, err
	}
	if in.Frame == 0 {
		var err error
		if variable, err = opened.Resolve(in.Before, in.Name); err != nil {
			return nil, err
		}
	}
	list, err := opened.LastChange(variable, in.Before)
	return &variableChanges{in.Name, list}, err
}

func findStep(ctx context.Context, opened *records.OpenRecording, in *findStepInput) (*foundStep, error) {
	condition, err := expr.Parse(in.Condition)
	if err != nil {
		return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "condition", Detail: err.Error()}
	}
	out := &foundStep{}
	if in.Before > 0 {
		out.Step, out.Unknown, err = opened.FindConditionBefore(ctx, condition, in.Before, in.Function)
	} else {
		out.Step, out.Unknown, err = opened.FindCondition(ctx, condition, in.From, in.Function)
	}
	if err == nil && out.Step == 0 && out.Unknown > 0 {
		out.Names, err = opened.UnknownNames(ctx, condition)
	}
	if err != nil || out.Step == 0 {
		return out, err
	}
	view, err := opened.View(out.Step, foundStepViewVariables)
	out.At = &view
	return out, err
}
