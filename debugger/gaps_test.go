package debugger

import (
	"fmt"
	"strings"
	"testing"

	"glasshouse/debugger/recording"
	"glasshouse/debugger/recording/recordingtest"
)

// gappy returns the stream of a recording of the steps 1 to 3, and of 14 to 15 behind a gap. Its end is lost without a
// number of steps.
func gappy() []byte {
	b := recordingtest.New("x")
	b.Line(0)
	for i := range 2 {
		b.Global(3, recordingtest.Int(i+1))
		b.Line(1)
	}
	b.Global(3, recordingtest.Int(3))
	b.Add(
		recording.Record{Kind: recording.KindLost, Number: 10, Text: "too many"},
		recording.Record{
			Kind:   recording.KindPush,
			Frame:  1,
			Code:   1,
			Thread: 1,
			Number: recording.FlagRestated,
			From:   3,
		},
	)
	b.Global(3, recordingtest.Int(13))
	b.Line(1)
	b.Line(1)
	b.Add(recording.Record{Kind: recording.KindLost, Text: "the end"})
	return b.Stream
}

const gappySource = "one\ntwo\nthree\nfour\nfive"

func TestLinesShowGapsAndTheLinesBeforeThem(t *testing.T) {
	t.Parallel()
	var streamed []string
	show := func(l Line) string {
		if l.Status == StatusLost {
			return fmt.Sprintf("%d lost %s", l.Step, l.Error)
		}
		return fmt.Sprintf("%d %s %s x=%s", l.Step, l.Code, l.Status, l.Variables["x"])
	}
	want := strings.Join([]string{"1 one executed x=1", "2 two executed x=2", "3 three unfinished x=3",
		"13 lost too many", "14 four executed x=13", "15 five unfinished x=13", "15 lost the end"}, "\n")
	r, err := NewRecording(gappySource)
	if err != nil {
		t.Fatal(err)
	}
	r.StreamLines(func(l Line) bool { streamed = append(streamed, show(l)); return true })
	if err := r.Append(gappy()); err != nil {
		t.Fatal(err)
	}
	r.End()
	if got := strings.Join(streamed, "\n"); got != want {
		t.Errorf("the stream: got\n%s\nwant\n%s", got, want)
	}
	lines, err := r.Lines(1, 100)
	var paged []string
	for _, l := range lines {
		paged = append(paged, show(l))
	}
	if got := strings.Join(paged, "\n"); got != want || err != nil {
		t.Errorf("the page: got\n%s\n%v, want\n%s", got, err, want)
	}
}

func TestPositionsNameTheGapBeforeThem(t *testing.T) {
	t.Parallel()
	r := recordingOf(t, gappy(), strings.Split(gappySource, "\n")...)
	r.End()
	s := NewPastSession(r)
	for step, want := range map[int]string{1: "", 3: "", 14: "steps 4 to 13: too many", 15: "steps 4 to 13: too many"} {
		if err := s.Goto(step); err != nil {
			t.Fatal(err)
		}
		got := ""
		if gap := s.Position().Gap; gap != nil {
			got = gap.String()
		}
		if got != want {
			t.Errorf("step %d: got the gap %q, want %q", step, got, want)
		}
	}
	if err := s.Goto(15); err != nil {
		t.Fatal(err)
	}
	if err := s.Move(t.Context(), StepBack); err != nil || s.Position().Step != 14 {
		t.Errorf("got step %d, %v, want 14", s.Position().Step, err)
	}
	if err := s.Move(t.Context(), StepBack); err != nil || s.Position().Step != 3 {
		t.Errorf("back over the gap: got step %d, %v, want 3", s.Position().Step, err)
	}
	text, err := r.Explain(1000)
	for _, want := range []string{"15 steps, 10 of them not recorded", "Not recorded: steps 4 to 13: too many.",
		"Not recorded: after step 15: the end."} {
		if !strings.Contains(text, want) || err != nil {
			t.Errorf("got %s, %v, want %q in it", text, err, want)
		}
	}
}

// Steps that the recorder held back when the run was killed are a gap at the end.
func TestHeldStepsOfAKilledRunAreLost(t *testing.T) {
	t.Parallel()
	r := recordingOf(t, recordingtest.Loop(10))
	r.SetHeldSteps(500)
	if err := r.Append([]byte{0xc0, 0xc0}); err != nil { // two of them arrive
		t.Fatal(err)
	}
	r.SetHeldSteps(500)
	r.End()
	text, err := r.Explain(1000)
	if want := "Not recorded: steps 33 to 530: " + lostByKill; !strings.Contains(text, want) || err != nil {
		t.Errorf("got %s, %v, want %q in it", text, err, want)
	}
	if r := recordingOf(t, recordingtest.Loop(10)); r.Steps() == 30 {
		r.SetHeldSteps(500)
		r.SetHeldSteps(0)
		r.End()
		if r.Steps() != 30 {
			t.Errorf("without held steps: got %d steps, want 30", r.Steps())
		}
	}
}

// Breakpoints become unverified while the program is not recorded, because it does not stop then.
func TestBreakpointsFollowTheRecorder(t *testing.T) {
	t.Parallel()
	r := recordingOf(t, gappy()[:len(gappy())-len("\x17\x00\x07the end")], strings.Split(gappySource, "\n")...)
	s := NewSession(r)
	s.Begin(func() {})
	list, err := s.SetLineBreakpoints(t.Context(), []LineBreakpoint{{Line: 4}})
	if err != nil || !list[0].Verified {
		t.Fatalf("got %+v, %v, want a verified breakpoint", list, err)
	}
	var got []string
	arrive := func(records ...recording.Record) {
		var stream []byte
		for i := range records {
			stream = recording.AppendRecord(stream, &records[i])
		}
		if err := r.Append(stream); err != nil {
			t.Fatal(err)
		}
		s.Recorded()
		for _, e := range s.events.list[len(got):] {
			b := e.Body.(BreakpointChanged).Breakpoint
			got = append(got, fmt.Sprintf("%d %t %d %s", b.ID, b.Verified, b.Line, b.Message))
		}
	}
	again := recording.Record{Kind: recording.KindPush, Frame: 1, Code: 1, Thread: 1, Number: recording.FlagRestated,
		From: 3}
	arrive(recording.Record{Kind: recording.KindLost, Number: 10, Text: "too many"}, again)
	arrive(recording.Record{Kind: recording.KindLost, Text: "too deep"})
	if err := s.Pause(); err == nil || !strings.Contains(err.Error(), "too deep") {
		t.Errorf("pause: got %v, want the reason why the program cannot stop", err)
	}
	list, err = s.SetLineBreakpoints(t.Context(), []LineBreakpoint{{Line: 4}, {Line: 5}})
	if err != nil || list[1].Verified || !strings.Contains(list[1].Message, "too deep") {
		t.Errorf("got %+v, %v, want an unverified breakpoint with the reason", list, err)
	}
	arrive(again)
	arrive(recording.Record{Kind: recording.KindLine, Delta: 1})
	want := []string{"1 false 4 the program does not stop here: too deep", "1 true 4 ", "2 true 5 "}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got the events %q, want %q", got, want)
	}
}
