package sandbox

// Chunk is a part of a recording of a debugged run, as package debugger writes it and
// history keeps it.
type Chunk struct {
	Sequence    int // from 0
	First, Last int // steps
	Definitions []byte
	Index       []byte // what is in Data, so that a search reads few
	Data        []byte // compressed
	Bytes       int64  // that history keeps of it in all, where that was asked
}
