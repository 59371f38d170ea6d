package httpapi

import (
	"context"
	"errors"
	"strconv"

	"glasshouse/debugger"
	"glasshouse/sandbox"
)

type stepPage struct {
	ExecutionID string         `json:"execution_id"`
	Total       int            `json:"total_steps"`
	Steps       []sandbox.Step `json:"steps"`
	Next        int            `json:"next,omitempty" doc:"The from of the next page"`
	Bytes       int64          `json:"stored_bytes,omitempty" doc:"What history keeps of the recording, once the run is over"`
}

// InStep is the path of one step.
type InStep struct {
	ID   string `path:"id"`
	Step int    `path:"step" minimum:"1"`
}

type scopePage struct {
	Variables []debugger.VariableView `json:"variables"`
	Total     int                     `json:"total"`
}

type changesAnswer struct {
	Name    string                `json:"name"`
	Changes []debugger.ChangeView `json:"changes"`
}

type findAnswer struct {
	Step    int                `json:"step" doc:"0 where it never held"`
	Unknown int                `json:"unknown" doc:"Steps at which the recording does not tell, or a name is not there"`
	At      *debugger.StepView `json:"at,omitempty"`
}

type explainAnswer struct {
	ExecutionID string `json:"execution_id"`
	Total       int    `json:"total_steps"`
	Explanation string `json:"explanation"`
}

// reading turns what a recording answers into the API's errors.
func reading(err error) error {
	if errors.Is(err, debugger.ErrNoStep) || errors.Is(err, debugger.ErrNoFrame) || errors.Is(err, debugger.ErrNoObject) {
		return sandbox.Errorf(sandbox.FaultNotFound, "%v", err)
	}
	return err
}

func (a *api) recordings(group place) {
	open := a.service.Recorded
	type pageInput struct {
		ID    string `path:"id"`
		From  int    `query:"from" minimum:"1" default:"1"`
		Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	}
	route(a, group, "GET", "/executions/{id}/steps", "The steps of a debugged run, as the stream showed them", func(ctx context.Context, caller sandbox.Key, in *pageInput) (*stepPage, error) {
		r, err := open(ctx, caller, in.ID)
		if err != nil {
			return nil, err
		}
		out := &stepPage{ExecutionID: in.ID, Total: r.Journal.Steps(), Bytes: r.Bytes}
		if out.Steps, err = a.service.Steps(r, in.From, in.Limit); err == nil && in.From+in.Limit <= out.Total {
			out.Next = in.From + in.Limit
		}
		return out, reading(err)
	})
	route(a, group, "GET", "/executions/{id}/steps/{step}", "One step: the calls, and the variables on arrival at its line", func(ctx context.Context, caller sandbox.Key, in *InStep) (*debugger.StepView, error) {
		r, err := open(ctx, caller, in.ID)
		if err != nil {
			return nil, err
		}
		view, err := r.View(in.Step, r.Source, 100)
		return &view, reading(err)
	})
	type scopeInput struct {
		InStep
		Frame uint64 `query:"frame" doc:"0 is the namespace"`
		Start int    `query:"start" minimum:"0"`
		Count int    `query:"count" minimum:"1" maximum:"1000" default:"100"`
	}
	route(a, group, "GET", "/executions/{id}/steps/{step}/variables", "The variables of one frame at a step, by page", func(ctx context.Context, caller sandbox.Key, in *scopeInput) (*scopePage, error) {
		r, err := open(ctx, caller, in.ID)
		if err != nil {
			return nil, err
		}
		list, total, err := r.Scope(in.Step, in.Frame, in.Start, in.Count)
		return &scopePage{list, total}, reading(err)
	})
	type objectInput struct {
		InStep
		Ref   uint64 `path:"ref"`
		Start int    `query:"start" minimum:"0"`
		Count int    `query:"count" minimum:"1" maximum:"1000" default:"100"`
	}
	route(a, group, "GET", "/executions/{id}/steps/{step}/objects/{ref}", "What an object held at a step, by page", func(ctx context.Context, caller sandbox.Key, in *objectInput) (*debugger.ObjectView, error) {
		r, err := open(ctx, caller, in.ID)
		if err != nil {
			return nil, err
		}
		view, err := r.Contents(in.Step, in.Ref, in.Start, in.Count)
		return &view, reading(err)
	})
	type explainInput struct {
		ID     string `path:"id"`
		Budget string `query:"budget" pattern:"^[0-9]{2,5}$" doc:"Tokens that the answer may have; without it, 1000"`
	}
	route(a, group, "GET", "/executions/{id}/explain", "A debugged run in few words: how it ended, what led there, what functions returned and lines did", func(ctx context.Context, caller sandbox.Key, in *explainInput) (*explainAnswer, error) {
		r, err := open(ctx, caller, in.ID)
		if err != nil {
			return nil, err
		}
		budget, err := strconv.Atoi(in.Budget)
		if err != nil {
			budget = 1000
		}
		text, err := r.Explain(r.Source, budget)
		return &explainAnswer{in.ID, r.Journal.Steps(), text}, reading(err)
	})
	type changesInput struct {
		ID     string `path:"id"`
		Name   string `path:"name"`
		Before int    `query:"before" minimum:"1" doc:"Only the last change that was there on arrival at this step: who last changed it"`
		From   int    `query:"from" minimum:"1" default:"1"`
		Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
		Frame  uint64 `query:"frame" doc:"Without it, the frame of step before, or the namespace"`
	}
	route(a, group, "GET", "/executions/{id}/variables/{name}/changes", "The history of a variable", func(ctx context.Context, caller sandbox.Key, in *changesInput) (*changesAnswer, error) {
		r, err := open(ctx, caller, in.ID)
		if err != nil {
			return nil, err
		}
		v := debugger.Variable{Frame: in.Frame, Name: in.Name}
		step, last := in.From, in.Before > 0
		if last {
			step = in.Before
			if in.Frame == 0 {
				if v, err = r.Resolve(step, in.Name); err != nil {
					return nil, reading(err)
				}
			}
		}
		list, err := r.Changes(v, step, in.Limit, last, r.Source)
		return &changesAnswer{in.Name, list}, reading(err)
	})
	type findInput struct {
		ID        string `path:"id"`
		Condition string `query:"condition" required:"true" minLength:"1" doc:"An expression over variables, such as: total > 100 and 'x' in names"`
		Function  string `query:"function" doc:"Only in this function"`
		From      int    `query:"from" minimum:"1" default:"1"`
	}
	route(a, group, "GET", "/executions/{id}/find", "The first step at which a condition holds", func(ctx context.Context, caller sandbox.Key, in *findInput) (*findAnswer, error) {
		r, err := open(ctx, caller, in.ID)
		if err != nil {
			return nil, err
		}
		condition, err := debugger.ParseCondition(in.Condition)
		if err != nil {
			return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "condition", Detail: err.Error()}
		}
		out := &findAnswer{}
		if out.Step, out.Unknown, err = r.FirstWhere(ctx, condition, in.From, in.Function); err != nil || out.Step == 0 {
			return out, reading(err)
		}
		view, err := r.View(out.Step, r.Source, 20)
		out.At = &view
		return out, reading(err)
	})
}
