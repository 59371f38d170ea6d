package dap

import (
	"context"
	"encoding/json"

	godap "github.com/google/go-dap"

	"glasshouse/debugger"
)

var continued = godap.ContinueResponseBody{AllThreadsContinued: true}

func move(m debugger.Move) sessionHandler {
	return func(ctx context.Context, s *debugger.Session, _ json.RawMessage) (any, error) {
		return continued, s.Move(ctx, m)
	}
}

// gotoArguments accepts a step besides DAP's targetId. The target IDs of gotoTargets are steps.
type gotoArguments struct {
	godap.GotoArguments
	Step int `json:"step"`
}

func gotoStep(_ context.Context, s *debugger.Session, in gotoArguments) (any, error) {
	return continued, s.Goto(max(in.Step, in.TargetId))
}

func gotoTargets(ctx context.Context, s *debugger.Session, in godap.GotoTargetsArguments) (any, error) {
	found, err := s.GotoTargets(ctx, in.Line)
	targets := []godap.GotoTarget{}
	for _, t := range found {
		targets = append(targets, godap.GotoTarget{Id: t.Step, Label: t.Label, Line: t.Line})
	}
	return godap.GotoTargetsResponseBody{Targets: targets}, err
}

func restartFrame(ctx context.Context, s *debugger.Session, in godap.RestartFrameArguments) (any, error) {
	return empty{}, s.RestartFrame(ctx, uint64(in.FrameId))
}

func pause(_ context.Context, s *debugger.Session, _ json.RawMessage) (any, error) {
	return empty{}, s.Pause()
}
