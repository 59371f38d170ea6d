package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
)

// Bounds of the origin of a value in a hover: an editor shows it while the pointer rests.
const (
	maxOriginNodes  = 4 // steps that are looked at for findings
	maxOriginVisits = 6
	MaxOriginBytes  = 160 // of one line of text
)

// Origin returns at most two lines of text about the variable of a name on arrival at a step, in a frame or in the
// namespace.
func (r Run) Origin(ctx context.Context, name string, step int, frame uint64) (out []string) {
	w := r.slicer(ctx, Question{Name: name, Step: step})
	w.maxNodes, w.maxVisits = maxOriginNodes, maxOriginVisits
	s, err := w.stateAt(step)
	if err != nil {
		return nil
	}
	v := recording.Variable{Frame: cmp.Or(frame, s.Current), Name: name}
	if _, ok := s.ValueOf(w.table, v); !ok {
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
	out = append(out, program.Clip(origin, MaxOriginBytes))
	if made.By != "" {
		return out
	}
	findings := slices.SortedStableFunc(slices.Values(w.out.Findings),
		func(a, b Finding) int { return cmp.Compare(b.Score, a.Score) })
	if len(findings) > 0 && findings[0].Score >= scoreLikely {
		text := fmt.Sprintf("check line %d: %s", findings[0].Line, findings[0].Text)
		out = append(out, program.Clip(text, MaxOriginBytes))
	} else if reads := made.readsText(); reads != "" {
		out = append(out, program.Clip("read "+reads, MaxOriginBytes))
	}
	return out
}
