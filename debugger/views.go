package debugger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
	"glasshouse/sandbox"
)

const (
	maxValuePreview = 300 // bytes
	maxStackFrames  = 200 // the default; a client may request another number
)

// VariableView is a variable, or a part of an object, at one step.
type VariableView struct {
	Name         string `json:"name"`
	Value        string `json:"value" doc:"Nearly as repr writes it; no user code runs for it"`
	Type         string `json:"type"`
	Ref          uint64 `json:"ref,omitempty" doc:"The object's number, if it can be opened"`
	Length       *int64 `json:"length,omitempty"`
	Exactness    string `json:"exactness,omitempty" enum:"truncated,sampled,unread" doc:"If not all is recorded"`
	isAttributes bool   // the parts are attributes
	columns      int    // number of columns of a DataFrame: these parts come before the rows
	path         path   // from the object that this is a part of
}

// FrameView is a call at one step.
type FrameView struct {
	Frame     uint64         `json:"frame"`
	Function  string         `json:"function"`
	Line      int64          `json:"line_number"`
	Code      string         `json:"line_code"`
	Step      int            `json:"step" doc:"The last step in this frame"`
	Unread    string         `json:"unread,omitempty" doc:"Why the recording does not have the variables"`
	Exception string         `json:"exception,omitempty"`
	Variables []VariableView `json:"variables"`
	Total     int            `json:"total_variables"`
}

// StepView is one step with its calls and variables.
type StepView struct {
	Step    int            `json:"step"`
	Steps   int            `json:"total_steps"`
	IsEnd   bool           `json:"is_end,omitempty" doc:"The end: step is total_steps + 1, after the last line"`
	Lane    string         `json:"lane" doc:"The thread or asyncio task"`
	LaneID  uint64         `json:"lane_id"`
	Frames  []FrameView    `json:"frames" doc:"Innermost first"`
	Globals []VariableView `json:"globals"`
	Total   int            `json:"total_globals"`
	Source  []SourceView   `json:"source"`
	Edits   []sandbox.Edit `json:"edits,omitempty" doc:"Changes that a person made in the debugger at this step"`
}

// ObjectView is the contents of an object at one step.
type ObjectView struct {
	VariableView
	Exactness string         `json:"exactness" enum:"exact,truncated,sampled,unread" doc:"What the recording has"`
	Version   uint64         `json:"version"`
	Items     []VariableView `json:"items"`
	Kept      int            `json:"kept" doc:"Number of items in the recording; length is the object's own"`
	Table     *TableView     `json:"table,omitempty" doc:"The recorded rows of a DataFrame or Series"`
}

// TableView is a DataFrame or Series with a page of its recorded rows.
type TableView struct {
	Columns []ColumnView `json:"columns"`
	Rows    []RowView    `json:"rows"`
	Kept    int          `json:"kept" doc:"Number of rows in the recording; length is the object's own"`
	Total   int          `json:"total_columns" doc:"Number of columns of the object; its first were recorded"`
}

// ColumnView is the description of a column.
type ColumnView struct {
	Name    string `json:"name"`
	Type    string `json:"dtype"`
	Missing int64  `json:"missing" doc:"Number of missing values; -1 if they were not counted"`
}

// RowView is a row: its label in the index, and the value of each column.
type RowView struct {
	Label string   `json:"label"`
	Cells []string `json:"cells"`
}

// page returns at most count items of list, from start on.
func page[T any](list []T, start, count int) []T {
	start = min(max(start, 0), len(list))
	return list[start:min(start+max(count, 0), len(list))]
}

// viewer makes views of one state.
type viewer struct {
	state *recording.State
	table *recording.Table
}

// viewAt returns a viewer of a step.
func viewAt(reader *recording.Reader, step int) (viewer, error) {
	s, err := reader.State(step)
	return viewer{s, reader.Table()}, err
}

