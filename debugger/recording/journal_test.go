package recording_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"glasshouse/debugger/recording"
	"glasshouse/debugger/recording/recordingtest"
	"glasshouse/sandbox"
)

// stored returns a recording that is opened from its stored chunks, and a counter of the chunks that are loaded.
func stored(t *testing.T, j *recording.Journal) (*recording.Journal, *int) {
	t.Helper()
	j.End(nil)
	chunks := j.TakeChunks()
	loads := new(int)
	var outlines []sandbox.Chunk
	for _, c := range chunks {
		if err := recording.Check(c); err != nil {
			t.Fatal(err)
		}
		c.Data = nil
		outlines = append(outlines, c)
	}
	again, err := recording.Open(outlines, func(n int) ([]byte, error) { *loads++; return chunks[n].Data, nil })
	if err != nil {
		t.Fatal(err)
	}
	return again, loads
}

// checkSameState compares a step of two recordings, which both may have lost it.
func checkSameState(t *testing.T, got, want *recording.Journal, step int) {
	t.Helper()
	w, wantErr := want.State(step)
	g, err := got.State(step)
	if errors.Is(err, recording.ErrNoStep) && errors.Is(wantErr, recording.ErrNoStep) {
		return
	}
	if err != nil || wantErr != nil || !reflect.DeepEqual(g, w) {
		t.Fatalf("step %d: got %+v, %v, want %+v, %v", step, g, err, w, wantErr)
	}
}

func TestStateOfAnyStep(t *testing.T) {
	t.Parallel()
	const turns = 100_000
	j := journalOf(t, recordingtest.Loop(turns))
	sizes, compressed := j.ChunkSizes()
	if j.Steps() != 3*turns || len(sizes) < 5 {
		t.Fatalf("got %d steps in %d chunks, want %d in at least 5", j.Steps(), len(sizes), 3*turns)
	}
	for _, size := range sizes {
		if size > recording.ChunkSize+4096 {
			t.Errorf("got a chunk of %d bytes, want about %d at most", size, recording.ChunkSize)
		}
	}
	for _, step := range []int{1, 2, 3, 4, 149_998, 149_999, 150_000, 299_999, 300_000} {
		s, err := j.State(step)
		if err != nil {
			t.Fatal(err)
		}
		want := recordingtest.Int((step-1)/3 - 1) // on arrival at the first two lines
		if step%3 == 0 {
			want.Int++
		}
		const x = 3
		if line := s.CurrentFrame().Line; line != int64((step-1)%3)+1 || want.Int >= 0 && s.Globals[x] != want {
			t.Errorf("step %d: got line %d and x %v, want line %d and x %v", step, line, s.Globals[x], (step-1)%3+1,
				want)
		}
	}
	for _, step := range []int{0, 3*turns + 1} {
		if _, err := j.State(step); !errors.Is(err, recording.ErrNoStep) {
			t.Errorf("step %d: got %v, want %v", step, err, recording.ErrNoStep)
		}
	}
	if perStep := float64(compressed) / (3 * turns); perStep > 3 {
		t.Errorf("got %.2f stored bytes a step, want at most 3", perStep)
	}
}

func TestStatesAreThoseOfState(t *testing.T) {
	t.Parallel()
	streams := map[string][]byte{"loop": recordingtest.Loop(40_000), "mixed": recordingtest.Mixed(2000)}
	for _, name := range []string{"async", "recursion", "threads", "budget"} {
		streams[name] = recordingtest.Recorded(name)
	}
	random := rand.New(rand.NewPCG(3, 1))
	for name, stream := range streams {
		live := journalOf(t, stream)
		past, _ := stored(t, journalOf(t, stream))
		for _, j := range []*recording.Journal{live, past} {
			for range 20 {
				first := random.IntN(j.Steps()+2) - 1
				last := first + random.IntN(50)
				if err := j.Read(func(r *recording.Reader) error { return wantStates(r, first, last) }); err != nil {
					t.Errorf("%s, steps %d to %d: %v", name, first, last, err)
				}
			}
		}
	}
}

// wantStates returns an error unless States gives the states of all steps that State knows.
func wantStates(r *recording.Reader, first, last int) error {
	step := max(first, 1)
	pass := func(end int) error {
		for ; step < end; step++ {
			if _, err := r.State(step); !errors.Is(err, recording.ErrNoStep) {
				return fmt.Errorf("got no state of step %d, want one (%v)", step, err)
			}
		}
		return nil
	}
	var wrong error
	err := r.States(first, last, func(got *recording.State) bool {
		wrong = pass(got.Step)
		want, err := r.State(step)
		if wrong == nil && (err != nil || !reflect.DeepEqual(got, want)) {
			wrong = fmt.Errorf("got %+v, want %+v, %v", got, want, err)
		}
		step++
		return wrong == nil
	})
	return errors.Join(err, wrong, pass(last+1))
}

