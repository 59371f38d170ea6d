package recording_test

import (
	"testing"

	"glasshouse/debugger/recording"
	"glasshouse/debugger/recording/recordingtest"
)

func TestSearchForChangedVariablesIsBounded(t *testing.T) {
	t.Parallel()
	s := &recording.State{Objects: map[uint64]*recording.Object{},
		Globals: map[uint64]recording.Value{1: recordingtest.Ref(1)}}
	for i := range uint64(recording.MaxHolderSearch) {
		o := recordingtest.List(i+1, 0, recordingtest.Ref(i+2))
		s.Objects[i+1] = &o
	}
	for object, want := range map[uint64]int{5: 1, recording.MaxHolderSearch - 1: 0} {
		names := map[uint64]bool{}
		if recording.AddHolders(s, map[uint64]bool{object: true}, names, s.Globals); len(names) != want {
			t.Errorf("object %d: got %d names, want %d", object, len(names), want)
		}
	}
}
