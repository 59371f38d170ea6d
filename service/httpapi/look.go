package httpapi

import (
	"context"

	"glasshouse/sandbox"
)

type codeInput struct {
	InSandbox
	Body struct {
		Code string `json:"code"`
	}
}

type verdictAnswer struct {
	SandboxID string `json:"sandbox_id"`
	sandbox.CheckResult
}

type completeInput struct {
	InSandbox
	Body struct {
		Code   string `json:"code"`
		Cursor *int   `json:"cursor,omitempty" doc:"In characters from 0; the end of the code where it is left out"`
	}
}

type variablesAnswer struct {
	SandboxID string `json:"sandbox_id"`
	sandbox.Variables
}

type highlighted struct {
	HTML string `json:"html"`
	CSS  string `json:"css" doc:"The style sheet of its classes"`
}

// looks are the routes that look and run nothing of the user's.
func (a *api) looks(group place) {
	route(a, group, "POST", "/sandbox/{id}/check", "What Python and the sandbox's policy would refuse of code; nothing runs", func(ctx context.Context, caller sandbox.Key, in *codeInput) (*verdictAnswer, error) {
		v, err := a.service.Check(ctx, caller, in.ID, in.Body.Code)
		return &verdictAnswer{in.ID, v}, err
	})
	route(a, group, "POST", "/sandbox/{id}/complete", "What could be written at a cursor", func(ctx context.Context, caller sandbox.Key, in *completeInput) (*sandbox.Completion, error) {
		c, err := a.service.Complete(ctx, caller, in.ID, in.Body.Code, in.Body.Cursor)
		return &c, err
	})
	route(a, group, "GET", "/sandbox/{id}/variables", "The variables of a sandbox; nothing of the user's runs for it", func(ctx context.Context, caller sandbox.Key, in *InSandbox) (*variablesAnswer, error) {
		v, err := a.service.Variables(ctx, caller, in.ID)
		return &variablesAnswer{in.ID, v}, err
	})
	type textInput struct {
		Body struct {
			Code string `json:"code"`
		}
	}
	route(a, group, "POST", "/sandbox/highlight", "Code as HTML", func(ctx context.Context, _ sandbox.Key, in *textInput) (*highlighted, error) {
		html, css, err := a.service.Highlight(ctx, in.Body.Code)
		return &highlighted{html, css}, err
	})
}
