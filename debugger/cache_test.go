package debugger

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// winding is a recording of many chunks with calls, exceptions that go through them,
// mutations and a gap.
func winding(turns int) []byte {
	var b []byte
	add := func(rec Record) { b = appendRecord(b, &rec) }
	number := func(n int) Value { return Value{Tag: TagInt, Int: int64(n)} }
	add(Record{Kind: KindHead, Number: formatVersion, Text: "test"})
	for _, name := range []string{"file", "<module>", "x", "y", "list", "call", "E"} {
		add(Record{Kind: KindName, Text: name})
	}
	add(Record{Kind: KindCode, File: 1, Name: 2, Number: 1})
	add(Record{Kind: KindCode, File: 1, Name: 6, Number: 10})
	add(Record{Kind: KindThread, Number: 1, Text: "main"})
	random := rand.New(rand.NewPCG(1, 2))
	version, line := uint64(1), int64(1)
	begin := func(flags uint64) {
		add(Record{Kind: KindPush, Frame: 1, Code: 1, Lane: 1, Number: flags, From: uint64(line)})
		add(Record{Kind: KindObject, Object: Object{Number: 1, Type: 5, Version: version, Form: Items, Length: 1, Values: []Value{number(0)}}})
		add(Record{Kind: KindGlobal, Name: 4, Value: Value{Tag: TagObject, Object: 1}})
	}
	begin(0)
	for i := range turns {
		if i == turns/2 {
			add(Record{Kind: KindLost, Number: 5000, Text: "a gap"})
			begin(FlagRestated)
		}
		next := 1 + random.Int64N(9)
		add(Record{Kind: KindLine, Delta: next - line})
		line = next
		switch random.IntN(400) {
		case 0, 1, 2:
			version++
			add(Record{Kind: KindMutate, Object: Object{Number: 1, Version: version, Form: Items, Length: 40, Values: []Value{number(i), {Tag: TagText, Text: strings.Repeat("x", 300)}}}})
		case 3:
			add(Record{Kind: KindRaise, Name: 7, Value: number(i)})
			add(Record{Kind: KindHandled})
		case 4, 5:
			add(Record{Kind: KindPush, Frame: uint64(i + 2), Code: 2, Lane: 1, Parent: 1})
			for n := range random.IntN(3000) {
				add(Record{Kind: KindLine, Delta: int64(n % 2)})
			}
			if random.IntN(2) == 0 {
				add(Record{Kind: KindRaise, Name: 7, Value: number(i)})
				add(Record{Kind: KindUnwind, Name: 7, Value: number(i)})
				add(Record{Kind: KindRaise, Name: 7, Value: number(i)})
			} else {
				add(Record{Kind: KindReturn, Value: number(i)})
				add(Record{Kind: KindRaise, Name: 7, Value: number(i)})
			}
			add(Record{Kind: KindHandled})
		default:
			add(Record{Kind: KindGlobal, Name: 3, Value: number(i)})
		}
	}
	return b
}

// cold forgets what was read.
func cold(j *Journal) {
	j.cache.kept = nil
	if j.ahead != nil {
		j.ahead.marks = nil
	}
}