func (w viewer) variable(name string, v recording.Value) VariableView {
	out := VariableView{Name: name, Value: w.state.Preview(w.table, v, maxValuePreview),
		Type: w.state.TypeOf(w.table, v)}
	o := w.state.Objects[v.Object]
	if v.Tag == recording.TagObject && o != nil && o.Exactness != recording.Exact {
		out.Exactness = o.Exactness.String()
	}
	if v.Tag == recording.TagObject && o != nil && isOpenable(o) {
		out.Ref = o.Number
		if o.Length >= 0 {
			length := o.Length
			out.Length, out.isAttributes = &length, o.Form == recording.Attributes
		}
		if f, ok := o.DataFrame(); ok && !isSeries(out.Type) {
			out.columns = len(f.Columns)
		}
	}
	return out
}

// isOpenable reports whether the recording may have parts of an object.
func isOpenable(o *recording.Object) bool {
	return o.Form != recording.Opaque && (o.Form < recording.Described || len(o.Values) > 1)
}

// scope returns a page of a frame's variables by name, or with frame 0 of the namespace's without definitions, and the
// number of all.
func (w viewer) scope(frame uint64, start, count int) ([]VariableView, int, error) {
	values := w.state.Globals
	if frame != 0 {
		f := w.state.Frames[frame]
		if f == nil {
			return nil, 0, fmt.Errorf("frame %d: %w", frame, recording.ErrNoFrame)
		}
		values = f.Variables
	}
	names := slices.SortedFunc(maps.Keys(values),
		func(a, b uint64) int { return cmp.Compare(w.table.Name(a), w.table.Name(b)) })
	if frame == 0 {
		names = slices.DeleteFunc(names, func(n uint64) bool { return w.state.IsDefinition(w.table, values[n]) })
	}
	out := []VariableView{}
	for _, n := range page(names, start, count) {
		out = append(out, w.variable(w.table.Name(n), values[n]))
	}
	return out, len(names), nil
}

// object returns an object with a page of its contents.
func (w viewer) object(number uint64, start, count int) (ObjectView, error) {
	o := w.state.Objects[number]
	if o == nil {
		return ObjectView{}, fmt.Errorf("object %d: %w", number, recording.ErrNoObject)
	}
	out := ObjectView{
		VariableView: w.variable("", recording.Value{Tag: recording.TagObject, Object: number}),
		Exactness:    o.Exactness.String(), Version: o.Version, Items: []VariableView{},
	}
	parts := w.parts(o, out.Type)
	out.Kept = parts.count
	for i := max(start, 0); i < min(start+count, parts.count); i++ {
		out.Items = append(out.Items, parts.at(i))
	}
	if f, ok := o.DataFrame(); ok {
		out.Table = w.tableView(f, start, count)
	}
	return out, nil
}

// tableView returns a table with a page of its rows.
func (w viewer) tableView(f recording.DataFrame, start, count int) *TableView {
	out := &TableView{Columns: []ColumnView{}, Rows: []RowView{}, Kept: len(f.Rows), Total: f.TotalColumns}
	for _, c := range f.Columns {
		out.Columns = append(out.Columns, ColumnView{w.plainLabel(c.Label), c.Type, c.Missing})
	}
	for _, row := range page(f.Rows, start, count) {
		cells := []string{}
		for _, cell := range row.Cells {
			cells = append(cells, w.state.Preview(w.table, cell, maxValuePreview))
		}
		out.Rows = append(out.Rows, RowView{w.plainLabel(row.Label), cells})
	}
	return out
}

// frames returns the calls of the current step, innermost first, with at most limit variables each.
func (w viewer) frames(source []string, limit int) []FrameView {
	out := []FrameView{}
	stack := w.state.Stack(w.state.Current)
	for _, f := range stack[:min(len(stack), maxStackFrames)] {
		view := FrameView{
			Frame: f.Number, Function: w.table.FunctionName(f.Code), Line: f.Line, Code: program.Line(source,
				f.Line), Step: f.Step,
			Unread: w.table.Name(f.Unread),
		}
		if f.Raised != nil {
			view.Exception = w.state.ExceptionText(w.table, *f.Raised)
		}
		view.Variables, view.Total, _ = w.scope(f.Number, 0, limit) // the frame exists
		out = append(out, view)
	}
	return out
}

