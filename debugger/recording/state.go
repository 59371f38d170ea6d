package recording

import (
	"fmt"
	"maps"
	"slices"
)

// Limits of the state of one recording at any step.
const (
	maxStep       = 1 << 50 // JSON readers read larger integers as floats
	maxLostSteps  = 1 << 40 // of one record
	maxFrames     = 1 << 17
	maxObjects    = 1 << 20
	maxStateBytes = 64 << 20 // of variables, objects and messages of exceptions, estimated
)

// Frame is a call that runs or is suspended.
type Frame struct {
	Number    uint64
	Code      uint64
	Thread    uint64
	Parent    uint64 // 0 for the first frame of a thread, and while the frame is suspended
	Line      int64
	Step      int // the last step in this frame; 0 before the first
	Suspended bool
	Unread    uint64 // a name: the reason why the variables were not read; 0 if they were
	Raised    *Exception
	Variables map[uint64]Value // by name
}

// Exception is an exception that passes through a frame.
type Exception struct {
	Type    uint64 // a name
	Message Value
}

// State is the state of the program at one step.
type State struct {
	Step    int
	Current uint64 // the frame of the step; 0 for none
	Frames  map[uint64]*Frame
	Globals map[uint64]Value   // the run's namespace, by name
	Objects map[uint64]*Object // the objects that variables hold; an entry is replaced, never modified
	Edit    uint64             // the number of the edit whose changes come next; 0: the changes are the program's

	maxFrame uint64 // the highest frame number so far
	bytes    int    // of Globals, Variables, Objects and messages of exceptions

	reusesFrames bool     // nobody keeps a frame of this state after a call that ends it and the next call
	ended        []*Frame // to be used again
}

// maxEndedFrames bounds how many frames are kept to be used again.
const maxEndedFrames = 16

func newState() *State {
	return &State{Frames: map[uint64]*Frame{}, Globals: map[uint64]Value{}, Objects: map[uint64]*Object{}}
}

// Bytes is about the memory of the variables and objects.
func (s *State) Bytes() int { return s.bytes }

// CurrentFrame returns the frame of the step, or nil.
func (s *State) CurrentFrame() *Frame { return s.Frames[s.Current] }

// Stack returns a frame and its callers, innermost first.
func (s *State) Stack(frame uint64) []*Frame {
	var out []*Frame
	for f := s.Frames[frame]; f != nil && len(out) < len(s.Frames); f = s.Frames[f.Parent] {
		out = append(out, f)
	}
	return out
}

// LookUp returns a variable by name: a local of the frame, otherwise one of the namespace.
func (s *State) LookUp(t *Table, frame uint64, name string) (Value, bool) {
	number := t.NumberOf(name)
	if f := s.Frames[frame]; f != nil && number != 0 {
		if v, ok := f.Variables[number]; ok {
			return v, true
		}
	}
	v, ok := s.Globals[number]
	return v, ok && number != 0
}

// Reachable returns the numbers of the objects that v reaches, v's own first.
func (s *State) Reachable(v Value) []uint64 {
	if v.Tag != TagObject {
		return nil
	}
	seen := map[uint64]bool{v.Object: true}
	out := []uint64{v.Object}
	for i := 0; i < len(out); i++ {
		if o := s.Objects[out[i]]; o != nil {
			o.EachHeld(func(n uint64) {
				if !seen[n] {
					seen[n] = true
					out = append(out, n)
				}
			})
		}
	}
	return out
}

// definitionTypes are the types of modules, functions and classes, which lists of variables leave out.
var definitionTypes = map[string]bool{
	"module": true, "function": true, "builtin_function_or_method": true, "type": true, "abc.ABCMeta": true,
	"enum.EnumType": true,
}

// IsDefinition reports whether v is a module, a function or a class. Lists of variables leave these out.
func (s *State) IsDefinition(t *Table, v Value) bool {
	return v.Tag == TagObject && definitionTypes[s.TypeOf(t, v)]
}

// valueBytes estimates the memory of a value, including its entry in a map.
func valueBytes(v Value) int { return 48 + len(v.Text) }

// bytes estimates the memory of an object.
func (o *Object) bytes() int {
	sum := 96
	for _, v := range o.Values {
		sum += valueBytes(v)
	}
	return sum
}

