package recording

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// A chunk ends after a line record, once it has chunkFull bytes of records, so that the changes of a line are in the
// same chunk as the next line. Only a step of more than a quarter of chunkSize, or a large key frame, makes a chunk
// longer than chunkSize. A chunk of fullChunkBytes ends within a step.
const (
	chunkSize = 128 << 10
	chunkFull = chunkSize * 3 / 4
)

// Location is a line of a source file.
type Location struct {
	File uint64 // a name
	Line int64
}

// Chunk is a part of a recording that can be decoded on its own, with an index of its contents, so that a search
// decodes few chunks.
type Chunk struct {
	First, Last int  // steps; First is Last+1 in a chunk without steps
	Raises      bool // has a raise record
	Loses       bool // has a lost record

	size        int                    // of the key frame and the records, uncompressed
	sizes       [numColumns]int        // of the columns
	data        []byte                 // compressed
	load        func() ([]byte, error) // returns data if it is nil
	damage      error                  // why data cannot be decoded, once that is known; chunkCache.mu guards it
	definitions []byte                 // records that made definitions since the previous chunk

	lines   map[Location]*int // how many steps each line has
	frames  map[uint64]bool   // frames that have a step, begin or end
	names   map[uint64]bool   // variables that are set or deleted, the name doubled, plus 1 for one of the namespace
	objects map[uint64]bool   // objects that are new or changed
	memory  int               // of these maps, estimated, in bytes
	latest  *indexed          // of the open chunk
}

// LineCount returns the number of steps at a line.
func (c *Chunk) LineCount(l Location) int {
	if n := c.lines[l]; n != nil {
		return *n
	}
	return 0
}

// HasFrame reports whether a frame has a step in the chunk, begins or ends in it.
func (c *Chunk) HasFrame(frame uint64) bool { return c.frames[frame] }

// MayChange reports whether a variable of this name, or an object that it holds, may change in the chunk.
func (c *Chunk) MayChange(name uint64) bool {
	return name != 0 && (len(c.objects) > 0 || c.SetsLocal(name) || c.SetsGlobal(name))
}

// SetsLocal reports whether a variable of this name is set or deleted in a frame in the chunk, and SetsGlobal whether
// one of the namespace is.
func (c *Chunk) SetsLocal(name uint64) bool { return name != 0 && c.names[name<<1] }

// SetsGlobal is described at SetsLocal.
func (c *Chunk) SetsGlobal(name uint64) bool { return name != 0 && c.names[name<<1|1] }

// TouchesAny reports whether one of these objects is new or changed in the chunk.
func (c *Chunk) TouchesAny(objects []uint64) bool {
	return slices.ContainsFunc(objects, func(n uint64) bool { return c.objects[n] })
}

// flagColumns is set in each index: the records of the chunk are delta-encoded, in columns. Older versions had no
// columns, and no such flag.
const flagColumns = 8

func newChunk(afterStep int) *Chunk {
	return &Chunk{
		First: afterStep + 1, Last: afterStep, latest: &indexed{},
		lines: map[Location]*int{}, frames: map[uint64]bool{}, names: map[uint64]bool{}, objects: map[uint64]bool{},
	}
}

// clone copies a chunk that is still being written.
func (c *Chunk) clone() *Chunk {
	out := *c
	out.latest = nil
	out.lines = make(map[Location]*int, len(c.lines))
	for l, n := range c.lines {
		out.lines[l] = new(*n)
	}
	out.frames, out.names, out.objects = maps.Clone(c.frames), maps.Clone(c.names), maps.Clone(c.objects)
	return &out
}

// indexed holds recent entries of an open chunk's index. Most records repeat the lines, names and objects of the
// records just before them, and an array is faster than a map.
type indexed struct {
	frames, names, objects recentNumbers
	lines                  [64]struct {
		location Location
		count    *int
	}
}

type recentNumbers [64]uint64

// The memory of an entry of an index, in bytes.
const (
	lineEntryBytes   = 80
	numberEntryBytes = 24

	maxRecordIndexBytes = lineEntryBytes + numberEntryBytes // that one record adds
)

// add adds n, which is not 0, to set, a map of c.
func (r *recentNumbers) add(c *Chunk, set map[uint64]bool, n uint64) {
	slot := &r[n%uint64(len(r))]
	if *slot == n {
		return
	}
	*slot = n
	if !set[n] {
		set[n] = true
		c.memory += numberEntryBytes
	}
}

// countLine counts one step at a line.
func (c *Chunk) countLine(l Location) {
	slot := &c.latest.lines[uint64(l.Line)%uint64(len(c.latest.lines))]
	if slot.count == nil || slot.location != l {
		if c.lines[l] == nil {
			c.lines[l] = new(int)
			c.memory += lineEntryBytes
		}
		slot.location, slot.count = l, c.lines[l]
	}
	*slot.count++
}

