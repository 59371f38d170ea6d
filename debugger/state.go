package debugger

import (
	"fmt"
	"maps"
	"slices"
)

// What one recording may have at once or define.
const (
	maxNames   = 1 << 18
	maxFrames  = 1 << 17
	maxObjects = 1 << 20
	maxHeld    = 64 << 20 // bytes of values, of the names and of what lives
)

// Code is a function's, class's or module's code.
type Code struct {
	File, Name uint64 // names
	First      int64  // line
}

// Thread is a thread or a task.
type Thread struct {
	Task   bool
	Parent uint64
	Name   string
}

// Table has what a recording defines once.
type Table struct {
	Recorder string
	Python   string
	names    []string
	codes    []Code
	lanes    []Thread
	byName   map[string]uint64
}

// Name returns the text of a name, "" for 0.
func (t *Table) Name(n uint64) string {
	if n == 0 || n > uint64(len(t.names)) {
		return ""
	}
	return t.names[n-1]
}

// Code returns a code object by its number.
func (t *Table) Code(n uint64) Code {
	if n == 0 || n > uint64(len(t.codes)) {
		return Code{}
	}
	return t.codes[n-1]
}

// Thread returns a lane by its number.
func (t *Table) Thread(n uint64) Thread {
	if n == 0 || n > uint64(len(t.lanes)) {
		return Thread{}
	}
	return t.lanes[n-1]
}

// Frame is a call that is running or suspended.
type Frame struct {
	Number    uint64
	Code      uint64
	Lane      uint64
	Parent    uint64 // 0 for the first of its lane, and while it is suspended
	Line      int64
	Step      int // its last; 0 before the first
	Suspended bool
	Unread    uint64 // a name: why its variables are not here
	Raised    *Raised
	Variables map[uint64]Value // by name
}

// Raised is an exception that a frame is in.
type Raised struct {
	Type    uint64 // a name
	Message Value
}

// State is what is known at one step.
type State struct {
	Step    int
	Current uint64 // the frame that the step is in; 0 for none
	Frames  map[uint64]*Frame
	Globals map[uint64]Value
	Objects map[uint64]*Object // those that a variable holds; never changed, only replaced
	pushed  uint64             // the highest number of a frame so far
	held    int                // bytes of Globals, Frames' variables and Objects
}

func newState() *State {
	return &State{Frames: map[uint64]*Frame{}, Globals: map[uint64]Value{}, Objects: map[uint64]*Object{}}
}

// Stack returns the frame and those that it was called from, innermost first.
func (s *State) Stack(frame uint64) []*Frame {
	var out []*Frame
	for f := s.Frames[frame]; f != nil && len(out) < len(s.Frames); f = s.Frames[f.Parent] {
		out = append(out, f)
	}
	return out
}

// Reachable returns the numbers of the objects that v holds, itself first.
func (s *State) Reachable(v Value) []uint64 {
	if v.Tag != TagObject {
		return nil
	}
	seen := map[uint64]bool{v.Object: true}
	out := []uint64{v.Object}
	for i := 0; i < len(out); i++ {
		if o := s.Objects[out[i]]; o != nil {
			o.holds(func(n uint64) {
				if !seen[n] {
					seen[n] = true
					out = append(out, n)
				}
			})
		}
	}
	return out
}

func weigh(v Value) int { return 48 + len(v.Text) }

func (o *Object) weight() int {
	sum := 96
	for _, v := range o.Values {
		sum += weigh(v)
	}
	return sum
}