// recordKinds is a set of kinds.
type recordKinds [256]bool

func kindSet(list ...Kind) (out recordKinds) {
	for _, k := range list {
		out[k] = true
	}
	return out
}

var (
	needsFrame = kindSet(KindSuspend, KindReturn, KindUnwind, KindLine, KindSet, KindDelete, KindRaise, KindHandled,
		KindUnread)
	needsName = kindSet(KindUnwind, KindRaise, KindSet, KindGlobal, KindDelete, KindForget, KindUnread, KindEvent)
)

// apply checks a record and applies it to the state. It fills in the fields that the record leaves implicit: the frame
// of a push and the version of a mutate.
func (s *State) apply(t *Table, rec *Record) error {
	var current *Frame
	if needsFrame[rec.Kind] {
		current = s.CurrentFrame()
	}
	if needsFrame[rec.Kind] && current == nil {
		return fmt.Errorf("a %s record outside a frame", rec.Kind)
	}
	if needsName[rec.Kind] && !t.isName(rec.Name) {
		return fmt.Errorf("a %s record has the undefined name %d", rec.Kind, rec.Name)
	}
	switch rec.Kind {
	case KindPush:
		return s.push(t, rec)
	case KindResume:
		f := s.Frames[rec.Frame]
		if f == nil || !f.Suspended || rec.Parent == rec.Frame || !s.isFrameOrNone(rec.Parent) {
			return fmt.Errorf("frame %d cannot be resumed from frame %d", rec.Frame, rec.Parent)
		}
		f.Suspended, f.Parent, s.Current = false, rec.Parent, f.Number
	case KindSuspend:
		s.Current = current.Parent
		current.Suspended, current.Parent = true, 0
	case KindReturn, KindUnwind:
		s.pop(current)
	case KindFrame:
		if s.Frames[rec.Frame] == nil {
			return fmt.Errorf("frame %d does not exist", rec.Frame)
		}
		s.Current = rec.Frame
	case KindLine:
		current.Line += rec.Delta
		if current.Line < 0 || current.Line > 1<<31 {
			return fmt.Errorf("line %d is out of range", current.Line)
		}
		if s.Step++; s.Step > maxStep {
			return fmt.Errorf("more than %d steps", maxStep)
		}
		current.Step, s.Edit = s.Step, 0
	case KindSet:
		return s.set(current.Variables, rec)
	case KindGlobal:
		return s.set(s.Globals, rec)
	case KindDelete:
		s.remove(current.Variables, rec.Name)
	case KindForget:
		s.remove(s.Globals, rec.Name)
	case KindObject, KindMutate:
		return s.setObject(t, rec)
	case KindFree:
		if o := s.Objects[rec.Number]; o != nil {
			s.bytes -= o.bytes()
			delete(s.Objects, rec.Number)
		}
	case KindRaise:
		s.endException(current)
		current.Raised = &Exception{Type: rec.Name, Message: rec.Value}
		return s.grow(valueBytes(rec.Value))
	case KindHandled:
		s.endException(current)
	case KindOutput:
		if rec.Number != 1 && rec.Number != 2 || rec.From > rec.To {
			return fmt.Errorf("invalid output record: stream %d, bytes %d to %d", rec.Number, rec.From, rec.To)
		}
	case KindEvent:
		if t.Name(rec.Name) == editEvent {
			s.Edit = rec.Number
		}
	case KindLost:
		if rec.Number > maxLostSteps || rec.Number > maxStep-uint64(s.Step) {
			return fmt.Errorf("%d lost steps after step %d", rec.Number, s.Step)
		}
		fresh := newState()
		fresh.Step, fresh.maxFrame = s.Step+int(rec.Number), s.maxFrame
		*s = *fresh
	case KindUnread:
		current.Unread = rec.Name
	}
	return nil
}

func (s *State) isFrameOrNone(frame uint64) bool { return frame == 0 || s.Frames[frame] != nil }

