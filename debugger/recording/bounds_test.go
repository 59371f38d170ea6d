package recording_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"glasshouse/debugger/recording"
	"glasshouse/debugger/recording/recordingtest"
	"glasshouse/sandbox"
)

// open returns a stored recording of one chunk.
func open(c sandbox.Chunk) (*recording.Journal, error) {
	data := c.Data
	c.Data, c.Bytes = nil, int64(len(data)+len(c.Index)+len(c.Definitions))
	return recording.Open([]sandbox.Chunk{c}, func(int) ([]byte, error) { return data, nil })
}

// definitions are those of recordingtest.New.
func definitions() []byte {
	var out []byte
	var rec recording.Record
	for stream := recordingtest.New().Stream; ; {
		size, err := recording.DecodeRecord(stream, &rec)
		if err != nil || rec.Kind > recording.KindsThatDefine {
			return out
		}
		out, stream = append(out, stream[:size]...), stream[size:]
	}
}

// Import and readers refuse a chunk that unpacks to more than a Journal writes, and say so.
func TestForgedChunksAreRefused(t *testing.T) {
	t.Parallel()
	// numbers are those of a key frame with count objects; each is the one after the object before.
	numbers := func(count int) []byte {
		b := recording.AppendNumbers(nil, 0, 0, 0, uint64(count))
		return recording.AppendNumbers(append(b, bytes.Repeat([]byte{1}, count)...), 0, 0)
	}
	shape := func(kind recording.Kind, numbers ...uint64) []byte {
		return recording.AppendNumbers([]byte{byte(kind)}, numbers...)
	}
	// Objects with 1024 values of one byte, which take 48 bytes of memory each. The fields of an object are its type,
	// version, exactness, length, form and count.
	object := append(recording.AppendNumbers(nil, 1, 0, 0, 0, 1, 1024), bytes.Repeat([]byte{'N'}, 1024)...)
	state := func(count int) recording.Columns {
		return recording.Columns{bytes.Repeat(object, count), numbers(count), nil, nil}
	}
	// An object of 16 texts, and changes in which one byte stands for each text.
	text := append(recording.AppendNumbers(nil, 60_000), bytes.Repeat([]byte("x"), 60_000)...)
	deltas := append(append(shape(recording.KindObject, 1, 0, 0, 32, 1, 16), 's'), bytes.Repeat([]byte{1}, 15)...)
	change := append(shape(recording.KindMutate, 1, 0, 0, 1, 16), make([]byte, 16)...)
	deltas = append(deltas, bytes.Repeat(change, 200)...)
	// An object of one text, and an object in which one byte stands for that text 1024 times.
	texts := append(shape(recording.KindObject, 1, 0, 0, 2, 1, 1), 's')
	texts = append(texts, shape(recording.KindObject, 1, 0, 0, 2046, 1, 1024)...)
	texts = append(texts, bytes.Repeat([]byte{1}, 1024)...)
	forged := func(shape []byte, count int, texts []byte) sandbox.Chunk { // count numbers of 0
		in := recording.Columns{shape, append(numbers(0), make([]byte, count)...), nil, texts}
		return recording.ForgedChunk(in, -1)
	}
	set := func(code byte) []byte { return append(shape(recording.KindGlobal, 1), code) }
	noise := recording.Columns{bytes.Repeat([]byte("ab"), 1<<20)}
	zeros := recording.Columns{make([]byte, 10<<20)}
	doubles := recording.Columns{nil, numbers(0), make([]byte, 7)}
	many := recording.Columns{nil, recording.AppendNumbers(nil, 0, 0, 0, 1<<21)}
	noData := sandbox.Chunk{Index: recording.ForgedChunk(recording.Columns{}, 100).Index, Data: []byte("no zstd")}
	for name, c := range map[string]struct {
		chunk sandbox.Chunk
		want  string
	}{
		"index":      {recording.ForgedChunk(state(0), 1<<30), "1073741824 bytes and more; the limit is 134217728"},
		"data":       {recording.ForgedChunk(zeros, 1000), "more than the 1000 bytes that its"},
		"less":       {recording.ForgedChunk(state(1), 2000), "its index says 2007"},
		"stored":     {recording.ForgedChunk(noise, 0), "bytes for 0 unpacked ones"},
		"state":      {recording.ForgedChunk(state(1500), -1), "messages of more than 67108864 bytes"},
		"objects":    {recording.ForgedChunk(many, -1), "it has"},
		"deltas":     {forged(deltas, 201, text), "a chunk unpacks to more than 150994944 bytes"},
		"texts":      {forged(texts, 2, text), "an object has texts of more than 1048576 bytes"},
		"doubles":    {recording.ForgedChunk(doubles, -1), "7 bytes of doubles"},
		"left":       {forged(nil, 1, nil), "they have more fields than records"},
		"missing":    {forged(shape(recording.KindFree), 0, nil), "incomplete"},
		"definition": {forged(shape(recording.KindName), 0, text), "a record of name"},
		"name":       {forged(shape(recording.KindDelete, 1<<20), 0, nil), "has name 1048576"},
		"form":       {forged(shape(recording.KindObject, 1, 0, 0, 0, 4, 0), 1, nil), "form 4"},
		"count":      {forged(shape(recording.KindObject, 1, 0, 0, 0, 2, 1), 1, nil), "has 1 values"},
		"equal":      {forged(set(0), 0, nil), "equals a previous value that does not exist"},
		"place":      {forged(set(1), 0, nil), "is number 1 of 0 recent values"},
		"sum":        {forged(set(17), 0, nil), "a sum has no previous float"},
		"integer":    {forged(set(33), 0, nil), "number 1 of 0 recent integers"},
		"total":      {forged(set(39), 0, nil), "number 1 of 0 recent integers"},
		"tag":        {forged(set(45), 0, nil), "unknown value tag 0x2d"},
		"decimal":    {forged(set('d'), 2, nil), "a decimal has the digits 0"},
		"no zstd":    {noData, "cannot be decompressed"},
	} {
		c.chunk.First, c.chunk.Last, c.chunk.Definitions = 1, 1, definitions()
		if err := recording.Check(c.chunk); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Check: got %v, want an error with %q", name, err, c.want)
		}
		j, err := open(c.chunk)
		for range 2 { // the second reader gets the same error
			if j != nil {
				_, err = j.State(1)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) ||
				sandbox.FaultOf(err) != sandbox.FaultNotFound {
				t.Errorf("%s: State: got %v, want a FaultNotFound with %q", name, err, c.want)
			}
		}
	}
}

