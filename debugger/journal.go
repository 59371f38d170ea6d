package debugger

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// A chunk ends behind a line, so that what a line has changed stands with the next
// one: at chunkFull bytes of records, which leaves a step a quarter of chunkSize. Only
// a step that is longer makes a chunk longer, or a large key frame, which comes on top.
const (
	chunkSize = 128 << 10
	chunkFull = chunkSize * 3 / 4
	maxBytes  = 192 << 20 // of one recording
)

// ErrForged is a recording that no recorder of ours writes.
var ErrForged = errors.New("an illegal record")

// ErrVersion is a recording in the format of another version of this program.
var ErrVersion = errors.New("a recording of another version")

// ErrNoStep is a step that the recording has not: past its end, or lost.
var ErrNoStep = errors.New("there is no such step in the recording")

// ErrNoFrame and ErrNoObject are what is not there at a step.
var (
	ErrNoFrame  = errors.New("there is no such frame at this step")
	ErrNoObject = errors.New("there is no such object at this step")
)

// Chunk is a part of a recording: a key frame and the records behind it, packed and
// compressed, and what is in it, so that a search opens few.
type Chunk struct {
	First, Last int // steps; First is Last+1 where it has none
	Size        int // uncompressed
	Data        []byte
	lines       map[line]*int   // how often each is a step
	frames      map[uint64]bool // that have a step, are pushed or left
	names       map[uint64]bool // set or deleted
	objects     map[uint64]bool // new or mutated
	raises      bool
	packed      bool   // its records are; those of older recordings are not
	defs        []byte // the records that define, since the chunk before
	load        func() ([]byte, error)
}

type line struct {
	file   uint64
	number int64
}

// Journal is one recording, numbered by steps. It may be read while it grows; all its
// methods may be called from any goroutine.
type Journal struct {
	mu     sync.RWMutex
	table  Table
	tip    *State
	rest   []byte // the beginning of a record that is not whole
	chunks []*Chunk
	open   *Chunk
	ahead  *unpacked // the open chunk
	packed []byte    // the open chunk's records, as they are kept
	packer *packer
	noted  noted
	texts  texts
	bytes  int    // of all records so far
	defs   []byte // records that define, since the last chunk
	taken  int    // chunks that Take has returned
	follow func(*State, *Record)
	cache  *cache
	roots  *roots
	zip    *zstd.Encoder
	unzip  *zstd.Decoder
}

// NewJournal returns an empty recording.
func NewJournal() (*Journal, error) {
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256<<10))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	unzip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*maxHeld))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	j := &Journal{tip: newState(), cache: &cache{}, roots: &roots{}, zip: zip, unzip: unzip}
	j.begin()
	return j, nil
}

func (j *Journal) begin() {
	j.open = &Chunk{
		First: j.tip.Step + 1, Last: j.tip.Step,
		lines: map[line]*int{}, frames: map[uint64]bool{}, names: map[uint64]bool{}, objects: map[uint64]bool{},
	}
	j.packed, j.packer, j.noted = j.packed[:0], newPacker(), noted{}
	j.ahead = &unpacked{chunk: j.open, key: j.tip.appendKey(nil), checkpoints: &checkpoints{}}
}

// Append takes what a recorder has written, of any length. After an error the
// recording stands as it was before the illegal record, and takes no more.
func (j *Journal) Append(b []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.tip == nil {
		return ErrForged
	}
	if len(j.rest) > 0 {
		b = append(j.rest, b...)
	}
	var rec Record
	for len(b) > 0 {
		size, err := j.texts.decode(b, &rec)
		if err == errShort {
			break
		}
		if err == nil {
			err = j.record(&rec, b[:size])
		}
		if err != nil {
			j.rest = nil
			j.seal()
			j.tip = nil
			return fmt.Errorf("%w, after step %d: %w", ErrForged, j.steps(), err)
		}
		b = b[size:]
	}
	j.rest = append([]byte(nil), b...)
	return nil
}

func (j *Journal) record(rec *Record, raw []byte) error {
	if (rec.Kind == KindHead) != (j.table.Recorder == "") {
		return errors.New("the head is the first record, and only that")
	}
	j.bytes += len(raw)
	if j.bytes > maxBytes {
		return fmt.Errorf("more than %d bytes", maxBytes)
	}
	if defined, err := j.table.define(rec); err != nil {
		return err // and it is not kept: with it, nothing of the recording could be read
	} else if defined {
		j.defs = append(j.defs, raw...)
		return nil
	}
	left, kept := j.tip.Current, len(j.packed)
	j.packed = j.packer.record(j.packed, rec)
	if err := j.tip.apply(&j.table, rec); err != nil {
		j.packed = j.packed[:kept]
		return err
	}
	j.ahead.raw = append(j.ahead.raw, raw...)
	j.note(rec, left)
	if j.follow != nil {
		j.follow(j.tip, rec)
	}
	// Each chunk begins with all that is held: where that is much, more follows it.
	if rec.Kind == KindLine && len(j.ahead.raw) >= max(chunkFull, len(j.ahead.key)/4) {
		j.seal()
		j.begin()
	}
	return nil
}

