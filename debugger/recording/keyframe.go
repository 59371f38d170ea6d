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

// encodeKeyFrame appends a complete state to the columns, before the records of its chunk. Its values are the previous
// values of these records.
func (d *deltaCoder) encodeKeyFrame(s *State) {
	head := *s
	d.keyFrameHead(&head)
	d.n(numberColumn, uint64(len(s.Objects)))
	for _, number := range SortedKeys(s.Objects) {
		o := *s.Objects[number]
		d.newObject(&o)
	}
	d.encodeScope(KindGlobal, s.Globals)
	d.n(numberColumn, uint64(len(s.Frames)))
	for _, number := range SortedKeys(s.Frames) {
		f := *s.Frames[number]
		d.keyFrameFrame(&f)
		d.encodeScope(KindSet, f.Variables)
	}
}

func (d *deltaCoder) encodeScope(kind Kind, scope map[uint64]Value) {
	d.n(numberColumn, uint64(len(scope)))
	for _, name := range SortedKeys(scope) {
		rec := Record{Kind: kind, Name: name, Value: scope[name]}
		d.variable(&rec)
	}
}

// decodeKeyFrame decodes a complete state. It returns an error for a state that is larger than a Journal accepts.
func (d *deltaCoder) decodeKeyFrame() (*State, error) {
	s, numbers := newState(), &d.readers[numberColumn]
	d.keyFrameHead(s)
	objects := numbers.n()
	if objects > maxObjects {
		d.fail("it has %d objects; the limit is %d", objects, maxObjects)
	}
	for ; objects > 0 && d.err() == nil; objects-- {
		o := &Object{}
		d.newObject(o)
		s.Objects[o.Number] = o
		numbers.grow(s, o.bytes())
	}
	d.decodeScope(KindGlobal, s, s.Globals)
	frames := numbers.n()
	if frames > maxFrames {
		d.fail("it has %d frames; the limit is %d", frames, maxFrames)
	}
	for ; frames > 0 && d.err() == nil; frames-- {
		f := &Frame{Variables: map[uint64]Value{}}
		d.keyFrameFrame(f)
		if f.Raised != nil {
			numbers.grow(s, valueBytes(f.Raised.Message))
		}
		d.decodeScope(KindSet, s, f.Variables)
		s.Frames[f.Number] = f
	}
	if err := d.err(); err != nil {
		return nil, fmt.Errorf("%w: %w", errKeyFrame, err)
	}
	return s, nil
}

func (d *deltaCoder) decodeScope(kind Kind, s *State, scope map[uint64]Value) {
	numbers := &d.readers[numberColumn]
	for count := numbers.n(); count > 0 && d.err() == nil; count-- {
		rec := Record{Kind: kind}
		d.variable(&rec)
		scope[rec.Name] = rec.Value
		numbers.grow(s, valueBytes(rec.Value))
	}
}

// keyFrameHead codes the numbers of a state.
func (d *deltaCoder) keyFrameHead(s *State) {
	s.Step, s.maxFrame = int(d.n(numberColumn, uint64(s.Step))), d.n(numberColumn, s.maxFrame)
	s.Current = d.relative(numberColumn, s.Current, s.maxFrame)
}

// keyFrameFrame codes a frame without its variables.
func (d *deltaCoder) keyFrameFrame(f *Frame) {
	f.Number = d.relative(numberColumn, f.Number, d.frame)
	f.Parent = d.relative(numberColumn, f.Parent, d.frame)
	d.frame = f.Number
	f.Code, f.Thread, f.Unread = d.name(f.Code), d.n(numberColumn, f.Thread), d.name(f.Unread)
	f.Line, f.Step = d.z(numberColumn, f.Line), int(d.n(numberColumn, uint64(f.Step)))
	flags := d.n(shapeColumn, bit(f.Suspended)|bit(f.Raised != nil)<<1)
	f.Suspended = flags&1 != 0
	if flags&2 != 0 {
		raised := Exception{}
		if f.Raised != nil {
			raised = *f.Raised
		}
		f.Raised = &Exception{Type: d.name(raised.Type), Message: d.value(raised.Message, Value{})}
	}
}
