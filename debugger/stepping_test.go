package debugger

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"glasshouse/debugger/expr"
	"glasshouse/debugger/recording"
	"glasshouse/debugger/recording/recordingtest"
	"glasshouse/sandbox"
)

func recordingOf(t testing.TB, stream []byte, source ...string) *Recording {
	t.Helper()
	r, err := NewRecording("")
	if err != nil {
		t.Fatal(err)
	}
	r.Source = source
	if err := r.Append(stream); err != nil {
		t.Fatal(err)
	}
	return r
}

// reopened returns a recording that is opened from its stored chunks with an empty cache, and a counter of the chunks
// that are loaded.
func reopened(t testing.TB, chunks []sandbox.Chunk) (*Recording, *int) {
	t.Helper()
	loads := new(int)
	outlines := slices.Clone(chunks)
	for i := range outlines {
		outlines[i].Data = nil
	}
	r, err := OpenRecording("", outlines, func(n int) ([]byte, error) { *loads++; return chunks[n].Data, nil })
	if err != nil {
		t.Fatal(err)
	}
	return r, loads
}

func parsed(t testing.TB, text string) *expr.Condition {
	t.Helper()
	c, err := expr.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// lineAt returns the function and line of a step.
func lineAt(t *testing.T, r *Recording, step int) (function string, line int64) {
	t.Helper()
	view, err := r.View(step, 0)
	if err != nil {
		t.Fatal(err)
	}
	return view.Frames[0].Function, view.Frames[0].Line
}

func atLine(line int) Breakpoints { return Breakpoints{Lines: []LineStop{{Line: line}}} }

func atHits(line, hits int) Breakpoints {
	return Breakpoints{Lines: []LineStop{{Line: line, Hits: hits}}}
}

func TestMovesStopWhereAPersonExpects(t *testing.T) {
	t.Parallel()
	r := recordingOf(t, recordingtest.Recorded("recursion")) // lines 1 5 f:2 4 2 4 2 4 2 3
	for _, c := range []struct {
		from   int
		move   Move
		breaks Breakpoints
		step   int
		reason Reason
	}{
		{0, Next, Breakpoints{}, 1, ReasonStep},
		{1, Next, Breakpoints{}, 2, ReasonStep},
		{2, StepIn, Breakpoints{}, 3, ReasonStep},
		{2, Next, Breakpoints{}, 10, ReasonEnd},
		{3, Next, Breakpoints{}, 4, ReasonStep},
		{4, Next, Breakpoints{}, 10, ReasonEnd},
		{5, StepOut, Breakpoints{}, 10, ReasonEnd},
		{5, StepBack, Breakpoints{}, 4, ReasonStep},
		{10, StepBack, Breakpoints{}, 9, ReasonStep},
		{11, StepBack, Breakpoints{}, 10, ReasonStep},
		{3, StepBack, Breakpoints{}, 2, ReasonStep},
		{1, StepBack, Breakpoints{}, 1, ReasonStart},
		{0, StepBack, Breakpoints{}, 0, ReasonStart},
		{0, Continue, atLine(4), 4, ReasonBreakpoint},
		{4, Continue, atLine(4), 6, ReasonBreakpoint},
		{0, Continue, atHits(4, 3), 8, ReasonBreakpoint},
		{10, ReverseContinue, atLine(4), 8, ReasonBreakpoint},
		{11, ReverseContinue, atLine(3), 10, ReasonBreakpoint},
		{10, ReverseContinue, atHits(4, 1), 4, ReasonBreakpoint},
		{10, ReverseContinue, Breakpoints{}, 1, ReasonStart},
		{2, Next, atLine(3), 10, ReasonBreakpoint},
	} {
		stop, err := r.FindStop(t.Context(), c.from, c.move, c.breaks)
		if err != nil || stop.Step != c.step || stop.Reason != c.reason {
			t.Errorf("%s from %d: got %+v, %v, want step %d, %s", c.move, c.from, stop, err, c.step, c.reason)
		}
	}
	for _, from := range []int{-1, 99} {
		if _, err := r.FindStop(t.Context(), from, Next, Breakpoints{}); !errors.Is(err, recording.ErrNoStep) {
			t.Errorf("from %d: got %v, want %v", from, err, recording.ErrNoStep)
		}
	}
}

// A run's last expression has a frame of its own, which stepping treats as the frame of its statements.
func TestStepsFromStatementsToTheLastExpression(t *testing.T) {
	t.Parallel()
	b := recordingtest.New("f")
	none := recording.Value{Tag: recording.TagNone}
	for _, name := range []uint64{2, 3} {
		b.Add(recording.Record{Kind: recording.KindCode, File: 1, Name: name, Number: 1})
	}
	b.Line(0)
	b.Line(1)
	b.Add(recording.Record{Kind: recording.KindPush, Frame: 2, Code: 3, Thread: 1, Parent: 1})
	b.Line(0)
	b.Add(
		recording.Record{Kind: recording.KindReturn, Value: none}, recording.Record{Kind: recording.KindReturn,
			Value: none},
		recording.Record{Kind: recording.KindPush, Frame: 3, Code: 2, Thread: 1},
	)
	b.Line(2)
	r := recordingOf(t, b.Stream)
	for _, c := range []struct {
		from int
		move Move
		want Stop
	}{
		{4, StepBack, Stop{Step: 2, Reason: ReasonStep}},
		{2, Next, Stop{Step: 4, Reason: ReasonStep}},
		{3, Next, Stop{Step: 4, Reason: ReasonStep}},
		{3, StepOut, Stop{Step: 4, Reason: ReasonStep}},
		{4, Next, Stop{Step: 4, Reason: ReasonEnd}},
		{1, StepBack, Stop{Step: 1, Reason: ReasonStart}},
	} {
		if got, err := r.FindStop(t.Context(), c.from, c.move, Breakpoints{}); err != nil || got != c.want {
			t.Errorf("%s from %d: got %+v, %v, want %+v", c.move, c.from, got, err, c.want)
		}
	}
}

func TestStopsAtExceptionsChangesAndHits(t *testing.T) {
	t.Parallel()
	raising := recordingOf(t, recordingtest.Recorded("exception_through_frames")) // lines 1 3 5 6 g:4 f:2 7 8
	loop := recordingOf(t, recordingtest.Loop(100_000))
	raised, changed, hit := Breakpoints{Exceptions: true}, Breakpoints{Data: []Variable{{Name: "y"}}}, atHits(2, 90_000)
	for _, c := range []struct {
		r      *Recording
		from   int
		move   Move
		breaks Breakpoints
		want   Stop
	}{
		{raising, 0, Continue, raised, Stop{Step: 6, Reason: ReasonException}},
		{raising, 8, ReverseContinue, raised, Stop{Step: 6, Reason: ReasonException}},
		{loop, 150_000, Continue, changed, Stop{Step: 3*50_000 + 3, Reason: ReasonData}},
		{loop, 150_000, ReverseContinue, changed, Stop{Step: 3*49_000 + 3, Reason: ReasonData}},
		{loop, 1, Continue, hit, Stop{Step: 3*89_999 + 2, Reason: ReasonBreakpoint}},
		{loop, 300_000, ReverseContinue, hit, Stop{Step: 3*89_999 + 2, Reason: ReasonBreakpoint}},
	} {
		if got, err := c.r.FindStop(t.Context(), c.from, c.move, c.breaks); err != nil || got != c.want {
			t.Errorf("%s from %d: got %+v, %v, want %+v", c.move, c.from, got, err, c.want)
		}
	}
}

func TestNextStaysInItsTask(t *testing.T) {
	t.Parallel()
	r := recordingOf(t, recordingtest.Recorded("async")) // ... main:7, f:3 of one task, f:3 of another, 4, 4, main:8
	step := 1
	for {
		if function, line := lineAt(t, r, step); function == "main" && line == 7 {
			break
		}
		step++
	}
	stop, err := r.FindStop(t.Context(), step, Next, Breakpoints{})
	if err != nil {
		t.Fatal(err)
	}
	if function, line := lineAt(t, r, stop.Step); function != "main" || line != 8 {
		t.Errorf("next over await: got %s:%d, want main:8", function, line)
	}
	stop, err = r.FindStop(t.Context(), step+1, Next, Breakpoints{})
	if err != nil {
		t.Fatal(err)
	}
	before, _ := r.journal.State(step + 1)
	after, _ := r.journal.State(stop.Step)
	if before.Current != after.Current || before.CurrentFrame().Line != 3 || after.CurrentFrame().Line != 4 {
		t.Errorf("next in a task: got line %d of frame %d, want line 4 of frame %d", after.CurrentFrame().Line,
			after.Current, before.Current)
	}
}

// The contents of the cache do not change the answer of a search.
func TestCacheDoesNotChangeAnswers(t *testing.T) {
	t.Parallel()
	warm := recordingOf(t, recordingtest.Mixed(20_000))
	warm.End()
	chunks := warm.TakeChunks()
	if len(chunks) < 3 {
		t.Fatalf("got %d chunks, want at least 3", len(chunks))
	}
	stops := []Breakpoints{
		{},
		{Exceptions: true},
		{Exceptions: true, Lines: []LineStop{{Line: 9}, {Line: 60}}},
		{Exceptions: true, Lines: []LineStop{{Line: 60}}},
		{Data: []Variable{{Name: "y"}}},
		{Lines: []LineStop{{Line: 3, Condition: parsed(t, "x % 997 == 5")}}},
		{Lines: []LineStop{{Line: 3, Hits: 300, HitOp: "%"}}},
	}
	moves := []Move{StepBack, ReverseContinue, StepBack, ReverseContinue, Next, StepIn, StepOut, Continue}
	random := rand.New(rand.NewPCG(7, 4))
	rounds := 120
	if testing.Short() {
		rounds = 40
	}
	for i := range rounds {
		step := 1 + random.IntN(warm.Steps())
		move, breaks := moves[random.IntN(len(moves))], stops[random.IntN(len(stops))]
		cold, _ := reopened(t, chunks)
		want, wantErr := cold.FindStop(t.Context(), step, move, breaks)
		got, err := warm.FindStop(t.Context(), step, move, breaks)
		if errors.Is(err, recording.ErrNoStep) && errors.Is(wantErr, recording.ErrNoStep) {
			continue // the step was lost
		}
		if got != want || err != nil || wantErr != nil {
			t.Errorf("%s from %d with %+v: got %+v, %v, want %+v, %v", move, step, breaks, got, err, want, wantErr)
		}
		if i%5 > 0 { // reading a whole recording is slow
			continue
		}
		for _, name := range []string{"x", "y"} {
			cold, _ := reopened(t, chunks)
			want, wantErr := cold.LastChange(Variable{Name: name}, step)
			got, err := warm.LastChange(Variable{Name: name}, step)
			if !slices.Equal(got, want) || err != nil || wantErr != nil {
				t.Errorf("%s before %d: got %+v, %v, want %+v, %v", name, step, got, err, want, wantErr)
			}
		}
	}
}

func TestSearchLoadsFewChunks(t *testing.T) {
	t.Parallel()
	whole := recordingOf(t, recordingtest.Loop(100_000))
	whole.End()
	r, loads := reopened(t, whole.TakeChunks())
	if _, err := r.LastChange(Variable{Name: "x"}, 290_000); err != nil || *loads > 1 {
		t.Errorf("the last change: got %d loads, %v, want at most 1", *loads, err)
	}
	stop, err := r.FindStop(t.Context(), 1, Continue, atLine(99))
	if err != nil || stop.Reason != ReasonEnd || *loads > 1 {
		t.Errorf("a line that never runs: got %+v, %d loads, %v, want %s with no other load", stop, *loads, err,
			ReasonEnd)
	}
}

// countdown is a context that ends after a number of calls of its Err.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A search checks its context at each step, because the evaluation of one step may be slow.
func TestSearchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	const asked = 100
	r := recordingOf(t, recordingtest.Loop(1000))
	unknown := parsed(t, "missing")
	if _, n, err := r.FindCondition(&countdown{t.Context(), asked}, unknown, 1, ""); !errors.Is(err,
		context.Canceled) || n > asked {
		t.Errorf("FindCondition: got %v after %d steps, want %v after at most %d", err, n, context.Canceled, asked)
	}
	breaks := Breakpoints{Lines: []LineStop{{Line: 3, Condition: unknown}}}
	for _, move := range []Move{Continue, ReverseContinue} {
		if stop, err := r.FindStop(&countdown{t.Context(), asked}, 1500, move, breaks); !errors.Is(err,
			context.Canceled) {
			t.Errorf("%s: got %+v, %v, want %v", move, stop, err, context.Canceled)
		}
	}
}

