package debugger

import (
	"context"
	"errors"
	"slices"
	"sync"

	"glasshouse/debugger/recording"
)

// programEnd finds and caches the step that raised the exception that ended the program.
type programEnd struct {
	mu    sync.Mutex
	steps int // of the recording that was searched
	step  int
}

// uncaught returns the step that raised the exception that ended the program, and 0 if none did. The recording tells
// what happened to each exception, so it does not depend on the except clauses around that step. As in debugpy, an
// interrupt and sys.exit without an error do not count as exceptions here. An exception that ends another thread is not
// found: the recording does not tell whether library code has handled it. uncaught returns ctx's error when ctx ends.
func (e *programEnd) uncaught(ctx context.Context, reader *recording.Reader) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.steps == reader.Steps() && e.steps > 0 {
		return e.step, nil
	}
	t := raiseTracker{table: reader.Table(), raises: map[uint64][]raise{}}
	for _, c := range reader.Chunks() {
		if !c.Raises && len(t.raises) == 0 {
			continue
		}
		begin := func(s *recording.State) bool { t.enter(s); return true }
		err := reader.ReplayAfter(c, 0, begin, func(s *recording.State, rec *recording.Record) bool {
			t.see(s, rec)
			return ctx.Err() == nil
		})
		if err = errors.Join(err, ctx.Err()); err != nil {
			return 0, err
		}
	}
	e.steps, e.step = reader.Steps(), t.uncaught
	return e.step, nil
}

// raise is an exception on its way through a frame, with the step that raised it.
type raise struct {
	kind    uint64 // a name
	message recording.Value
	step    int
}

// maxFrameRaises bounds the exceptions of one frame whose places are kept: the latest ones.
const maxFrameRaises = 16

// raiseTracker follows exceptions from the frame that raises them to the last one that they leave.
type raiseTracker struct {
	table    *recording.Table
	raises   map[uint64][]raise // by frame
	frame    uint64             // the current one before the record
	isModule bool               // this frame is the program's outermost one
	left     *raise             // has just left a frame, and is raised in the caller next
	uncaught int
}

// see takes a record that has been applied to s. A handled record does not end an exception: it only says that its
// frame has gone on, perhaps in a finally clause, after which the exception goes on.
func (t *raiseTracker) see(s *recording.State, rec *recording.Record) {
	switch rec.Kind {
	case recording.KindRaise:
		r := raise{rec.Name, rec.Value, s.CurrentFrame().Step}
		if t.left != nil {
			r.step, t.left = t.left.step, nil
		}
		list := append(t.raises[s.Current], r)
		t.raises[s.Current] = list[max(0, len(list)-maxFrameRaises):]
	case recording.KindUnwind:
		r := raise{rec.Name, rec.Value, s.Step}
		for _, each := range slices.Backward(t.raises[t.frame]) {
			if each.kind == r.kind && each.message == r.message {
				r = each
				break
			}
		}
		t.left = &r
		if t.isModule && !t.isSilent(r) {
			t.uncaught = r.step
		}
		delete(t.raises, t.frame)
	case recording.KindReturn:
		delete(t.raises, t.frame)
	case recording.KindLine, recording.KindPush, recording.KindResume:
		t.left = nil
	case recording.KindLost:
		t.left = nil
		clear(t.raises)
	}
	t.enter(s)
}

// enter notes the current frame.
func (t *raiseTracker) enter(s *recording.State) {
	if t.frame == s.Current {
		return
	}
	f := s.CurrentFrame()
	t.frame = s.Current
	t.isModule = f != nil && f.Parent == 0 && t.table.FunctionName(f.Code) == recording.ModuleName
}

// isSilent reports whether an exception ends the program as an interrupt or without an error.
func (t *raiseTracker) isSilent(r raise) bool {
	switch t.table.Name(r.kind) {
	case "KeyboardInterrupt":
		return true
	case "SystemExit":
		none := r.message.Tag == recording.TagNone
		return none || r.message.Tag == recording.TagInt && r.message.Int == 0
	}
	return false
}
