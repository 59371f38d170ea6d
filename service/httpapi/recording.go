package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"glasshouse/debugger"
	"glasshouse/debugger/expr"
	"glasshouse/debugger/recording"
	"glasshouse/sandbox"
)

type stepsInput struct {
	ID    string `path:"id"`
	From  int    `query:"from" minimum:"1" default:"1" doc:"The first step"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
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
	ID   string `path:"id"`
	Step int    `path:"step" minimum:"1"`
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
	ID     string `path:"id"`
	Budget string `query:"budget" pattern:"^[0-9]{2,5}$" doc:"Maximum length in tokens; 1000 by default"`
}

const defaultExplainBudget = 1000 // tokens

type explanation struct {
	ExecutionID string `json:"execution_id"`
	Total       int    `json:"total_steps"`
	Explanation string `json:"explanation"`
}

type changesInput struct {
	ID     string `path:"id"`
	Name   string `path:"name"`
	Before int    `query:"before" minimum:"1" doc:"Only the last change before this step's line ran"`
	From   int    `query:"from" minimum:"1" default:"1" doc:"The first step"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	Frame  uint64 `query:"frame" doc:"By default the frame of step before, or the global namespace"`
}

type variableChanges struct {
	Name    string                `json:"name"`
	Changes []debugger.ChangeView `json:"changes"`
}

type findStepInput struct {
	ID        string `path:"id"`
	Condition string `query:"condition" required:"true" minLength:"1" doc:"An expression over variables, such as: total > 100 and 'x' in names"`
	Function  string `query:"function" doc:"Only in this function"`
	From      int    `query:"from" minimum:"1" default:"1" doc:"The first step"`
}

type foundStep struct {
	Step    int                `json:"step" doc:"0 if the condition never held"`
	Unknown int                `json:"unknown" doc:"Steps at which the condition could not be evaluated"`
	At      *debugger.StepView `json:"at,omitempty"`
}

// The maximum number of variables in the view of a step.
const (
	stepViewVariables      = 100
	foundStepViewVariables = 20
)

func (a *api) routeRecordings(r *routes) {
	forbidden, gone := http.StatusForbidden, http.StatusGone // gone: the recording was pruned
	route(a, r, r.describe("GET", "/executions/{id}/steps", "listSteps", tagRecordings,
		"List the steps of a debugged execution, as its stream showed them", forbidden, gone), a.listSteps)
	route(a, r, r.describe("GET", "/executions/{id}/steps/{step}", "getStep", tagRecordings,
		"Get one step: the call stack, and the variables before its line ran", forbidden, gone), a.getStep)
	route(a, r, r.describe("GET", "/executions/{id}/steps/{step}/variables", "listStepVariables", tagRecordings,
		"List the variables of one frame at a step", forbidden, gone), a.listStepVariables)
	route(a, r, r.describe("GET", "/executions/{id}/steps/{step}/objects/{ref}", "getStepObject", tagRecordings,
		"Get the content of an object at a step", forbidden, gone), a.getStepObject)
	route(a, r, r.describe("GET", "/executions/{id}/explain", "explainExecution", tagRecordings,
		"Explain a debugged execution briefly: how it ended, what led there, what functions returned and lines did",
		forbidden, gone), a.explainExecution)
	route(a, r, r.describe("GET", "/executions/{id}/variables/{name}/changes", "listVariableChanges", tagRecordings,
		"List the changes of a variable", forbidden, gone), a.listVariableChanges)
	route(a, r, r.describe("GET", "/executions/{id}/find", "findStep", tagRecordings,
		"Find the first step at which a condition holds", forbidden, gone), a.findStep)
}

// recordingError turns the errors of a recording into the API's.
func recordingError(err error) error {
	if errors.Is(err, recording.ErrNoStep) || errors.Is(err, recording.ErrNoFrame) ||
		errors.Is(err, recording.ErrNoObject) {
		return sandbox.Errorf(sandbox.FaultNotFound, "%v", err)
	}
	return err
}

func (a *api) listSteps(ctx context.Context, caller sandbox.Key, in *stepsInput) (*stepPage, error) {
	recording, err := a.service.Recorded(ctx, caller, in.ID)
	if err != nil {
		return nil, err
	}
	out := &stepPage{ExecutionID: in.ID, Total: recording.Steps(), Bytes: recording.Bytes}
	if out.Steps, err = a.service.Steps(recording, in.From, in.Limit); err == nil && in.From+in.Limit <= out.Total {
		out.Next = in.From + in.Limit
	}
	return out, recordingError(err)
}

func (a *api) getStep(ctx context.Context, caller sandbox.Key, in *InStep) (*debugger.StepView, error) {
	recording, err := a.service.Recorded(ctx, caller, in.ID)
	if err != nil {
		return nil, err
	}
	view, err := recording.View(in.Step, stepViewVariables)
	return &view, recordingError(err)
}

func (a *api) listStepVariables(
	ctx context.Context, caller sandbox.Key, in *stepVariablesInput,
) (*stepVariables, error) {
	recording, err := a.service.Recorded(ctx, caller, in.ID)
	if err != nil {
		return nil, err
	}
	list, total, err := recording.Scope(in.Step, in.Frame, in.Start, in.Count)
	return &stepVariables{list, total}, recordingError(err)
}

func (a *api) getStepObject(
	ctx context.Context, caller sandbox.Key, in *stepObjectInput,
) (*debugger.ObjectView, error) {
	recording, err := a.service.Recorded(ctx, caller, in.ID)
	if err != nil {
		return nil, err
	}
	view, err := recording.Object(in.Step, in.Ref, in.Start, in.Count)
	return &view, recordingError(err)
}

func (a *api) explainExecution(ctx context.Context, caller sandbox.Key, in *explainInput) (*explanation, error) {
	recording, err := a.service.Recorded(ctx, caller, in.ID)
	if err != nil {
		return nil, err
	}
	budget, err := strconv.Atoi(in.Budget)
	if err != nil { // not given: huma has checked the pattern
		budget = defaultExplainBudget
	}
	text, err := recording.Explain(budget)
	return &explanation{in.ID, recording.Steps(), text}, recordingError(err)
}

func (a *api) listVariableChanges(ctx context.Context, caller sandbox.Key, in *changesInput) (*variableChanges, error) {
	recording, err := a.service.Recorded(ctx, caller, in.ID)
	if err != nil {
		return nil, err
	}
	variable := debugger.Variable{Frame: in.Frame, Name: in.Name}
	var list []debugger.ChangeView
	if in.Before == 0 {
		list, err = recording.Changes(variable, in.From, in.Limit)
		return &variableChanges{in.Name, list}, recordingError(err)
	}
	if in.Frame == 0 {
		if variable, err = recording.Resolve(in.Before, in.Name); err != nil {
			return nil, recordingError(err)
		}
	}
	list, err = recording.LastChange(variable, in.Before)
	return &variableChanges{in.Name, list}, recordingError(err)
}

func (a *api) findStep(ctx context.Context, caller sandbox.Key, in *findStepInput) (*foundStep, error) {
	recording, err := a.service.Recorded(ctx, caller, in.ID)
	if err != nil {
		return nil, err
	}
	condition, err := expr.Parse(in.Condition)
	if err != nil {
		return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "condition", Detail: err.Error()}
	}
	out := &foundStep{}
	if out.Step, out.Unknown, err = recording.FindCondition(ctx, condition, in.From, in.Function); err != nil ||
		out.Step == 0 {
		return out, recordingError(err)
	}
	view, err := recording.View(out.Step, foundStepViewVariables)
	out.At = &view
	return out, recordingError(err)
}