// View returns a step with at most limit variables of each scope.
func (r *Recording) View(step, limit int) (out StepView, err error) {
	err = r.journal.Read(func(reader *recording.Reader) error {
		w, err := viewAt(reader, step)
		if err == nil {
			out = r.view(w, reader.Steps(), limit)
		}
		return err
	})
	return out, err
}

// maxViewsBytes is the approximate size of views from which on Views adds no further one. 24 steps of an ordinary
// program have a tenth of it; one step of a deep recursion with many variables can have several times as much.
const maxViewsBytes = 2 << 20

// Views returns at most count steps from a step on, each as View does, without steps that were lost. It returns fewer
// if they are large; next is then the step to go on with, and 0 otherwise.
func (r *Recording) Views(ctx context.Context, from, count, limit int) (out []StepView, next int, err error) {
	out = []StepView{}
	err = r.journal.Read(func(reader *recording.Reader) error {
		bytes := 0
		err := reader.States(from, from+count-1, func(s *recording.State) bool {
			if bytes > maxViewsBytes {
				next = s.Step
			}
			if next > 0 || ctx.Err() != nil {
				return false
			}
			view := r.view(viewer{s, reader.Table()}, reader.Steps(), limit)
			bytes += view.size()
			out = append(out, view)
			return true
		})
		return errors.Join(err, ctx.Err())
	})
	return out, next, err
}

// size returns the approximate size of a view in bytes.
func (v StepView) size() (bytes int) {
	const perItem = 100
	add := func(list []VariableView) {
		for _, variable := range list {
			bytes += perItem + len(variable.Name) + len(variable.Value) + len(variable.Type)
		}
	}
	add(v.Globals)
	for _, frame := range v.Frames {
		bytes += perItem + len(frame.Code)
		add(frame.Variables)
	}
	return bytes
}

// view returns the step of a viewer. steps is the number of the recording's last step.
func (r *Recording) view(w viewer, steps, limit int) StepView {
	out := StepView{
		Step: w.state.Step, Steps: steps, IsEnd: w.state.Step > steps,
		Frames: w.frames(r.Source, limit), Edits: r.EditsAt(w.state.Step),
	}
	out.Globals, out.Total, _ = w.scope(0, 0, limit) // the namespace exists
	f := w.state.CurrentFrame()
	out.Lane, out.LaneID = w.table.ThreadName(f.Thread), f.Thread
	out.Source = SourceContext(r.Source, f.Line)
	return out
}

// Scope returns a page of a frame's variables at a step, or with frame 0 of the namespace's, and the number of all.
func (r *Recording) Scope(step int, frame uint64, start, count int) (list []VariableView, total int, err error) {
	err = r.journal.Read(func(reader *recording.Reader) error {
		w, err := viewAt(reader, step)
		if err == nil {
			list, total, err = w.scope(frame, start, count)
		}
		return err
	})
	return list, total, err
}

// Object returns an object at a step with a page of its contents.
func (r *Recording) Object(step int, number uint64, start, count int) (out ObjectView, err error) {
	err = r.journal.Read(func(reader *recording.Reader) error {
		w, err := viewAt(reader, step)
		if err == nil {
			out, err = w.object(number, start, count)
		}
		return err
	})
	return out, err
}

// Resolve returns the variable with a name at a step: in the current frame, or else in the namespace.
func (r *Recording) Resolve(step int, name string) (v Variable, err error) {
	err = r.journal.Read(func(reader *recording.Reader) error {
		s, err := reader.State(step)
		if err == nil {
			v = s.Resolve(reader.Table(), name)
		}
		return err
	})
	return v, err
}

// sourceText joins the program's lines.
func (r *Recording) sourceText() string { return strings.Join(r.Source, "\n") }