// define applies the records that only grow the table; told whether rec was one.
func (t *Table) define(rec *Record) (bool, error) {
	switch rec.Kind {
	case KindHead:
		if rec.Number != formatVersion {
			return true, fmt.Errorf("%w: %d", ErrVersion, rec.Number)
		}
		if t.Recorder != "" || rec.Text == "" {
			return true, fmt.Errorf("a second head, or one of recorder %q", rec.Text)
		}
		t.Recorder, t.Python = rec.Text, rec.Extra
	case KindName:
		if len(t.names) >= maxNames {
			return true, fmt.Errorf("more than %d names", maxNames)
		}
		t.names = append(t.names, rec.Text)
		if t.byName == nil {
			t.byName = map[string]uint64{}
		}
		t.byName[rec.Text] = uint64(len(t.names))
	case KindCode:
		if len(t.codes) >= maxNames || !t.named(rec.File) || !t.named(rec.Name) || rec.Number > 1<<31 {
			return true, fmt.Errorf("code %d of names %d and %d", len(t.codes)+1, rec.File, rec.Name)
		}
		t.codes = append(t.codes, Code{File: rec.File, Name: rec.Name, First: int64(rec.Number)})
	case KindThread:
		if len(t.lanes) >= maxNames || rec.Number != 1 && rec.Number != 2 || rec.Parent > uint64(len(t.lanes)) {
			return true, fmt.Errorf("lane %d of kind %d and parent %d", len(t.lanes)+1, rec.Number, rec.Parent)
		}
		t.lanes = append(t.lanes, Thread{Task: rec.Number == 2, Parent: rec.Parent, Name: rec.Text})
	default:
		return false, nil
	}
	return true, nil
}

func (t *Table) named(n uint64) bool { return n > 0 && n <= uint64(len(t.names)) }

// apply brings s to behind rec, whose numbers it checks.
func (s *State) apply(t *Table, rec *Record) error {
	var current *Frame
	if needsFrame[rec.Kind] {
		current = s.Frames[s.Current]
	}
	if needsFrame[rec.Kind] && current == nil {
		return fmt.Errorf("a record of kind %#x outside a frame", byte(rec.Kind))
	}
	if needsName[rec.Kind] && !t.named(rec.Name) {
		return fmt.Errorf("a record of kind %#x has name %d", byte(rec.Kind), rec.Name)
	}
	switch rec.Kind {
	case KindPush:
		return s.push(t, rec)
	case KindResume:
		f := s.Frames[rec.Frame]
		if f == nil || !f.Suspended || rec.Parent == rec.Frame || !s.known(rec.Parent) {
			return fmt.Errorf("frame %d resumed from %d", rec.Frame, rec.Parent)
		}
		f.Suspended, f.Parent, s.Current = false, rec.Parent, f.Number
	case KindSuspend:
		s.Current = current.Parent
		current.Suspended, current.Parent = true, 0
	case KindReturn, KindUnwind:
		s.leave(current)
	case KindFrame:
		if s.Frames[rec.Frame] == nil {
			return fmt.Errorf("there is no frame %d", rec.Frame)
		}
		s.Current = rec.Frame
	case KindLine:
		current.Line += rec.Delta
		if current.Line < 0 || current.Line > 1<<31 {
			return fmt.Errorf("line %d", current.Line)
		}
		s.Step++
		current.Step = s.Step
	case KindSet:
		return s.set(current.Variables, rec)
	case KindGlobal:
		return s.set(s.Globals, rec)
	case KindDelete:
		s.remove(current.Variables, rec.Name)
	case KindForget:
		s.remove(s.Globals, rec.Name)
	case KindObject, KindMutate:
		return s.object(t, rec)
	case KindFree:
		if o := s.Objects[rec.Number]; o != nil {
			s.held -= o.weight()
			delete(s.Objects, rec.Number)
		}
	case KindRaise:
		current.Raised = &Raised{Type: rec.Name, Message: rec.Value}
	case KindHandled:
		current.Raised = nil
	case KindOutput:
		if rec.Number != 1 && rec.Number != 2 || rec.From > rec.To {
			return fmt.Errorf("output of stream %d from %d to %d", rec.Number, rec.From, rec.To)
		}
	case KindLost:
		if rec.Number > 1<<40 {
			return fmt.Errorf("%d lost steps", rec.Number)
		}
		*s = State{Step: s.Step + int(rec.Number), pushed: s.pushed, Frames: map[uint64]*Frame{}, Globals: map[uint64]Value{}, Objects: map[uint64]*Object{}}
	case KindUnread:
		current.Unread = rec.Name
	}
	return nil
}

