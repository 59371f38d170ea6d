package recording_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"glasshouse/debugger/recording"
	"glasshouse/debugger/recording/recordingtest"
)

// chunkRecords returns the records of a stream that are stored in chunks: all records except definitions.
func chunkRecords(t testing.TB, stream []byte) (out []byte) {
	t.Helper()
	var rec recording.Record
	for len(stream) > 0 {
		size, err := recording.DecodeRecord(stream, &rec)
		if err != nil {
			t.Fatal(err)
		}
		if rec.Kind > recording.KindsThatDefine {
			out = append(out, stream[:size]...)
		}
		stream = stream[size:]
	}
	return out
}

// checkSameRecords compares records. The encodings may differ: a recorder need not choose the shortest one.
func checkSameRecords(t *testing.T, got, want []byte) {
	t.Helper()
	var g, w recording.Record
	for len(want) > 0 || len(got) > 0 {
		wantSize, err := recording.DecodeRecord(want, &w)
		if err != nil {
			t.Fatal(err)
		}
		gotSize, err := recording.DecodeRecord(got, &g)
		if err != nil {
			t.Fatalf("got %v, want %+v", err, w)
		}
		if !bytes.Equal(recording.AppendRecord(nil, &w), recording.AppendRecord(nil, &g)) {
			t.Fatalf("got %+v, want %+v", g, w)
		}
		want, got = want[wantSize:], got[gotSize:]
	}
}

// sizeOf returns the bytes of all columns.
func sizeOf(in recording.Columns) (sum int) {
	for _, column := range in {
		sum += len(column)
	}
	return sum
}

func TestDeltasDecodeToTheRecords(t *testing.T) {
	t.Parallel()
	streams := map[string][]byte{"loop": recordingtest.Loop(1000), "mixed": recordingtest.Mixed(5000)}
	for _, name := range recordingtest.Names() {
		streams[name] = recordingtest.Recorded(name)
	}
	objects := recordingtest.New("list") // more than the coder remembers
	for n := range uint64(3000) {
		values := slices.Repeat([]recording.Value{recordingtest.Int(int64(n))}, 1024)
		objects.Object(recordingtest.List(n+1, 3, values...))
	}
	for _, n := range []uint64{1, 3000} {
		o := recordingtest.List(n, 3, recordingtest.Text("changed"))
		objects.Add(recording.Record{Kind: recording.KindMutate, Object: o})
	}
	streams["objects"] = objects.Stream
	for name, stream := range streams {
		want := chunkRecords(t, stream)
		deltas, err := recording.EncodeDeltas(want)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := recording.DecodeDeltas(deltas)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkSameRecords(t, got, want)
	}
}

func TestDeltasOfSimilarRecordsAreSmall(t *testing.T) {
	t.Parallel()
	list := func(number, version uint64, n int) recording.Object {
		o := recordingtest.List(number, 1)
		o.Version, o.Length = version, int64(n)
		for i := range n {
			o.Values = append(o.Values, recordingtest.Int(1_000_000+i))
		}
		return o
	}
	var b recordingtest.Builder
	b.Add(
		recording.Record{Kind: recording.KindObject, Object: list(1_000_000, 1, 50)},
		recording.Record{Kind: recording.KindMutate, Object: list(1_000_000, 2, 51)},
		recording.Record{Kind: recording.KindObject, Object: list(1_000_001, 1, 51)},
		recording.Record{Kind: recording.KindGlobal, Name: 1, Value: recordingtest.Int(1 << 40)},
		recording.Record{Kind: recording.KindGlobal, Name: 1, Value: recordingtest.Int(1<<40 + 1)},
	)
	deltas, err := recording.EncodeDeltas(b.Stream)
	if size := sizeOf(deltas); err != nil || size > 420 {
		t.Errorf("got %d bytes of %d, %v, want at most 420", size, len(b.Stream), err)
	}
}

