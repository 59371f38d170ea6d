package debugger

import (
	"errors"
	"fmt"
	"slices"

	"glasshouse/sandbox"
)

// Follow has visit called for each record that Append takes, with the state behind it;
// before the first Append. It may read the Journal's table, and nothing else of it.
func (j *Journal) Follow(visit func(t *Table, s *State, rec *Record)) {
	j.follow = func(s *State, rec *Record) { visit(&j.table, s, rec) }
}

// End says that nothing more will come; what there is becomes a chunk. visit is told
// the last state.
func (j *Journal) End(visit func(*State)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.tip == nil {
		return
	}
	if visit != nil {
		visit(j.tip)
	}
	j.seal()
	j.tip, j.rest, j.open = nil, nil, nil
}

// Take returns the chunks that are complete and were not taken before, as they are kept.
func (j *Journal) Take() []sandbox.Chunk {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []sandbox.Chunk
	for ; j.taken < len(j.chunks); j.taken++ {
		c := j.chunks[j.taken]
		out = append(out, sandbox.Chunk{Sequence: j.taken, First: c.First, Last: c.Last, Definitions: c.defs, Index: c.appendIndex(nil), Data: c.Data})
	}
	return out
}

// Open returns a recording that was kept: its chunks in order, without their Data,
// which load is asked for when it is needed.
func Open(chunks []sandbox.Chunk, load func(sequence int) ([]byte, error)) (*Journal, error) {
	j, err := NewJournal()
	if err != nil {
		return nil, err
	}
	j.open, j.ahead, j.tip = nil, nil, nil
	for i, kept := range chunks {
		if kept.Sequence != i {
			return nil, fmt.Errorf("chunk %d of the recording is missing", i)
		}
		c := &Chunk{First: kept.First, Last: kept.Last, load: func() ([]byte, error) { return load(i) }}
		if err := c.readIndex(kept.Index); err != nil {
			return nil, err
		}
		if err := j.table.read(kept.Definitions); err != nil {
			return nil, fmt.Errorf("chunk %d of the recording: %w", i, err)
		}
		j.chunks = append(j.chunks, c)
	}
	return j, nil
}

// read takes records that define.
func (t *Table) read(b []byte) error {
	var rec Record
	for len(b) > 0 {
		size, err := decode(b, &rec)
		if err != nil {
			return err
		}
		if defined, err := t.define(&rec); err != nil || !defined {
			return errors.Join(err, fmt.Errorf("a %s among the definitions", rec.Kind))
		}
		b = b[size:]
	}
	return nil
}

// The index of a chunk: its uncompressed size; 1 where it has a raise, and 2 where it is
// packed; lines as file, line and count; frames; names; objects. Each list is its
// length and the numbers, less the one before.

func (c *Chunk) appendIndex(b []byte) []byte {
	b = appendNumbers(b, uint64(c.Size), bit(c.raises)|bit(c.packed)<<1, uint64(len(c.lines)))
	lines := make([]line, 0, len(c.lines))
	for l := range c.lines {
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(a, b line) int {
		if a.file != b.file {
			return int(int64(a.file) - int64(b.file))
		}
		return int(a.number - b.number)
	})
	for _, l := range lines {
		b = appendNumbers(b, l.file, uint64(l.number), uint64(c.count(l)))
	}
	for _, set := range []map[uint64]bool{c.frames, c.names, c.objects} {
		b = appendNumbers(b, uint64(len(set)))
		before := uint64(0)
		for _, n := range sortedKeys(set) {
			b = appendNumbers(b, n-before)
			before = n
		}
	}
	return b
}

func (c *Chunk) readIndex(b []byte) error {
	r := &reader{b: b}
	c.Size = int(r.n())
	flags := r.n()
	c.raises, c.packed = flags&1 != 0, flags&2 != 0
	c.lines = map[line]*int{}
	for count := r.n(); count > 0 && r.err == nil; count-- {
		l := line{file: r.n(), number: int64(r.n())}
		c.lines[l] = new(int(r.n()))
	}
	for _, set := range []*map[uint64]bool{&c.frames, &c.names, &c.objects} {
		*set = map[uint64]bool{}
		before := uint64(0)
		for count := r.n(); count > 0 && r.err == nil; count-- {
			before += r.n()
			(*set)[before] = true
		}
	}
	if r.err != nil {
		return fmt.Errorf("the index of steps %d to %d is damaged: %w", c.First, c.Last, r.err)
	}
	return nil
}

// lookahead is how many steps of others a line may wait for its end in a page.
const lookahead = 10_000

// Lines tells the steps from first to last as lines, each once, as it was told first,
// or as its failure where that follows soon. What changed is told within the step's
// chunk.
func (j *Journal) Lines(first, last int, source []string) ([]Line, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	found := map[int]Line{}
	var steps []int
	tell := func(l Line) {
		if l.Step < first || l.Step > last {
			return
		}
		if _, told := found[l.Step]; !told {
			steps = append(steps, l.Step)
		} else if l.Status != StatusException {
			return
		}
		found[l.Step] = l
	}
	wanted := min(last, j.steps()) - first + 1
	for _, c := range j.all() {
		if c.Last < first || len(steps) >= wanted || c.First > last+lookahead {
			continue
		}
		var p *Plain
		var end *State
		err := j.replayFrom(c, 0, func(s *State) bool { p, end = NewPlain(&j.table, s, source, tell), s; p.from = first; return true }, func(s *State, rec *Record) bool {
			p.See(s, rec)
			return len(steps) < wanted && s.Step < last+lookahead
		})
		if err != nil {
			return nil, err
		}
		if end.Step == j.steps() {
			p.End(end)
		}
	}
	slices.Sort(steps)
	out := make([]Line, 0, len(steps))
	for _, step := range steps {
		out = append(out, found[step])
	}
	return out, nil
}
