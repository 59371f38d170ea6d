package debugger

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"sync"

	"glasshouse/debugger/recording"
)

// maxLineMapSteps bounds the steps of a line map, which take six bytes each before compression. Our recorders stop at
// a million.
const maxLineMapSteps = 4 << 20

// lineMapHead is the beginning of an encoded line map.
type lineMapHead struct {
	Steps int                      `json:"total_steps"`
	Count int                      `json:"count"`
	Last  int                      `json:"last"`
	Gaps  []recording.SkippedSteps `json:"gaps"`
}

// lineMapCache keeps the encoded line map of a recording, for the number of steps that it has.
type lineMapCache struct {
	mu    sync.Mutex
	steps int
	zip   []byte
}

// LineMap returns the line and the depth of each recorded step, compressed with gzip. Before compression it has, in
// little-endian order:
//
//	uint32: the length of the head
//	the head: JSON with total_steps, count, last (the last step that is covered) and gaps; padded with spaces to a
//	    multiple of four bytes
//	count times uint32: the line of a step; 0 if the step is in another file than the program's
//	count times uint16: the number of frames in the stack of a step
//
// Steps in gaps have no entries.
func (r *Recording) LineMap() ([]byte, error) {
	r.lineMap.mu.Lock() // so that several readers decode the recording once
	defer r.lineMap.mu.Unlock()
	reader := r.journal.Snapshot()
	if r.lineMap.zip != nil && r.lineMap.steps == reader.Steps() {
		return r.lineMap.zip, nil
	}
	m, err := reader.LineMap(maxLineMapSteps)
	if err != nil {
		return nil, err
	}
	zip, err := encodeLineMap(m, reader.Steps())
	if err != nil {
		return nil, err
	}
	r.lineMap.zip, r.lineMap.steps = zip, reader.Steps()
	return zip, nil
}

func encodeLineMap(m *recording.LineMap, steps int) ([]byte, error) {
	head := lineMapHead{Steps: steps, Count: len(m.Lines), Last: m.Last, Gaps: m.Gaps}
	if head.Gaps == nil {
		head.Gaps = []recording.SkippedSteps{}
	}
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	for len(text)%4 != 0 {
		text = append(text, ' ')
	}
	b := make([]byte, 0, 4+len(text)+6*len(m.Lines))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	b = append(b, text...)
	for _, line := range m.Lines {
		b = binary.LittleEndian.AppendUint32(b, line)
	}
	for _, depth := range m.Depths {
		b = binary.LittleEndian.AppendUint16(b, depth)
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
