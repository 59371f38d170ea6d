package debugger

import (
	"context"
	"errors"
	"slices"

	"glasshouse/debugger/expr"
	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
	"glasshouse/sandbox"
)

// ChangeView is one change of a variable.
type ChangeView struct {
	Seen     int    `json:"seen_at" doc:"The first step with the new value; total_steps + 1 is the end"`
	Step     int    `json:"step" doc:"The step whose line made the change; 0 if earlier than the frame's first step"`
	Line     int64  `json:"line_number"`
	Code     string `json:"line_code"`
	Function string `json:"function,omitempty"`
	Value    string `json:"value,omitempty"`
	Type     string `json:"type,omitempty"`
	Gone     bool   `json:"gone,omitempty"`
	Frame    uint64 `json:"frame"`

	Edit *sandbox.Edit `json:"edit,omitempty" doc:"A person made the change in the debugger, and not the line"`
}

func (r *Recording) changeView(t *recording.Table, s *recording.State, v Variable, c recording.Change) ChangeView {
	view := ChangeView{
		Seen: c.SeenAt, Step: c.MadeBy, Line: c.Line, Code: program.Line(r.Source,
			c.Line), Function: t.FunctionName(c.Code),
		Gone: c.Deleted, Frame: v.Frame,
	}
	if c.Edit > 0 {
		view.Edit = r.edit(c.Edit, c.SeenAt)
	}
	if !c.Deleted {
		view.Value, view.Type = s.Preview(t, c.Value, maxValuePreview), s.TypeOf(t, c.Value)
	}
	return view
}

// Changes returns at most limit changes of a variable that are seen at or after a step.
func (r *Recording) Changes(v Variable, from, limit int) ([]ChangeView, error) {
	reader := r.journal.Snapshot()
	out := []ChangeView{}
	for _, c := range reader.Chunks() {
		if c.Last+1 < from || len(out) >= limit {
			continue
		}
		err := reader.EachChange(c, v, from, reader.Steps()+1, func(s *recording.State, seen recording.Change) bool {
			if seen.SeenAt >= from {
				out = append(out, r.changeView(reader.Table(), s, v, seen))
			}
			return len(out) < limit
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// FramesWith returns the first frames, at most most, that set a variable with a name.
func (r *Recording) FramesWith(name string, most int) (frames []uint64, err error) {
	reader := r.journal.Snapshot()
	number := reader.Table().NumberOf(name)
	for _, c := range reader.Chunks() {
		if !c.SetsLocal(number) || len(frames) >= most {
			continue
		}
		err := reader.Replay(c, func(s *recording.State, rec *recording.Record) bool {
			if rec.Kind == recording.KindSet && rec.Name == number && !slices.Contains(frames, s.Current) {
				frames = append(frames, s.Current)
			}
			return len(frames) < most
		})
		if err != nil {
			return nil, err
		}
	}
	return frames, nil
}

// LastChange returns the last change of a variable that is seen at or before a step. The list is empty if there is
// none.
func (r *Recording) LastChange(v Variable, step int) ([]ChangeView, error) {
	reader, out := r.journal.Snapshot(), []ChangeView{}
	_, err := reader.LastChange(v, step, func(s *recording.State, seen recording.Change) {
		out = append(out[:0], r.changeView(reader.Table(), s, v, seen))
	})
	return out, err
}

// FindCondition returns the first step, from a step on, at which a condition holds, and 0 if there is none. If function
// is not "", only its steps count. The end of the run counts, which has what the last line set. unknown is the
// number of steps at which the condition could not be evaluated.
func (r *Recording) FindCondition(ctx context.Context, c *expr.Condition, from int, function string) (step,
	unknown int, err error) {
	reader := r.journal.Snapshot()
	t := reader.Table()
	for _, chunk := range reader.Chunks() {
		if chunk.Last < from {
			continue
		}
		err := reader.ReplayAfter(chunk, from-1, nil, func(s *recording.State, rec *recording.Record) bool {
			if ctx.Err() != nil {
				return false
			}
			if rec.Kind != recording.KindLine || s.Step < from {
				return true
			}
			if function != "" && t.FunctionName(s.CurrentFrame().Code) != function {
				return true
			}
			holds, err := c.Holds(s, t)
			if err != nil {
				unknown++
			} else if holds {
				step = s.Step
			}
			return step == 0
		})
		if err = errors.Join(err, ctx.Err()); err != nil || step > 0 {
			return step, unknown, err
		}
	}
	if end := reader.End(); from <= end && holdsAtEnd(reader, c, function) {
		return end, unknown, nil
	}
	return 0, unknown, nil
}
