package debugger

import (
	"context"
	"fmt"
	"slices"
)

// StepTarget is a call of the current line into which the program can step.
type StepTarget struct {
	Label string `json:"label"` // the call as the program's text has it
	Place []int  `json:"place"` // of the call in the text, as Python tells it

	statement int // its number; 0 for a call and a block
}

// StepTargets returns the calls that begin in the line of a frame, in the order in which Python makes them. At a past
// step they are the statements that it has sent, and in a frame of SQL the blocks of the statement. There are none in a
// frame other than the current one.
func (s *Session) StepTargets(ctx context.Context, frame uint64) ([]StepTarget, error) {
	_, live, err := s.inspected()
	if err != nil {
		return nil, err
	}
	if IsSQLFrame(frame) {
		return s.sqlTargets(ctx, int(frame-firstSQLFrame))
	}
	if !live {
		return s.statementTargets(ctx, frame), nil
	}
	found, err := askFor[struct {
		Targets []StepTarget `json:"targets"`
	}](ctx, s, map[string]any{"do": "targets", "frame": frame})
	return found.Targets, err
}

// statementTargets returns the statements that the session's step has sent.
func (s *Session) statementTargets(ctx context.Context, frame uint64) (targets []StepTarget) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := statementsOf(ctx); !ok || frame != s.position.Frame || s.position.Reason == string(ReasonEnd) {
		return nil
	}
	for _, number := range s.statementsAt(s.position.Step) {
		targets = append(targets, StepTarget{Label: sqlFrameName(number), statement: number})
	}
	return targets
}

// sqlTargets returns the blocks that a step can enter from the innermost frame of SQL.
func (s *Session) sqlTargets(ctx context.Context, depth int) (targets []StepTarget, err error) {
	v, err := s.viewSQL(ctx, depth)
	if err != nil || v.answer.walk == nil {
		return nil, err
	}
	s.mu.Lock()
	isInnermost := depth+1 == len(v.frame.pathIn(v.answer))
	s.mu.Unlock()
	if !isInnermost {
		return nil, nil
	}
	for _, id := range v.answer.walk.children(v.path) {
		name := v.frame.nameOf(v.answer, depth+1, sqlPlace{block: id})
		targets = append(targets, StepTarget{Label: name})
	}
	return targets, nil
}

// StepInto steps into the call, the statement or the block with an index of StepTargets. If a call runs none of the
// program's lines, the program stops at the next line, or in the statement that the line has sent.
func (s *Session) StepInto(ctx context.Context, index int) error {
	frame := s.Position().Frame
	if f := s.currentSQL(); f != nil {
		s.mu.Lock()
		frame = firstSQLFrame + uint64(max(len(f.path), 1)-1)
		s.mu.Unlock()
	}
	targets, err := s.StepTargets(ctx, frame)
	if err != nil {
		return err
	}
	if index < 0 || index >= len(targets) {
		return fmt.Errorf("%w: unknown targetId; send one that stepInTargets returned for this position", ErrRequest)
	}
	switch number := targets[index].statement; {
	case IsSQLFrame(frame):
		_, _, err := s.moveInSQL(ctx, StepIn, index)
		return err
	case number > 0:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.state == StateRunning || !slices.Contains(s.statementsAt(s.position.Step), number) {
			return fmt.Errorf("%w: another client moved the session meanwhile", ErrRequest)
		}
		s.enterSQL(number, s.position.Step, false)
		return nil
	}
	return s.moveInto(ctx, StepIn, targets[index].Place)
}
