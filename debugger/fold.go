package debugger

import (
	"slices"

	"glasshouse/debugger/program"
	"glasshouse/debugger/recording"
)

// folding tells which steps belong to comprehensions.
type folding struct {
	byLine map[int64]int // by line, a number of the comprehension over several lines that it is in
}

func newFolding(p *program.Program) *folding {
	f, number, lines := &folding{byLine: map[int64]int{}}, 0, 0
	for _, st := range p.Statements {
		for _, c := range st.Comprehensions {
			number++
			for line := max(c[0], st.Line); line <= min(c[1], st.End) && lines < program.MaxLineEntries; line++ {
				if f.byLine[line] == 0 { // not in another one
					f.byLine[line] = number
				}
				lines++
			}
		}
	}
	return f
}

// folds reports whether a step at a line is left out. before is the line before it in its frame, or 0. The first step
// of a comprehension in the frame around it stands for the comprehension.
func (f *folding) folds(function string, before, line int64) bool {
	number := f.byLine[line]
	return program.IsComprehension(function) || number > 0 && f.byLine[before] == number
}

// FoldedLines returns Lines without the steps of comprehensions. The first step of a comprehension in the frame around
// it is there, and has the variables and the exception of its last step up to last. So fewer lines are returned than
// there are steps.
func (r *Recording) FoldedLines(first, last int) (out []Line, err error) {
	err = r.journal.Read(func(reader *recording.Reader) error {
		fold := newFolding(r.program.of(reader.Table(), r.Source))
		lines, err := linesOf(reader, first, last, r.Source, fold)
		out = foldLines(lines)
		return err
	})
	return out, err
}

// foldLines removes the steps of comprehensions. A failed step stays if the step that stands for its comprehension is
// not among the lines.
func foldLines(lines []Line) []Line {
	out := []Line{}
	shown := map[uint64]int{} // by frame: the index of its last line in out
	for _, l := range lines {
		i, known := shown[l.frame]
		switch {
		case !l.isFolded:
			shown[l.frame] = len(out)
			out = append(out, l)
		case known:
			out[i].include(&l)
		case l.Status == StatusException && !program.IsComprehension(l.Function): // else its caller fails, too
			out = append(out, l)
		}
	}
	return out
}

// include takes over the variables and the end of a later line of the same frame.
func (l *Line) include(later *Line) {
	changed := slices.Concat(l.Changed, later.Changed)
	slices.Sort(changed)
	l.Changed = slices.Compact(changed)
	l.Variables, l.Unread = later.Variables, later.Unread
	l.Status, l.Error, l.DuringCall = later.Status, later.Error, later.DuringCall
}
