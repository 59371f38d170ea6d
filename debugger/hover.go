package debugger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Bounds of the origin of a value in a hover: an editor shows it while the pointer rests.
const (
	maxHoverNodes  = 4 // steps that are looked at for findings
	maxHoverVisits = 6
	maxHoverBytes  = 160 // of one line
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
		origin = s.recording.originOf(ctx, expression, at, frame)
		return nil
	})
	return v, origin, err
}

// originOf returns at most two lines of text about the variable of a name on arrival at a step, in a frame or in the
// namespace.
func (r *Recording) originOf(ctx context.Context, name string, step int, frame uint64) (out []string) {
	w := r.slicer(ctx, WhyQuestion{Name: name, Step: step})
	w.maxNodes, w.maxVisits = maxHoverNodes, maxHoverVisits
	s, err := w.stateAt(step)
	if err != nil {
		return nil
	}
	v := Variable{cmp.Or(frame, s.Current), name}
	if _, ok := valueOf(s, w.table, v); !ok {
		v.Frame = 0
	}
	w.out.Step = step
	w.follow(v, step)
	w.run()
	if len(w.nodes) == 0 {
		if len(w.out.Earlier) > 0 {
			return []string{"was set before this run"}
		}
		return nil
	}
	made := w.nodes[0]
	for _, node := range w.nodes {
		w.check(node)
	}
	origin := fmt.Sprintf("line %d: %s", made.Line, made.Code)
	switch {
	case made.By != "":
		origin = fmt.Sprintf("set by %s in the debugger, at line %d: %s", made.By, made.Line, made.Code)
	case made.Role == "used":
		origin = fmt.Sprintf("an argument of the call in line %d: %s", made.Line, made.Code)
	}
	if made.Times > 1 {
		origin += fmt.Sprintf(" (ran %d times)", made.Times)
	}
	out = append(out, clip(origin, maxHoverBytes))
	if made.By != "" {
		return out
	}
	findings := slices.SortedStableFunc(slices.Values(w.out.Findings),
		func(a, b WhyFinding) int { return cmp.Compare(b.Score, a.Score) })
	if len(findings) > 0 && findings[0].Score >= scoreLikely {
		out = append(out, clip(fmt.Sprintf("check line %d: %s", findings[0].Line, findings[0].Text), maxHoverBytes))
	} else if reads := made.readsText(); reads != "" {
		out = append(out, clip("read "+reads, maxHoverBytes))
	}
	return out
}
