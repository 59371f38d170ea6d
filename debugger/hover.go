package debugger

import (
	"context"
	"strings"
)

// Hover returns the value of an expression in a frame, 0 for the current one, and lines of text that tell where the
// value of a variable comes from: the line that made it, and the most telling finding about that. It runs no code of
// the program.
func (s *Session) Hover(ctx context.Context, expression string, frame uint64) (ValueView, []string, error) {
	at, live, err := s.inspected()
	if err != nil {
		return ValueView{}, nil, err
	}
	expression = strings.TrimSpace(expression)
	recorded, err := s.evaluatePast(at, expression, frame)
	if err != nil {
		if live && identifier.MatchString(expression) { // a name that is not recorded, such as that of a module
			v, err := s.Evaluate(ctx, expression, frame, AnExpression)
			return v, nil, err
		}
		return ValueView{}, nil, err
	}
	s.mu.Lock()
	recorded.Name = expression
	v, err := s.valueView(recorded, reference{isScope: true, frame: frame})
	s.mu.Unlock()
	if err != nil || !identifier.MatchString(expression) {
		return v, nil, err
	}
	var origin []string
	err = search(ctx, func(ctx context.Context) error {
		origin = s.recording.explained().Origin(ctx, expression, at, frame)
		return nil
	})
	return v, origin, err
}
