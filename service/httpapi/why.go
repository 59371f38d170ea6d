package httpapi

import (
	"context"
	"net/http"

	"glasshouse/debugger/why"
	"glasshouse/sandbox"
)

type whyInput struct {
	InExecution
	Name   string `query:"name" maxLength:"1000" doc:"A variable or expression; default: the result"`
	Step   int    `query:"step" minimum:"1" doc:"The value on arrival at this step; by default at the end of the run"`
	Budget int    `query:"budget" minimum:"50" maximum:"10000" default:"600" doc:"Maximum length of text in tokens"`
	Facts  bool   `query:"facts" default:"true" doc:"Replay the run, and say what the expressions got and gave"`
}

type whyAnswer struct {
	ExecutionID string `json:"execution_id"`
	why.Answer
}

func (a *api) routeWhy(r *routes) {
	route(a, r, r.describe("GET", "/executions/{id}/why", "explainValue", tagRecordings,
		"Explain a value of a recorded execution: the steps that made it, and what may be wrong with them",
		http.StatusGone), a.explainValue)
}

func (a *api) explainValue(ctx context.Context, caller sandbox.Key, in *whyInput) (*whyAnswer, error) {
	answer, err := a.debug.Why(ctx, caller, in.ID, why.Question{Name: in.Name, Step: in.Step,
		Budget: in.Budget, WithoutFacts: !in.Facts})
	if err != nil {
		return nil, recordingError(err)
	}
	return &whyAnswer{in.ID, *answer}, nil
}
