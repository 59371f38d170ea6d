package why

import (
	"fmt"
	"slices"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
)

// maxResultBytes bounds the text of the value that is explained.
const maxResultBytes = 300

// resultName is the global variable that is the result of a run, whatever its last expression is.
const resultName = "__result__"

// isSet reports whether a global variable has a value.
func (w *slicer) isSet(s *recording.State, name string) bool {
	number := w.table.NumberOf(name)
	return number != 0 && s.Globals[number] != (recording.Value{})
}

// begin finds what the question is about.
func (w *slicer) begin(s *recording.State, step int) error {
	name := w.question.Name
	if name == "" || name == "result" && !w.isSet(s, "result") {
		if !w.isSet(s, resultName) {
			return w.beginResult()
		}
		name, w.out.Name = resultName, "result"
	}
	v, value, at, err := w.variableAt(s, name, step)
	if err == nil {
		w.out.Step = at
		state, err := w.stateAt(at)
		if err != nil {
			return err
		}
		w.out.Value, w.out.Type = state.Preview(w.table, value, maxResultBytes), state.TypeOf(w.table, value)
		w.follow(v, at)
		frame := state.Frames[v.Frame]
		w.later = append(w.later, func() { w.neverRan(v, frame) })
		return nil
	}
	names := program.NamesIn(w.question.Name)
	found := false
	for _, name := range names {
		if v, _, at, nameErr := w.variableAt(s, name, step); nameErr == nil && name != w.question.Name {
			found = true
			w.follow(v, at)
		}
	}
	if !found {
		return err
	}
	return nil
}

// ErrNoVariable means that a run has no variable of a name at a step.
var ErrNoVariable = fmt.Errorf("the run has no such variable")

// variableAt finds a variable by name: in the frame of the step, in the namespace, or else in the function that set it
// last.
func (w *slicer) variableAt(
	s *recording.State, name string, step int,
) (recording.Variable, recording.Value, int, error) {
	number := w.table.NumberOf(name)
	if f := s.CurrentFrame(); f != nil {
		if value, ok := f.Variables[number]; ok && number != 0 {
			return recording.Variable{Frame: f.Number, Name: name}, value, step, nil
		}
	}
	if value, ok := s.Globals[number]; ok && number != 0 {
		return recording.Variable{Name: name}, value, step, nil
	}
	// A local of a call that has ended: as it was when its frame had its last line.
	searched := 0
	for _, c := range slices.Backward(w.reader.Chunks()) {
		if c.First > step || !c.SetsLocal(number) {
			continue
		}
		if searched++; searched > maxNameChunks {
			break
		}
		var found recording.Variable
		var value recording.Value
		at := 0
		err := w.reader.Replay(c, func(s *recording.State, rec *recording.Record) bool {
			f := s.CurrentFrame()
			switch {
			case s.Step > step:
				return false
			case rec.Kind == recording.KindSet && rec.Name == number:
				found = recording.Variable{Frame: f.Number, Name: name}
			case rec.Kind == recording.KindLine && f.Number == found.Frame:
				if v, ok := f.Variables[number]; ok {
					at, value = s.Step, v
				}
			}
			return true
		})
		if err != nil || at > 0 {
			return found, value, at, err
		}
	}
	return recording.Variable{}, recording.Value{}, 0, fmt.Errorf("%w: %s at step %d", ErrNoVariable, name, step)
}

// beginResult begins with the value of the last expression.
func (w *slicer) beginResult() error {
	chunks := w.reader.Chunks()
	var at codeStep
	for _, c := range slices.Backward(chunks) {
		var left *recording.Frame
		err := w.reader.Replay(c, func(s *recording.State, rec *recording.Record) bool {
			if rec.Kind == recording.KindReturn && left != nil && s.Current == 0 && left.Step > 0 &&
				w.table.FunctionName(left.Code) == recording.ModuleName {
				at = codeStep{left.Step, left.Line}
				w.out.Value, w.out.Type = s.Preview(w.table, rec.Value, maxResultBytes), s.TypeOf(w.table, rec.Value)
			}
			left = s.CurrentFrame()
			return true
		})
		if err != nil {
			return err
		}
		if at.step > 0 {
			break
		}
	}
	if at.step == 0 {
		return w.beginFailure()
	}
	w.out.Name = "result"
	w.visit(at.step, w.reader.Steps()+1, Step{Role: "returned", Value: w.out.Value, Type: w.out.Type})
	return nil
}

// beginFailure begins with the exception that ended the run.
func (w *slicer) beginFailure() error {
	failure, err := w.failure()
	if err == nil && failure == nil {
		err = fmt.Errorf("%w: the run ended without a result", ErrNoVariable)
	}
	if err != nil {
		return err
	}
	w.out.Name, w.out.Value, w.out.Type = "exception", failure.text, w.table.Name(failure.kind)
	w.visit(failure.step, failure.step+1, Step{Role: "raised", Value: w.out.Value, Type: w.out.Type})
	s, err := w.stateAt(failure.step)
	if err != nil {
		return err
	}
	for _, caller := range s.Stack(s.Current)[1:] {
		w.later = append(w.later, func() { w.visit(caller.Step, failure.step, Step{Role: "used"}) })
	}
	return nil
}

// failure returns the exception that left the program, with the step that raised it first, or nil. An exception that is
// raised again, as at the end of finally, is the same one.
func (w *slicer) failure() (*handled, error) {
	var raised, caught *handled
	var frame, code uint64
	hasLeft := false
	for _, c := range w.reader.Chunks() {
		if !c.Raises && raised == nil {
			continue
		}
		left := (*recording.Frame)(nil)
		err := w.reader.Replay(c, func(s *recording.State, rec *recording.Record) bool {
			switch rec.Kind {
			case recording.KindRaise:
				f := s.CurrentFrame()
				now := &handled{step: f.Step, line: f.Line, kind: f.Raised.Type,
					text: s.ExceptionText(w.table, *f.Raised)}
				if raised == nil && caught != nil && caught.kind == now.kind && caught.text == now.text &&
					frame == f.Number && code == f.Code {
					now = caught
				}
				if raised == nil {
					raised = now
				}
				frame, code = f.Number, f.Code
			case recording.KindHandled:
				if raised != nil {
					caught, raised = raised, nil
					frame, code = s.Current, s.CurrentFrame().Code
				}
			case recording.KindUnwind:
				if raised == nil && caught != nil && caught.kind == rec.Name && left != nil && left.Number == frame {
					raised = caught
				}
				hasLeft = left != nil && left.Parent == 0 && w.table.FunctionName(left.Code) == recording.ModuleName
			case recording.KindLine, recording.KindPush, recording.KindLost:
				hasLeft = false
			}
			left = s.CurrentFrame()
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	if !hasLeft {
		return nil, nil
	}
	return raised, nil
}
