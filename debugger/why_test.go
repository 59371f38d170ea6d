package debugger

import (
	"errors"
	"fmt"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"glasshouse/debugger/recording"
	"glasshouse/debugger/recording/recordingtest"
	"glasshouse/debugger/why"
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
				y, err := r.Why(t.Context(), why.Question{Name: name, Step: step})
				switch {
				case err == nil && len(y.Text) > 1800:
					t.Errorf("%s, %s: got %d bytes, want at most 1800", file, name, len(y.Text))
				case err != nil && !errors.Is(err, why.ErrNoVariable) && !errors.Is(err, recording.ErrNoStep):
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
		`{"line":2,"end":1,"in":6,"kind":"try","sets":["x"],"checks":[{"kind":"default_item"},{"kind":"convert"}]}`,
		`{"line":1,"end":3,"kind":"def","checks":[{"kind":"default","of":"x"},{"kind":"discarded","of":"x"}]}`,
		`{"line":1,"end":1,"reads":["x"],"sets":["x"],"checks":[{"kind":"default_item","of":"x"},
			{"kind":"floor_division","text":"x // x // x"},{"kind":"iterate","of":"x"},{"kind":"chained","of":"x"},
			{"kind":"drop_duplicates","of":"x","keys":["a"]},{"kind":"convert","of":"x","column":"a"}]}`} {
		b.Add(recording.Record{Kind: recording.KindStatement, Text: text})
	}
	b.Line(0)
	b.Global(3, recordingtest.Int(1))
	b.Line(0)
	b.Global(3, recordingtest.Int(2))
	r := recordingOf(t, b.Stream, "x = x", "y", "z")
	r.End()
	if y, err := r.Why(t.Context(), why.Question{Name: "x"}); err != nil || y.Value != "2" {
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
	y, err := r.Why(t.Context(), why.Question{Name: "x"})
	if err != nil || y.Value != "13" || !slices.Contains(y.Limits, "the recording has a gap") {
		t.Errorf("got %+v, %v, want x = 13 and the gap", y, err)
	}
	y, err = r.Why(t.Context(), why.Question{Name: "x", Step: 3})
	if err != nil || y.Value != "2" || len(y.Steps) == 0 || y.Steps[0].Step != 2 {
		t.Errorf("before the gap: got %+v, %v, want x = 2, set at step 2", y, err)
	}
	if _, err := r.Why(t.Context(), why.Question{Name: "x", Step: 9}); !errors.Is(err, recording.ErrNoStep) {
		t.Errorf("in the gap: got %v, want ErrNoStep", err)
	}
}

// A loop with several assignments to a variable, or changes of it through two names, takes no deep stack: Go ends the
// process at a stack of 1 GB.
func TestWhyOfALoopTakesLittleStack(t *testing.T) {
	const turns, x, y = 20_000, 3, 4
	loop := func(set func(b *recordingtest.Builder, turn, line int)) *Recording {
		b := recordingtest.New("x", "y", "list")
		for i, text := range []string{`"kind":"assign","sets":["x","y"]`, `"end":4,"kind":"for","sets":["i"]`,
			`"kind":"augassign","sets":["x"],"reads":["x"],"in":2`,
			`"kind":"augassign","sets":["x"],"reads":["x"],"in":2`} {
			b.Add(recording.Record{Kind: recording.KindStatement,
				Text: fmt.Sprintf(`{"line":%d,"end":%d,%s}`, i+1, i+1, text)})
		}
		b.Line(0)
		set(b, 0, 1)
		for turn := range turns {
			b.Line([]int64{1, -2}[min(turn, 1)])
			b.Line(1)
			set(b, turn, 3)
			b.Line(1)
			set(b, turn, 4)
		}
		b.Line(-2)
		r := recordingOf(t, b.Stream, "x = y = start()", "for i in numbers:", "    x += 1", "    y += 2")
		r.End()
		return r
	}
	for name, r := range map[string]*Recording{
		"assignments": loop(func(b *recordingtest.Builder, turn, line int) {
			b.Global(x, recordingtest.Int(10*turn+line))
		}),
		"changes in place": loop(func(b *recordingtest.Builder, turn, line int) {
			list := recordingtest.List(1, 5, recordingtest.Int(10*turn+line))
			if list.Version = uint64(10*turn + line); line > 1 {
				b.Add(recording.Record{Kind: recording.KindMutate, Object: list})
			} else {
				b.Object(list)
				b.Global(x, recordingtest.Ref(1))
				b.Global(y, recordingtest.Ref(1))
			}
		}),
	} {
		answer, err := r.Why(t.Context(), why.Question{Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		lines := []int64{}
		for _, step := range answer.Steps {
			lines = append(lines, step.Line)
		}
		slices.Sort(lines)
		if lines = slices.Compact(lines); !slices.Equal(lines, []int64{1, 2, 3, 4}) {
			t.Errorf("%s: got steps in lines %v, want 1 to 4", name, lines)
		}
		stacks := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
		if metrics.Read(stacks); stacks[0].Value.Uint64() > 16<<20 {
			t.Errorf("%s: got %d bytes of stacks after an answer, want at most 16 MB", name, stacks[0].Value.Uint64())
		}
	}
}

// An answer holds the states of the steps that it looks at, so it looks at few steps of a run with much data.
func TestWhyHoldsFewLargeStates(t *testing.T) {
	t.Parallel()
	const large, chain = 700, 20
	names, source := []string{}, []string{}
	for i := range large {
		names = append(names, fmt.Sprintf("large%d", i))
	}
	for i := range chain {
		names = append(names, fmt.Sprintf("x%d", i))
		source = append(source, fmt.Sprintf("x%d = x%d", i, max(i-1, 0)))
	}
	why := func(size int) *why.Answer {
		b := recordingtest.New(names...)
		for i := range chain {
			b.Add(recording.Record{Kind: recording.KindStatement, Text: fmt.Sprintf(
				`{"line":%d,"end":%[1]d,"kind":"assign","sets":["x%d"],"reads":["x%d"]}`, i+1, i, max(i-1, 0))})
		}
		for i := range large {
			b.Global(uint64(3+i), recordingtest.Text(strings.Repeat("x", size)))
		}
		for i := range chain {
			b.Line(int64(min(i, 1)))
			b.Global(uint64(3+large+i), recordingtest.Int(i))
		}
		b.Line(0)
		r := recordingOf(t, b.Stream, source...)
		r.End()
		y, err := r.Why(t.Context(), why.Question{Name: fmt.Sprintf("x%d", chain-1)})
		if err != nil {
			t.Fatal(err)
		}
		return y
	}
	const cut = "the run has too much data in variables to follow the value further"
	if y := why(10); len(y.Steps) < chain-2 || slices.Contains(y.Limits, cut) {
		t.Errorf("little data: got %d steps and limits %q, want all steps", len(y.Steps), y.Limits)
	}
	if y := why(4000); len(y.Steps) == 0 || len(y.Steps) > chain-2 || !slices.Contains(y.Limits, cut) {
		t.Errorf("3 MB at each step: got %d steps and limits %q, want a few, and the limit", len(y.Steps), y.Limits)
	}
	if y := why(60_000); len(y.Steps) == 0 || len(y.Steps) > 2 || !slices.Contains(y.Limits, cut) {
		t.Errorf("42 MB at each step: got %d steps and limits %q, want one or two, and the limit", len(y.Steps),
			y.Limits)
	}
}

func BenchmarkWhy(b *testing.B) {
	r := recordingOf(b, recordingtest.Loop(333_334), "for x in range(333_334):", "    y[0] = x", "    pass")
	n := 0
	for b.Loop() {
		n = (n + 618_033) % 1_000_000
		if _, err := r.Why(b.Context(), why.Question{Name: "y", Step: n + 1}); err != nil {
			b.Fatal(err)
		}
	}
}