// seal compresses the open chunk.
func (j *Journal) seal() {
	if j.open == nil || len(j.ahead.raw) == 0 {
		return
	}
	whole := append(j.ahead.key, j.packed...)
	j.open.Size, j.open.packed = len(whole), true
	j.open.Data = j.zip.EncodeAll(whole, nil)
	j.open.defs, j.defs = j.defs, nil
	j.chunks = append(j.chunks, j.open)
	j.open, j.ahead = nil, nil
}

func (j *Journal) steps() int {
	if j.open != nil {
		return j.open.Last
	}
	if n := len(j.chunks); n > 0 {
		return j.chunks[n-1].Last
	}
	return 0
}

// Steps returns the number of the last step.
func (j *Journal) Steps() int {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.steps()
}

// Table returns a copy of what the recording has defined so far.
func (j *Journal) Table() Table {
	j.mu.RLock()
	defer j.mu.RUnlock()
	t := j.table // its slices only grow
	t.byName = nil
	return t
}

// still is the recording so far, for a search: it does not grow, so the search needs no
// lock, for which the program's next record would wait, and all readers behind that.
func (j *Journal) still() *Journal {
	j.mu.RLock()
	defer j.mu.RUnlock()
	out := &Journal{table: j.table, chunks: j.chunks, cache: j.cache, roots: j.roots, unzip: j.unzip}
	if j.open == nil { // nothing more comes
		return out
	}
	out.table.byName = maps.Clone(j.table.byName) // the slices only grow
	out.open = j.open.clone()
	out.ahead = &unpacked{out.open, j.ahead.key, j.ahead.raw, j.ahead.checkpoints}
	return out
}

// clone copies what a chunk that is open goes on to change.
func (c *Chunk) clone() *Chunk {
	out := *c
	out.lines = make(map[line]*int, len(c.lines))
	for l, n := range c.lines {
		out.lines[l] = new(*n)
	}
	out.frames, out.names, out.objects = maps.Clone(c.frames), maps.Clone(c.names), maps.Clone(c.objects)
	return &out
}

// all returns the chunks in order, the open one last.
func (j *Journal) all() []*Chunk {
	if j.open == nil || len(j.ahead.raw) == 0 {
		return j.chunks
	}
	return append(j.chunks[:len(j.chunks):len(j.chunks)], j.open)
}

// replay calls visit for each record of a chunk, with the state behind it, until it
// returns false. The state is visit's until the next record.
func (j *Journal) replay(c *Chunk, visit func(s *State, rec *Record) bool) error {
	return j.replayFrom(c, 0, func(*State) bool { return true }, visit)
}

// replayFrom does so for the records behind a step, and perhaps some that are ahead of
// it; begin is called with the state ahead of the first, and may be enough.
func (j *Journal) replayFrom(c *Chunk, step int, begin func(*State) bool, visit func(s *State, rec *Record) bool) error {
	wrong := func(err error) error { return fmt.Errorf("chunk of steps %d to %d: %w", c.First, c.Last, err) }
	u, err := j.unpacked(c)
	if err != nil {
		return wrong(err)
	}
	from := u.span(step)
	s, _, err := decodeKey(from.key)
	if err != nil {
		return wrong(err)
	}
	if !begin(s) {
		return nil
	}
	var rec Record
	for at := from.offset; at < len(u.raw); {
		size, err := decode(u.raw[at:], &rec)
		if err == nil {
			err = s.apply(&j.table, &rec)
		}
		if err != nil {
			return wrong(err)
		}
		at += size
		if rec.Kind == KindLine {
			u.pass(s, at)
		}
		if !visit(s, &rec) {
			return nil
		}
	}
	return nil
}

// State returns what is known on arrival at a step.
func (j *Journal) State(step int) (*State, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.state(step)
}

func (j *Journal) state(step int) (*State, error) {
	var found *State
	for _, c := range j.all() {
		if step < c.First || step > c.Last {
			continue
		}
		arrived := func(s *State) (further bool) {
			if s.Step == step {
				found = s
			}
			return found == nil
		}
		err := j.replayFrom(c, step, arrived, func(s *State, rec *Record) bool { return rec.Kind != KindLine || arrived(s) })
		if err != nil {
			return nil, err
		}
	}
	if found == nil {
		return nil, fmt.Errorf("step %d: %w", step, ErrNoStep)
	}
	return found, nil
}