// pausing is a context whose Err blocks in its first call.
type pausing struct {
	context.Context
	reached, goOn chan bool
}

func (p *pausing) Err() error {
	if p.reached != nil {
		close(p.reached)
		p.reached = nil
		<-p.goOn
	}
	return nil
}

// A search does not block the program or other clients.
func TestSearchDoesNotBlockTheProgram(t *testing.T) {
	t.Parallel()
	never := parsed(t, "x < 0")
	for name, search := range map[string]func(context.Context, *Recording) error{
		"FindCondition": func(ctx context.Context, r *Recording) error {
			_, _, err := r.FindCondition(ctx, never, 1, "")
			return err
		},
		"FindStop": func(ctx context.Context, r *Recording) error {
			_, err := r.FindStop(ctx, 0, Continue, Breakpoints{Lines: []LineStop{{Line: 3, Condition: never}}})
			return err
		},
	} {
		r := recordingOf(t, recordingtest.Loop(100))
		ctx := &pausing{t.Context(), make(chan bool), make(chan bool)}
		reached, searched := ctx.reached, make(chan error)
		go func() { searched <- search(ctx, r) }()
		<-reached
		line := recording.AppendRecord(nil, &recording.Record{Kind: recording.KindLine, Delta: -1})
		if err := r.Append(line); err != nil || r.Steps() != 301 {
			t.Errorf("%s: got %d steps, %v, want 301", name, r.Steps(), err)
		}
		close(ctx.goOn)
		if err := <-searched; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkStepBack(b *testing.B) {
	r := recordingOf(b, recordingtest.Loop(333_334))
	step := 1_000_000
	for b.Loop() {
		stop, err := r.FindStop(b.Context(), step, StepBack, Breakpoints{})
		if err != nil {
			b.Fatal(err)
		}
		step = stop.Step
	}
}

func BenchmarkLastChange(b *testing.B) {
	r := recordingOf(b, recordingtest.Loop(333_334))
	n := 0
	for b.Loop() {
		n = (n + 618_033) % 1_000_000
		if _, err := r.LastChange(Variable{Name: "y"}, n+1); err != nil {
			b.Fatal(err)
		}
	}
}
