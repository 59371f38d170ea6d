package recording

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"

	"glasshouse/sandbox"
)

// Limits of one recording.
const (
	maxRecordingBytes = 192 << 20 // of records, as they arrive
	maxRecordedSteps  = 32 << 20  // without those that are lost; our recorders stop at a million, and then keep few
	maxIndexBytes     = 256 << 20 // of memory for the indexes of all chunks
	maxKeptRecords    = 1 << 20   // bytes of memory that the next chunk uses again
)

var (
	// ErrIllegalRecord means that the stream breaks the format. Our recorders never write such a stream.
	ErrIllegalRecord = errors.New("illegal record")

	// ErrVersion means that the recording has the format of another version of this program.
	ErrVersion = errors.New("the recording has an unsupported format version")

	// ErrNoStep means that a step is after the end of the recording, or was lost.
	ErrNoStep = errors.New("the recording has no such step")

	errLargeIndexes = fmt.Errorf("more than %d bytes of different lines, frames, names and objects", maxIndexBytes)

	// ErrNoFrame and ErrNoObject mean that a frame or an object does not exist at a step.
	ErrNoFrame  = errors.New("there is no such frame at this step")
	ErrNoObject = errors.New("there is no such object at this step")
)

// Journal is one recording. It may be read while it grows; all methods may be called from any goroutine.
type Journal struct {
	mu       sync.RWMutex
	reader   Reader
	latest   *State      // after the last record; nil once the recording is complete
	partial  []byte      // the beginning of a record whose end has not arrived
	coder    *deltaCoder // of the open chunk's records
	intern   internTable
	received int    // bytes of all records so far
	recorded int    // line records so far
	indexes  int    // estimated memory of the indexes of the complete chunks, in bytes
	newDefs  []byte // records that made definitions since the last complete chunk
	numTaken int    // chunks that TakeChunks has returned
	openGap  string // the reason of the gap that the latest record tells; "" if it tells none
	follow   func(*Table, *State, *Record)
	record   Record  // the latest, which is decoded in place
	records  []byte  // memory for those of the next chunk
	columns  columns // likewise, for its delta-encoded records
	zipped   []byte  // what closeChunk has compressed
	isShared bool    // a snapshot reads the records of the open chunk
	hasLarge bool    // a complete chunk is large
}

// NewJournal returns an empty recording.
func NewJournal() (*Journal, error) {
	j, err := newJournal()
	if err == nil {
		j.latest = newState()
		j.latest.reusesFrames = true
		j.openChunk()
	}
	return j, err
}

// maxZipping is how many chunks are compressed at a time. Each takes 5 MB of memory, which is kept.
const maxZipping = 4

// zip returns the encoder of all journals. Its memory is allocated and cleared once, and not for each recording.
var zip = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
		zstd.WithEncoderConcurrency(min(maxZipping, runtime.GOMAXPROCS(0))), zstd.WithWindowSize(256<<10))
})

func newJournal() (*Journal, error) {
	if _, err := zip(); err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	unzip, err := newUnzip()
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return &Journal{reader: Reader{cache: &chunkCache{unzip: unzip}}}, nil
}

// Open returns a complete recording from its stored chunks, which are in order and without Data. It calls load for the
// Data of a chunk when the chunk is needed. Open returns ErrVersion for a recording of another format version.
func Open(chunks []sandbox.Chunk, load func(sequence int) ([]byte, error)) (*Journal, error) {
	j, err := newJournal()
	if err != nil {
		return nil, err
	}
	for i, stored := range chunks {
		if stored.Sequence != i {
			return nil, fmt.Errorf("chunk %d of the recording is missing", i)
		}
		c, err := openChunk(stored)
		if err != nil {
			return nil, err
		}
		c.load = func() ([]byte, error) { return load(i) }
		if err := j.reader.table.defineAll(stored.Definitions); err != nil {
			return nil, fmt.Errorf("chunk %d of the recording: %w", i, err)
		}
		if j.indexes += c.memory; j.indexes > maxIndexBytes {
			return nil, errLargeIndexes
		}
		j.reader.chunks = append(j.reader.chunks, c)
	}
	return j, nil
}

