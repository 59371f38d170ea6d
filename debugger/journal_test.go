package debugger

import (
	"errors"
	"reflect"
	"testing"
)

func journal(t testing.TB, b []byte) *Journal {
	t.Helper()
	j, err := NewJournal()
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Append(b); err != nil {
		t.Fatal(err)
	}
	return j
}

// at returns where a step is, and a variable of the namespace.
func at(t *testing.T, j *Journal, step int, name string) (function string, line int64, v Value) {
	t.Helper()
	s, err := j.State(step)
	if err != nil {
		t.Fatal(err)
	}
	f := s.Frames[s.Current]
	table := j.Table()
	v = s.Globals[j.table.byName[name]]
	return table.Name(table.Code(f.Code).Name), f.Line, v
}

// long is a loop of n turns over three lines, the second of which sets x to the turn
// and mutates the object that y holds, in as many chunks as that takes.
func long(n int) []byte {
	var b []byte
	add := func(rec Record) { b = appendRecord(b, &rec) }
	add(Record{Kind: KindHead, Number: formatVersion, Text: "test"})
	for _, name := range []string{"file", "<module>", "x", "y", "list"} {
		add(Record{Kind: KindName, Text: name})
	}
	add(Record{Kind: KindCode, File: 1, Name: 2, Number: 1})
	add(Record{Kind: KindThread, Number: 1, Text: "main"})
	add(Record{Kind: KindPush, Frame: 1, Code: 1, Lane: 1})
	object := Object{Number: 1, Type: 5, Version: 1, Form: Items, Length: 1, Values: []Value{{Tag: TagInt, Int: -1}}}
	add(Record{Kind: KindObject, Object: object})
	add(Record{Kind: KindGlobal, Name: 4, Value: Value{Tag: TagObject, Object: 1}})
	for i := range n {
		first := int64(0)
		if i > 0 {
			first = -2
		}
		add(Record{Kind: KindLine, Delta: first})
		add(Record{Kind: KindLine, Delta: 1})
		add(Record{Kind: KindGlobal, Name: 3, Value: Value{Tag: TagInt, Int: int64(i)}})
		if i%1000 == 0 {
			object.Version++
			object.Values = []Value{{Tag: TagInt, Int: int64(i)}}
			add(Record{Kind: KindMutate, Object: object})
		}
		add(Record{Kind: KindLine, Delta: 1})
	}
	return b
}

// stored is what the chunks have that are complete.
func stored(j *Journal) (bytes int) {
	for _, c := range j.chunks {
		bytes += len(c.Data)
	}
	return bytes
}

func TestAnyStepOfManyChunks(t *testing.T) {
	j := journal(t, long(100_000))
	if j.Steps() != 300_000 || len(j.chunks) < 5 {
		t.Fatalf("%d steps in %d chunks", j.Steps(), len(j.chunks))
	}
	for _, c := range j.chunks {
		if c.Size > chunkSize+4096 {
			t.Errorf("a chunk of %d bytes", c.Size)
		}
	}
	for _, step := range []int{1, 2, 3, 4, 149_998, 149_999, 150_000, 299_999, 300_000} {
		_, line, x := at(t, j, step, "x")
		turn := int64((step - 1) / 3)
		want := turn - 1 // on arrival at the first two lines
		if step%3 == 0 {
			want = turn
		}
		if line != int64((step-1)%3)+1 || (want >= 0 && x != Value{Tag: TagInt, Int: want}) {
			t.Errorf("step %d: line %d, x %v, want %d", step, line, x, want)
		}
	}
	if _, err := j.State(0); !errors.Is(err, ErrNoStep) {
		t.Error(err)
	}
	if _, err := j.State(300_001); !errors.Is(err, ErrNoStep) {
		t.Error(err)
	}
	if perStep := float64(stored(j)) / 300_000; perStep > 3 {
		t.Errorf("%.2f bytes a step are stored, of %.2f", perStep, float64(j.bytes)/300_000)
	}
}

func TestAKeyFrameIsTheState(t *testing.T) {
	for _, name := range []string{"async", "recursion", "attributes", "texts", "numbers", "threads", "generator_thrown_into"} {
		j := journal(t, recording(t, name))
		for step := 1; step <= j.Steps(); step++ {
			s, err := j.State(step)
			if err != nil {
				t.Fatal(err)
			}
			again, _, err := decodeKey(s.appendKey(nil))
			if err != nil || !reflect.DeepEqual(again, s) {
				t.Fatalf("%s, step %d: %v\n%+v\n%+v", name, step, err, s, again)
			}
		}
	}
}

