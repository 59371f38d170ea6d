package recording

import (
	"errors"
	"fmt"
	"math"
)

// Reader reads a recording. It may be used by one goroutine at a time; several Readers of one recording share a cache.
type Reader struct {
	table  Table
	chunks []*Chunk       // the complete chunks
	open   *unpackedChunk // the chunk that is being written; nil once the recording is complete
	cache  *chunkCache
	edits  map[int]uint64 // by step: the number of the last edit there; replaced, never modified

	visitsLarge bool // a large chunk is being visited; the visitor may read others
}

// Steps returns the number of the last step.
func (r *Reader) Steps() int {
	if r.open != nil {
		return r.open.Last
	}
	if n := len(r.chunks); n > 0 {
		return r.chunks[n-1].Last
	}
	return 0
}

// FirstStep returns the first step that the recording has, and 0 if it has none.
func (r *Reader) FirstStep() int {
	for _, c := range r.Chunks() {
		if c.First <= c.Last {
			return c.First
		}
	}
	return 0
}

// Table returns the definitions.
func (r *Reader) Table() *Table { return &r.table }

// Chunks returns the chunks in order. The caller must not modify the result.
func (r *Reader) Chunks() []*Chunk {
	if r.open == nil || len(r.open.records) == 0 {
		return r.chunks
	}
	return append(r.chunks[:len(r.chunks):len(r.chunks)], r.open.Chunk)
}

// visit calls f with a chunk that unpack has unpacked. If the chunk is large, it first waits until no other reader
// visits one.
func (r *Reader) visit(
	c *Chunk, unpack func(c *Chunk, limit int) (*unpackedChunk, error), f func(*unpackedChunk) error,
) error {
	if r.open != nil && c == r.open.Chunk {
		unpack = func(_ *Chunk, limit int) (*unpackedChunk, error) {
			if r.open.bytes() > limit {
				return nil, errLargeChunk
			}
			return r.open, nil
		}
	}
	u, err := unpack(c, smallChunkBytes)
	if err == errLargeChunk {
		if !r.visitsLarge {
			release, err := acquireLargeChunk()
			if err != nil {
				return err
			}
			r.visitsLarge = true
			defer func() { r.visitsLarge = false; release() }()
		}
		if u, err = lastLargeChunk, nil; u == nil || u.Chunk != c {
			lastLargeChunk = nil // so that its memory can be used for u
			u, err = unpack(c, maxUnpackedBytes)
			lastLargeChunk = u
		}
	}
	if err != nil {
		return err
	}
	if err := f(u); err != nil {
		return damaged("%v", err)
	}
	return nil
}

// CheckpointSteps divides the part of a chunk before a step into segments for a backward search. It returns the first
// step of each segment, the nearest first; the last one is 0, for the beginning of the chunk. Each segment ends where
// the previous one in the list begins, and the first ends at the step. ReplayAfter visits one segment.
func (r *Reader) CheckpointSteps(c *Chunk, before int) ([]int, error) {
	var steps []int
	err := r.visit(c, r.cache.unpack, func(u *unpackedChunk) error {
		steps = u.checkpointSteps(before)
		return nil
	})
	return steps, err
}

// Replay calls visit for each record of a chunk, with the state after the record, until visit returns false. The state
// is valid until visit returns.
func (r *Reader) Replay(c *Chunk, visit func(*State, *Record) bool) error {
	return r.ReplayAfter(c, 0, nil, visit)
}

// ReplayAfter calls visit for each record of a chunk after the line record of a step, and perhaps for some records
// before it. If begin is not nil, it is called first, with the state before the first record; if it returns false, no
// record is visited.
func (r *Reader) ReplayAfter(c *Chunk, step int, begin func(*State) bool, visit func(*State, *Record) bool) error {
	return r.ReplayChanges(c, step, nil, begin, visit)
}

// ReplayChanges is ReplayAfter without records that cannot change what w watches: it ends where no further one can, and
// may leave out others, after which it calls begin again. If w is nil, it is ReplayAfter.
func (r *Reader) ReplayChanges(
	c *Chunk, step int, w *Watch, begin func(*State) bool, visit func(*State, *Record) bool,
) error {
	err := r.visit(c, r.cache.unpack, func(u *unpackedChunk) error { return r.replay(u, step, w, begin, visit) })
	if err != nil {
		return fmt.Errorf("chunk of steps %d to %d: %w", c.First, c.Last, err)
	}
	return nil
}

