package sandbox

import "time"

// Chunk is a part of a recording of a debugged run, as package debugger writes it and
// history keeps it.
type Chunk struct {
	Sequence    int // from 0
	First, Last int // steps
	Definitions []byte
	Index       []byte // what is in Data, so that a search reads few
	Data        []byte // compressed
}

// Recording is the outline of a debugged run that is kept.
type Recording struct {
	ExecutionID string    `json:"execution_id"`
	Steps       int       `json:"steps"`
	Bytes       int64     `json:"bytes"` // as they are kept
	CreatedAt   time.Time `json:"created_at"`
}