// A program hands the same texts and numbers from name to name. All but the first of them take one byte for the value,
// even if others came in between; the value that is gone from the list is written again.
func TestRepeatedValuesAreSmall(t *testing.T) {
	t.Parallel()
	const text = "a text of thirty-one characters"
	set := func(name uint64, v recording.Value) recording.Record {
		return recording.Record{Kind: recording.KindGlobal, Name: name, Value: v}
	}
	number := func(f float64) recording.Value {
		return recording.Value{Tag: recording.TagFloat, Float: math.Float64bits(f)}
	}
	var b recordingtest.Builder
	b.Add(set(1, recordingtest.Text(text)), set(2, number(math.Pi)))
	for name := range uint64(10) {
		b.Add(set(10+name, recordingtest.Text(text)), set(30+name, number(math.Pi)))
	}
	deltas, err := recording.EncodeDeltas(b.Stream)
	if size, want := sizeOf(deltas), 2*2+2+len(text)+9+20*3; err != nil || size != want {
		t.Errorf("got %d bytes, %v, want %d", size, err, want)
	}
	for i := range uint64(20) { // more than are kept
		b.Add(set(50+i, number(1/float64(3+i))))
	}
	b.Add(set(80, recordingtest.Text(text)))
	deltas, err = recording.EncodeDeltas(b.Stream)
	if count := bytes.Count(deltas[recording.TextColumn], []byte(text)); err != nil || count != 2 {
		t.Errorf("got the text %d times, %v, want twice", count, err)
	}
	decoded, err := recording.DecodeDeltas(deltas)
	if err != nil {
		t.Fatal(err)
	}
	checkSameRecords(t, decoded, b.Stream)
}

// A running total takes one byte for the value, which is the sum of the total before and a value that the program has
// used. The doubles of other values are in full.
func TestRunningTotalsAreSmall(t *testing.T) {
	t.Parallel()
	var b recordingtest.Builder
	total := 0.5
	for i := range 100 {
		x := math.Sqrt(float64(i + 2))
		total += x
		for name, f := range []float64{x, total} {
			v := recording.Value{Tag: recording.TagFloat, Float: math.Float64bits(f)}
			b.Add(recording.Record{Kind: recording.KindGlobal, Name: uint64(name + 1), Value: v})
		}
	}
	deltas, err := recording.EncodeDeltas(b.Stream)
	// 90 of the roots are not integers. The first total is a double, too: it has no total before it.
	if doubles := len(deltas[recording.DoubleColumn]) / 8; err != nil || doubles < 85 || doubles > 95 {
		t.Errorf("got %d doubles, %v, want 85 to 95", doubles, err)
	}
	decoded, err := recording.DecodeDeltas(deltas)
	if err != nil {
		t.Fatal(err)
	}
	checkSameRecords(t, decoded, b.Stream)
}

// Integers that a program counts, sums and hands from name to name take few bytes.
func TestIntegersOfALoopAreSmall(t *testing.T) {
	t.Parallel()
	var b recordingtest.Builder
	total := 0
	for i := 1000; i < 2000; i++ {
		total += i
		for name, n := range []int{i, total, total, 3 * total} {
			b.Add(recording.Record{Kind: recording.KindGlobal, Name: uint64(name + 1), Value: recordingtest.Int(n)})
		}
	}
	deltas, err := recording.EncodeDeltas(b.Stream)
	// The count takes a byte, the triple of the total three, the others none.
	if size := len(deltas[recording.NumberColumn]); err != nil || size > 4100 {
		t.Errorf("got %d bytes of numbers, %v, want at most 4100", size, err)
	}
	decoded, err := recording.DecodeDeltas(deltas)
	if err != nil {
		t.Fatal(err)
	}
	checkSameRecords(t, decoded, b.Stream)
}

// FuzzDeltas checks that damaged deltas are an error, and that encoded records decode to themselves.
func FuzzDeltas(f *testing.F) {
	f.Add(chunkRecords(f, recordingtest.Mixed(200)), []byte{}, []byte{}, []byte{})
	f.Add(chunkRecords(f, recordingtest.Loop(50)), []byte{}, []byte{}, []byte{})
	if in, err := recording.EncodeDeltas(chunkRecords(f, recordingtest.Mixed(200))); err == nil {
		f.Add(in[recording.ShapeColumn], in[recording.NumberColumn], in[recording.DoubleColumn],
			in[recording.TextColumn])
	}
	f.Fuzz(func(t *testing.T, b, numbers, doubles, texts []byte) {
		_, _ = recording.DecodeDeltas(recording.Columns{b, numbers, doubles, texts})
		deltas, err := recording.EncodeDeltas(b)
		if err != nil {
			return
		}
		again, err := recording.DecodeDeltas(deltas)
		if err != nil {
			t.Fatal(err)
		}
		checkSameRecords(t, again, b)
	})
}

func TestIndexHasAllNamesAndLines(t *testing.T) {
	t.Parallel()
	var numbers []uint64
	for i := range uint64(5000) {
		numbers = append(numbers, 1+i%200, 1+i%7, 65, 1)
	}
	names, count := recording.IndexNumbers(numbers)
	want := map[recording.Location]int{}
	for _, n := range numbers {
		if !names[n] {
			t.Errorf("name %d is missing", n)
		}
		want[recording.Location{File: n % 3, Line: int64(n)}]++
	}
	for l, n := range want {
		if count(l) != n {
			t.Errorf("%v: got %d steps, want %d", l, count(l), n)
		}
	}
}
