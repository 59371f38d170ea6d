package debugger

import (
	"fmt"
	"slices"

	"glasshouse/debugger/recording"
)

// begin finds what the question is about.
func (w *slicer) begin(s *recording.State, step int) error {
	if w.question.Name == "" || w.question.Name == "result" &&
		s.Globals[w.table.NumberOf("result")] == (recording.Value{}) {
		return w.beginResult()
	}
	v, value, at, err := w.variableAt(s, w.question.Name, step)
	if err == nil {
		w.out.Step = at
		state, err := w.stateAt(at)
		if err != nil {
			return err
		}
		w.out.Value, w.out.Type = state.Preview(w.table, value, maxValuePreview), state.TypeOf(w.table, value)
		w.follow(v, at)
		return nil
	}
	names := namesIn(w.question.Name)
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
func (w *slicer) variableAt(s *recording.State, name string, step int) (Variable, recording.Value, int, error) {
	number := w.table.NumberOf(name)
	if f := s.CurrentFrame(); f != nil {
		if value, ok := f.Variables[number]; ok && number != 0 {
			return Variable{f.Number, name}, value, step, nil
		}
	}
	if value, ok := s.Globals[number]; ok && number != 0 {
		return Variable{0, name}, value, step, nil
	}
	// A local of a call that has ended: as it was when its frame had its last line.
	searched := 0
	for _, c := range slices.Backward(w.reader.Chunks()) {
		if c.First > step || !c.SetsName(number) {
			continue
		}
		if searched++; searched > maxNameChunks {
			break
		}
		var found Variable
		var value recording.Value
		at := 0
		err := w.reader.Replay(c, func(s *recording.State, rec *recording.Record) bool {
			f := s.CurrentFrame()
			switch {
			case s.Step > step:
				return false
			case rec.Kind == recording.KindSet && rec.Name == number:
				found = Variable{f.Number, name}
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
	return Variable{}, recording.Value{}, 0, fmt.Errorf("%w: %s at step %d", ErrNoVariable, name, step)
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
				w.out.Value, w.out.Type = s.Preview(w.table, rec.Value, maxValuePreview), s.TypeOf(w.table, rec.Value)
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
		return fmt.Errorf("%w: the run ended without a result", ErrNoVariable)
	}
	w.out.Name = "result"
	w.visit(at.step, w.reader.Steps()+1, WhyStep{Role: "returned", Value: w.out.Value, Type: w.out.Type})
	return nil
}
