package host

import (
	"errors"
	"sync"
	"time"

	"glasshouse/sandbox/hatch"
	"glasshouse/sandbox/isolate"
)

// How long records may lie in the ring before they are looked at: the first while there
// are some, and up to the second while there are none.
const (
	reelSoon = time.Millisecond
	reelLate = 16 * time.Millisecond
)

// reel hands what the recorder of a watched run writes to its watcher: now and then,
// when the child says that the ring is full, ahead of all else that is told of the
// program, and at the end, however that came.
type reel struct {
	process *isolate.Process
	watch   Watcher
	ring    *ring
	over    chan struct{}
	ended   chan struct{}

	mu     sync.Mutex // held while records are handed over; guards what follows
	buf    []byte
	failed error // no child of ours writes such
}

// newReel begins to watch a new ring. It is to be stopped.
func newReel(process *isolate.Process, watch Watcher) (*reel, error) {
	shared, err := newRing()
	if err != nil {
		return nil, err
	}
	r := &reel{process: process, watch: watch, ring: shared, over: make(chan struct{}), ended: make(chan struct{})}
	go r.turn()
	return r, nil
}

func (r *reel) turn() {
	defer close(r.ended)
	wait := reelSoon
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-r.over:
			return
		case <-timer.C:
		}
		some, err := r.take()
		if err != nil {
			r.process.Kill() // which ends the reading of its hatch
			return
		}
		if wait = min(2*wait, reelLate); some {
			wait = reelSoon
		}
		timer.Reset(wait)
	}
}

// take hands over what is there, and says whether there was any.
func (r *reel) take() (some bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return false, r.failed
	}
	r.buf, err = r.ring.take(r.buf[:0])
	if err == nil && len(r.buf) > 0 {
		if err = r.watch.Records(r.buf); err != nil {
			err = &hatch.IllegalFrame{Why: err.Error()}
		}
	}
	r.failed = err
	return len(r.buf) > 0, err
}

// stop hands over the last; the child is stopped or gone. The error is the child's
// fault, where it is a *hatch.IllegalFrame.
func (r *reel) stop() error {
	close(r.over)
	<-r.ended
	_, err := r.take()
	return errors.Join(err, r.ring.close())
}