func (s *State) push(t *Table, rec *Record) error {
	if rec.Frame == 0 {
		rec.Frame = s.maxFrame + 1
	}
	invalid := rec.Frame == 0 || s.Frames[rec.Frame] != nil || !s.isFrameOrNone(rec.Parent) ||
		rec.Code == 0 || rec.Code > uint64(len(t.codes)) || rec.Thread == 0 || rec.Thread > uint64(len(t.threads)) ||
		rec.Number > FlagRestated|FlagSuspended
	if invalid || len(s.Frames) >= maxFrames {
		return fmt.Errorf("frame %d cannot be pushed: code %d, thread %d, caller %d, flags %d, %d frames exist",
			rec.Frame, rec.Code, rec.Thread, rec.Parent, rec.Number, len(s.Frames))
	}
	line := t.Code(rec.Code).First
	if rec.Number&FlagRestated != 0 {
		line = int64(min(rec.From, 1<<31))
	}
	f := s.newFrame()
	*f = Frame{
		Number: rec.Frame, Code: rec.Code, Thread: rec.Thread, Parent: rec.Parent, Line: line,
		Suspended: rec.Number&FlagSuspended != 0, Variables: f.Variables,
	}
	s.Frames[rec.Frame] = f
	s.Current, s.maxFrame = rec.Frame, max(s.maxFrame, rec.Frame)
	return nil
}

// newFrame returns a frame with empty Variables. A map takes more time than all other parts of a call.
func (s *State) newFrame() *Frame {
	if last := len(s.ended) - 1; last >= 0 {
		f := s.ended[last]
		s.ended = s.ended[:last]
		clear(f.Variables)
		return f
	}
	return &Frame{Variables: map[uint64]Value{}}
}

// endException removes the exception that passes through a frame.
func (s *State) endException(f *Frame) {
	if f.Raised != nil {
		s.bytes -= valueBytes(f.Raised.Message)
		f.Raised = nil
	}
}

// pop removes a frame. Frames that it called may still exist in a forged or incomplete recording; they then have no
// caller.
func (s *State) pop(f *Frame) {
	if f.Raised != nil {
		s.bytes -= valueBytes(f.Raised.Message)
	}
	for _, v := range f.Variables {
		s.bytes -= valueBytes(v)
	}
	if s.reusesFrames && len(s.ended) < maxEndedFrames && len(f.Variables) <= maxEndedFrames {
		s.ended = append(s.ended, f)
	}
	delete(s.Frames, f.Number)
	s.Current = 0
	if s.Frames[f.Parent] != nil {
		s.Current = f.Parent
	}
}

func (s *State) set(scope map[uint64]Value, rec *Record) error {
	if rec.Value.Tag == TagObject && s.Objects[rec.Value.Object] == nil {
		return fmt.Errorf("a variable holds object %d, which does not exist", rec.Value.Object)
	}
	if before, ok := scope[rec.Name]; ok {
		s.bytes -= valueBytes(before)
	}
	scope[rec.Name] = rec.Value
	return s.grow(valueBytes(rec.Value))
}

func (s *State) remove(scope map[uint64]Value, name uint64) {
	if v, ok := scope[name]; ok {
		s.bytes -= valueBytes(v)
		delete(scope, name)
	}
}

func (s *State) setObject(t *Table, rec *Record) error {
	o := rec.Object
	before := s.Objects[o.Number]
	if before != nil && o.Version == 0 {
		o.Version = before.Version + 1
		rec.Object.Version = o.Version
	}
	switch {
	case rec.Kind == KindObject && (o.Number == 0 || !t.isName(o.Type) || before != nil):
		return fmt.Errorf("object %d of type %d exists, or has no number or type", o.Number, o.Type)
	case rec.Kind == KindMutate && (before == nil || o.Version < before.Version):
		return fmt.Errorf("object %d does not exist, or is past version %d", o.Number, o.Version)
	case len(s.Objects) >= maxObjects:
		return fmt.Errorf("more than %d objects", maxObjects)
	}
	if before != nil {
		rec.ReadDeeper = o.Version == before.Version
		o.Type = before.Type
		s.bytes -= before.bytes()
	}
	s.Objects[o.Number] = &o
	return s.grow(o.bytes())
}

func (s *State) grow(bytes int) error {
	if s.bytes += bytes; s.bytes > maxStateBytes {
		return fmt.Errorf("variables, objects and messages of more than %d bytes", maxStateBytes)
	}
	return nil
}

// SortedKeys returns the keys of m in ascending order.
func SortedKeys[V any](m map[uint64]V) []uint64 { return slices.Sorted(maps.Keys(m)) }
