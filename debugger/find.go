package debugger

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"glasshouse/debugger/expr"
	"glasshouse/debugger/recording"
	"glasshouse/policy"
)

// FindConditionBefore returns the last step before a step at which a condition holds, and 0 if there is none. Like
// FindCondition it takes only the steps of a function, unless function is "". unknown is the number of steps after the
// found one at which the condition could not be evaluated.
func (r *Recording) FindConditionBefore(ctx context.Context, c *expr.Condition, before int, function string) (step,
	unknown int, err error) {
	reader := r.journal.Snapshot()
	t := reader.Table()
	if end := reader.End(); end < before && holdsAtEnd(reader, c, function) {
		return end, 0, nil
	}
	for _, chunk := range slices.Backward(reader.Chunks()) {
		if chunk.First >= before {
			continue
		}
		unknownAfter := 0 // of the chunk, after the step that was found last
		err := reader.Replay(chunk, func(s *recording.State, rec *recording.Record) bool {
			if ctx.Err() != nil {
				return false
			}
			if rec.Kind != recording.KindLine {
				return true
			}
			if s.Step >= before {
				return false
			}
			if function != "" && t.FunctionName(s.CurrentFrame().Code) != function {
				return true
			}
			holds, err := c.Holds(s, t)
			if err != nil {
				unknownAfter++
			} else if holds {
				step, unknownAfter = s.Step, 0
			}
			return true
		})
		unknown += unknownAfter
		if err = errors.Join(err, ctx.Err()); err != nil || step > 0 {
			return step, unknown, err
		}
	}
	return 0, unknown, nil
}

// holdsAtEnd reports whether a condition holds at the end of a complete recording, which belongs to no function.
func holdsAtEnd(reader *recording.Reader, c *expr.Condition, function string) bool {
	end := reader.End()
	if function != "" || end == reader.Steps() {
		return false
	}
	state, err := reader.State(end)
	if err != nil {
		return false
	}
	holds, err := c.Holds(state, reader.Table())
	return err == nil && holds
}

// UnknownName is a name in a condition that is not a variable at any step.
type UnknownName struct {
	Name    string `json:"name"`
	Nearest string `json:"nearest,omitempty" doc:"The variable that was probably meant"`
}

// UnknownNames returns the names in a condition that are not variables at any step of the recording. It leaves out
// private names of classes, which the recording has under another name.
func (r *Recording) UnknownNames(ctx context.Context, c *expr.Condition) ([]UnknownName, error) {
	reader := r.journal.Snapshot()
	t := reader.Table()
	wanted := map[uint64]string{}
	var out []UnknownName
	for _, name := range c.Names() {
		if strings.HasPrefix(name, "__") {
			continue
		}
		if number := t.NumberOf(name); number != 0 {
			wanted[number] = name
		} else {
			out = append(out, UnknownName{Name: name})
		}
	}
	seen := map[uint64]bool{}
	isNeeded := func() bool { return len(out) > 0 || len(wanted) > 0 }
	note := func(number uint64) {
		seen[number] = true
		delete(wanted, number)
	}
	for _, chunk := range reader.Chunks() {
		if !isNeeded() {
			return nil, nil
		}
		begin := func(s *recording.State) bool {
			for number := range s.Globals {
				note(number)
			}
			for _, frame := range s.Frames {
				for number := range frame.Variables {
					note(number)
				}
			}
			return true
		}
		err := reader.ReplayAfter(chunk, 0, begin, func(_ *recording.State, rec *recording.Record) bool {
			if rec.Kind == recording.KindSet || rec.Kind == recording.KindGlobal {
				note(rec.Name)
			}
			return isNeeded() && ctx.Err() == nil
		})
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
	}
	for _, name := range wanted {
		out = append(out, UnknownName{Name: name})
	}
	slices.SortFunc(out, func(a, b UnknownName) int { return strings.Compare(a.Name, b.Name) })
	for n := range out {
		out[n].Nearest = policy.Nearest(out[n].Name, func(yield func(string) bool) {
			for number := range maps.Keys(seen) {
				if !yield(t.Name(number)) {
					return
				}
			}
		})
	}
	return out, nil
}
