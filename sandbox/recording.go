package sandbox

// Chunk is a part of the recording of a debugged run, as package debugger writes it and
// history keeps it.
type Chunk struct {
	Sequence    int // from 0
	First, Last int // steps
	Definitions []byte
	Index       []byte // of Data, so that a search reads few chunks
	Data        []byte // compressed
	Bytes       int64  // that history keeps of the chunk in all, if a query asked for it
}
