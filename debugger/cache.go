package debugger

import (
	"fmt"
	"slices"
	"sync"
)

// Who steps stays near: so the chunks that were read last are kept unpacked, each with
// checkpoints, from which a step in its middle is few records away. A checkpoint is a key
// frame, and ahead of it are at least as many bytes of records as the key frame before
// it has: so those of a chunk are hardly longer than the chunk, however much lives.
const (
	maxCached = 2 << 20 // bytes of one recording, beside the chunk that was read last
	minSpan   = 2 << 10 // bytes of records between checkpoints
)

// cache has what was read last of one recording, the latest at the end.
type cache struct {
	mu   sync.Mutex
	kept []*unpacked
}

// unpacked is a chunk as it is read, or written.
type unpacked struct {
	chunk *Chunk
	key   []byte
	raw   []byte // its records
	*checkpoints
}

// checkpoints are those of a chunk.
type checkpoints struct {
	mu    sync.Mutex
	marks []mark // in order
}

// mark is a checkpoint: right behind the line of a step.
type mark struct {
	step   int
	offset int // in the records
	key    []byte
}

// span returns where a replay begins that is to see all that is behind a step: the last
// checkpoint that is there.
func (u *unpacked) span(step int) mark {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, m := range slices.Backward(u.marks) {
		if m.step <= step {
			return m
		}
	}
	return mark{key: u.key}
}

// pass makes a checkpoint of the line that a replay has come to, where that is far
// enough from the one before.
func (u *unpacked) pass(s *State, offset int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before := mark{key: u.key}
	if n := len(u.marks); n > 0 {
		before = u.marks[n-1]
	}
	if offset-before.offset >= max(minSpan, len(before.key)) {
		u.marks = append(u.marks, mark{s.Step, offset, s.appendKey(nil)})
	}
}

// spans returns the steps behind which replays may begin that together see the chunk
// up to a step, the nearest first; 0 is its beginning.
func (u *unpacked) spans(until int) []int {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := []int{}
	for _, m := range slices.Backward(u.marks) {
		if m.step < until {
			out = append(out, m.step)
		}
	}
	return append(out, 0)
}

// spans is that of a chunk.
func (j *Journal) spans(c *Chunk, until int) ([]int, error) {
	u, err := j.unpacked(c)
	if err != nil {
		return nil, err
	}
	return u.spans(until), nil
}

// most is how many bytes it may take at the most, with all checkpoints.
func (u *unpacked) most() int { return 2*len(u.key) + 3*len(u.raw) }

// unpacked returns a chunk as it is read.
func (j *Journal) unpacked(c *Chunk) (*unpacked, error) {
	if c == j.open {
		return j.ahead, nil
	}
	j.cache.mu.Lock()
	defer j.cache.mu.Unlock()
	kept := j.cache.kept
	if i := slices.IndexFunc(kept, func(u *unpacked) bool { return u.chunk == c }); i >= 0 {
		u := kept[i]
		j.cache.kept = append(slices.Delete(kept, i, i+1), u)
		return u, nil
	}
	data := c.Data
	if data == nil {
		var err error
		if data, err = c.load(); err != nil {
			return nil, err
		}
	}
	whole, err := j.unzip.DecodeAll(data, make([]byte, 0, min(c.Size, 2*maxHeld)))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	_, size, err := decodeKey(whole)
	if err != nil {
		return nil, err
	}
	u := &unpacked{c, whole[:size], whole[size:], &checkpoints{}}
	if c.packed {
		if u.raw, err = unpack(u.raw); err != nil {
			return nil, err
		}
		u.key = slices.Clone(u.key) // the packed ones need not stay
	}
	j.cache.kept = append(j.cache.kept, u)
	room := maxCached
	for i, each := range slices.Backward(j.cache.kept[:len(kept)]) {
		if room -= each.most(); room < 0 {
			j.cache.kept = slices.Clone(j.cache.kept[i+1:])
			break
		}
	}
	return u, nil
}