func TestStatesEndWithTheirVisitor(t *testing.T) {
	t.Parallel()
	j := journalOf(t, recordingtest.Loop(40_000))
	visits := 0
	err := j.Read(func(r *recording.Reader) error {
		return r.States(1, 120_000, func(*recording.State) bool { visits++; return visits < 40_000 })
	})
	if err != nil || visits != 40_000 {
		t.Errorf("got %d visits, %v, want 40000", visits, err)
	}
}

func TestKeyFrameRestoresTheState(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"async", "recursion", "attributes", "texts", "numbers", "threads",
		"generator_thrown_into"} {
		j := journalOf(t, recordingtest.Recorded(name))
		for step := 1; step <= j.Steps(); step++ {
			s, err := j.State(step)
			if err != nil {
				t.Fatal(err)
			}
			again, err := recording.ThroughKeyFrame(s)
			if err != nil || !reflect.DeepEqual(again, s) {
				t.Fatalf("%s, step %d: got %+v, %v, want %+v", name, step, again, err, s)
			}
		}
	}
}

func TestStepsContinueBehindAGap(t *testing.T) {
	t.Parallel()
	j := journalOf(t, recordingtest.Recorded("budget"))
	const last = 2802 // def, 700 times for, the call and two lines, and the last for
	if j.Steps() != last {
		t.Fatalf("got %d steps, want %d", j.Steps(), last)
	}
	if _, err := j.State(200); !errors.Is(err, recording.ErrNoStep) {
		t.Errorf("a lost step: got %v, want %v", err, recording.ErrNoStep)
	}
	if s, err := j.State(99); err != nil || s.CurrentFrame().Line == 0 {
		t.Errorf("a step before the gap: got %+v, %v", s, err)
	}
	err := j.Read(func(r *recording.Reader) error {
		s, err := r.State(last)
		if err != nil {
			return err
		}
		if i, _ := s.LookUp(r.Table(), 0, "i"); s.CurrentFrame().Line != 4 || i != recordingtest.Int(699) {
			t.Errorf("the last step: got line %d and i %v, want line 4 and i 699", s.CurrentFrame().Line, i)
		}
		x, _ := s.LookUp(r.Table(), 0, "x")
		if o := s.Objects[x.Object]; o == nil || o.Values[0].Int != 699 {
			t.Errorf("the last step: got x %v of %+v, want [699]", x, o)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestStoredRecordingIsTheSame(t *testing.T) {
	t.Parallel()
	for _, name := range recordingtest.Names() {
		live := journalOf(t, recordingtest.Recorded(name))
		again, _ := stored(t, journalOf(t, recordingtest.Recorded(name)))
		if again.Steps() != live.Steps() {
			t.Fatalf("%s: got %d steps, want %d", name, again.Steps(), live.Steps())
		}
		for step := 1; step <= live.Steps(); step++ {
			checkSameState(t, again, live, step)
		}
		if got, want := again.Snapshot().Table(), live.Snapshot().Table(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the definitions differ: got %+v, want %+v", name, got, want)
		}
	}
}

func TestRefusedRecordIsNotKept(t *testing.T) {
	t.Parallel()
	stream := recordingtest.Mixed(100)
	j := journalOf(t, stream)
	illegal := recording.Record{Kind: recording.KindGlobal, Name: recording.MaxDefinitions, Value: recordingtest.Int(1)}
	if err := j.Append(recording.AppendRecord(nil, &illegal)); !errors.Is(err, recording.ErrIllegalRecord) {
		t.Fatalf("got %v, want %v", err, recording.ErrIllegalRecord)
	}
	got, err := j.LastRecords()
	if err != nil {
		t.Fatal(err)
	}
	checkSameRecords(t, got, chunkRecords(t, stream))
}

// A forged stream ends where it would cost its readers more than any recorder's stream.
func TestForgedStreamsAreBounded(t *testing.T) {
	t.Parallel()
	lost := recording.AppendRecord(nil, &recording.Record{Kind: recording.KindLost, Number: 1 << 40, Text: "forged"})
	const shortLine = 0xc0 // a line record of the same line
	cases := []struct {
		name, why string
		piece     []byte
		maxSteps  int
	}{
		{"lost steps", "lost steps", bytes.Repeat(lost, 1<<12), 1 << 50},
		{"steps", "recorded steps", bytes.Repeat([]byte{shortLine}, 1<<20), 32 << 20},
		{"different lines", "different lines", bytes.Repeat([]byte{shortLine + 1}, 1<<18), 4 << 20},
	}
	if testing.Short() { // the chunks of the last case take seconds to compress
		cases = cases[:2]
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			j, err := recording.NewJournal()
			if err != nil {
				t.Fatal(err)
			}
			err = j.Append(recordingtest.New().Stream)
			var chunks []sandbox.Chunk
			for n := 0; err == nil && n < 1000; n++ {
				err = j.Append(c.piece)
				chunks = append(chunks, j.TakeChunks()...)
			}
			chunks = append(chunks, j.TakeChunks()...)
			if !errors.Is(err, recording.ErrIllegalRecord) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("got %v, want an illegal record: %s", err, c.why)
			}
			if j.Steps() > c.maxSteps || j.Steps() < 0 {
				t.Errorf("got %d steps, want at most %d", j.Steps(), c.maxSteps)
			}
			stored, err := recording.Open(chunks, func(n int) ([]byte, error) { return chunks[n].Data, nil })
			if err != nil || stored.Steps() != j.Steps() {
				t.Errorf("the part before: got %v, want it readable", err)
			}
		})
	}
}

// A stored recording whose indexes are larger than a journal makes was written before they were bounded.
func TestLargeStoredIndexesAreRefused(t *testing.T) {
	t.Parallel()
	j, err := recording.NewJournal()
	if err == nil {
		err = j.Append(append(recordingtest.New().Stream, bytes.Repeat([]byte{0xc1}, 1<<17)...))
	}
	if err != nil {
		t.Fatal(err)
	}
	j.End(nil)
	chunks := j.TakeChunks()
	for first := chunks[0]; len(chunks) < 100; {
		first.Sequence, first.Definitions = len(chunks), nil
		chunks = append(chunks, first)
	}
	if _, err := recording.Open(chunks, nil); err == nil || !strings.Contains(err.Error(), "different lines") {
		t.Errorf("got %v, want an error about the different lines", err)
	}
}

// The sets of an index are stored as runs. A run of a few bytes can claim any length.
func TestForgedRunsAreRefused(t *testing.T) {
	t.Parallel()
	for want, frames := range map[string][]uint64{
		"different lines":  {1, 1, 1 << 60},
		"not ascending":    {2, 5, 3, 0, 3},
		"ascending":        {2, 5, 3, math.MaxUint64 - 2, 3},
		"is damaged: the ": {2, 5, 3},
	} {
		index := recording.AppendNumbers(recording.AppendNumbers(nil, 0, 8, 0, 0, 0, 0, 0), frames...)
		_, err := recording.Open([]sandbox.Chunk{{First: 1, Last: 1, Index: index}}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want an error with %q", frames, err, want)
		}
	}
}

func TestRefusedDefinitionIsNotKept(t *testing.T) {
	t.Parallel()
	for _, illegal := range []recording.Record{
		{Kind: recording.KindCode, File: 99, Name: 2}, {Kind: recording.KindThread, Number: 7},
		{Kind: recording.KindHead, Number: recording.FormatVersion, Text: "again"},
	} {
		j := journalOf(t, recordingtest.Loop(10))
		if err := j.Append(recording.AppendRecord(nil, &illegal)); !errors.Is(err, recording.ErrIllegalRecord) {
			t.Fatalf("%s: got %v, want %v", illegal.Kind, err, recording.ErrIllegalRecord)
		}
		again, _ := stored(t, j)
		if _, err := again.State(30); err != nil {
			t.Errorf("%s: the steps before it cannot be read: %v", illegal.Kind, err)
		}
	}
}

// Each chunk begins with a key frame. If the state is large and the steps are small, key frames must not multiply the
// size of the recording.
func TestLargeStateDoesNotMultiplyTheRecording(t *testing.T) {
	t.Parallel()
	b := recordingtest.New("list")
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 250 { // 1 MB that hardly compresses
		noise := make([]byte, 4000)
		for n := range noise {
			noise[n] = byte(' ' + random.IntN(94))
		}
		b.Object(recordingtest.List(uint64(i+1), 3, recordingtest.Text(string(noise))))
	}
	b.Line(0)
	b.Stream = append(b.Stream, bytes.Repeat([]byte{recording.ShortLineZero}, 1<<20)...)
	if _, compressed := journalOf(t, b.Stream).ChunkSizes(); compressed > 3*len(b.Stream) {
		t.Errorf("got %d stored bytes of %d, want at most three times as many", compressed, len(b.Stream))
	}
}

func TestNearbyStepsLoadOneChunk(t *testing.T) {
	t.Parallel()
	j, loads := stored(t, journalOf(t, recordingtest.Loop(100_000)))
	for _, step := range []int{150_000, 150_001} {
		if _, err := j.State(step); err != nil || *loads != 1 {
			t.Errorf("step %d: got %d loads, %v, want 1", step, *loads, err)
		}
	}
}

func TestDamagedChunksAreAnError(t *testing.T) {
	t.Parallel()
	j := journalOf(t, recordingtest.Recorded("threads"))
	j.End(nil)
	whole := j.TakeChunks()
	for name, damaged := range map[string][]sandbox.Chunk{
		"missing chunk":      {{Sequence: 1}},
		"damaged index":      {{Index: []byte{0xff}}},
		"no definition":      {{Index: whole[0].Index, Definitions: []byte{byte(recording.KindHandled)}}},
		"damaged definition": {{Index: whole[0].Index, Definitions: []byte{byte(recording.KindName), 9}}},
	} {
		if _, err := recording.Open(damaged, nil); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	again, err := recording.Open(whole, func(int) ([]byte, error) { return []byte("no chunk"), nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.State(1); err == nil {
		t.Error("damaged data: got no error")
	}
}

func TestAnotherFormatVersionIsRefused(t *testing.T) {
	t.Parallel()
	head := recording.AppendRecord(nil, &recording.Record{Kind: recording.KindHead,
		Number: recording.FormatVersion - 1, Text: "old"})
	for what, c := range map[string]sandbox.Chunk{
		"the head":               {Definitions: head, Index: recording.EmptyIndex()},
		"a chunk without deltas": {Index: make([]byte, len(recording.EmptyIndex()))}, // no flag is set
	} {
		if _, err := recording.Open([]sandbox.Chunk{c}, nil); !errors.Is(err, recording.ErrVersion) {
			t.Errorf("%s: got %v, want %v", what, err, recording.ErrVersion)
		}
	}
	// The archive of an older version of the program can be imported, with recordings that cannot be opened.
	old := sandbox.Chunk{Index: make([]byte, len(recording.EmptyIndex())), Data: []byte("in another format")}
	if err := recording.Check(old); err != nil {
		t.Errorf("check of an old chunk: got %v, want no error", err)
	}
}

// A search through a Snapshot does not block the program or other readers.
func TestSnapshotDoesNotBlockAppend(t *testing.T) {
	t.Parallel()
	j := journalOf(t, recordingtest.Loop(100_000))
	loading, goOn := make(chan bool), make(chan bool)
	j.SetFirstLoader(func(data []byte) ([]byte, error) { close(loading); <-goOn; return data, nil })
	searched := make(chan error)
	go func() {
		_, err := j.Snapshot().State(1)
		searched <- err
	}()
	<-loading
	if err := j.Append([]byte{recording.ShortLineZero}); err != nil || j.Steps() != 300_001 {
		t.Errorf("got %d steps, %v, want 300001", j.Steps(), err)
	}
	close(goOn)
	if err := <-searched; err != nil {
		t.Error(err)
	}
}

// The cache is bounded and has checkpoints at small distances, for any size of the state and any order of reads.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	b := recordingtest.New("list")
	for i := range 150 { // each chunk has a larger state than the one before
		b.Line(0)
		b.Object(recordingtest.List(uint64(i+1), 3, recordingtest.Text(strings.Repeat("y", 4000))))
		b.Stream = append(b.Stream, bytes.Repeat([]byte{recording.ShortLineZero}, 2000)...)
	}
	j := journalOf(t, b.Stream)
	for step := 1; step <= j.Steps(); step += 1997 {
		if _, err := j.State(step); err != nil {
			t.Fatal(err)
		}
		sum, last := 0, 0
		for _, c := range j.Cached() {
			if c.Bytes > c.MaxBytes {
				t.Fatalf("got a chunk of %d bytes with its checkpoints, want at most %d", c.Bytes, c.MaxBytes)
			}
			sum, last = sum+c.Bytes, c.Bytes
		}
		if sum-last > recording.MaxCachedBytes {
			t.Fatalf("got %d bytes besides the last chunk, want at most %d", sum-last, recording.MaxCachedBytes)
		}
	}
	cached := j.Cached()
	last := cached[len(cached)-1]
	for _, gap := range last.Gaps {
		if gap > last.MaxGap {
			t.Errorf("got %d bytes between checkpoints, want at most %d", gap, last.MaxGap)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	stream := recordingtest.Loop(300_000)
	for b.Loop() {
		_, compressed := journalOf(b, stream).ChunkSizes()
		b.ReportMetric(float64(compressed)/900_000, "bytes/step")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/900_000, "ns/step")
}

func BenchmarkState(b *testing.B) {
	j := journalOf(b, recordingtest.Loop(333_334))
	n := 0
	for b.Loop() {
		n = (n + 618_033) % 1_000_000
		if _, err := j.State(n + 1); err != nil {
			b.Fatal(err)
		}
	}
}
