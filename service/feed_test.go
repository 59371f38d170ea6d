package service_test

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

	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service"
)

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// Text that is printed in pieces which begin and end in the middle of characters, read
// by some who stop and come back: each has the same events, and all of the text up to
// its bound, in whole characters.
func TestFeedsHaveNoGap(t *testing.T) {
	s, h, _, _ := start(t)
	s.Ceiling.MaxOutputSize = 1 << 20
	alphabet := []rune("a\n\ré日🙂\u202e")
	for seed := range uint64(25) {
		random := rand.New(rand.NewPCG(seed, 1))
		var b strings.Builder
		for size := random.IntN(60_000); b.Len() < size; {
			b.WriteRune(alphabet[random.IntN(len(alphabet))])
		}
		text, rest := b.String(), []byte(b.String())
		h.prints = nil
		for len(rest) > 0 {
			n := min(1+random.IntN([]int{3, 50, 4000}[random.IntN(3)]), len(rest))
			h.prints, rest = append(h.prints, rest[:n]), rest[n:]
		}
		bound := 1024 + random.IntN(60_000)
		config, _ := json.Marshal(map[string]any{"max_output_size": bound})
		// The first reader reads while the run waits, now and then.
		var events []service.Event
		began, over := make(chan *service.EventLog, 1), canceled(t)
		follow := sync.OnceValue(func() *service.EventLog { return <-began })
		h.printed = func() {
			f := follow()
			for random.IntN(3) == 0 {
				event, err := f.Next(over, int64(len(events)))
				if err != nil {
					return
				}
				events = append(events, event)
			}
		}
		f, err := s.Start(t.Context(), ada, "", service.Job{Code: "print", Kind: sandbox.KindQuick}, config)
		if err != nil {
			t.Fatal(err)
		}
		began <- f
		<-f.Over()
		read := [][]service.Event{events, nil, nil, nil}
		var readers sync.WaitGroup
		for reader := range read {
			luck := rand.New(rand.NewPCG(seed, uint64(reader)))
			readers.Go(func() {
				have := &read[reader]
				for {
					event, err := f.Next(t.Context(), int64(len(*have)))
					if errors.Is(err, io.EOF) {
						return
					}
					if err != nil || event.ID != int64(len(*have))+1 {
						t.Errorf("after %d came %d, %v", len(*have), event.ID, err)
						return
					}
					if *have = append(*have, event); luck.IntN(5) == 0 { // it was cut off, and the last few did not come
						*have = (*have)[:max(0, len(*have)-luck.IntN(4))]
					}
				}
			})
		}
		readers.Wait()
		want := text
		for want = want[:min(len(want), bound)]; !utf8.ValidString(want); {
			want = want[:len(want)-1]
		}
		var got strings.Builder
		cuts := 0
		for _, event := range read[0] {
			if piece, is := event.Data.(service.Text); is {
				got.WriteString(piece.Text)
				if piece.Truncated {
					cuts++
				}
			}
		}
		if got.String() != want || (cuts == 1) != (len(text) > bound) {
			t.Errorf("seed %d: %d bytes of %d came, not %d, with %d cuts", seed, got.Len(), len(text), len(want), cuts)
		}
		if end := read[0][len(read[0])-1]; end.Name != "done" {
			t.Errorf("seed %d: the last event is %s", seed, end.Name)
		}
		for reader := range read {
			if !reflect.DeepEqual(read[reader], read[0]) {
				t.Errorf("seed %d: reader %d has other events", seed, reader)
			}
		}
	}
}

// What a feed holds is counted whole, whatever part of a note or an output it is in: those
// that have ended are let go of by that.
func TestFeedsCountAllThatTheyHold(t *testing.T) {
	s, h, _, _ := start(t)
	long := strings.Repeat("x", 3<<20)
	h.tells = func(live supervisor.OutputListener) {
		for range 4 {
			live.Note(sandbox.Note{Function: long, Message: "m"})
			live.Output(sandbox.Output{Data: map[string]json.RawMessage{long: []byte("0")}})
		}
	}
	var first *service.EventLog
	for range 4 { // of 24 MB each
		f, err := s.Start(t.Context(), ada, "", service.Job{Code: "tell", Kind: sandbox.KindQuick}, nil)
		if err != nil {
			t.Fatal(err)
		}
		<-f.Over()
		if first == nil {
			first = f
		}
	}
	e, _ := first.Execution()
	if again, _, err := s.Follow(t.Context(), ada, e.ID, 0); err != nil || again == first {
		t.Errorf("a feed is kept beside others of 72 MB, %v", err)
	}
}