// largeStream returns a recording with a state of 5 MB.
func largeStream() []byte {
	b := recordingtest.New("list")
	for i := range 1200 {
		b.Object(recordingtest.List(uint64(i+1), 3, recordingtest.Text(strings.Repeat("y", 4000))))
	}
	b.Line(0)
	b.Line(0)
	return b.Stream
}

// One reader at a time visits a large chunk, of any recording. It may read other chunks meanwhile. The tests of these
// turns do not run in parallel with others, because the turns are those of the process.
func TestReadersOfLargeChunksTakeTurns(t *testing.T) {
	stream := largeStream()
	live := journalOf(t, stream)
	past, _ := stored(t, journalOf(t, stream))
	again, _ := stored(t, journalOf(t, stream))
	var readers atomic.Int64
	var wait sync.WaitGroup
	for n := range 12 {
		reader := []*recording.Journal{live, past, again}[n%3].Snapshot()
		wait.Go(func() {
			err := reader.States(1, 2, func(s *recording.State) bool {
				if now := readers.Add(1); now != 1 {
					t.Errorf("got %d readers at a time, want 1", now)
				}
				defer readers.Add(-1)
				nested, err := reader.State(1)
				if err != nil || len(nested.Objects) != 1200 || len(s.Objects) != 1200 {
					t.Errorf("step %d: got %d objects, %v, want 1200", s.Step, len(s.Objects), err)
				}
				return true
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, c := range append(past.Cached(), again.Cached()...) {
		if c.Bytes > recording.MaxCachedBytes {
			t.Errorf("got a chunk of %d bytes in a cache, want at most %d", c.Bytes, recording.MaxCachedBytes)
		}
	}
}

// While another reader visits a large chunk, a run goes on, and a reader gets an error that says when to try again.
func TestRunsDoNotWaitForLargeChunks(t *testing.T) {
	stream := largeStream()
	live := journalOf(t, stream)
	past, _ := stored(t, journalOf(t, stream))
	err := past.Snapshot().States(1, 1, func(*recording.State) bool {
		undo := recording.SetLargeChunkWait(0)
		_, err := live.State(1)
		if sandbox.FaultOf(err) != sandbox.FaultFull || !strings.Contains(err.Error(), "again") {
			t.Errorf("got %v, want a FaultFull", err)
		}
		undo()
		begun, read := make(chan struct{}), make(chan error)
		go func() {
			read <- live.Read(func(r *recording.Reader) error {
				close(begun)
				_, err := r.State(1)
				return err
			})
		}()
		<-begun
		if err := live.Append([]byte{recording.ShortLineZero}); err != nil {
			t.Error(err)
		}
		t.Cleanup(func() {
			if err := <-read; err != nil {
				t.Errorf("a reader that waits: got %v, want no error", err)
			}
		})
		return false
	})
	if err != nil || live.Steps() != 3 {
		t.Errorf("got %d steps, %v, want 3", live.Steps(), err)
	}
}

// The largest recordings that a Journal accepts can be read: a state of nearly 64 MiB, which is restated behind a gap,
// and a step with 150 MiB of records.
func TestLargestRecordingsAreRead(t *testing.T) {
	state := recordingtest.New("list").Stream
	for i := range 16_000 {
		text := recordingtest.Text(fmt.Sprint(i, strings.Repeat("y", 4000)))
		o := recordingtest.List(uint64(i+1), 3, text)
		o.Version = 1
		state = recording.AppendRecord(state, &recording.Record{Kind: recording.KindObject, Object: o})
	}
	restated := state[len(recordingtest.New("list").Stream):]
	lines := bytes.Repeat([]byte{recording.ShortLineZero}, 3)
	lost := recording.AppendRecord(nil, &recording.Record{Kind: recording.KindLost, Number: 10, Text: "a gap"})
	push := recording.AppendRecord(nil, &recording.Record{Kind: recording.KindPush, Frame: 1, Code: 1, Thread: 1})
	churn := recordingtest.New("list").Stream
	churn = append(churn, lines...)
	text := recordingtest.Text(strings.Repeat("y", 60_000))
	for n := uint64(1); len(churn) < 150<<20; n++ {
		o := recordingtest.List(n, 3, slices.Repeat([]recording.Value{text}, 16)...)
		o.Version = 1
		churn = recording.AppendRecord(churn, &recording.Record{Kind: recording.KindObject, Object: o})
		churn = recording.AppendRecord(churn, &recording.Record{Kind: recording.KindFree, Number: n})
	}
	for name, c := range map[string]struct {
		stream []byte
		steps  []int
	}{
		"state": {bytes.Join([][]byte{state, lines, lost, push, restated, lines}, nil), []int{1, 3, 14, 16}},
		"step":  {append(churn, lines...), []int{1, 3, 4, 6}},
	} {
		if testing.Short() && name == "state" { // it takes twice as long
			continue
		}
		j := journalOf(t, c.stream)
		past, _ := stored(t, j)
		for _, step := range c.steps {
			if s, err := past.State(step); err != nil || s.Step != step {
				t.Errorf("%s, step %d: got %v, want its state", name, step, err)
			}
		}
		if _, err := past.State(7); name == "state" && !errors.Is(err, recording.ErrNoStep) {
			t.Errorf("a lost step: got %v, want %v", err, recording.ErrNoStep)
		}
	}
}
