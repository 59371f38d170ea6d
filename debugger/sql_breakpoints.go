package debugger

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"glasshouse/debugger/expr"
	"glasshouse/sandbox/stages"
)

// maxSQLSources is how many statements of a session can have breakpoints.
const maxSQLSources = 100

// sqlBreakpoint stops a move through a statement at the stages that begin in a line.
type sqlBreakpoint struct {
	id, line  int
	text      string
	condition *expr.Condition // nil: always
}

// SetSQLBreakpoints replaces the breakpoints in the text of the statement with a number. They stop the moves through
// its stages.
func (s *Session) SetSQLBreakpoints(number int, list []LineBreakpoint) ([]BreakpointView, error) {
	bytes := 0
	for _, b := range list {
		bytes += len(b.Condition) + len(b.HitCondition) + len(b.LogMessage)
	}
	if err := checkSize(len(list), bytes); err != nil {
		return nil, err
	}
	q, err := s.statement(number)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, has := s.sqlBreakpoints[number]; !has && len(s.sqlBreakpoints) >= maxSQLSources && len(list) > 0 {
		return nil, fmt.Errorf("%w: %d statements have breakpoints, the maximum; remove those of one", ErrRequest,
			maxSQLSources)
	}
	ids := map[sqlBreakpoint]int{}
	for _, b := range s.sqlBreakpoints[number] {
		ids[sqlBreakpoint{line: b.line, text: b.text}] = b.id
	}
	out, kept := []BreakpointView{}, []sqlBreakpoint{}
	for _, given := range list {
		b := sqlBreakpoint{line: given.Line, text: given.Condition}
		if b.id = ids[b]; b.id == 0 {
			s.lastID++
			b.id = s.lastID
		}
		view := BreakpointView{ID: b.id, Line: b.line}
		switch lines := strings.Count(q.SQL, "\n") + 1; {
		case err != nil:
			view.Message = "the statement has not run yet"
		case b.line < 1 || b.line > lines:
			view.Message = "the statement has no such line"
		case given.HitCondition != "" || given.LogMessage != "":
			view.Message = "a breakpoint in a statement takes a condition only"
		default:
			b.condition, view.Message = stageCondition(given.Condition)
		}
		if view.Verified = view.Message == ""; view.Verified {
			kept = append(kept, b)
		}
		out = append(out, view)
	}
	if s.sqlBreakpoints == nil {
		s.sqlBreakpoints = map[int][]sqlBreakpoint{}
	}
	s.sqlBreakpoints[number] = kept
	if len(kept) == 0 {
		delete(s.sqlBreakpoints, number)
	}
	return out, nil
}

// stageCondition parses a condition about a stage. message says why it is none.
func stageCondition(text string) (c *expr.Condition, message string) {
	if strings.TrimSpace(text) == "" {
		return nil, ""
	}
	c, err := expr.Parse(text)
	if err != nil {
		return nil, shorten(err.Error(), maxReasonChars)
	}
	for _, name := range c.Names() {
		if !slices.Contains(stageNumbers, name) && !slices.Contains(stageTexts, name) {
			return nil, fmt.Sprintf("a stage has no %.30q: a condition may use %s", name,
				strings.Join(slices.Concat(stageNumbers, stageTexts), ", "))
		}
	}
	return c, ""
}

// hitIDs returns the breakpoints that stop at a stage. A condition about a number that is not known does not hold.
func hitIDs(s *stages.Stage, breakpoints []sqlBreakpoint) (ids []int) {
	if s == nil || len(breakpoints) == 0 {
		return nil
	}
	values := stageValues(s)
	for name, v := range values {
		if n, ok := v.(int64); ok {
			values[name] = big.NewInt(n)
		}
	}
	for _, b := range breakpoints {
		if b.line != s.FromLine {
			continue
		}
		if b.condition != nil {
			if holds, err := b.condition.HoldsFor(values); err != nil || !holds {
				continue
			}
		}
		ids = append(ids, b.id)
	}
	return ids
}

// find returns the next place with a breakpoint, or the one before, and its breakpoints; nil if there is none.
func (w *sqlWalk) find(from sqlPath, breakpoints []sqlBreakpoint, isBackward bool) (sqlPath, []int) {
	if len(breakpoints) == 0 {
		return nil, nil
	}
	all := w.all()
	at := slices.IndexFunc(all, func(p sqlPath) bool { return slices.Equal(p, from) })
	later := all[at+1:]
	if isBackward {
		later = slices.Clone(all[:max(at, 0)])
		slices.Reverse(later)
	}
	for _, path := range later {
		if ids := hitIDs(w.stage(path[len(path)-1]), breakpoints); len(ids) > 0 {
			return path, ids
		}
	}
	return nil, nil
}

// SQLBreakpointLines returns the lines from first to last of a statement at which one of its stages begins, as far as
// they are known.
func (s *Session) SQLBreakpointLines(number, first, last int) []int {
	lines := []int{}
	f := s.currentSQL()
	if f == nil || f.number != number {
		return lines
	}
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	default: // they are being computed
		return lines
	}
	for _, a := range f.answers {
		if a.stages == nil {
			continue
		}
		for _, b := range a.stages.Blocks {
			for _, stage := range b.Stages {
				if stage.FromLine >= first && stage.FromLine <= last {
					lines = append(lines, stage.FromLine)
				}
			}
		}
	}
	slices.SortFunc(lines, cmp.Compare[int])
	return slices.Compact(lines)
}
