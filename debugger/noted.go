package debugger

// noted has what was entered last in the open chunk's index: most records tell of the
// same lines, names and objects as those just before them, and a map is slow.
type noted struct {
	frames, names, objects recent
	lines                  [64]struct {
		line  line
		count *int
	}
}

type recent [64]uint64

// add enters a number, which is not 0.
func (r *recent) add(set map[uint64]bool, n uint64) {
	if at := &r[n%uint64(len(r))]; *at != n {
		*at = n
		set[n] = true
	}
}

// line counts a step at a line.
func (n *noted) line(c *Chunk, l line) {
	at := &n.lines[uint64(l.number)%uint64(len(n.lines))]
	if at.count == nil || at.line != l {
		if c.lines[l] == nil {
			c.lines[l] = new(int)
		}
		at.line, at.count = l, c.lines[l]
	}
	*at.count++
}

// count is how often a line is a step.
func (c *Chunk) count(l line) int {
	if n := c.lines[l]; n != nil {
		return *n
	}
	return 0
}

// note enters a record that has been applied in the open chunk's index.
func (j *Journal) note(rec *Record, left uint64) {
	c := j.open
	switch rec.Kind {
	case KindLine:
		c.Last = j.tip.Step
		f := j.tip.Frames[j.tip.Current]
		j.noted.line(c, line{j.table.Code(f.Code).File, f.Line})
		j.noted.frames.add(c.frames, f.Number)
	case KindPush, KindResume:
		j.noted.frames.add(c.frames, rec.Frame)
	case KindReturn, KindUnwind, KindSuspend:
		j.noted.frames.add(c.frames, left)
	case KindSet, KindGlobal, KindDelete, KindForget:
		j.noted.names.add(c.names, rec.Name)
	case KindObject, KindMutate:
		j.noted.objects.add(c.objects, rec.Object.Number)
	case KindRaise:
		c.raises = true
	case KindLost:
		c.Last = j.tip.Step
	}
}
