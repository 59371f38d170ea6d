package debugger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	viewPreview = 300
	around      = 3 // lines of source on each side
	maxStack    = 200
)

// VariableView is a variable, or a part of an object, at one step.
type VariableView struct {
	Name   string `json:"name"`
	Value  string `json:"value" doc:"Nearly as repr writes it; no code of the object's ran"`
	Type   string `json:"type"`
	Ref    uint64 `json:"ref,omitempty" doc:"The object's number, where it can be opened"`
	Length *int64 `json:"length,omitempty"`
	named  bool   // its parts are attributes
}

// FrameView is a call at one step.
type FrameView struct {
	Frame     uint64         `json:"frame"`
	Function  string         `json:"function"`
	Line      int64          `json:"line_number"`
	Code      string         `json:"line_code"`
	Step      int            `json:"step" doc:"The last step in this frame"`
	Unread    string         `json:"unread,omitempty" doc:"Why its variables are not in the recording"`
	Exception string         `json:"exception,omitempty"`
	Variables []VariableView `json:"variables"`
	Total     int            `json:"total_variables"`
}

// StepView is one step whole.
type StepView struct {
	Step    int            `json:"step"`
	Steps   int            `json:"total_steps"`
	Lane    string         `json:"lane" doc:"The thread or task"`
	LaneID  uint64         `json:"lane_id"`
	Frames  []FrameView    `json:"frames" doc:"Innermost first"`
	Globals []VariableView `json:"globals"`
	Total   int            `json:"total_globals"`
	Source  []SourceView   `json:"source"`
}

// SourceView is one line of the program.
type SourceView struct {
	Line    int64  `json:"line_number"`
	Code    string `json:"line_code"`
	Current bool   `json:"current,omitempty"`
}

// ObjectView is what an object holds at one step.
type ObjectView struct {
	VariableView
	Exactness string         `json:"exactness" enum:"exact,truncated,sampled,unread" doc:"How much of it the recording has"`
	Version   uint64         `json:"version"`
	Items     []VariableView `json:"items"`
	Kept      int            `json:"kept" doc:"Items that the recording has; length tells how many there were"`
}

// ChangeView is one moment of a variable's life.
type ChangeView struct {
	Seen     int    `json:"seen_at" doc:"The first step on whose arrival it was so"`
	Step     int    `json:"step" doc:"The step whose line did it; 0 where it was so before the first"`
	Line     int64  `json:"line_number"`
	Code     string `json:"line_code"`
	Function string `json:"function,omitempty"`
	Value    string `json:"value,omitempty"`
	Type     string `json:"type,omitempty"`
	Gone     bool   `json:"gone,omitempty"`
	Frame    uint64 `json:"frame"`
}

func (s *State) variable(t *Table, name string, v Value) VariableView {
	out := VariableView{Name: name, Value: s.Preview(t, v, viewPreview), Type: s.TypeOf(t, v)}
	if o := s.Objects[v.Object]; v.Tag == TagObject && o != nil && o.Form != Opaque {
		out.Ref = o.Number
		if o.Length >= 0 {
			length := o.Length
			out.Length, out.named = &length, o.Form == Attributes
		}
	}
	return out
}

// Scope returns the variables of a frame, or with 0 of the namespace, by name; and how
// many there are in all.
func (s *State) Scope(t *Table, frame uint64, start, count int) ([]VariableView, int, error) {
	values := s.Globals
	if frame != 0 {
		f := s.Frames[frame]
		if f == nil {
			return nil, 0, fmt.Errorf("frame %d: %w", frame, ErrNoFrame)
		}
		values = f.Variables
	}
	names := slices.SortedFunc(maps.Keys(values), func(a, b uint64) int { return strings.Compare(t.Name(a), t.Name(b)) })
	if frame == 0 {
		names = slices.DeleteFunc(names, func(n uint64) bool { return hidden(s, t, values[n]) })
	}
	out := []VariableView{}
	for _, n := range page(names, start, count) {
		out = append(out, s.variable(t, t.Name(n), values[n]))
	}
	return out, len(names), nil
}

func page[T any](list []T, start, count int) []T {
	start = min(max(start, 0), len(list))
	return list[start:min(start+max(count, 0), len(list))]
}

// Contents returns what an object holds.
func (s *State) Contents(t *Table, number uint64, start, count int) (ObjectView, error) {
	o := s.Objects[number]
	if o == nil {
		return ObjectView{}, fmt.Errorf("object %d: %w", number, ErrNoObject)
	}
	out := ObjectView{VariableView: s.variable(t, "", Value{Tag: TagObject, Object: number}), Exactness: o.Exactness.String(), Version: o.Version, Items: []VariableView{}}
	var all []VariableView
	for i := 0; i < len(o.Values); i++ {
		name, v := fmt.Sprint(i), o.Values[i]
		if o.Form > Items {
			if i+1 >= len(o.Values) {
				break
			}
			name, v = s.Preview(t, o.Values[i], viewPreview), o.Values[i+1]
			if o.Form != Pairs && o.Values[i].Tag == TagText {
				name = o.Values[i].Text
			}
			i++
		}
		all = append(all, VariableView{Name: name})
		if n := len(all) - 1; n >= start && n < start+count {
			all[n] = s.variable(t, name, v)
		}
	}
	out.Kept = len(all)
	out.Items = append(out.Items, page(all, start, count)...)
	return out, nil
}

