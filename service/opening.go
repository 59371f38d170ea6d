package service

import (
	"context"
	"errors"
	"time"

	"glasshouse/sandbox"
)

// openingTime is how long a history that is away may hold up what is about to run.
const openingTime = 5 * time.Second

// begin writes the opening row of an execution, whoever still waits for it.
// FaultUnavailable where history is away; the row may have come through all the
// same, so it is closed as soon as history is back: nothing may look as if it ran.
func (s *Service) begin(ctx context.Context, e *sandbox.Execution) error {
	opening, done := context.WithTimeout(context.WithoutCancel(ctx), openingTime)
	defer done()
	err := away(s.History.Begin(opening, e))
	if err == nil {
		return nil
	}
	never := *e
	why := "it did not run: history did not confirm its opening row"
	never.Status, never.Error = sandbox.StatusCancelled, &why
	s.work.Add(1)
	go func() {
		defer s.work.Done()
		_ = s.finish(&never, true) // logged by it; the next start closes what stays open
	}()
	return err
}

// away says in a caller's terms that history did not answer in time.
func away(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &sandbox.Error{Fault: sandbox.FaultUnavailable, Detail: "the history database does not answer; nothing runs without history, try again soon", RetryAfter: 2, Cause: err}
	}
	return err
}

// opening is an execution's first row on its way to history; nil: it is there.
type opening struct {
	done chan struct{} // closed when err is what came of it
	err  error
}

// beginWhile begins e while something else is done for it, which is cancelled where its
// row can't be written.
func (s *Service) beginWhile(ctx context.Context, e *sandbox.Execution, cancel context.CancelCauseFunc) *opening {
	o := &opening{done: make(chan struct{})}
	first := *e // as it is now: a run fills e in
	first.DebugInfo.Variables, first.ArtifactMap, first.Truncated = map[string][]sandbox.Note{}, map[string]string{}, map[string]int64{}
	go func() {
		if o.err = s.begin(ctx, &first); o.err != nil {
			cancel(o.err)
		}
		close(o.done)
	}()
	return o
}

// written waits until the row is written. Where it can't be, nothing of the execution
// may be seen outside its sandbox.
func (o *opening) written() error {
	if o == nil {
		return nil
	}
	<-o.done
	return o.err
}
