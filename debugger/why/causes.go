package why

import (
	"fmt"
	"strings"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
	"glasshouse/sandbox"
)

const (
	maxCauses    = 12
	causePreview = 160 // bytes of a value
)

// codeStep is a step and its line.
type codeStep struct {
	step int
	line int64
}

// causes returns the steps that a step depends on, as lines of text: the last changes of the variables that the step's
// line names, then the changes of the variables that those lines name, and so on. It compares names and does not parse
// the code. So it may list too many steps, and it misses values that passed through a library.
func (r Run) causes(failed codeStep) ([]string, error) {
	type cause struct {
		frame  uint64
		change recording.Change
	}
	reader, table := r.Reader, r.Reader.Table()
	listed, queued := map[cause]bool{}, map[int]bool{failed.step: true}
	queue := []codeStep{failed}
	var out []string
	for len(queue) > 0 && len(out) < maxCauses {
		current := queue[0]
		queue = queue[1:]
		s, err := reader.State(current.step)
		if err != nil {
			return out, nil // the step was lost
		}
		for _, name := range program.NamesIn(program.Line(r.Program.Source, current.line)) {
			if s.CurrentFrame() == nil {
				continue
			}
			v := s.Resolve(table, name)
			var c recording.Change
			keep := func(_ *recording.State, seen recording.Change) { c = seen }
			found, err := reader.LastChange(v, current.step, keep)
			if err != nil {
				return nil, err
			}
			key := cause{v.Frame, recording.Change{SeenAt: c.SeenAt, Object: c.Object, Value: c.Value}}
			if !found || listed[key] || len(out) >= maxCauses || s.IsDefinition(table, c.Value) {
				continue
			}
			listed[key] = true
			if e := r.edit(c.Edit, c.SeenAt); e != nil {
				out = append(out, "  "+describeEdit(*e))
				continue
			}
			at, call := codeStep{c.MadeBy, c.Line}, ""
			if c.MadeBy == 0 { // an argument, or a variable of an earlier run
				if at, call = callOf(reader, v.Frame, c.SeenAt); at.step == 0 {
					out = append(out, fmt.Sprintf("  %s existed before", name))
					continue
				}
			}
			seen, err := reader.State(c.SeenAt)
			if err != nil {
				continue
			}
			code := strings.TrimSpace(program.Line(r.Program.Source, at.line))
			out = append(out, fmt.Sprintf("  step %d, line %d: %s%s   # %s = %s",
				at.step, at.line, code, call, name, seen.Preview(table, c.Value, causePreview)))
			if !queued[at.step] {
				queued[at.step] = true
				queue = append(queue, at)
			}
		}
	}
	return out, nil
}

// callOf returns the step whose line called a frame that exists at a step, and a note that names the function.
func callOf(reader *recording.Reader, frame uint64, step int) (at codeStep, note string) {
	s, err := reader.State(step)
	if err != nil || s.Frames[frame] == nil {
		return at, ""
	}
	f := s.Frames[frame]
	if caller := s.Frames[f.Parent]; caller != nil {
		at = codeStep{caller.Step, caller.Line}
	}
	return at, " (calls " + reader.Table().FunctionName(f.Code) + ")"
}

// describeEdits returns one line of text for each edit.
func (r Run) describeEdits() (out []string) {
	for _, e := range r.Edits {
		out = append(out, "  "+describeEdit(e))
	}
	return out
}

func describeEdit(e sandbox.Edit) string {
	var changes []string
	for _, c := range e.Changes {
		changes = append(changes, c.Name+" = "+program.Clip(c.Value, causePreview))
	}
	text := fmt.Sprintf("step %d, line %d: %s   # by %s in the debugger", e.Step, e.Line,
		program.Clip(e.Code, causePreview), e.By())
	if len(changes) > 0 {
		text += "; " + strings.Join(changes, "; ")
	}
	return text
}
