package recording

import (
	"context"
	"errors"
	"time"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// Bounds of a stored chunk. A Journal keeps them, so a chunk beyond them is forged.
const (
	// maxChunkBytes bounds the key frame and the records of a chunk together, as they are stored before compression.
	maxChunkBytes = 2 * maxStateBytes
	// maxUnpackedBytes bounds the key frame and the records without their delta encoding. A Journal counts records as
	// they arrive, which can be a tenth less than what this package writes.
	maxUnpackedBytes = maxChunkBytes + maxChunkBytes/8
	// fullChunkBytes is the size at which a Journal ends a chunk also within a step. No recorder has steps so large.
	fullChunkBytes = maxChunkBytes - 2*maxRecordBytes
)

// A state can take 50 times the bytes of its chunk. So readers take turns with chunks of more than smallChunkBytes,
// which are few.
const smallChunkBytes = 2 * chunkSize

var (
	largeChunks    = limit.NewSlots(1) // for readers of all recordings
	largeChunkWait = 20 * time.Second

	lastLargeChunk *unpackedChunk // the holder of the slot of largeChunks uses it, and may replace it
)

// errLargeChunk means that a chunk is larger than its reader asked for.
var errLargeChunk = errors.New("the chunk is large")

// acquireLargeChunk waits for the turn to visit a large chunk, and returns the function that ends it.
func acquireLargeChunk() (release func(), err error) {
	release, err = largeChunks.Acquire(context.Background(), largeChunkWait)
	if err != nil {
		return nil, &sandbox.Error{Fault: sandbox.FaultFull, RetryAfter: int(largeChunkWait / time.Second),
			Detail: "other requests read large recordings, one at a time; try again"}
	}
	return release, nil
}

// damaged returns the error for a stored recording that no Journal has written in this form.
func damaged(format string, args ...any) error {
	err := sandbox.Errorf(sandbox.FaultNotFound, format, args...)
	err.Detail = "this recording is damaged or forged: " + err.Detail + "; it cannot be read"
	return err
}
