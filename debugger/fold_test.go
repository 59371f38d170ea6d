package debugger

import (
	"fmt"
	"strings"
	"testing"

	"glasshouse/debugger/recording"
	"glasshouse/debugger/recording/recordingtest"
)

const comprehensionSource = "a = [\n    i * 2\n    for i in range(2)\n]\nb = sum(a)"

// comprehensionRecording is a recording of comprehensionSource. The lines of the comprehension, 3 2 3, are those of the
// module's frame, or of a function's.
func comprehensionRecording(function string) []byte {
	b := recordingtest.New("a", "i", "<listcomp>", "E")
	b.Add(
		recording.Record{Kind: recording.KindCode, File: 1, Name: 5, Number: 1},
		recording.Record{Kind: recording.KindStatement, Text: `{"line":1,"end":4,"comprehensions":[[1,4],[3,99]]}`},
		recording.Record{Kind: recording.KindStatement, Text: `{"line":5,"end":5}`},
	)
	b.Line(2)
	b.Line(-2)
	if function != "" {
		b.Add(recording.Record{Kind: recording.KindPush, Code: 2, Thread: 1, Parent: 1})
	}
	for _, delta := range []int64{2, -1, 1} {
		b.Line(delta)
		b.Add(recording.Record{Kind: recording.KindSet, Name: 4, Value: recordingtest.Int(delta)})
	}
	if function != "" {
		b.Add(recording.Record{Kind: recording.KindReturn, Value: recordingtest.Int(1)})
	} else {
		b.Add(recording.Record{Kind: recording.KindDelete, Name: 4})
	}
	b.Global(3, recordingtest.Int(1))
	line := int64(2)
	if function != "" {
		line = 4
	}
	b.Line(line)
	return b.Stream
}

// The folded lines are the same, whether a comprehension is a function of its own or not.
func TestFoldedLinesHaveAComprehensionOnce(t *testing.T) {
	t.Parallel()
	for _, function := range []string{"", "<listcomp>"} {
		r := recordingOf(t, comprehensionRecording(function), strings.Split(comprehensionSource, "\n")...)
		r.End()
		all, err := r.Lines(1, 100)
		if err != nil || len(all) != 6 {
			t.Errorf("%q: got %d lines, %v, want 6", function, len(all), err)
		}
		for first, want := range map[int]string{1: "1:3 6:5", 3: "6:5", 4: "6:5"} {
			lines, err := r.FoldedLines(first, 100)
			var got []string
			for _, l := range lines {
				got = append(got, fmt.Sprintf("%d:%d", l.Step, l.Number))
			}
			if strings.Join(got, " ") != want || err != nil {
				t.Errorf("%q, from %d: got %s, %v, want %s", function, first, got, err, want)
			}
		}
	}
	r := recordingOf(t, comprehensionRecording(""), strings.Split(comprehensionSource, "\n")...)
	r.End()
	lines, err := r.FoldedLines(1, 100)
	if err != nil || fmt.Sprint(lines[0].Changed, lines[0].Variables) != "[a i] map[a:1]" {
		t.Errorf("got %+v, %v, want the variables of the last step of the comprehension", lines, err)
	}
}

// A comprehension that fails shows its exception in the step that stands for it, or in its own step if the page begins
// within the comprehension.
func TestFoldedLinesShowTheException(t *testing.T) {
	t.Parallel()
	b := recordingtest.New("a", "i", "E")
	b.Add(recording.Record{Kind: recording.KindStatement, Text: `{"line":1,"end":4,"comprehensions":[[1,4]]}`})
	for _, delta := range []int64{2, -2, 2, -1} {
		b.Line(delta)
	}
	none := recording.Value{Tag: recording.TagNone}
	b.Add(recording.Record{Kind: recording.KindRaise, Name: 5, Value: none},
		recording.Record{Kind: recording.KindUnwind, Name: 5, Value: none})
	r := recordingOf(t, b.Stream, strings.Split(comprehensionSource, "\n")...)
	r.End()
	for first, want := range map[int]int{1: 1, 3: 4} {
		lines, err := r.FoldedLines(first, 100)
		if err != nil || len(lines) != 1 || lines[0].Step != want || lines[0].Status != StatusException ||
			lines[0].Error != "E" {
			t.Errorf("from %d: got %+v, %v, want step %d with the exception", first, lines, err, want)
		}
	}
}

// A comprehension that awaits is one line: its frame is suspended and goes on.
func TestFoldedLinesPassOverSuspensions(t *testing.T) {
	t.Parallel()
	b := recordingtest.New("a", "i")
	b.Add(recording.Record{Kind: recording.KindStatement, Text: `{"line":1,"end":4,"comprehensions":[[1,4]]}`})
	for _, delta := range []int64{2, -2, 2, -1, 1} {
		b.Line(delta)
		b.Add(recording.Record{Kind: recording.KindSuspend, Value: recording.Value{Tag: recording.TagNone}},
			recording.Record{Kind: recording.KindResume, Frame: 1})
	}
	b.Line(2)
	r := recordingOf(t, b.Stream, strings.Split(comprehensionSource, "\n")...)
	r.End()
	lines, err := r.FoldedLines(1, 100)
	if err != nil || len(lines) != 2 || lines[0].Step != 1 || lines[1].Step != 6 {
		t.Errorf("got %+v, %v, want the steps 1 and 6", lines, err)
	}
}
