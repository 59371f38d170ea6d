package debugger

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// shared is a line that mutates each of many objects, which hold one another in a row
// that as many names begin; other holds an object of its own, and so does near, which
// the line mutates, too.
func shared(t *testing.T, objects, names int) *Journal {
	t.Helper()
	var b []byte
	add := func(rec Record) { b = appendRecord(b, &rec) }
	add(Record{Kind: KindHead, Number: formatVersion, Text: "test"})
	for _, name := range []string{"file", "<module>", "list", "other", "near"} {
		add(Record{Kind: KindName, Text: name})
	}
	for i := range names {
		add(Record{Kind: KindName, Text: fmt.Sprintf("x%05d", i)})
	}
	add(Record{Kind: KindCode, File: 1, Name: 2, Number: 1})
	add(Record{Kind: KindThread, Number: 1, Text: "main"})
	add(Record{Kind: KindPush, Frame: 1, Code: 1, Lane: 1})
	row := func(i int, version uint64) Object {
		o := Object{Number: uint64(i), Type: 3, Version: version, Form: Items, Length: 1}
		if i > 1 && i <= objects {
			o.Values = []Value{{Tag: TagObject, Object: uint64(i - 1)}}
		}
		return o
	}
	for i := 1; i <= objects+2; i++ {
		add(Record{Kind: KindObject, Object: row(i, 1)})
	}
	for i := range names {
		add(Record{Kind: KindGlobal, Name: uint64(6 + i), Value: Value{Tag: TagObject, Object: uint64(objects)}})
	}
	add(Record{Kind: KindGlobal, Name: 4, Value: Value{Tag: TagObject, Object: uint64(objects + 1)}})
	add(Record{Kind: KindGlobal, Name: 5, Value: Value{Tag: TagObject, Object: uint64(objects + 2)}})
	add(Record{Kind: KindLine})
	for i := 1; i < objects; i++ { // not the first of the row itself
		add(Record{Kind: KindMutate, Object: row(i, 2)})
	}
	add(Record{Kind: KindMutate, Object: row(objects+2, 2)})
	add(Record{Kind: KindLine, Delta: 1})
	return journal(t, b)
}

// What a line has changed is told soon, however many names hold how much of it.
func TestWhatALineChangesIsToldSoon(t *testing.T) {
	j := shared(t, 5000, 3000)
	told := make(chan []string, 1)
	go func() { told <- j.changedBy(1, 1) }()
	select {
	case names := <-told:
		if len(names) != 3001 || slices.Contains(names, "other") || !slices.Contains(names, "near") || !slices.Contains(names, "x02999") {
			t.Errorf("%d names: %.200v", len(names), names)
		}
	case <-time.After(20 * time.Second):
		t.Error("it takes too long")
	}
}

// What is too deep to be found is not told; what is near is.
func TestWhatALineChangesIsBounded(t *testing.T) {
	s := newState()
	for i := range uint64(2 * maxReached) {
		s.Objects[i+1] = &Object{Number: i + 1, Form: Items, Values: []Value{{Tag: TagObject, Object: i + 2}}}
	}
	s.Globals[1] = Value{Tag: TagObject, Object: 1}
	for object, want := range map[uint64]int{5: 1, 2*maxReached - 1: 0} {
		names := map[uint64]bool{}
		if s.holders(map[uint64]bool{object: true}, names, s.Globals); len(names) != want {
			t.Errorf("%d names hold object %d, not %d", len(names), object, want)
		}
	}
}
