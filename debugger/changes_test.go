package debugger

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"glasshouse/debugger/recording"
	"glasshouse/debugger/recording/recordingtest"
)

func TestChangesOfVariables(t *testing.T) {
	t.Parallel()
	r := recordingOf(t, recordingtest.Loop(100_000))
	x, y := Variable{Name: "x"}, Variable{Name: "y"}
	for _, c := range []struct {
		variable            Variable
		seen, step          int
		value, typeOfChange string
	}{
		{x, 150_000, 149_999, "49999", "int"},
		{y, 3*49_000 + 3, 3*49_000 + 2, "[49000]", "list"},
	} {
		list, err := r.LastChange(c.variable, 150_000)
		want := ChangeView{Seen: c.seen, Step: c.step, Line: 2, Function: "<module>", Value: c.value,
			Type: c.typeOfChange}
		if err != nil || len(list) != 1 || list[0] != want {
			t.Errorf("%s: got %+v, %v, want %+v", c.variable.Name, list, err, want)
		}
	}
	if list, err := r.LastChange(Variable{Name: "none"}, 150_000); err != nil || len(list) != 0 {
		t.Errorf("an undefined name: got %+v, %v, want no change", list, err)
	}
	list, err := r.Changes(x, 299_000, 1000)
	if err != nil || len(list) != 334 || list[0].Seen != 299_001 || list[333].Seen != 300_000 {
		t.Errorf("got %d changes, %v, want 334, from 299001 to 300000", len(list), err)
	}
	if list, err := r.Changes(x, 1, 5); err != nil || len(list) != 5 {
		t.Errorf("got %d changes, %v, want 5", len(list), err)
	}
}

// sharedObjects returns a recording of a line that changes each of many objects. The objects form a chain, and many
// variables hold its first object. The variable other holds an object that does not change; near holds one that does.
func sharedObjects(t *testing.T, objects, names int) *Recording {
	t.Helper()
	b := recordingtest.New("list", "other", "near")
	for i := range names {
		b.Add(recording.Record{Kind: recording.KindName, Text: fmt.Sprintf("x%05d", i)})
	}
	list := func(i int) recording.Object {
		if i > 1 && i <= objects {
			return recordingtest.List(uint64(i), 3, recordingtest.Ref(uint64(i-1)))
		}
		return recordingtest.List(uint64(i), 3)
	}
	mutate := func(i int) {
		o := list(i)
		o.Version = 2
		b.Add(recording.Record{Kind: recording.KindMutate, Object: o})
	}
	for i := 1; i <= objects+2; i++ {
		b.Object(list(i))
	}
	for i := range names {
		b.Global(uint64(6+i), recordingtest.Ref(uint64(objects)))
	}
	b.Global(4, recordingtest.Ref(uint64(objects+1)))
	b.Global(5, recordingtest.Ref(uint64(objects+2)))
	b.Line(0)
	for i := 1; i < objects; i++ { // all but the first object, which the variables hold directly
		mutate(i)
	}
	mutate(objects + 2)
	b.Line(1)
	return recordingOf(t, b.Stream)
}

// The search takes time linear in the sum of objects and names, not in their product.
func TestChangedVariablesAreFoundFast(t *testing.T) {
	t.Parallel()
	r := sharedObjects(t, 5000, 3000)
	found := make(chan []string, 1)
	go func() { found <- changedVariables(r.journal.Snapshot(), 1, 1, 0) }()
	select {
	case names := <-found:
		if len(names) != 3001 || slices.Contains(names, "other") || !slices.Contains(names, "near") ||
			!slices.Contains(names, "x02999") {
			t.Errorf("got %d names: %.200v, want 3001 with near and x02999, without other", len(names), names)
		}
	case <-time.After(20 * time.Second):
		t.Error("got no answer in 20 s")
	}
}