var (
	needsFrame = kinds(KindSuspend, KindReturn, KindUnwind, KindLine, KindSet, KindDelete, KindRaise, KindHandled, KindUnread)
	needsName  = kinds(KindUnwind, KindRaise, KindSet, KindGlobal, KindDelete, KindForget, KindUnread, KindEvent)
)

func kinds(list ...Kind) (out [256]bool) {
	for _, k := range list {
		out[k] = true
	}
	return out
}

func (s *State) known(frame uint64) bool { return frame == 0 || s.Frames[frame] != nil }

func (s *State) push(t *Table, rec *Record) error {
	if rec.Frame == 0 {
		rec.Frame = s.pushed + 1
	}
	wrong := rec.Frame == 0 || s.Frames[rec.Frame] != nil || !s.known(rec.Parent) || rec.Code == 0 || rec.Code > uint64(len(t.codes)) ||
		rec.Lane == 0 || rec.Lane > uint64(len(t.lanes)) || rec.Number > FlagRestated|FlagSuspended
	if wrong || len(s.Frames) >= maxFrames {
		return fmt.Errorf("frame %d pushed of code %d in lane %d from %d, flags %d, beside %d", rec.Frame, rec.Code, rec.Lane, rec.Parent, rec.Number, len(s.Frames))
	}
	line := t.Code(rec.Code).First
	if rec.Number&FlagRestated != 0 {
		line = int64(min(rec.From, 1<<31))
	}
	s.Frames[rec.Frame] = &Frame{
		Number: rec.Frame, Code: rec.Code, Lane: rec.Lane, Parent: rec.Parent, Line: line,
		Suspended: rec.Number&FlagSuspended != 0, Variables: map[uint64]Value{},
	}
	s.Current, s.pushed = rec.Frame, max(s.pushed, rec.Frame)
	return nil
}

// leave removes a frame. Those that it called, in a recording that is forged or has
// gaps, have no caller then.
func (s *State) leave(f *Frame) {
	for _, v := range f.Variables {
		s.held -= weigh(v)
	}
	delete(s.Frames, f.Number)
	s.Current = 0
	if s.Frames[f.Parent] != nil {
		s.Current = f.Parent
	}
}

func (s *State) set(scope map[uint64]Value, rec *Record) error {
	if rec.Value.Tag == TagObject && s.Objects[rec.Value.Object] == nil {
		return fmt.Errorf("a variable holds object %d, which is not there", rec.Value.Object)
	}
	if before, ok := scope[rec.Name]; ok {
		s.held -= weigh(before)
	}
	scope[rec.Name] = rec.Value
	return s.weigh(weigh(rec.Value))
}

func (s *State) remove(scope map[uint64]Value, name uint64) {
	if v, ok := scope[name]; ok {
		s.held -= weigh(v)
		delete(scope, name)
	}
}

func (s *State) object(t *Table, rec *Record) error {
	o := rec.Object
	before := s.Objects[o.Number]
	if before != nil && o.Version == 0 {
		o.Version = before.Version + 1
		rec.Object.Version = o.Version
	}
	switch {
	case rec.Kind == KindObject && (o.Number == 0 || !t.named(o.Type) || before != nil):
		return fmt.Errorf("object %d of type %d", o.Number, o.Type)
	case rec.Kind == KindMutate && (before == nil || o.Version < before.Version):
		return fmt.Errorf("object %d is at version %d, which it is past or which is not there", o.Number, o.Version)
	case len(s.Objects) >= maxObjects:
		return fmt.Errorf("more than %d objects", maxObjects)
	}
	if before != nil {
		if o.Version == before.Version {
			rec.Number = Deeper
		}
		o.Type = before.Type
		s.held -= before.weight()
	}
	s.Objects[o.Number] = &o
	return s.weigh(o.weight())
}

func (s *State) weigh(bytes int) error {
	if s.held += bytes; s.held > maxHeld {
		return fmt.Errorf("variables of more than %d bytes", maxHeld)
	}
	return nil
}

// sortedKeys returns a map's keys in order.
func sortedKeys[V any](m map[uint64]V) []uint64 {
	return slices.Sorted(maps.Keys(m))
}