// What was read before changes no answer: not of a state, and not of a search.
func TestCheckpointsChangeNoAnswer(t *testing.T) {
	data := winding(20_000)
	warm, fresh := journal(t, data), journal(t, data)
	if len(warm.chunks) < 3 {
		t.Fatalf("%d chunks", len(warm.chunks))
	}
	holds, err := ParseCondition("x % 997 == 5")
	if err != nil {
		t.Fatal(err)
	}
	stops := []Breakpoints{
		{},
		{Exceptions: true},
		{Exceptions: true, Lines: []LineBreak{{File: "file", Line: 9}, {File: "file", Line: 60}}},
		{Exceptions: true, Lines: []LineBreak{{File: "file", Line: 60}}},
		{Data: []Variable{{Name: "y"}}},
		{Lines: []LineBreak{{File: "file", Line: 3, Condition: holds}}},
		{Lines: []LineBreak{{File: "file", Line: 3, Hits: 300, HitOp: "%"}}},
	}
	verbs := []Verb{StepBack, ReverseContinue, StepBack, ReverseContinue, Next, StepIn, StepOut, Continue}
	random := rand.New(rand.NewPCG(7, 4))
	for i := range 250 {
		step := 1 + random.IntN(warm.Steps())
		cold(fresh)
		want, wantErr := fresh.State(step)
		got, err := warm.State(step)
		if errors.Is(err, ErrNoStep) && errors.Is(wantErr, ErrNoStep) {
			continue // lost
		}
		if err != nil || wantErr != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d: %v, %v\n%+v\n%+v", step, err, wantErr, got, want)
		}
		verb, breaks := verbs[random.IntN(len(verbs))], stops[random.IntN(len(stops))]
		cold(fresh)
		wantStop, wantErr := fresh.Move(t.Context(), step, verb, breaks)
		stop, err := warm.Move(t.Context(), step, verb, breaks)
		if stop != wantStop || err != nil || wantErr != nil {
			t.Errorf("%d: %s from %d with %+v: %+v %v, cold %+v %v", i, verb, step, breaks, stop, err, wantStop, wantErr)
		}
		for _, name := range []string{"x", "y"} {
			if i%5 > 0 { // to begin anew each time is slow
				break
			}
			cold(fresh)
			wantChange, wantFound, wantErr := fresh.LastChange(Variable{Name: name}, step)
			change, found, err := warm.LastChange(Variable{Name: name}, step)
			if change != wantChange || found != wantFound || err != nil || wantErr != nil {
				t.Errorf("%s before %d: %+v %v, cold %+v %v", name, step, change, err, wantChange, wantErr)
			}
		}
	}
}

// ofLists is the beginning of a recording whose objects are lists: their type is 3.
func ofLists() (b []byte) {
	add := func(rec Record) { b = appendRecord(b, &rec) }
	add(Record{Kind: KindHead, Number: formatVersion, Text: "test"})
	for _, name := range []string{"file", "<module>", "list"} {
		add(Record{Kind: KindName, Text: name})
	}
	add(Record{Kind: KindCode, File: 1, Name: 2, Number: 1})
	add(Record{Kind: KindThread, Number: 1, Text: "main"})
	add(Record{Kind: KindPush, Frame: 1, Code: 1, Lane: 1})
	return b
}

// However much lives, and wherever was looked, what is kept of it is bounded; and a step
// back reads little.
func TestWhatIsKeptOfReadingIsBounded(t *testing.T) {
	b := ofLists()
	add := func(rec Record) { b = appendRecord(b, &rec) }
	for i := range 300 { // each chunk has more alive than the one before
		add(Record{Kind: KindLine})
		add(Record{Kind: KindObject, Object: Object{Number: uint64(i + 1), Type: 3, Version: 1, Form: Items, Length: 1, Values: []Value{{Tag: TagText, Text: strings.Repeat("y", 2000)}}}})
		for range 2000 {
			add(Record{Kind: KindLine})
		}
	}
	j := journal(t, b)
	for step := 1; step <= j.Steps(); step += 997 {
		if _, err := j.State(step); err != nil {
			t.Fatal(err)
		}
		held, last := 0, 0
		for _, u := range j.cache.kept {
			last = len(u.key) + len(u.raw)
			for _, m := range u.marks {
				last += len(m.key)
			}
			if last > u.most() {
				t.Fatalf("a chunk of %d bytes takes %d with its checkpoints", len(u.key)+len(u.raw), last)
			}
			held += last
		}
		if held-last > maxCached {
			t.Fatalf("%d bytes are kept beside the last chunk", held-last)
		}
	}
	last := j.cache.kept[len(j.cache.kept)-1]
	for i := 1; i < len(last.marks); i++ {
		if span := last.marks[i].offset - last.marks[i-1].offset; span > 2*max(minSpan, len(last.marks[i-1].key)) {
			t.Errorf("%d bytes between checkpoints of %d", span, len(last.marks[i-1].key))
		}
	}
}

// A search among many steps ends with its caller's patience.
func TestASearchIsGivenUp(t *testing.T) {
	j := journal(t, long(100_000))
	never, err := ParseCondition("x < 0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	breaks := Breakpoints{Lines: []LineBreak{{File: "file", Line: 3, Condition: never}}}
	for _, verb := range []Verb{Continue, ReverseContinue} {
		if _, err := j.Move(ctx, 150_000, verb, breaks); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if _, _, err := j.FirstWhere(ctx, never, 1, ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
