package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"glasshouse/policy/polltest"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/run"
	"glasshouse/service/servicetest"
)

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// The pieces of printed text begin and end in the middle of characters. Several readers stop and resume. Each reader
// gets the same events, with the whole text up to max_output_size, in whole characters.
func TestEveryReaderGetsTheSameEvents(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	s.Live.Ceiling.MaxOutputSize = 1 << 20
	alphabet := []rune("a\n\ré日🙂\u202e")
	for seed := range uint64(25) {
		random := rand.New(rand.NewPCG(seed, 1))
		var b strings.Builder
		for size := random.IntN(60_000); b.Len() < size; {
			b.WriteRune(alphabet[random.IntN(len(alphabet))])
		}
		text, rest := b.String(), []byte(b.String())
		s.Code.Printed = nil
		for len(rest) > 0 {
			n := min(1+random.IntN([]int{3, 50, 4000}[random.IntN(3)]), len(rest))
			s.Code.Printed, rest = append(s.Code.Printed, rest[:n]), rest[n:]
		}
		maxOutput := 1024 + random.IntN(60_000)
		config, _ := json.Marshal(map[string]any{"max_output_size": maxOutput})
		// The first reader reads now and then between the pieces.
		var events []run.Event
		begun, noWait := make(chan *run.EventLog, 1), canceled(t)
		eventLog := sync.OnceValue(func() *run.EventLog { return <-begun })
		s.Code.AfterPrint = func() {
			for random.IntN(3) == 0 {
				event, err := eventLog().Next(noWait, int64(len(events)))
				if err != nil {
					return
				}
				events = append(events, event)
			}
		}
		l, err := s.Runs.Start(t.Context(), ada, "", sandbox.Request{Code: "print", Kind: sandbox.KindQuick}, config)
		if err != nil {
			t.Fatal(err)
		}
		begun <- l
		<-l.Over()
		read := [][]run.Event{events, nil, nil, nil}
		var readers sync.WaitGroup
		for reader := range read {
			luck := rand.New(rand.NewPCG(seed, uint64(reader)))
			readers.Go(func() { read[reader] = readToTheEnd(t, l, read[reader], luck) })
		}
		readers.Wait()

		want := text[:min(len(text), maxOutput)]
		for !utf8.ValidString(want) {
			want = want[:len(want)-1]
		}
		got, truncated := printedText(read[0])
		if got != want {
			t.Errorf("seed %d: got %d bytes of text, want the first %d of %d", seed, len(got), len(want), len(text))
		}
		if wantTruncated := len(text) > maxOutput; (truncated == 1) != wantTruncated {
			t.Errorf("seed %d: got %d truncated pieces, want truncated: %v", seed, truncated, wantTruncated)
		}
		if last := read[0][len(read[0])-1]; last.Name != "done" {
			t.Errorf("seed %d: got %s as the last event, want done", seed, last.Name)
		}
		for reader := range read {
			if !reflect.DeepEqual(read[reader], read[0]) {
				t.Errorf("seed %d: reader %d got other events than reader 0", seed, reader)
			}
		}
	}
}

// readToTheEnd reads the events after those in have. Now and then it forgets the last few,
// as a reader whose connection broke.
func readToTheEnd(t *testing.T, l *run.EventLog, have []run.Event, luck *rand.Rand) []run.Event {
	for {
		event, err := l.Next(t.Context(), int64(len(have)))
		if errors.Is(err, io.EOF) {
			return have
		}
		if err != nil || event.ID != int64(len(have))+1 {
			t.Errorf("got event %d, error %v; want event %d", event.ID, err, len(have)+1)
			return have
		}
		if have = append(have, event); luck.IntN(5) == 0 {
			have = have[:max(0, len(have)-luck.IntN(4))]
		}
	}
}

// printedText returns the text of all events, and how many say that it was truncated.
func printedText(events []run.Event) (text string, truncated int) {
	var b strings.Builder
	for _, event := range events {
		if piece, is := event.Data.(run.Text); is {
			b.WriteString(piece.Text)
			if piece.Truncated {
				truncated++
			}
		}
	}
	return b.String(), truncated
}

// All fields of notes and outputs count towards the size. The log that ended first is removed first, even if two logs
// ended at the same time.
func TestOldestEventLogIsRemovedWhenThereIsTooMuch(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	long := strings.Repeat("x", 3<<20)
	s.Code.Report = func(listener supervisor.OutputListener) {
		for range 4 {
			listener.Note(sandbox.Note{Function: long, Message: "m"})
			listener.Output(sandbox.Output{Data: map[string]json.RawMessage{long: []byte("0")}})
		}
	}
	var logs []*run.EventLog
	for range 3 { // of 24 MB each
		l, err := s.Runs.Start(t.Context(), ada, "", sandbox.Request{Code: "report", Kind: sandbox.KindQuick}, nil)
		if err != nil {
			t.Fatal(err)
		}
		<-l.Over()
		logs = append(logs, l)
	}
	isKept := func(l *run.EventLog) bool {
		e, _ := l.Execution()
		again, _, err := s.Runs.Follow(t.Context(), ada, e.ID, 0)
		if err != nil {
			t.Fatal(err)
		}
		return again == l
	}
	polltest.Eventually(t, "the first log to be removed after 72 MB of ended logs", func() bool {
		return !isKept(logs[0])
	})
	for n, l := range logs[1:] {
		if !isKept(l) {
			t.Errorf("log %d of 2 after the first was removed: got none", n+1)
		}
	}
}
