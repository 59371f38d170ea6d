package service_test

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"glasshouse/dbaccess/history"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service"
)

var grace = sandbox.Key{User: "grace", Role: sandbox.RoleDeveloper}

// reluctant is a history that takes parts of recordings when it is told to.
type reluctant struct {
	*history.Store
	asked chan int   // gets each part's number
	take  chan error // what becomes of it; nil: it is kept
}

func (r *reluctant) KeepChunk(ctx context.Context, execution string, c sandbox.Chunk) error {
	r.asked <- c.Sequence
	if err := <-r.take; err != nil {
		return err
	}
	return r.Store.KeepChunk(ctx, execution, c)
}

// lines is a recording of some steps, in each of which a variable becomes a new text.
func lines(begun bool, steps int) []byte {
	var b []byte
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	if !begun {
		b = append(b, 1, 2)
		text("by hand")
		text("3.11.2")
		b = append(b, 2)
		text("<execution>")
		b = append(b, 3, 1, 1, 1) // code: its file, name and first line
		b = append(b, 4, 1, 0)    // lane
		text("main")
		b = append(b, 5, 0, 1, 1, 0, 0) // push
	}
	for i := range steps {
		b = append(b, 12, 1, 's') // set
		text(string(binary.AppendUvarint(make([]byte, 100), uint64(i))[:100]))
		b = append(b, 0xc0) // line
	}
	return b
}

// The program does not wait for history; its end does, and all is there, in order.
func TestARecordingIsKeptBesideTheRun(t *testing.T) {
	r := &reluctant{asked: make(chan int, 100), take: make(chan error)}
	s, h, _, _ := startWith(t, func(store *history.Store) service.History { r.Store = store; return r })
	const parts, steps = 5, 2000
	h.records = func(watch supervisor.DebugDriver) error {
		for i := range parts {
			if err := watch.Records(lines(i > 0, steps)); err != nil {
				return err
			}
		}
		if n := <-r.asked; n != 0 { // it is at the first, which it has not kept yet
			t.Errorf("part %d is first", n)
		}
		go func() {
			r.take <- errors.New("away for a moment")
			for {
				r.take <- nil
			}
		}()
		return nil
	}
	box, err := s.Create(t.Context(), grace, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Execute(t.Context(), grace, box.ID, service.Job{Code: "record", Kind: sandbox.KindExecute, Steps: func(sandbox.Step) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Truncated) > 0 {
		t.Errorf("cut: %v", e.Truncated)
	}
	kept, err := s.Recorded(t.Context(), grace, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	if n := kept.Steps(); n != parts*steps {
		t.Errorf("%d steps of %d are kept", n, parts*steps)
	}
}

// What history never took is said.
func TestARecordingThatCouldNotBeKept(t *testing.T) {
	r := &reluctant{asked: make(chan int, 100), take: make(chan error)}
	s, h, _, _ := startWith(t, func(store *history.Store) service.History { r.Store = store; return r })
	h.records = func(watch supervisor.DebugDriver) error { return watch.Records(lines(false, 2000)) }
	go func() {
		for {
			r.take <- errors.New("away")
		}
	}()
	box, err := s.Create(t.Context(), grace, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Execute(t.Context(), grace, box.ID, service.Job{Code: "record", Kind: sandbox.KindExecute, Steps: func(sandbox.Step) bool { return false }})
	if err != nil || e.Truncated["recording"] != 3 {
		t.Errorf("%v, %v", e.Truncated, err)
	}
}