// index adds a record to the chunk's index. s is the state after the record, left the current frame before the record.
func (c *Chunk) index(t *Table, s *State, rec *Record, left uint64) {
	switch rec.Kind {
	case KindLine:
		c.Last = s.Step
		f := s.CurrentFrame()
		c.countLine(Location{t.Code(f.Code).File, f.Line})
		c.latest.frames.add(c, c.frames, f.Number)
	case KindPush, KindResume:
		c.latest.frames.add(c, c.frames, rec.Frame)
	case KindReturn, KindUnwind, KindSuspend:
		c.latest.frames.add(c, c.frames, left)
	case KindSet, KindDelete:
		c.latest.names.add(c, c.names, rec.Name<<1)
	case KindGlobal, KindForget:
		c.latest.names.add(c, c.names, rec.Name<<1|1)
	case KindObject, KindMutate:
		c.latest.objects.add(c, c.objects, rec.Object.Number)
	case KindRaise:
		c.Raises = true
	case KindLost:
		c.Last, c.Loses = s.Step, true
	}
}

// appendIndex appends the stored index to b. All numbers are LEB128:
//
//	0 (in older versions, the uncompressed size), flags (1 has a raise record, 4 has a lost record, 8 always),
//	    uncompressed size of each column
//	number of lines, and each line: file, line, count; sorted by file and line
//	number of runs of consecutive frames, and of each run, ascending: the first frame minus the last one of the run
//	    before, and the length; then variables (see Chunk.names) and objects in the same form
func (c *Chunk) appendIndex(b []byte) []byte {
	b = appendNumbers(b, 0, bit(c.Raises)|bit(c.Loses)<<2|flagColumns)
	for _, size := range c.sizes {
		b = appendNumbers(b, uint64(size))
	}
	b = appendNumbers(b, uint64(len(c.lines)))
	byFileAndLine := func(a, b Location) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) }
	for _, l := range slices.SortedFunc(maps.Keys(c.lines), byFileAndLine) {
		b = appendNumbers(b, l.File, uint64(l.Line), uint64(c.LineCount(l)))
	}
	for _, set := range []map[uint64]bool{c.frames, c.names, c.objects} {
		b = appendRuns(b, SortedKeys(set))
	}
	return b
}

// appendRuns appends ascending numbers, as runs of consecutive ones.
func appendRuns(b []byte, numbers []uint64) []byte {
	var runs []byte
	count, last := uint64(0), uint64(0)
	for i := 0; i < len(numbers); count++ {
		first := i
		for i++; i < len(numbers) && numbers[i] == numbers[i-1]+1; i++ {
		}
		runs = appendNumbers(runs, numbers[first]-last, uint64(i-first))
		last = numbers[i-1]
	}
	return append(appendNumbers(b, count), runs...)
}

func (c *Chunk) readIndex(b []byte) error {
	r := &fieldReader{b: b}
	older, flags := r.n(), r.n()
	if r.err == nil && (older > 0 || flags&flagColumns == 0) {
		return fmt.Errorf("%w: the records of a chunk are not in columns", ErrVersion)
	}
	c.Raises, c.Loses = flags&1 != 0, flags&4 != 0
	for i := range c.sizes {
		size := r.n()
		if size > maxChunkBytes-uint64(c.size) {
			return damaged("the chunk of steps %d to %d unpacks to %d bytes and more; the limit is %d", c.First, c.Last,
				size, maxChunkBytes)
		}
		c.sizes[i] = int(size)
		c.size += int(size)
	}
	c.lines = map[Location]*int{}
	for count := r.n(); count > 0 && r.err == nil; count-- {
		l := Location{File: r.n(), Line: int64(r.n())}
		c.lines[l] = new(int(r.n()))
		if c.memory = len(c.lines) * lineEntryBytes; c.memory > maxIndexBytes {
			return errLargeIndexes
		}
	}
	for _, set := range []*map[uint64]bool{&c.frames, &c.names, &c.objects} {
		*set = map[uint64]bool{}
		n := uint64(0)
		for runs := r.n(); runs > 0 && r.err == nil; runs-- {
			gap := r.n()
			if gap == 0 || n+gap < n {
				r.fail("the numbers of an index are not ascending")
				break
			}
			n += gap - 1
			for length := r.n(); length > 0; length-- {
				n++
				(*set)[n] = true
				if c.memory+len(*set)*numberEntryBytes > maxIndexBytes {
					return errLargeIndexes
				}
			}
		}
		c.memory += len(*set) * numberEntryBytes
	}
	if r.err != nil {
		return fmt.Errorf("the index of steps %d to %d is damaged: %w", c.First, c.Last, r.err)
	}
	return nil
}