// openChunk returns a stored chunk with its index and without its Data.
func openChunk(stored sandbox.Chunk) (*Chunk, error) {
	c := &Chunk{First: stored.First, Last: stored.Last}
	if err := c.readIndex(stored.Index); err != nil {
		return nil, err
	}
	data := max(int(stored.Bytes)-len(stored.Index)-len(stored.Definitions), len(stored.Data))
	if limit := c.size + c.size/64 + 64*numColumns; data > limit {
		return nil, damaged("the chunk of steps %d to %d has %d bytes for %d unpacked ones", c.First, c.Last,
			data, c.size)
	}
	return c, nil
}

// IndexBytes returns the estimated memory in bytes of the indexes of the complete chunks.
func (j *Journal) IndexBytes() int {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.indexes
}

// Check returns an error for a stored chunk that is damaged, or that unpacks to more than a Journal writes. It accepts
// one of another format version, which Open refuses: an archive of an older version of this program has such chunks.
func Check(stored sandbox.Chunk) error {
	c, err := openChunk(stored)
	if errors.Is(err, ErrVersion) {
		return nil
	}
	if err != nil {
		return err
	}
	unzip, err := newUnzip()
	if err != nil {
		return err
	}
	defer unzip.Close()
	_, err = c.decode(unzip, stored.Data, maxUnpackedBytes)
	return err
}

// Follow registers visit, which is called for each record that Append accepts, with the state after the record. Call
// Follow before the first Append. visit may read its arguments, and must not call methods of the Journal.
func (j *Journal) Follow(visit func(t *Table, s *State, rec *Record)) { j.follow = visit }

// Append adds a piece of the stream, of any length. After an illegal record it returns ErrIllegalRecord; the recording
// then ends before that record and accepts no more.
func (j *Journal) Append(b []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.latest == nil {
		return ErrIllegalRecord
	}
	if len(j.partial) > 0 {
		j.partial = append(j.partial, b...)
		b = j.partial
	}
	for len(b) > 0 {
		size, err := decodeRecord(b, &j.record, &j.intern)
		if err == errIncomplete {
			break
		}
		if err == nil && size > maxRecordBytes {
			err = fmt.Errorf("a record has more than %d bytes", maxRecordBytes)
		}
		if err == nil {
			err = j.add(&j.record, b[:size])
		}
		if err != nil {
			j.partial = nil
			j.closeChunk()
			j.latest = nil
			return fmt.Errorf("%w after step %d: %w", ErrIllegalRecord, j.reader.Steps(), err)
		}
		b = b[size:]
	}
	j.partial = append(j.partial[:0], b...) // b may be its end
	return nil
}

// add adds one record; raw is its encoding.
func (j *Journal) add(rec *Record, raw []byte) error {
	table, chunk := &j.reader.table, j.reader.open
	if (rec.Kind == KindHead) != (table.Recorder == "") {
		return errors.New("a recording begins with one head record")
	}
	j.received += len(raw)
	if j.received > maxRecordingBytes {
		return fmt.Errorf("more than %d bytes", maxRecordingBytes)
	}
	if rec.Kind == KindLine {
		j.recorded++
	}
	switch {
	case j.recorded > maxRecordedSteps:
		return fmt.Errorf("more than %d recorded steps", maxRecordedSteps)
	case j.indexes+chunk.memory > maxIndexBytes-maxRecordIndexBytes:
		return errLargeIndexes
	}
	if defined, err := table.define(rec); err != nil {
		return err // before the definition is stored: an invalid one would make the whole recording unreadable
	} else if defined {
		j.newDefs = append(j.newDefs, raw...)
		return nil
	}
	left, before := j.latest.Current, j.coder.columns
	j.coder.encode(rec)
	if err := j.latest.apply(table, rec); err != nil {
		j.coder.columns = before
		return err
	}
	j.openGap = ""
	if rec.Kind == KindLost { // a recorder that goes on restates its state behind this record
		j.openGap = rec.Text
	}
	chunk.records = append(chunk.records, raw...)
	chunk.index(table, j.latest, rec, left)
	if j.follow != nil {
		j.follow(table, j.latest, rec)
	}
	// A large key frame is followed by at least a quarter as many bytes of records, so that key frames do not
	// multiply the size of a recording whose state is large.
	isFull := max(len(chunk.key)+len(chunk.records), j.coder.columns.size()) >= fullChunkBytes
	if (rec.Kind == KindLine || isFull) && len(chunk.records) >= max(chunkFull, len(chunk.key)/4) {
		j.closeChunk()
		j.openChunk()
	}
	return nil
}

