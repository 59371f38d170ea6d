package recording

import (
	"errors"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Clients mostly move to nearby steps. So the cache keeps the most recently read chunks, unpacked, with checkpoints:
// key frames from which a step in the middle of the chunk is only a few records away. The records between two
// checkpoints have at least as many bytes as the earlier key frame, so the checkpoints of a chunk take hardly more
// memory than the chunk.
const (
	// maxCachedBytes bounds the chunks of one recording, besides the one that was read last. Larger chunks are not
	// kept. A loop of 90 000 steps does not fit into half as much, and each jump in it then takes 0.4 ms longer.
	maxCachedBytes     = 4 << 20
	minCheckpointBytes = 2 << 10 // of records between checkpoints
)

// chunkCache holds the chunks of one recording that were read last, the latest at the end.
type chunkCache struct {
	mu     sync.Mutex
	chunks []*unpackedChunk
	unzip  *zstd.Decoder
}

// newUnzip returns a decoder that decompresses as much as the caller has allocated, and no more.
func newUnzip() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxChunkBytes),
		zstd.WithDecodeAllCapLimit(true))
}

// unpackedChunk is a decompressed chunk that is being read or written.
type unpackedChunk struct {
	*Chunk
	key     []byte // key frame
	records []byte
	*checkpoints

	marks    []mark // in order
	isMarked bool   // a large chunk, one with a gap, and one that is being written have no marks
}

// checkpoints are the checkpoints of a chunk, in order.
type checkpoints struct {
	mu   sync.Mutex
	list []checkpoint
}

// checkpoint is the position directly after the line record of a step.
type checkpoint struct {
	step   int
	offset int // in the records
	key    []byte
}

// nearest returns the last checkpoint at or before a step, or the beginning of the chunk.
func (u *unpackedChunk) nearest(step int) checkpoint {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, m := range slices.Backward(u.list) {
		if m.step <= step {
			return m
		}
	}
	return checkpoint{key: u.key}
}

// addCheckpoint makes a checkpoint of the step that a replay has reached, if it is far enough from the last one. It
// returns the offset from which the next one is.
func (u *unpackedChunk) addCheckpoint(s *State, offset int) (due int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := checkpoint{key: u.key}
	if n := len(u.list); n > 0 {
		last = u.list[n-1]
	}
	if due = u.nextCheckpoint(last); offset >= due {
		last = checkpoint{s.Step, offset, s.appendKeyFrame(nil)}
		u.list = append(u.list, last)
		due = u.nextCheckpoint(last)
	}
	return due
}

// nextCheckpoint returns the offset from which a checkpoint is far enough from the last one.
func (u *unpackedChunk) nextCheckpoint(last checkpoint) int {
	gap := max(minCheckpointBytes, len(last.key))
	if !u.isCached() {
		gap *= 4 // a large chunk shall not become much larger
	}
	return last.offset + gap
}

// checkpointSteps returns the steps of the checkpoints before a step, the nearest first, and then 0 for the beginning
// of the chunk.
func (u *unpackedChunk) checkpointSteps(before int) []int {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := []int{}
	for _, m := range slices.Backward(u.list) {
		if m.step < before {
			out = append(out, m.step)
		}
	}
	return append(out, 0)
}

// maxBytes is the most memory in bytes that the chunk takes with all its checkpoints.
func (u *unpackedChunk) maxBytes() int {
	return 2*len(u.key) + 3*len(u.records) + markBytes*len(u.marks)
}

// bytes is the size of the chunk without its checkpoints.
func (u *unpackedChunk) bytes() int { return len(u.key) + len(u.records) }

// isCached reports whether the cache keeps the chunk for later readers.
func (u *unpackedChunk) isCached() bool { return u.maxBytes() <= maxCachedBytes }

// unpack decompresses a complete chunk for reading. It returns errLargeChunk if the chunk has more than limit bytes.
func (cache *chunkCache) unpack(c *Chunk, limit int) (*unpackedChunk, error) {
	cache.mu.Lock()
	defer cache.mu.Unlock()
	if i := slices.IndexFunc(cache.chunks, func(u *unpackedChunk) bool { return u.Chunk == c }); i >= 0 {
		u := cache.chunks[i]
		if u.bytes() > limit {
			return nil, errLargeChunk
		}
		cache.chunks = append(slices.Delete(cache.chunks, i, i+1), u)
		return u, nil
	}
	u, err := cache.decompress(c, limit)
	if err != nil || !u.isCached() {
		return u, err
	}
	before := len(cache.chunks)
	cache.chunks = append(cache.chunks, u)
	left := maxCachedBytes
	for i, each := range slices.Backward(cache.chunks[:before]) {
		if left -= each.maxBytes(); left < 0 {
			cache.chunks = slices.Clone(cache.chunks[i+1:])
			break
		}
	}
	return u, nil
}

// unpackUncached is unpack without a place in the cache, for a reader of all chunks.
func (cache *chunkCache) unpackUncached(c *Chunk, limit int) (*unpackedChunk, error) {
	cache.mu.Lock()
	defer cache.mu.Unlock()
	return cache.decompress(c, limit)
}

// decompress loads and decompresses a complete chunk. The caller holds mu.
func (cache *chunkCache) decompress(c *Chunk, limit int) (*unpackedChunk, error) {
	if c.damage != nil {
		return nil, c.damage
	}
	if c.size > limit {
		return nil, errLargeChunk
	}
	data := c.data
	if data == nil {
		var err error
		if data, err = c.load(); err != nil {
			return nil, err
		}
	}
	u, err := c.decode(cache.unzip, data, limit)
	if err != errLargeChunk {
		c.damage = err
	}
	return u, err
}

// decode decompresses the data of the chunk and decodes the deltas. It returns errLargeChunk if the chunk has more than
// limit bytes, and at most maxUnpackedBytes.
func (c *Chunk) decode(unzip *zstd.Decoder, data []byte, limit int) (*unpackedChunk, error) {
	whole, err := unzip.DecodeAll(data, make([]byte, 0, c.size))
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return nil, damaged("a chunk of %d bytes unpacks to more than the %d bytes that its index says",
			len(data), c.size)
	}
	if err != nil {
		return nil, damaged("a chunk cannot be decompressed: %v", err)
	}
	if len(whole) != c.size {
		return nil, damaged("a chunk unpacks to %d bytes; its index says %d", len(whole), c.size)
	}
	in, err := c.split(whole)
	if err != nil {
		return nil, err
	}
	u, err := c.decodeColumns(in, limit)
	switch {
	case err == errLargeChunk && limit < maxUnpackedBytes:
		return nil, err
	case err == errLargeChunk:
		return nil, damaged("a chunk unpacks to more than %d bytes", maxUnpackedBytes)
	case err != nil:
		return nil, damaged("%v", err)
	}
	return u, nil
}
