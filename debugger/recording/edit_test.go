package recording_test

import (
	"testing"

	"glasshouse/debugger/recording"
	"glasshouse/debugger/recording/recordingtest"
)

// A step has the changes of its edits, even if a chunk ends between its line and the edits. Without SetEdit it has
// none, whatever events a guest sends.
func TestStateHasTheEditsOfItsStep(t *testing.T) {
	t.Parallel()
	const steps, x, edit = 60_000, 3, 4 // names
	b := recordingtest.New("x", "edit")
	event := func(number uint64) recording.Record {
		return recording.Record{Kind: recording.KindEvent, Name: edit, Number: number}
	}
	for step := 1; step <= steps; step++ {
		b.Line(1)
		b.Add(event(uint64(2 * step)))
		b.Global(x, recordingtest.Int(10*step))
		b.Add(event(0), event(uint64(2*step+1)))
		b.Global(x, recordingtest.Int(10*step+1))
		b.Add(event(0))
		b.Global(x, recordingtest.Int(-step)) // by the line
	}
	live := journalOf(t, b.Stream)
	past, _ := stored(t, journalOf(t, b.Stream))
	want := func(step, value int) {
		t.Helper()
		for _, j := range []*recording.Journal{live, past} {
			s, err := j.State(step)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Globals[x]; got != recordingtest.Int(value) {
				t.Fatalf("step %d: got x = %v, want %d", step, got, value)
			}
			if err := j.Read(func(r *recording.Reader) error { return wantStates(r, step-2, step+2) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	ends := []int{}
	_ = live.Read(func(r *recording.Reader) error {
		for _, c := range r.Chunks() {
			ends = append(ends, c.Last)
		}
		return nil
	})
	if len(ends) < 3 {
		t.Fatalf("got the chunks that end at %v, want several", ends)
	}
	for _, step := range append(ends[:len(ends)-1], 3, 100, steps) {
		want(step, 1-step) // of the line before
		for _, j := range []*recording.Journal{live, past} {
			j.SetEdit(step, uint64(2*step))
		}
		want(step, 10*step)
		for _, j := range []*recording.Journal{live, past} {
			j.SetEdit(step, uint64(2*step+1))
		}
		want(step, 10*step+1)
		want(step-1, 2-step)
	}
}
