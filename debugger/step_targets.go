package debugger

import (
	"context"
	"fmt"
)

// StepTarget is a call of the current line into which the program can step.
type StepTarget struct {
	Label string `json:"label"` // the call as the program's text has it
	Place []int  `json:"place"` // of the call in the text, as Python tells it
}

// StepTargets returns the calls that begin in the line of a frame, in the order in which Python makes them. There are
// none in a frame other than the current one, nor at a past step.
func (s *Session) StepTargets(ctx context.Context, frame uint64) ([]StepTarget, error) {
	_, live, err := s.inspected()
	if err != nil || !live {
		return nil, err
	}
	found, err := askFor[struct {
		Targets []StepTarget `json:"targets"`
	}](ctx, s, map[string]any{"do": "targets", "frame": frame})
	return found.Targets, err
}

// StepInto steps into the call with an index of StepTargets. If the call runs none of the program's lines, the program
// stops at the next line.
func (s *Session) StepInto(ctx context.Context, index int) error {
	targets, err := s.StepTargets(ctx, s.Position().Frame)
	if err != nil {
		return err
	}
	if index < 0 || index >= len(targets) {
		return fmt.Errorf("%w: unknown targetId; send one that stepInTargets returned for this position", ErrRequest)
	}
	return s.moveInto(ctx, StepIn, targets[index].Place)
}
