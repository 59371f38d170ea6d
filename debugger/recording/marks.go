package recording

import (
	"math"
	"sort"
)

// Watch is a variable whose changes a replay looks for.
type Watch struct {
	Frame, Name uint64 // Frame is 0 for a variable of the namespace
	Until       int    // the last step of interest

	// Objects returns the objects that the variable holds in a state.
	Objects func(*State) []uint64

	// Passed has the lines whose changes of objects do not matter. It may be nil.
	Passed map[int64]bool
}

// mark is a record that sets or deletes a variable, or changes an object. It has the lower bits of its numbers, which
// are all of them in a recording that is not forged.
type mark struct {
	step          uint32 // after the first one of the chunk, plus 1
	frame, number uint32 // of a variable: its frame, or 0, and its name; of an object: isObject and its number
	code          uint32 // whose first line is to be added to line; 0: none
	line          int32
	relinks       bool // the object may hold one that it did not hold before
}

// isObject is the frame in the mark of an object.
const isObject = math.MaxUint32

// markBytes is the memory of a mark.
const markBytes = 24

// marker makes the marks of a chunk. It follows frames and their lines, as State does.
type marker struct {
	step    int // after the first one of the chunk, plus 1
	current *markedFrame
	highest uint64 // frame number so far
	frames  map[uint64]*markedFrame
	list    []mark
	hasGap  bool // all variables change there
}

type markedFrame struct {
	number, caller uint64
	code           uint64 // 0: line is complete
	line           int64
}

func newMarker(s *State) *marker {
	m := &marker{highest: s.maxFrame, frames: map[uint64]*markedFrame{}}
	for number, f := range s.Frames {
		m.frames[number] = &markedFrame{number: number, caller: f.Parent, line: f.Line}
	}
	m.current = m.frames[s.Current]
	return m
}

// see adds the mark of a record, if it has one. relinks is that of eachDelta.
func (m *marker) see(rec *Record, relinks bool) {
	f := m.current
	switch rec.Kind {
	case KindGlobal, KindForget:
		m.add(mark{number: uint32(rec.Name)})
	case KindMutate:
		m.add(mark{frame: isObject, number: uint32(rec.Object.Number), relinks: relinks})
	case KindPush:
		f = &markedFrame{number: rec.Frame, caller: rec.Parent, code: rec.Code}
		if rec.Frame == 0 {
			f.number = m.highest + 1
		}
		if rec.Number&FlagRestated != 0 {
			f.code, f.line = 0, int64(rec.From)
		}
		m.frames[f.number], m.current, m.highest = f, f, max(m.highest, f.number)
	case KindResume:
		if m.current = m.frames[rec.Frame]; m.current != nil {
			m.current.caller = rec.Parent
		}
	case KindFrame:
		m.current = m.frames[rec.Frame]
	case KindLost:
		m.hasGap = true
	}
	if f == nil { // the records below need a frame
		return
	}
	switch rec.Kind {
	case KindLine:
		m.step++
		f.line += rec.Delta
	case KindSet, KindDelete:
		m.add(mark{frame: uint32(f.number), number: uint32(rec.Name)})
	case KindReturn, KindUnwind:
		delete(m.frames, f.number)
		m.current = m.frames[f.caller]
	case KindSuspend:
		m.current = m.frames[f.caller]
		f.caller = 0
	}
}

func (m *marker) add(to mark) {
	to.step = uint32(m.step)
	if f := m.current; f != nil {
		to.code, to.line = uint32(f.code), int32(f.line)
	}
	m.list = append(m.list, to)
}

// lineOf returns the line that was current at a mark.
func (t *Table) lineOf(m *mark) int64 { return t.Code(uint64(m.code)).First + int64(m.line) }

// nextChange returns the first step, from the step of s on, in which a record may change what w watches. found is false
// if no step up to w.Until has such a record. The chunk must be marked.
func (u *unpackedChunk) nextChange(t *Table, s *State, w *Watch) (step int, found bool) {
	before := u.First - 1
	from := sort.Search(len(u.marks), func(i int) bool { return int(u.marks[i].step)+before >= s.Step })
	var objects map[uint32]bool // not computed yet
	for i := range u.marks[from:] {
		m := &u.marks[from+i]
		if step = int(m.step) + before; step > w.Until {
			break
		}
		switch {
		case m.frame != isObject:
			found = m.number == uint32(w.Name) && m.frame == uint32(w.Frame)
		case m.relinks || !w.Passed[t.lineOf(m)]:
			if objects == nil {
				objects = map[uint32]bool{}
				for _, n := range w.Objects(s) {
					objects[uint32(n)] = true
				}
			}
			found = objects[m.number]
		}
		if found {
			return step, true
		}
	}
	return 0, false
}
