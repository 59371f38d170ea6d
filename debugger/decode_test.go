package debugger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// recording returns one that the recorder has written.
func recording(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".rec"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The transcripts are written and read by sandbox/python/tests too.
func TestTranscripts(t *testing.T) {
	names, _ := filepath.Glob("testdata/*.txt")
	if len(names) < 10 {
		t.Fatalf("only %d transcripts", len(names))
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Transcript(recording(t, strings.TrimSuffix(filepath.Base(name), ".txt")))
			if err != nil {
				t.Fatal(err)
			}
			if got == string(want) {
				return
			}
			g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
			for i := range min(len(g), len(w)) {
				if g[i] != w[i] {
					t.Fatalf("line %d: got %s, want %s", i+1, g[i], w[i])
				}
			}
			t.Fatalf("%d lines, want %d", len(g), len(w))
		})
	}
}

func TestRecordsComeBackAsTheyWere(t *testing.T) {
	names, _ := filepath.Glob("testdata/*.rec")
	for _, name := range names {
		for rest := recording(t, strings.TrimSuffix(filepath.Base(name), ".rec")); len(rest) > 0; {
			var rec, again Record
			size, err := decode(rest, &rec)
			if err != nil {
				t.Fatal(name, err)
			}
			written := appendRecord(nil, &rec)
			if n, err := decode(written, &again); err != nil || n != len(written) || !reflect.DeepEqual(rec, again) {
				t.Errorf("%s: %+v is %+v when it is written and read again: %v", name, rec, again, err)
			}
			rest = rest[size:]
		}
	}
}

func TestWhatNoRecorderWrites(t *testing.T) {
	head := appendRecord(nil, &Record{Kind: KindHead, Number: formatVersion, Text: "test"})
	begin := head
	for _, rec := range []Record{
		{Kind: KindName, Text: "f"}, {Kind: KindCode, File: 1, Name: 1, Number: 1}, {Kind: KindThread, Number: 1},
		{Kind: KindPush, Frame: 1, Code: 1, Lane: 1},
	} {
		begin = appendRecord(begin, &rec)
	}
	for name, b := range map[string][]byte{
		"no head":                    {byte(KindHandled)},
		"another version":            {byte(KindHead), 9, 1, 'x', 0},
		"two heads":                  append(bytes.Clone(head), head...),
		"no such kind":               append(bytes.Clone(head), 0x7f),
		"a line outside a frame":     append(bytes.Clone(head), 0xc1),
		"a line below 0":             append(bytes.Clone(begin), 0x80),
		"a set of no name":           append(bytes.Clone(begin), byte(KindSet), 9, 'N'),
		"no such value":              append(bytes.Clone(begin), byte(KindSet), 1, 'Z'),
		"no such object":             append(bytes.Clone(begin), byte(KindSet), 1, '@', 7),
		"a mutate of no object":      append(bytes.Clone(begin), byte(KindMutate), 1, 2, 0, 0, 0, 0),
		"a frame again":              append(bytes.Clone(begin), byte(KindPush), 1, 1, 1, 0, 0),
		"a frame that isn't":         append(bytes.Clone(begin), byte(KindFrame), 9),
		"a code of no name":          append(bytes.Clone(begin), byte(KindCode), 1, 2, 1),
		"a resume of what runs":      append(bytes.Clone(begin), byte(KindResume), 1, 0),
		"a huge text":                append(bytes.Clone(head), byte(KindName), 0xff, 0xff, 0xff, 0xff, 0x0f),
		"a number of 70 bits":        append(bytes.Clone(head), byte(KindName), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
		"a huge object":              append(bytes.Clone(begin), byte(KindObject), 1, 1, 1, 0, 0, 1, 0xff, 0xff, 0xff, 0x0f),
		"pairs without a last value": append(bytes.Clone(begin), byte(KindObject), 1, 1, 1, 0, 0, 2, 1, 'N'),
		"text that is not UTF-8":     append(bytes.Clone(head), byte(KindName), 1, 0xff),
		"output backwards":           append(bytes.Clone(begin), byte(KindOutput), 1, 5, 4),
		"lost beyond measure":        append(bytes.Clone(begin), byte(KindLost), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0),
	} {
		j := journal(t, nil)
		if err := j.Append(b); !errors.Is(err, ErrForged) {
			t.Errorf("%s: %v", name, err)
		}
		if err := j.Append(head); !errors.Is(err, ErrForged) {
			t.Errorf("%s: it goes on", name)
		}
	}
}

// Whatever the bytes, and however they are cut: no panic, no more memory than was
// sent, and the same steps.
func FuzzJournal(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.rec")
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 4096)], 7)
	}
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		whole, parts := journal(t, nil), journal(t, nil)
		err := whole.Append(b)
		size := max(1, cut&0xff)
		var failed error
		for rest := b; len(rest) > 0 && failed == nil; rest = rest[min(size, len(rest)):] {
			failed = parts.Append(rest[:min(size, len(rest))])
		}
		if (err == nil) != (failed == nil) || whole.Steps() != parts.Steps() {
			t.Fatalf("whole %v and %d steps, in parts %v and %d", err, whole.Steps(), failed, parts.Steps())
		}
		last := whole.Steps()
		a, errA := whole.State(last)
		c, errC := parts.State(last)
		if (errA == nil) != (errC == nil) || errA == nil && !reflect.DeepEqual(a, c) {
			t.Fatalf("step %d: %v, %v", last, errA, errC)
		}
		if errA != nil && !errors.Is(errA, ErrNoStep) {
			t.Fatal(errA)
		}
		for _, verb := range []Verb{Next, StepIn, StepOut, Continue, StepBack, ReverseContinue} {
			stop, err := whole.Move(t.Context(), min(1, last), verb, Breakpoints{Exceptions: true, Data: []Variable{{Name: "x"}}})
			if err == nil && stop.Step > last {
				t.Fatalf("%s stops at %d of %d", verb, stop.Step, last)
			}
		}
	})
}

// Recorders may write an integer either way: what is equal compares so.
func TestEqualIntegersAreEqualValues(t *testing.T) {
	for _, n := range []int64{0, 1, -1, 127, -128, 300, -32768, 1 << 31, -1 << 40, math.MaxInt64, math.MinInt64} {
		short := binary.AppendVarint([]byte{'i'}, n)
		long := binary.LittleEndian.AppendUint64([]byte{'I', 8}, uint64(n))
		a, b := (&reader{b: short}).value(), (&reader{b: long}).value()
		if a != b || a.BigInt().Int64() != n {
			t.Errorf("%d is %+v and %+v", n, a, b)
		}
	}
	small := (&reader{b: []byte{'I', 2, 0xd4, 0xfe}}).value()
	if big := (&reader{b: []byte{'I', 9, 0, 0, 0, 0, 0, 0, 0, 0, 1}}).value(); small.Int != -300 || big.BigInt().String() != "18446744073709551616" {
		t.Errorf("%+v, %+v", small, big)
	}
}