func (j *Journal) openChunk() {
	j.coder = newDeltaCoder()
	for i, used := range j.columns { // memory of the last chunk
		j.coder.columns[i] = used[:0]
	}
	j.coder.encodeKeyFrame(j.latest)
	j.reader.open = &unpackedChunk{Chunk: newChunk(j.latest.Step), key: j.latest.appendKeyFrame(nil),
		records: j.records, checkpoints: &checkpoints{}}
	j.records, j.isShared = nil, false
}

// closeChunk compresses the open chunk, unless it is empty.
func (j *Journal) closeChunk() {
	open := j.reader.open
	if open == nil || len(open.records) == 0 {
		return
	}
	encoder, _ := zip() // newJournal has returned its error
	j.columns = j.coder.columns
	j.zipped = open.pack(encoder, j.zipped[:0], &j.columns)
	open.data = bytes.Clone(j.zipped)
	open.definitions, j.newDefs = j.newDefs, nil
	open.latest = nil
	j.indexes += open.memory
	j.hasLarge = j.hasLarge || open.bytes() > smallChunkBytes
	j.reader.chunks = append(j.reader.chunks, open.Chunk)
	j.reader.open = nil
	if !j.isShared && cap(open.records) <= maxKeptRecords {
		j.records = open.records[:0]
	}
}

// End completes the recording: the remaining records become a chunk. If visit is not nil, it is called with the last
// state.
func (j *Journal) End(visit func(*State)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.latest == nil {
		return
	}
	if visit != nil {
		visit(j.latest)
	}
	j.closeChunk()
	j.latest, j.partial, j.reader.open = nil, nil, nil
	j.records, j.columns, j.zipped, j.coder, j.record = nil, columns{}, nil, nil, Record{}
}

// TakeChunks returns the chunks that were completed since the last call, in the form in which they are stored.
func (j *Journal) TakeChunks() []sandbox.Chunk {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []sandbox.Chunk
	for ; j.numTaken < len(j.reader.chunks); j.numTaken++ {
		c := j.reader.chunks[j.numTaken]
		out = append(out, sandbox.Chunk{
			Sequence: j.numTaken, First: c.First, Last: c.Last, Definitions: c.definitions, Index: c.appendIndex(nil),
			Data: c.data,
		})
	}
	return out
}

// SetEdit says that a debugger changed the program at a step, where the program was stopped; number is that of its last
// edit event. The state of the step then has these changes. A recording alone cannot say so, because the guest could
// forge it.
func (j *Journal) SetEdit(step int, number uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	edits := maps.Clone(j.reader.edits) // snapshots share the map
	if edits == nil {
		edits = map[int]uint64{}
	}
	edits[step] = max(edits[step], number)
	j.reader.edits = edits
}

// Steps returns the number of the last step.
func (j *Journal) Steps() int {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.reader.Steps()
}

// OpenGap returns why the recorder records nothing at present, and "" if it records.
func (j *Journal) OpenGap() string {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.openGap
}

// State returns the state on arrival at a step.
func (j *Journal) State(step int) (s *State, err error) {
	err = j.Read(func(r *Reader) error { s, err = r.State(step); return err })
	return s, err
}

// Read calls f with a Reader of the recording, which does not grow until f returns. f must be fast, because the
// program's next record waits for f. Use Snapshot for a search.
//
// If the recording has a large chunk, f may wait for other readers, and has a Snapshot instead.
func (j *Journal) Read(f func(*Reader) error) error {
	j.mu.RLock()
	open := j.reader.open
	if open == nil || j.hasLarge || open.bytes() > smallChunkBytes {
		j.mu.RUnlock()
		return f(j.Snapshot())
	}
	defer j.mu.RUnlock()
	reader := j.reader
	return f(&reader)
}

// Snapshot returns a Reader of the current recording. The recording may grow while the Reader is used.
func (j *Journal) Snapshot() *Reader {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.reader
	if out.open != nil {
		j.isShared = true
		out.table.numbers = maps.Clone(out.table.numbers) // the table's slices only grow
		out.open = &unpackedChunk{Chunk: out.open.clone(), key: out.open.key, records: out.open.records,
			checkpoints: out.open.checkpoints}
	}
	return &out
}
