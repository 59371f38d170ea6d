package recording

import (
	"fmt"
	"math"
)

// LineMap has the line and the depth of each recorded step, in order. Steps that were lost have no entry.
type LineMap struct {
	Lines  []uint32       // 0: the step is in another file than the program's
	Depths []uint16       // number of frames in the stack of the step
	Gaps   []SkippedSteps // where steps were lost, in order
	Last   int            // the last step that the map covers
}

// SkippedSteps is a sequence of steps that the recording does not have.
type SkippedSteps struct {
	First  int    `json:"first" doc:"The first step that was not recorded"`
	Last   int    `json:"last"`
	Reason string `json:"reason"`
}

const maxLineMapGaps = 1000

// changesFrames are the records that a line map depends on. It skips the values, which take most of the time.
var changesFrames = kindSet(KindPush, KindResume, KindSuspend, KindReturn, KindUnwind, KindFrame, KindLine, KindLost)

// LineMap returns the lines of at most maxSteps recorded steps. It reads every chunk, and leaves the cache alone.
func (r *Reader) LineMap(maxSteps int) (*LineMap, error) {
	out := &LineMap{}
	for _, c := range r.Chunks() {
		more := false
		err := r.visit(c, r.cache.unpackUncached, func(u *unpackedChunk) (err error) {
			more, err = r.mapChunk(u, out, maxSteps)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("chunk of steps %d to %d: %w", c.First, c.Last, err)
		}
		if !more {
			break
		}
	}
	return out, nil
}

// mapChunk adds the steps of a chunk to a map. It returns false if the map is full.
func (r *Reader) mapChunk(u *unpackedChunk, out *LineMap, maxSteps int) (more bool, err error) {
	s, _, err := decodeKeyFrame(u.key)
	if err != nil {
		return false, err
	}
	program := r.table.Code(1).File
	depths := map[uint64]int{} // by frame
	var depth func(frame uint64) int
	depth = func(frame uint64) int {
		d, ok := depths[frame]
		if f := s.Frames[frame]; !ok && f != nil {
			depths[frame] = 1 // ends the recursion in a forged recording whose frames call each other
			d = depth(f.Parent) + 1
			depths[frame] = d
		}
		return d
	}
	var rec Record
	var current *Frame // of the line before, with its facts
	var isProgram bool
	var currentDepth uint16
	intern := &internTable{}
	for offset := 0; offset < len(u.records); {
		size, err := decodeRecord(u.records[offset:], &rec, intern)
		if err != nil {
			return false, err
		}
		offset += size
		if !changesFrames[rec.Kind] {
			continue
		}
		before := s.Step
		if err := s.apply(&r.table, &rec); err != nil {
			return false, err
		}
		switch rec.Kind {
		case KindLine:
			if len(out.Lines) >= maxSteps {
				return false, nil
			}
			f := s.CurrentFrame()
			if f != current {
				current, isProgram = f, r.table.Code(f.Code).File == program
				currentDepth = uint16(min(depth(f.Number), math.MaxUint16))
			}
			line := uint32(0)
			if isProgram {
				line = uint32(f.Line)
			}
			out.Lines, out.Depths = append(out.Lines, line), append(out.Depths, currentDepth)
			out.Last = s.Step
		case KindLost:
			clear(depths)
			current = nil
			if s.Step == before {
				continue
			}
			if len(out.Gaps) >= maxLineMapGaps {
				return false, nil
			}
			out.Gaps = append(out.Gaps, SkippedSteps{before + 1, s.Step, rec.Text})
			out.Last = s.Step
		default:
			current = nil
			if rec.Kind == KindPush || rec.Kind == KindResume {
				delete(depths, rec.Frame)
			}
		}
	}
	return true, nil
}
