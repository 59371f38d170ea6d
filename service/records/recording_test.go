package records

import (
	"bytes"
	"testing"

	"glasshouse/debugger"
	"glasshouse/debugger/recording/recordingtest"
)

// Open recordings of past runs with large indexes make room for others: 16 of them could take gigabytes.
func TestOpenRecordingsTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	r, err := debugger.NewRecording("")
	if err == nil {
		err = r.Append(append(recordingtest.New().Stream, bytes.Repeat([]byte{0xc1}, 1<<17)...)) // as many lines
	}
	if err != nil {
		t.Fatal(err)
	}
	r.End()
	chunks := r.TakeChunks()
	for first := chunks[0]; len(chunks) < 24; {
		first.Sequence, first.Definitions = len(chunks), nil
		chunks = append(chunks, first)
	}
	large, err := debugger.OpenRecording("", chunks, nil)
	if err != nil {
		t.Fatal(err)
	}
	if bytes := large.IndexBytes(); bytes < maxCachedIndexBytes/2 {
		t.Fatalf("the indexes take %d bytes, want at least %d", bytes, maxCachedIndexBytes/2)
	}
	small, err := debugger.OpenRecording("", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var o openRecordings
	o.cache("first", &OpenRecording{Recording: large})
	o.cache("small", &OpenRecording{Recording: small})
	o.cache("second", &OpenRecording{Recording: large})
	if o.find("first") != nil || o.find("small") == nil || o.find("second") == nil {
		t.Errorf("got %v, want the least recently used recording with a large index closed", o.order)
	}
}
