package sandbox

// Chunk is a part of the recording of a debugged run. Package debugger writes it and history
// stores it.
type Chunk struct {
	Sequence    int // from 0
	First, Last int // steps
	Definitions []byte
	Index       []byte // index of Data, so that a search reads few chunks
	Data        []byte // compressed
	Bytes       int64  // total size of the chunk in history, if a query requested it
}
