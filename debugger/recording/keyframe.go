package recording

import (
	"errors"
	"fmt"
)

var errKeyFrame = errors.New("a key frame is damaged")

// appendKeyFrame appends the complete state to b. All numbers are LEB128:
//
//	step, current frame, highest frame, number of objects, of globals, of frames
//	each object: number, type, contents
//	each global: name, value
//	each frame: number, code, thread, caller, line, last step, unread, 1 if suspended, 1 if an exception passes through,
//	    then that exception's type and message, number of variables, and each variable: name, value
func (s *State) appendKeyFrame(b []byte) []byte {
	b = appendNumbers(b, uint64(s.Step), s.Current, s.maxFrame, uint64(len(s.Objects)), uint64(len(s.Globals)),
		uint64(len(s.Frames)))
	for _, number := range SortedKeys(s.Objects) {
		o := s.Objects[number]
		b = appendContents(appendNumbers(b, o.Number, o.Type), o)
	}
	b = appendScope(b, s.Globals)
	for _, number := range SortedKeys(s.Frames) {
		f := s.Frames[number]
		b = appendNumbers(b, f.Number, f.Code, f.Thread, f.Parent, uint64(f.Line), uint64(f.Step), f.Unread,
			bit(f.Suspended), bit(f.Raised != nil))
		if f.Raised != nil {
			b = appendValue(appendNumbers(b, f.Raised.Type), f.Raised.Message)
		}
		b = appendScope(appendNumbers(b, uint64(len(f.Variables))), f.Variables)
	}
	return b
}

func appendScope(b []byte, scope map[uint64]Value) []byte {
	for _, name := range SortedKeys(scope) {
		b = appendValue(appendNumbers(b, name), scope[name])
	}
	return b
}

// decodeKeyFrame decodes a key frame from the front of b and returns the state and the key frame's length in bytes. It
// returns an error for a state that is larger than a Journal accepts.
func decodeKeyFrame(b []byte) (*State, int, error) {
	r := &fieldReader{b: b}
	s := newState()
	s.Step, s.Current, s.maxFrame = int(r.n()), r.n(), r.n()
	objects, globals, frames := r.n(), r.n(), r.n()
	if objects > maxObjects || frames > maxFrames {
		r.fail("it has %d objects and %d frames; the limits are %d and %d", objects, frames, maxObjects, maxFrames)
	}
	for ; objects > 0 && r.err == nil; objects-- {
		o := &Object{Number: r.n(), Type: r.n()}
		r.contents(o)
		s.Objects[o.Number] = o
		r.grow(s, o.bytes())
	}
	r.scope(s, s.Globals, globals)
	for ; frames > 0 && r.err == nil; frames-- {
		f := &Frame{
			Number: r.n(), Code: r.n(), Thread: r.n(), Parent: r.n(), Line: int64(r.n()), Step: int(r.n()),
			Unread:    r.n(),
			Variables: map[uint64]Value{},
		}
		f.Suspended = r.n() == 1
		if r.n() == 1 {
			f.Raised = &Exception{Type: r.n(), Message: r.value()}
			r.grow(s, valueBytes(f.Raised.Message))
		}
		r.scope(s, f.Variables, r.n())
		s.Frames[f.Number] = f
	}
	if r.err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errKeyFrame, r.err)
	}
	return s, r.off, nil
}

// scope decodes count variables into scope, a map of s.
func (r *fieldReader) scope(s *State, scope map[uint64]Value, count uint64) {
	for ; count > 0 && r.err == nil; count-- {
		name := r.n()
		v := r.value()
		scope[name] = v
		r.grow(s, valueBytes(v))
	}
}

// grow adds bytes to the size of s.
func (r *fieldReader) grow(s *State, bytes int) {
	if err := s.grow(bytes); err != nil && r.err == nil {
		r.err = err
	}
}
