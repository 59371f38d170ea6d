package debugger

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A search holds up neither the program that goes on nor who looks at it meanwhile.
func TestASearchHoldsUpNoRecord(t *testing.T) {
	never, err := ParseCondition("x < 0")
	if err != nil {
		t.Fatal(err)
	}
	for name, search := range map[string]func(*Journal) error{
		"FirstWhere": func(j *Journal) error { _, _, err := j.FirstWhere(t.Context(), never, 1, ""); return err },
		"Move": func(j *Journal) error {
			_, err := j.Move(t.Context(), 0, Continue, Breakpoints{Lines: []LineBreak{{File: "file", Line: 3, Condition: never}}})
			return err
		},
		"Explain": func(j *Journal) error { _, err := j.Explain(nil, 100); return err },
		"Changes": func(j *Journal) error { _, err := j.Changes(Variable{Name: "x"}, 1, 1<<30, false, nil); return err },
	} {
		j := journal(t, long(100_000))
		first, reads, further := j.chunks[0], make(chan bool), make(chan bool)
		data := first.Data
		first.Data, first.load = nil, func() ([]byte, error) { close(reads); <-further; return data, nil }
		found := make(chan error)
		go func() { found <- search(j) }()
		<-reads
		appended := make(chan error, 1)
		go func() {
			line := Record{Kind: KindLine, Delta: -1}
			err := j.Append(appendRecord(nil, &line))
			if j.Steps() != 300_001 {
				err = errors.Join(err, errors.New("the step is not there"))
			}
			appended <- err
		}()
		select {
		case err := <-appended:
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s holds up the program", name)
		}
		close(further)
		if err := <-found; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// patience is a context that ends when it was looked at so many times.
type patience struct {
	context.Context
	left int
}

func (p *patience) Err() error {
	if p.left--; p.left < 0 {
		return context.Canceled
	}
	return nil
}

// A search looks at its context at each step, as each may be slow.
func TestASearchIsGivenUpAtAnyStep(t *testing.T) {
	j := journal(t, long(1000))
	unknown, err := ParseCondition("missing")
	if err != nil {
		t.Fatal(err)
	}
	if _, n, err := j.FirstWhere(&patience{t.Context(), 100}, unknown, 1, ""); !errors.Is(err, context.Canceled) || n > 100 {
		t.Errorf("after %d steps: %v", n, err)
	}
	breaks := Breakpoints{Lines: []LineBreak{{File: "file", Line: 3, Condition: unknown}}}
	for _, verb := range []Verb{Continue, ReverseContinue} {
		if stop, err := j.Move(&patience{t.Context(), 100}, 1500, verb, breaks); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %+v, %v", verb, stop, err)
		}
	}
}
