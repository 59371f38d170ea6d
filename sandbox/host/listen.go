package host

import (
	"context"
	"fmt"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/hatch"
	"glasshouse/sandbox/isolate"
)

// listener reads what a child says in one run.
type listener struct {
	process   *isolate.Process
	execution *sandbox.Execution
	desk      Desk
	watch     Watcher
	cut       *cutter
}

// listen reads until the outcome, whose body it returns; it answers questions one by
// one, as the child asks them one by one.
func (l *listener) listen(ctx context.Context) ([]byte, error) {
	for {
		kind, body, err := l.process.Hatch.Read()
		if err == nil {
			switch kind {
			case hatch.KindDone:
				return body, nil
			case hatch.KindStop:
				err = l.stopped(ctx, body)
			default:
				err = l.take(ctx, kind, body)
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// take does what a frame asks for that may come at any time of a run.
func (l *listener) take(ctx context.Context, kind hatch.Kind, body []byte) error {
	switch {
	case kind == hatch.KindNote:
		return keepNote(l.execution, body)
	case kind == hatch.KindAsk:
		return answer(ctx, l.process.Hatch, l.desk, body)
	case kind == hatch.KindRecords && l.watch != nil:
		if err := l.watch.Records(body); err != nil {
			return &hatch.IllegalFrame{Why: err.Error()}
		}
		return nil
	case kind == hatch.KindLog && l.watch != nil:
		l.watch.Logged(body)
		return nil
	}
	return &hatch.IllegalFrame{Why: fmt.Sprintf("%c in the middle of a run", kind)}
}

// hanging is how long an expression may go on that was interrupted.
const hanging = time.Second

// stopped lets the watcher have the program that stands.
func (l *listener) stopped(ctx context.Context, where []byte) error {
	if l.watch == nil {
		return &hatch.IllegalFrame{Why: "a stop of a run that is not watched"}
	}
	letGo := l.cut.hold()
	defer letGo()
	ask := func(command any, limit time.Duration) ([]byte, error) {
		if err := l.process.Hatch.Write(hatch.KindCommand, command); err != nil {
			return nil, err
		}
		interrupt, kill := time.AfterFunc(limit, l.cut.interrupt), time.AfterFunc(limit+hanging, l.process.Kill)
		defer interrupt.Stop()
		defer kill.Stop()
		for {
			kind, body, err := l.process.Hatch.Read()
			if err != nil || kind == hatch.KindValue {
				return body, err
			}
			if err := l.take(ctx, kind, body); err != nil {
				return nil, err
			}
		}
	}
	resume, err := l.watch.Stopped(ctx, where, ask)
	if err != nil {
		return err
	}
	return l.process.Hatch.Write(hatch.KindCommand, resume)
}