func TestLostStepsAreNotThere(t *testing.T) {
	j := journal(t, recording(t, "budget"))
	if j.Steps() != 2802 { // def, 700 times for, the call and two lines, and the last for
		t.Fatalf("%d steps", j.Steps())
	}
	if _, err := j.State(200); !errors.Is(err, ErrNoStep) {
		t.Error(err)
	}
	function, line, _ := at(t, j, 99, "x")
	if function == "" || line == 0 {
		t.Error("the first steps are kept")
	}
	_, line, i := at(t, j, 2802, "i")
	if line != 4 || (i != Value{Tag: TagInt, Int: 699}) {
		t.Errorf("the last step is line %d with i %v", line, i)
	}
	s, _ := j.State(2802)
	x := s.Globals[j.table.byName["x"]]
	if o := s.Objects[x.Object]; o == nil || o.Values[0].Int != 699 {
		t.Errorf("x is %v of %+v", x, o)
	}
}

func TestLastChangeAndHistory(t *testing.T) {
	j := journal(t, long(100_000))
	x, y := Variable{Name: "x"}, Variable{Name: "y"}
	c, ok, err := j.LastChange(x, 150_000)
	if err != nil || !ok || c.Seen != 150_000 || c.By != 149_999 || c.Value.Int != 49_999 {
		t.Errorf("x: %+v %v %v", c, ok, err)
	}
	c, ok, err = j.LastChange(y, 150_000)
	if err != nil || !ok || c.Seen != 3*49_000+3 || c.By != 3*49_000+2 || c.Object != 1 || c.Version != 51 {
		t.Errorf("y: %+v %v %v", c, ok, err)
	}
	if _, ok, err = j.LastChange(Variable{Name: "none"}, 150_000); ok || err != nil {
		t.Error(ok, err)
	}
	h, err := j.History(x, 299_000, 1000)
	if err != nil || len(h) != 334 || h[0].Seen != 299_001 || h[333].Seen != 300_000 {
		t.Errorf("history: %d %v", len(h), err)
	}
	c, ok, err = j.FirstValue(x, Value{Tag: TagInt, Int: 77_777}, 1)
	if err != nil || !ok || c.Seen != 3*77_777+3 {
		t.Errorf("first: %+v %v %v", c, ok, err)
	}
}

func TestVerbs(t *testing.T) {
	j := journal(t, recording(t, "recursion")) // 1 5 f:2 4 2 4 2 4 2 3
	for _, c := range []struct {
		from   int
		verb   Verb
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
		{3, StepBack, Breakpoints{}, 2, ReasonStep},
		{1, StepBack, Breakpoints{}, 1, ReasonStart},
		{0, Continue, Breakpoints{Lines: []LineBreak{{File: "<execution 1>", Line: 4}}}, 4, ReasonLine},
		{4, Continue, Breakpoints{Lines: []LineBreak{{File: "<execution 1>", Line: 4}}}, 6, ReasonLine},
		{0, Continue, Breakpoints{Lines: []LineBreak{{File: "<execution 1>", Line: 4, Hits: 3}}}, 8, ReasonLine},
		{10, ReverseContinue, Breakpoints{Lines: []LineBreak{{File: "<execution 1>", Line: 4}}}, 8, ReasonLine},
		{10, ReverseContinue, Breakpoints{Lines: []LineBreak{{File: "<execution 1>", Line: 4, Hits: 1}}}, 4, ReasonLine},
		{10, ReverseContinue, Breakpoints{}, 1, ReasonStart},
		{2, Next, Breakpoints{Lines: []LineBreak{{File: "<execution 1>", Line: 3}}}, 10, ReasonLine},
		{0, Continue, Breakpoints{Lines: []LineBreak{{File: "other", Line: 4}}}, 10, ReasonEnd},
	} {
		stop, err := j.Move(t.Context(), c.from, c.verb, c.breaks)
		if err != nil || stop.Step != c.step || stop.Reason != c.reason {
			t.Errorf("%s from %d: %+v %v, want %d, %s", c.verb, c.from, stop, err, c.step, c.reason)
		}
	}
	if _, err := j.Move(t.Context(), 99, Next, Breakpoints{}); !errors.Is(err, ErrNoStep) {
		t.Error(err)
	}
}

// A run's last expression has a frame of its own; who steps does not notice.
func TestSteppingFromTheStatementsToTheLastExpression(t *testing.T) {
	var b []byte
	add := func(rec Record) { b = appendRecord(b, &rec) }
	add(Record{Kind: KindHead, Number: formatVersion, Text: "test"})
	for _, name := range []string{"file", "<module>", "f"} {
		add(Record{Kind: KindName, Text: name})
	}
	for _, name := range []uint64{2, 2, 3} {
		add(Record{Kind: KindCode, File: 1, Name: name, Number: 1})
	}
	add(Record{Kind: KindThread, Number: 1, Text: "main"})
	add(Record{Kind: KindPush, Frame: 1, Code: 1, Lane: 1})
	add(Record{Kind: KindLine})
	add(Record{Kind: KindLine, Delta: 1})
	add(Record{Kind: KindPush, Frame: 2, Code: 3, Lane: 1, Parent: 1})
	add(Record{Kind: KindLine})
	add(Record{Kind: KindReturn, Value: Value{Tag: TagNone}})
	add(Record{Kind: KindReturn, Value: Value{Tag: TagNone}})
	add(Record{Kind: KindPush, Frame: 3, Code: 2, Lane: 1})
	add(Record{Kind: KindLine, Delta: 2})
	j := journal(t, b)
	for _, c := range []struct {
		from int
		verb Verb
		want Stop
	}{
		{4, StepBack, Stop{Step: 2, Reason: ReasonStep}},
		{2, Next, Stop{Step: 4, Reason: ReasonStep}},
		{3, Next, Stop{Step: 4, Reason: ReasonStep}},
		{3, StepOut, Stop{Step: 4, Reason: ReasonStep}},
		{4, Next, Stop{Step: 4, Reason: ReasonEnd}},
		{1, StepBack, Stop{Step: 1, Reason: ReasonStart}},
	} {
		if got, err := j.Move(t.Context(), c.from, c.verb, Breakpoints{}); err != nil || got != c.want {
			t.Errorf("%s at %d: %+v, %v", c.verb, c.from, got, err)
		}
	}
}

