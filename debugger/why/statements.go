package why

import (
	"slices"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
)

// maxTimesChunks bounds the chunks that are read to count the executions of a statement.
const maxTimesChunks = 4

// startOf returns the first step of the execution of a statement that has a step in a frame.
func (w *slicer) startOf(step int, frame *recording.Frame, st *program.Statement) int {
	if st.End <= st.Line || !st.Has(frame.Line) {
		return step
	}
	first, until := step, step
	for _, c := range slices.Backward(w.reader.Chunks()) {
		if c.First > until || !c.HasFrame(frame.Number) {
			continue
		}
		starts, err := w.reader.CheckpointSteps(c, until)
		if err != nil {
			return first
		}
		for _, start := range starts {
			begin, isOutside := 0, false // begin is the first of the last steps in the statement
			see := func(s *recording.State) bool {
				f := s.CurrentFrame()
				switch {
				case s.Step > until:
					return false
				case f == nil || f.Number != frame.Number || f.Step != s.Step:
				case !st.Has(f.Line):
					begin, isOutside = 0, true
				case begin == 0:
					begin = s.Step
				}
				return s.Step < until
			}
			err := w.reader.ReplayAfter(c, start, see, func(s *recording.State, rec *recording.Record) bool {
				if rec.Kind == recording.KindLine {
					return see(s)
				}
				if s.Current == frame.Number && st.Ends(w.table, rec) {
					begin, isOutside = 0, true
				}
				return true
			})
			if begin > 0 {
				first = begin
			}
			if err != nil || isOutside {
				return first
			}
			until = start
		}
	}
	return first
}

// timesOf returns how often a statement at a line of a code ran in the whole run, and 0 if counting takes too long.
func (w *slicer) timesOf(code uint64, line int64, st *program.Statement) (times int) {
	if !st.Has(line) {
		st = &program.Statement{Line: line, End: line}
	}
	file := w.table.Code(code).File
	if st.Line == st.End && !w.isShared(code, file, line) {
		for _, c := range w.reader.Chunks() {
			times += c.LineCount(recording.Location{File: file, Line: line})
		}
		return times
	}
	searched := 0
	for _, c := range w.reader.Chunks() {
		if !hasStepsOf(c, file, st) {
			continue
		}
		if searched++; searched > maxTimesChunks {
			return 0
		}
		isIn := map[uint64]bool{} // frames whose last step is in the statement
		begin := func(s *recording.State) bool {
			for _, f := range s.Frames {
				isIn[f.Number] = f.Step > 0 && f.Code == code && st.Has(f.Line)
			}
			return true
		}
		err := w.reader.ReplayAfter(c, 0, begin, func(s *recording.State, rec *recording.Record) bool {
			f := s.CurrentFrame()
			if f == nil || f.Code != code {
				return true
			}
			switch {
			case rec.Kind == recording.KindLine:
				if st.Has(f.Line) && (!isIn[f.Number] || st.Line == st.End) {
					times++
				}
				isIn[f.Number] = st.Has(f.Line)
			case rec.Kind == recording.KindPush:
				isIn[f.Number] = false
			case st.Ends(w.table, rec):
				isIn[f.Number] = false
			}
			return true
		})
		if err != nil {
			return 0
		}
	}
	return times
}

// hasStepsOf reports whether a chunk has steps at the lines of a statement.
func hasStepsOf(c *recording.Chunk, file uint64, st *program.Statement) bool {
	for line := st.Line; line <= st.End; line++ {
		if c.LineCount(recording.Location{File: file, Line: line}) > 0 {
			return true
		}
	}
	return false
}

// isShared reports whether a line may have steps of several codes: one of them is defined there, such as a lambda or a
// generator expression.
func (w *slicer) isShared(code, file uint64, line int64) bool {
	for n := range uint64(w.table.Codes()) {
		other := w.table.Code(n + 1)
		if isOwn := n+1 == code && w.table.Name(other.Name) == recording.ModuleName; !isOwn && other.File == file &&
			other.First == line {
			return true
		}
	}
	return false
}