func (r *Reader) replay(
	u *unpackedChunk, step int, w *Watch, begin func(*State) bool, visit func(*State, *Record) bool,
) error {
	from := u.nearest(step)
	s, _, err := decodeKeyFrame(from.key)
	if err != nil {
		return err
	}
	if begin != nil && !begin(s) {
		return nil
	}
	next, found, offset, due := math.MaxInt, true, from.offset, 0
	// advance finds the next record that matters, and goes to the last checkpoint before it.
	advance := func() error {
		if next, found = u.nextChange(&r.table, s, w); !found {
			return nil
		}
		to := u.nearest(next)
		if to.offset <= offset {
			return nil
		}
		if s, _, err = decodeKeyFrame(to.key); err != nil {
			return err
		}
		offset = to.offset
		if begin != nil {
			found = begin(s)
		}
		return nil
	}
	if w != nil && u.isMarked {
		if err := advance(); err != nil {
			return err
		}
	}
	var rec Record
	intern := &internTable{}
	for offset < len(u.records) && found {
		size, err := decodeRecord(u.records[offset:], &rec, intern)
		if err == nil {
			err = s.apply(&r.table, &rec)
		}
		if err != nil {
			return err
		}
		offset += size
		if rec.Kind == KindLine && offset >= due {
			due = u.addCheckpoint(s, offset)
		}
		if !visit(s, &rec) {
			return nil
		}
		if rec.Kind == KindLine && s.Step > next { // the line has shown the change
			if err := advance(); err != nil {
				return err
			}
		}
	}
	return nil
}

// End returns the step behind the last one of a complete recording, whose state has what the last line set. While the
// recording is being written, it returns the last step.
func (r *Reader) End() int {
	if n := r.Steps(); r.open != nil || n == 0 {
		return n
	}
	return r.Steps() + 1
}

// endState returns the state after the last record. The outermost frame is there, although it has ended.
func (r *Reader) endState() (*State, error) {
	var end *State
	var current, last *Frame
	c := r.chunks[len(r.chunks)-1]
	keep := func(s *State) {
		if current = s.CurrentFrame(); current != nil && current.Step > 0 {
			last = current
		}
	}
	begin := func(s *State) bool { end = s; keep(s); return true }
	err := r.ReplayAfter(c, r.Steps(), begin, func(s *State, rec *Record) bool {
		if rec.Kind == KindLost {
			last = nil
		}
		keep(s)
		return true
	})
	if err != nil {
		return nil, err
	}
	if current == nil && last == nil {
		return nil, fmt.Errorf("step %d: %w", r.End(), ErrNoStep)
	}
	if current == nil { // the records end with the end of this frame
		end.Frames[last.Number], end.Current = last, last.Number
	}
	end.Step = r.End()
	return end, nil
}

// State returns the state on arrival at a step, after the edits there. The step End is that after the last line. State
// returns ErrNoStep if the recording does not have the step.
func (r *Reader) State(step int) (*State, error) {
	if end := r.End(); step == end && end > r.Steps() {
		return r.endState()
	}
	if number := r.edits[step]; number > 0 {
		if s, err := r.stateAfterEdit(step, number); s != nil || err != nil {
			return s, err
		}
	}
	var found *State
	for _, c := range r.Chunks() {
		if step < c.First || step > c.Last {
			continue
		}
		search := func(s *State) (more bool) {
			if s.Step == step {
				found = s
			}
			return found == nil
		}
		err := r.ReplayAfter(c, step, search,
			func(s *State, rec *Record) bool { return rec.Kind != KindLine || search(s) })
		if err != nil {
			return nil, err
		}
	}
	if found == nil {
		return nil, fmt.Errorf("step %d: %w", step, ErrNoStep)
	}
	return found, nil
}

// States calls visit for each step from first to last that the recording has, in order, with the state that State
// returns for it, until visit returns false. The state is valid until visit returns.
func (r *Reader) States(first, last int, visit func(*State) bool) error {
	next := max(first, 1)
	var failed error
	reach := func(s *State) (more bool) {
		if s.Step < next {
			return true
		}
		if s.Step <= last {
			if number := r.edits[s.Step]; number > 0 {
				var edited *State
				if edited, failed = r.stateAfterEdit(s.Step, number); edited != nil {
					s = edited
				}
			}
			if failed == nil && visit(s) {
				next = s.Step + 1
				return next <= last
			}
		}
		next = last + 1
		return false
	}
	for _, c := range r.Chunks() {
		if next > last || c.First > last || c.Last < next {
			continue
		}
		err := r.ReplayAfter(c, next, reach, func(s *State, rec *Record) bool {
			return rec.Kind != KindLine || reach(s)
		})
		if err = errors.Join(failed, err); err != nil {
			return err
		}
	}
	if end := r.End(); next <= end && end <= last && end > r.Steps() {
		s, err := r.endState()
		if err == nil {
			visit(s)
		} else if !errors.Is(err, ErrNoStep) {
			return err
		}
	}
	return nil
}

// stateAfterEdit returns the state at the end of an edit, or nil if the recorder has not recorded it at that step.
func (r *Reader) stateAfterEdit(step int, number uint64) (found *State, err error) {
	for _, c := range r.Chunks() {
		if step+1 < c.First || step > c.Last { // the next chunk may begin between the line and the edit
			continue
		}
		open := uint64(0)
		err := r.ReplayAfter(c, step, nil, func(s *State, rec *Record) bool {
			if s.Step == step && rec.Kind == KindEvent {
				if open == number && s.Edit == 0 {
					found = s
				}
				open = s.Edit
			}
			return s.Step <= step && found == nil
		})
		if err != nil || found != nil {
			return found, err
		}
	}
	return nil, nil
}
