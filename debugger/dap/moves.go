package dap

import (
	"context"
	"encoding/json"
	"fmt"

	godap "github.com/google/go-dap"

	"glasshouse/debugger"
)

var continued = godap.ContinueResponseBody{AllThreadsContinued: true}

func move(m debugger.Move) sessionHandler {
	return func(ctx context.Context, s *debugger.Session, _ json.RawMessage) (any, error) {
		return continued, s.Move(ctx, m)
	}
}

// stepIn steps into the next call, or into the one of a target. The target IDs of stepInTargets begin with 1.
func stepIn(ctx context.Context, s *debugger.Session, in godap.StepInArguments) (any, error) {
	if in.TargetId != 0 {
		return continued, s.StepInto(ctx, in.TargetId-1)
	}
	return continued, s.Move(ctx, debugger.StepIn)
}

// stepInTargets has the calls of a live line. At a past step it has the statements that the line has sent, and in a
// frame of SQL the blocks of the statement.
func stepInTargets(ctx context.Context, s *debugger.Session, in godap.StepInTargetsArguments) (any, error) {
	found, err := s.StepTargets(ctx, uint64(in.FrameId))
	targets := []godap.StepInTarget{}
	for i, t := range found {
		targets = append(targets, godap.StepInTarget{Id: i + 1, Label: t.Label})
	}
	return godap.StepInTargetsResponseBody{Targets: targets}, err
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
	if statementOf(&in.Source) > 0 {
		return nil, fmt.Errorf("%w: step through a statement; goto is for lines of the program", debugger.ErrRequest)
	}
	found, err := s.GotoTargets(ctx, in.Line)
	targets := []godap.GotoTarget{}
	for _, t := range found {
		targets = append(targets, godap.GotoTarget{Id: t.Step, Label: t.Label, Line: t.Line})
	}
	return godap.GotoTargetsResponseBody{Targets: targets}, err
}

func restartFrame(ctx context.Context, s *debugger.Session, in godap.RestartFrameArguments) (any, error) {
	if debugger.IsSQLFrame(uint64(in.FrameId)) {
		return nil, errSQLFrame
	}
	return empty{}, s.RestartFrame(ctx, uint64(in.FrameId))
}

func pause(_ context.Context, s *debugger.Session, _ json.RawMessage) (any, error) {
	return empty{}, s.Pause()
}
