package debugger

import "errors"

// A key frame is a State as the records that make it, with what no record says (the
// number of the step, and each frame's line, step and exception) ahead as numbers. It
// is ours alone and never comes from a recorder; it is kept with its chunk.

var errKey = errors.New("a key frame is damaged")

func (s *State) appendKey(b []byte) []byte {
	b = appendNumbers(b, uint64(s.Step), s.Current, s.pushed, uint64(len(s.Objects)), uint64(len(s.Globals)), uint64(len(s.Frames)))
	for _, number := range sortedKeys(s.Objects) {
		o := s.Objects[number]
		b = appendContents(appendNumbers(b, o.Number, o.Type), o)
	}
	b = appendScope(b, s.Globals)
	for _, number := range sortedKeys(s.Frames) {
		f := s.Frames[number]
		b = appendNumbers(b, f.Number, f.Code, f.Lane, f.Parent, uint64(f.Line), uint64(f.Step), f.Unread, bit(f.Suspended), bit(f.Raised != nil))
		if f.Raised != nil {
			b = appendValue(appendNumbers(b, f.Raised.Type), f.Raised.Message)
		}
		b = appendScope(appendNumbers(b, uint64(len(f.Variables))), f.Variables)
	}
	return b
}

func bit(set bool) uint64 {
	if set {
		return 1
	}
	return 0
}

func appendScope(b []byte, scope map[uint64]Value) []byte {
	for _, name := range sortedKeys(scope) {
		b = appendValue(appendNumbers(b, name), scope[name])
	}
	return b
}

func decodeKey(b []byte) (*State, int, error) {
	r := &reader{b: b}
	s := newState()
	s.Step, s.Current, s.pushed = int(r.n()), r.n(), r.n()
	objects, globals, frames := r.n(), r.n(), r.n()
	for ; objects > 0 && r.err == nil; objects-- {
		o := &Object{Number: r.n(), Type: r.n()}
		r.contents(o)
		s.Objects[o.Number] = o
		s.held += o.weight()
	}
	s.held += r.scope(s.Globals, globals)
	for ; frames > 0 && r.err == nil; frames-- {
		f := &Frame{Number: r.n(), Code: r.n(), Lane: r.n(), Parent: r.n(), Line: int64(r.n()), Step: int(r.n()), Unread: r.n(), Variables: map[uint64]Value{}}
		f.Suspended = r.n() == 1
		if r.n() == 1 {
			f.Raised = &Raised{Type: r.n(), Message: r.value()}
		}
		s.held += r.scope(f.Variables, r.n())
		s.Frames[f.Number] = f
	}
	if r.err != nil {
		return nil, 0, errKey
	}
	return s, r.off, nil
}

func (r *reader) scope(scope map[uint64]Value, count uint64) (weight int) {
	for ; count > 0 && r.err == nil; count-- {
		name := r.n()
		v := r.value()
		scope[name] = v
		weight += weigh(v)
	}
	return weight
}
