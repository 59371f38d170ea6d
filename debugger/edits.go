package debugger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"glasshouse/debugger/recording"
	"glasshouse/sandbox"
)

// Bounds of the edits of one run.
const (
	maxEdits       = 1000
	maxEditChanges = 20   // variables of one edit
	maxEditChars   = 1000 // of its code
)

// Person is who sends a command: a user, with the name of the key.
type Person struct{ User, Key string }

type personKey struct{}

// WithPerson returns a context for the commands of a person. A Session records their changes with it.
func WithPerson(ctx context.Context, p Person) context.Context {
	return context.WithValue(ctx, personKey{}, p)
}

// editList is the list of a run's edits, in order.
type editList struct {
	mu   sync.Mutex
	list []sandbox.Edit
}

// AddEdit adds an edit. The service calls it for the edits of a past run; a Session adds those of its own run.
func (r *Recording) AddEdit(e sandbox.Edit) {
	r.edits.mu.Lock()
	r.edits.list = append(r.edits.list, e)
	r.edits.mu.Unlock()
	r.journal.SetEdit(e.Step, e.Number)
}

// Edits returns the edits of the run, in order.
func (r *Recording) Edits() []sandbox.Edit {
	r.edits.mu.Lock()
	defer r.edits.mu.Unlock()
	return slices.Clone(r.edits.list)
}

// EditsAt returns the edits at a step, in order.
func (r *Recording) EditsAt(step int) (out []sandbox.Edit) {
	for _, e := range r.Edits() {
		if e.Step == step {
			out = append(out, e)
		}
	}
	return out
}

// edit returns the edit with a number at a step, or nil. The numbers in a recording can be forged.
func (r *Recording) edit(number uint64, step int) *sandbox.Edit {
	for _, e := range r.EditsAt(step) {
		if e.Number == number {
			return &e
		}
	}
	return nil
}

// change makes the stopped program execute a command that may change variables, and records what it changed with the
// person of ctx. code is the command as the person wrote it. If isEdit says so of the answer, the command is recorded
// even if no change is seen; name is then the variable that it set, or "".
func (s *Session) change(ctx context.Context, command map[string]any, code, name string,
	isEdit func(liveView) bool) (liveView, error) {
	s.mu.Lock()
	if s.editCount >= maxEdits {
		s.mu.Unlock()
		return liveView{}, fmt.Errorf("%w: a debug session may change its program at most %d times", ErrRequest,
			maxEdits)
	}
	s.lastEdit++
	number, at := s.lastEdit, s.live
	s.mu.Unlock()
	command["edit"] = number
	v, err := askFor[liveView](ctx, s, command)
	frame, _ := command["frame"].(uint64)
	changes := s.recording.editChanges(at.Step, number, frame)
	if len(changes) == 0 && (err != nil || !isEdit(v)) {
		return v, err
	}
	if len(changes) == 0 && name != "" { // a variable that is not recorded
		changes = []sandbox.EditChange{{Name: name, Value: v.Value, Type: v.Type}}
	}
	person, _ := ctx.Value(personKey{}).(Person)
	e := sandbox.Edit{
		Number: number, Step: at.Step, Line: at.Line, Function: at.Function, Code: shorten(code, maxEditChars),
		Changes: changes, User: person.User, Key: person.Key, Time: s.Clock(),
	}
	s.recording.AddEdit(e)
	s.onEdit(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.editCount++
	if s.state == StateStopped && s.live.Step == at.Step { // the program has not moved meanwhile
		fresh := s.positionAt(at.Step, Position{
			Reason: at.Reason, Description: at.Description, HitIDs: at.HitIDs, Live: true,
		})
		if s.position.Live {
			s.position = fresh
		}
		s.live = fresh
	}
	s.addEvent(Edited{e})
	return v, err
}

// editChanges returns the variables that an edit changed, with their values after it.
func (r *Recording) editChanges(step int, number, frame uint64) []sandbox.EditChange {
	r.journal.SetEdit(step, number) // so that the state is the one after it
	out := []sandbox.EditChange{}
	_ = r.journal.Read(func(reader *recording.Reader) error { // damage is reported where the step is read
		names := changedVariables(reader, step, frame, number)
		s, err := reader.State(step)
		if err != nil {
			return err
		}
		t := reader.Table()
		for _, name := range names[:min(len(names), maxEditChanges)] {
			v, exists := s.LookUp(t, cmp.Or(frame, s.Current), name)
			if !exists {
				out = append(out, sandbox.EditChange{Name: name, Value: "(deleted)"})
				continue
			}
			value := s.Preview(t, v, maxValuePreview)
			out = append(out, sandbox.EditChange{Name: name, Value: value, Type: s.TypeOf(t, v)})
		}
		return nil
	})
	return out
}
