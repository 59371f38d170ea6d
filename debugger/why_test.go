package debugger

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"glasshouse/debugger/recording"
	"glasshouse/debugger/recording/recordingtest"
)

// Every question about every recording has an answer, or an error that says why not.
func TestWhyAnswersForAnyRecording(t *testing.T) {
	t.Parallel()
	for _, file := range recordingtest.Names() {
		r := recordingOf(t, recordingtest.Recorded(file), strings.Split(strings.Repeat("x = y\n", 60), "\n")...)
		r.End()
		table := r.journal.Snapshot().Table()
		for n := uint64(0); n < 200; n++ {
			for _, step := range []int{0, 1, r.Steps() / 2, r.Steps()} {
				name := table.Name(n)
				y, err := r.Why(t.Context(), WhyQuestion{Name: name, Step: step})
				switch {
				case err == nil && len(y.Text) > 1800:
					t.Errorf("%s, %s: got %d bytes, want at most 1800", file, name, len(y.Text))
				case err != nil && !errors.Is(err, ErrNoVariable) && !errors.Is(err, recording.ErrNoStep):
					t.Errorf("%s, %s at step %d: %v", file, name, step, err)
				}
			}
		}
	}
}

// A guest can forge the descriptions of statements.
func TestWhyAnswersForForgedStatements(t *testing.T) {
	t.Parallel()
	b := recordingtest.New("x")
	for _, text := range []string{"", "null", "[]", `{"line":-1}`,
		`{"line":1,"end":1000000000000,"in":99,"reads":["x","x"]}`,
		`{"line":2,"end":1,"in":6,"kind":"try","sets":["x"],"checks":[{"kind":"range"},{"kind":"keys"}]}`,
		`{"line":1,"end":3,"kind":"def","checks":[{"kind":"default","of":"x"},{"kind":"zip","names":["x","x"]}]}`,
		`{"line":1,"end":1,"reads":["x"],"sets":["x"],"checks":[{"kind":"range","args":[]},{"kind":"range"},
			{"kind":"select","of":"x"},{"kind":"iterate","of":"x"},
			{"kind":"merge","of":"x","right":"x","keys":["a"]}]}`} {
		b.Add(recording.Record{Kind: recording.KindStatement, Text: text})
	}
	b.Line(0)
	b.Global(3, recordingtest.Int(1))
	b.Line(0)
	b.Global(3, recordingtest.Int(2))
	r := recordingOf(t, b.Stream, "x = x", "y", "z")
	r.End()
	if y, err := r.Why(t.Context(), WhyQuestion{Name: "x"}); err != nil || y.Value != "2" {
		t.Errorf("got %+v, %v, want x = 2", y, err)
	}
	many := recordingtest.New("x")
	for range 150 {
		many.Add(recording.Record{Kind: recording.KindStatement, Text: strings.Repeat("x", 60_000)})
	}
	r, err := NewRecording("")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Append(many.Stream); !errors.Is(err, recording.ErrIllegalRecord) {
		t.Errorf("too many bytes of statements: got %v, want ErrIllegalRecord", err)
	}
}

// An answer says what the recording lacks: the steps of a gap, and those that a kill took.
func TestWhySaysWhatTheRecordingLacks(t *testing.T) {
	t.Parallel()
	r := recordingOf(t, gappy(), strings.Split(gappySource, "\n")...)
	r.End()
	y, err := r.Why(t.Context(), WhyQuestion{Name: "x"})
	if err != nil || y.Value != "13" || !slices.Contains(y.Limits, "the recording has a gap") {
		t.Errorf("got %+v, %v, want x = 13 and the gap", y, err)
	}
	y, err = r.Why(t.Context(), WhyQuestion{Name: "x", Step: 3})
	if err != nil || y.Value != "2" || len(y.Steps) == 0 || y.Steps[0].Step != 2 {
		t.Errorf("before the gap: got %+v, %v, want x = 2, set at step 2", y, err)
	}
	if _, err := r.Why(t.Context(), WhyQuestion{Name: "x", Step: 9}); !errors.Is(err, recording.ErrNoStep) {
		t.Errorf("in the gap: got %v, want ErrNoStep", err)
	}
}

func BenchmarkWhy(b *testing.B) {
	r := recordingOf(b, recordingtest.Loop(333_334), "for x in range(333_334):", "    y[0] = x", "    pass")
	n := 0
	for b.Loop() {
		n = (n + 618_033) % 1_000_000
		if _, err := r.Why(b.Context(), WhyQuestion{Name: "y", Step: n + 1}); err != nil {
			b.Fatal(err)
		}
	}
}