// Frames returns the calls that a frame is in, innermost first.
func (s *State) frameViews(t *Table, source []string, limit int) []FrameView {
	out := []FrameView{}
	stack := s.Stack(s.Current)
	for _, f := range stack[:min(len(stack), maxStack)] {
		code := t.Code(f.Code)
		view := FrameView{Frame: f.Number, Function: t.Name(code.Name), Line: f.Line, Code: SourceLine(source, f.Line), Step: f.Step, Unread: t.Name(f.Unread)}
		if f.Raised != nil {
			view.Exception = s.Failure(t, *f.Raised)
		}
		view.Variables, view.Total, _ = s.Scope(t, f.Number, 0, limit) // the frame is there
		out = append(out, view)
	}
	return out
}

// View returns a step whole, with limit variables of each scope.
func (j *Journal) View(step int, source []string, limit int) (StepView, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	s, err := j.state(step)
	if err != nil {
		return StepView{}, err
	}
	t := &j.table
	out := StepView{Step: step, Steps: j.steps(), Frames: s.frameViews(t, source, limit), Source: []SourceView{}}
	out.Globals, out.Total, _ = s.Scope(t, 0, 0, limit)
	f := s.Frames[s.Current]
	out.Lane, out.LaneID = t.Thread(f.Lane).Name, f.Lane
	out.Source = Around(source, f.Line)
	return out, nil
}

// Around returns a line of the program and those beside it.
func Around(source []string, line int64) []SourceView {
	out := []SourceView{}
	for n := max(1, line-around); n <= min(int64(len(source)), line+around); n++ {
		out = append(out, SourceView{n, SourceLine(source, n), n == line})
	}
	return out
}

// Scope returns a scope's variables at a step.
func (j *Journal) Scope(step int, frame uint64, start, count int) (list []VariableView, total int, err error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	s, err := j.state(step)
	if err != nil {
		return nil, 0, err
	}
	return s.Scope(&j.table, frame, start, count)
}

// Contents returns what an object holds at a step.
func (j *Journal) Contents(step int, number uint64, start, count int) (ObjectView, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	s, err := j.state(step)
	if err != nil {
		return ObjectView{}, err
	}
	return s.Contents(&j.table, number, start, count)
}

// Resolve says which variable a name is at a step: its frame's, or the namespace's.
func (j *Journal) Resolve(step int, name string) (Variable, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	s, err := j.state(step)
	if err != nil {
		return Variable{}, err
	}
	if f := s.Frames[s.Current]; f != nil {
		if _, ok := f.Variables[j.table.byName[name]]; ok {
			return Variable{f.Number, name}, nil
		}
	}
	return Variable{0, name}, nil
}

// Changes returns the changes of a variable that were seen from a step on, limit at the
// most; with last, only the last one until that step.
func (j *Journal) Changes(v Variable, step, limit int, last bool, source []string) ([]ChangeView, error) {
	j = j.still()
	out := []ChangeView{}
	show := func(s *State, c Change) ChangeView {
		view := ChangeView{
			Seen: c.Seen, Step: c.By, Line: c.Line, Code: SourceLine(source, c.Line), Function: j.table.Name(j.table.Code(c.Code).Name), Gone: c.Gone, Frame: v.Frame,
		}
		if !c.Gone {
			view.Value, view.Type = s.Preview(&j.table, c.Value, viewPreview), s.TypeOf(&j.table, c.Value)
		}
		return view
	}
	chunks := slices.Clone(j.all())
	if last {
		slices.Reverse(chunks)
	}
	for _, c := range chunks {
		var err error
		switch {
		case last && c.First <= step:
			err = j.latest(c, v, step, func(s *State, seen Change) { out = append(out[:0], show(s, seen)) })
		case !last && c.Last >= step:
			err = j.changes(c, v, step, j.steps(), func(s *State, seen Change) bool {
				if seen.Seen >= step {
					out = append(out, show(s, seen))
				}
				return len(out) < limit
			})
		}
		if err != nil || last && len(out) > 0 || len(out) >= limit {
			return out, err
		}
	}
	return out, nil
}

// FirstWhere returns the first step from a step on, in a function where one is named,
// on whose arrival a condition held; 0 where it never did. unknown counts the steps
// where the recording does not tell.
func (j *Journal) FirstWhere(ctx context.Context, c *Condition, from int, function string) (step, unknown int, err error) {
	j = j.still()
	for _, chunk := range j.all() {
		if chunk.Last < from {
			continue
		}
		err := j.replayFrom(chunk, from-1, func(*State) bool { return true }, func(s *State, rec *Record) bool {
			if ctx.Err() != nil {
				return false
			}
			if rec.Kind != KindLine || s.Step < from {
				return true
			}
			if function != "" && j.table.Name(j.table.Code(s.Frames[s.Current].Code).Name) != function {
				return true
			}
			holds, err := c.Holds(s, &j.table)
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
	return 0, unknown, nil
}
