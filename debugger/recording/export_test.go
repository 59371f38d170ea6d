package recording

import (
	"errors"
	"time"

	"glasshouse/sandbox"
)

// This file exports internals to the package's tests. The tests are in another package, because they use recordingtest,
// which imports this one.

const (
	ChunkSize        = chunkSize
	MaxDefinitions   = maxDefinitions
	MaxCachedBytes   = maxCachedBytes
	MaxHolderSearch  = maxHolderSearch
	ShortLineZero    = shortLineZero
	KindsThatDefine  = KindThread
	minCheckpointGap = minCheckpointBytes
)

var ErrIncomplete = errIncomplete

func DecodeRecord(b []byte, rec *Record) (int, error) { return decodeRecord(b, rec, nil) }
func DecodeValue(b []byte) Value                      { return (&fieldReader{b: b}).value() }

// Columns are delta-encoded records.
type Columns = columns

const (
	ShapeColumn  = shapeColumn
	NumberColumn = numberColumn
	DoubleColumn = doubleColumn
	TextColumn   = textColumn
)

// EncodeDeltas returns the delta encoding of records. It returns an error for a record that makes a definition.
func EncodeDeltas(records []byte) (Columns, error) {
	d := newDeltaCoder()
	var rec Record
	for len(records) > 0 {
		size, err := decodeRecord(records, &rec, nil)
		if err != nil {
			return Columns{}, err
		}
		if defined, err := new(Table).define(&rec); defined {
			return Columns{}, errors.Join(err, errors.New("a record makes a definition"))
		}
		d.encode(&rec)
		records = records[size:]
	}
	return d.columns, nil
}

// DecodeDeltas returns the records of columns that have no key frame.
func DecodeDeltas(in Columns) (records []byte, err error) {
	err = newDeltaReader(in).each(func(rec *Record, _ bool) error {
		records = AppendRecord(records, rec)
		return nil
	})
	return records, err
}

func PythonBytes(s string) string { return pythonBytes(s) }

// ThroughKeyFrame returns the state that a key frame of s restores.
func ThroughKeyFrame(s *State) (*State, error) {
	again, _, err := decodeKeyFrame(s.appendKeyFrame(nil))
	if err != nil {
		return nil, err
	}
	d := newDeltaCoder()
	d.encodeKeyFrame(again)
	return newDeltaReader(d.columns).decodeKeyFrame()
}

func EmptyIndex() []byte { return (&Chunk{}).appendIndex(nil) }

// NumChunks returns the number of complete chunks.
func (j *Journal) NumChunks() int { return len(j.reader.chunks) }

func (j *Journal) ChunkSizes() (uncompressed []int, compressed int) {
	for _, c := range j.reader.chunks {
		uncompressed = append(uncompressed, c.size)
		compressed += len(c.data)
	}
	return uncompressed, compressed
}

// LastRecords returns the records of the last complete chunk.
func (j *Journal) LastRecords() ([]byte, error) {
	u, err := j.reader.cache.unpack(j.reader.chunks[len(j.reader.chunks)-1], maxUnpackedBytes)
	if err != nil {
		return nil, err
	}
	return u.records, nil
}

// SetFirstLoader makes the recording load its first chunk through load, which gets the chunk's original data.
func (j *Journal) SetFirstLoader(load func(data []byte) ([]byte, error)) {
	first := j.reader.chunks[0]
	data := first.data
	first.data, first.load = nil, func() ([]byte, error) { return load(data) }
}

// CachedChunk describes a chunk in the cache.
type CachedChunk struct {
	Bytes, MaxBytes int
	Gaps            []int // bytes of records between checkpoints
	MaxGap          int
}

func (j *Journal) Cached() (list []CachedChunk) {
	for _, u := range j.reader.cache.chunks {
		c := CachedChunk{Bytes: len(u.key) + len(u.records), MaxBytes: u.maxBytes()}
		for i, m := range u.list {
			c.Bytes += len(m.key)
			if i > 0 {
				c.Gaps = append(c.Gaps, m.offset-u.list[i-1].offset)
				c.MaxGap = max(c.MaxGap, 2*max(minCheckpointGap, len(u.list[i-1].key)))
			}
		}
		list = append(list, c)
	}
	return list
}

// IndexNumbers adds names and lines to the index of an open chunk.
func IndexNumbers(numbers []uint64) (set map[uint64]bool, count func(Location) int) {
	c := newChunk(0)
	for _, n := range numbers {
		c.latest.names.add(c, c.names, n)
		c.countLine(Location{n % 3, int64(n)})
	}
	return c.names, c.LineCount
}

func AppendNumbers(b []byte, numbers ...uint64) []byte { return appendNumbers(b, numbers...) }

// ForgedChunk returns a chunk. Its index says that the first column unpacks to size bytes; -1: to as many as it has.
func ForgedChunk(in Columns, size int) sandbox.Chunk {
	c := &Chunk{}
	encoder, _ := zip() // NewJournal tests it
	data := c.pack(encoder, nil, &in)
	if size >= 0 {
		c.sizes[0] = size
	}
	return sandbox.Chunk{Index: c.appendIndex(nil), Data: data}
}

func SetLargeChunkWait(wait time.Duration) (undo func()) {
	before := largeChunkWait
	largeChunkWait = wait
	return func() { largeChunkWait = before }
}
