package debugger

import (
	"testing"

	"glasshouse/debugger/recording"
	"glasshouse/debugger/recording/recordingtest"
)

// A complete recording has a step behind the last one, with what the last line set. Moves and data breakpoints reach
// it, and lead back.
func TestTheEndIsAStep(t *testing.T) {
	t.Parallel()
	b := recordingtest.New("x")
	b.Line(0)
	b.Global(3, recordingtest.Int(1))
	b.Line(1)
	b.Global(3, recordingtest.Int(2))
	b.Add(recording.Record{Kind: recording.KindReturn, Value: recording.Value{Tag: recording.TagNone}})
	r := recordingOf(t, b.Stream, "x = 1", "x = 2")
	if _, err := r.View(3, 10); err == nil {
		t.Error("got a view of the end of a recording that grows, want an error")
	}
	r.End()
	view, err := r.View(3, 10)
	if err != nil || !view.IsEnd || len(view.Frames) != 1 || view.Frames[0].Line != 2 || len(view.Globals) != 1 ||
		view.Globals[0].Value != "2" {
		t.Fatalf("got %+v, %v, want the end with x = 2", view, err)
	}
	x := Breakpoints{Data: []Variable{{Name: "x"}}}
	for _, c := range []struct {
		from   int
		move   Move
		breaks Breakpoints
		want   Stop
	}{
		{1, Next, Breakpoints{}, Stop{Step: 2, Reason: ReasonStep}},
		{2, Next, Breakpoints{}, Stop{Step: 3, Reason: ReasonEnd}},
		{3, Next, Breakpoints{}, Stop{Step: 3, Reason: ReasonEnd}},
		{1, Continue, Breakpoints{}, Stop{Step: 2, Reason: ReasonEnd}},
		{1, Continue, x, Stop{Step: 2, Reason: ReasonData}},
		{2, Continue, x, Stop{Step: 3, Reason: ReasonData}},
		{3, StepBack, Breakpoints{}, Stop{Step: 2, Reason: ReasonStep}},
		{3, ReverseContinue, Breakpoints{}, Stop{Step: 1, Reason: ReasonStart}},
	} {
		got, err := r.FindStop(t.Context(), c.from, c.move, c.breaks)
		if err != nil || got != c.want {
			t.Errorf("%s from step %d: got %+v, %v, want %+v", c.move, c.from, got, err, c.want)
		}
	}
}