func TestExceptionAndDataBreakpoints(t *testing.T) {
	j := journal(t, recording(t, "exception_through_frames")) // 1 3 5 6 g:4 f:2 7 8
	raised := Breakpoints{Exceptions: true}
	if stop, err := j.Move(t.Context(), 0, Continue, raised); err != nil || stop != (Stop{Step: 6, Reason: ReasonException}) {
		t.Errorf("%+v %v", stop, err)
	}
	if stop, err := j.Move(t.Context(), 8, ReverseContinue, raised); err != nil || stop != (Stop{Step: 6, Reason: ReasonException}) {
		t.Errorf("%+v %v", stop, err)
	}
	j = journal(t, long(100_000))
	data := Breakpoints{Data: []Variable{{Name: "y"}}}
	if stop, err := j.Move(t.Context(), 150_000, Continue, data); err != nil || stop != (Stop{Step: 3*50_000 + 3, Reason: ReasonData}) {
		t.Errorf("%+v %v", stop, err)
	}
	if stop, err := j.Move(t.Context(), 150_000, ReverseContinue, data); err != nil || stop != (Stop{Step: 3*49_000 + 3, Reason: ReasonData}) {
		t.Errorf("%+v %v", stop, err)
	}
	hits := Breakpoints{Lines: []LineBreak{{File: "file", Line: 2, Hits: 90_000}}}
	if stop, err := j.Move(t.Context(), 1, Continue, hits); err != nil || stop != (Stop{Step: 3*89_999 + 2, Reason: ReasonLine}) {
		t.Errorf("%+v %v", stop, err)
	}
	if stop, err := j.Move(t.Context(), 300_000, ReverseContinue, hits); err != nil || stop != (Stop{Step: 3*89_999 + 2, Reason: ReasonLine}) {
		t.Errorf("%+v %v", stop, err)
	}
}

func TestSteppingStaysInItsTask(t *testing.T) {
	j := journal(t, recording(t, "async")) // ... main:7, f:3 of one task, f:3 of another, 4, 4, main:8
	step := 0
	for step = 1; ; step++ {
		if function, line, _ := at(t, j, step, ""); function == "main" && line == 7 {
			break
		}
	}
	stop, err := j.Move(t.Context(), step, Next, Breakpoints{})
	if err != nil {
		t.Fatal(err)
	}
	if function, line, _ := at(t, j, stop.Step, ""); function != "main" || line != 8 {
		t.Errorf("next over await stops in %s:%d", function, line)
	}
	in, err := j.Move(t.Context(), step+1, Next, Breakpoints{})
	if err != nil {
		t.Fatal(err)
	}
	before, _ := j.State(step + 1)
	after, _ := j.State(in.Step)
	if before.Current != after.Current || before.Frames[before.Current].Line != 3 || after.Frames[after.Current].Line != 4 {
		t.Errorf("next from step %d goes to %d", step+1, in.Step)
	}
}

func BenchmarkAppend(b *testing.B) {
	data := long(300_000)
	for b.Loop() {
		j := journal(b, data)
		b.ReportMetric(float64(stored(j))/900_000, "bytes/step")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/900_000, "ns/step")
}

func BenchmarkGoto(b *testing.B) {
	j := journal(b, long(333_334))
	n := 0
	for b.Loop() {
		n = (n + 618_033) % 1_000_000
		if _, err := j.State(n + 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStepBack(b *testing.B) {
	j := journal(b, long(333_334))
	step := 1_000_000
	for b.Loop() {
		stop, err := j.Move(b.Context(), step, StepBack, Breakpoints{})
		if err != nil {
			b.Fatal(err)
		}
		step = stop.Step
	}
}

func BenchmarkLastChange(b *testing.B) {
	j := journal(b, long(333_334))
	n := 0
	for b.Loop() {
		n = (n + 618_033) % 1_000_000
		if _, _, err := j.LastChange(Variable{Name: "y"}, n+1); err != nil {
			b.Fatal(err)
		}
	}
}
