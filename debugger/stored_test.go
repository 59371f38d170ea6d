package debugger

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// kept returns a recording as it comes back from where chunks are kept, and how many
// chunks were loaded by then.
func kept(t *testing.T, j *Journal) (*Journal, *int) {
	t.Helper()
	j.End(nil)
	whole := j.Take()
	loads := new(int)
	var outlines []sandbox.Chunk
	for _, c := range whole {
		c.Data = nil
		outlines = append(outlines, c)
	}
	again, err := Open(outlines, func(n int) ([]byte, error) { *loads++; return whole[n].Data, nil })
	if err != nil {
		t.Fatal(err)
	}
	return again, loads
}

func TestWhatIsKeptIsWhatWasRecorded(t *testing.T) {
	names, _ := filepath.Glob("testdata/*.rec")
	for _, name := range names {
		b := recording(t, strings.TrimSuffix(filepath.Base(name), ".rec"))
		live := journal(t, b)
		again, _ := kept(t, journal(t, b))
		if again.Steps() != live.Steps() {
			t.Fatalf("%s: %d steps, %d live", name, again.Steps(), live.Steps())
		}
		for step := 1; step <= live.Steps(); step++ {
			want, wantErr := live.State(step)
			got, err := again.State(step)
			if errors.Is(err, ErrNoStep) && errors.Is(wantErr, ErrNoStep) {
				continue // lost
			}
			if err != nil || wantErr != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: step %d differs: %v, %v", name, step, err, wantErr)
			}
		}
		if !reflect.DeepEqual(again.table, live.table) {
			t.Errorf("%s: the definitions differ", name)
		}
	}
}

// What was recorded ahead of an illegal record stays readable, be that a definition.
func TestAnIllegalDefinitionIsNotKept(t *testing.T) {
	for _, forged := range []Record{{Kind: KindCode, File: 99, Name: 2}, {Kind: KindThread, Number: 7}, {Kind: KindHead, Number: formatVersion, Text: "again"}} {
		j := journal(t, long(10))
		if err := j.Append(appendRecord(nil, &forged)); !errors.Is(err, ErrForged) {
			t.Fatal(err)
		}
		again, _ := kept(t, j)
		if _, err := again.State(30); err != nil {
			t.Error(err)
		}
	}
}

// Each chunk begins with all that lives: where that is much, and steps are short, a
// recording is a few times what was recorded all the same.
func TestALargeStateIsKeptFewTimes(t *testing.T) {
	b := ofLists()
	add := func(rec Record) { b = appendRecord(b, &rec) }
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 { // 4 MB, which hardly compress
		noise := make([]byte, 4000)
		for n := range noise {
			noise[n] = byte(' ' + random.IntN(94))
		}
		add(Record{Kind: KindObject, Object: Object{Number: uint64(i + 1), Type: 3, Version: 1, Form: Items, Length: 1, Values: []Value{{Tag: TagText, Text: string(noise)}}}})
	}
	add(Record{Kind: KindLine})
	b = append(b, bytes.Repeat([]byte{shortZero}, 4<<20)...)
	stored := 0
	for _, c := range journal(t, b).Take() {
		stored += len(c.Data)
	}
	if stored > 3*len(b) {
		t.Errorf("a recording of %d MB is stored in %d", len(b)>>20, stored>>20)
	}
}

func TestASearchLoadsFewChunks(t *testing.T) {
	j, loads := kept(t, journal(t, long(100_000)))
	if _, err := j.State(150_000); err != nil || *loads != 1 {
		t.Errorf("a step: %d loads, %v", *loads, err)
	}
	if _, err := j.State(150_001); err != nil || *loads != 1 {
		t.Errorf("the next step: %d loads, %v", *loads, err)
	}
	list, err := j.Changes(Variable{0, "x"}, 290_000, 1, true, nil)
	if err != nil || len(list) != 1 || list[0].Value != fmt.Sprint(290_000/3-1) || *loads > 2 {
		t.Errorf("the last change: %+v, %d loads, %v", list, *loads, err)
	}
	stop, err := j.Move(t.Context(), 1, Continue, Breakpoints{Lines: []LineBreak{{File: "file", Line: 99}}})
	if err != nil || stop.Reason != ReasonEnd || *loads > 2 {
		t.Errorf("a line that never runs: %+v, %d loads, %v", stop, *loads, err)
	}
}

func TestDamageIsAnError(t *testing.T) {
	j := journal(t, recording(t, "threads"))
	j.End(nil)
	whole := j.Take()
	for _, damaged := range [][]sandbox.Chunk{
		{{Sequence: 1}},
		{{Sequence: 0, Index: []byte{0xff}}},
		{{Sequence: 0, Index: whole[0].Index, Definitions: []byte{byte(KindHandled)}}},
		{{Sequence: 0, Index: whole[0].Index, Definitions: []byte{byte(KindName), 9}}},
	} {
		if _, err := Open(damaged, nil); err == nil {
			t.Errorf("%+v was taken", damaged)
		}
	}
	again, err := Open(whole, func(int) ([]byte, error) { return []byte("no chunk"), nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.State(1); err == nil {
		t.Error("damaged data was read")
	}
}

// A page tells what the whole tells.
func TestPagesOfLines(t *testing.T) {
	j := journal(t, long(50_000))
	source := []string{"first", "second", "third"}
	whole, err := j.Lines(1, 150_000, source)
	if err != nil || len(whole) != 150_000 {
		t.Fatalf("%d lines, %v", len(whole), err)
	}
	for _, first := range []int{1, 2, 70_000, 149_991} {
		page, err := j.Lines(first, first+9, source)
		if err != nil || len(page) != 10 {
			t.Fatalf("from %d: %d lines, %v", first, len(page), err)
		}
		for i := range page {
			want := whole[first-1+i]
			if page[i].Step != first+i || page[i].Code != want.Code || page[i].Variables["x"] != want.Variables["x"] {
				t.Errorf("%+v, in the whole %+v", page[i], want)
			}
		}
	}
	if l := whole[3*777+1]; l.Code != "second" || l.Variables["x"] != "777" || len(l.Changed) != 1 {
		t.Errorf("%+v", l)
	}
}

func TestARecordingOfAnotherVersion(t *testing.T) {
	head := appendRecord(nil, &Record{Kind: KindHead, Number: formatVersion - 1, Text: "old"})
	empty := (&Chunk{}).appendIndex(nil)
	if _, err := Open([]sandbox.Chunk{{Definitions: head, Index: empty}}, nil); !errors.Is(err, ErrVersion) {
		t.Error(err)
	}
}
