package supervisor

import (
	"errors"
	"sync"
	"time"

	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/protocol"
)

// How long records may lie in the ring before they are looked at: the first while there
// are some, and up to the second while there are none.
const (
	reelSoon = time.Millisecond
	reelLate = 16 * time.Millisecond
)

// maxWaiting is how many bytes may wait for the watcher before the child does.
const maxWaiting = 1 << 20

// reel hands what the recorder of a watched run writes to its watcher: now and then,
// ahead of all else that is told of the program, and at the end, however that came. When
// the child says that the ring is full, it is emptied, and the watcher is not waited for.
type reel struct {
	process *isolate.Process
	watch   DebugDriver
	ring    *ring
	over    chan struct{}
	ended   chan struct{}

	handing sync.Mutex // held while records are handed over; guards spare and failed
	spare   []byte
	failed  error // no child of ours writes such

	mu  sync.Mutex // guards the ring, and buf, which is what it had
	buf []byte
}

// newReel begins to watch a new ring. It is to be stopped.
func newReel(process *isolate.Process, watch DebugDriver) (*reel, error) {
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
	r.handing.Lock()
	defer r.handing.Unlock()
	if r.failed != nil {
		return false, r.failed
	}
	if _, err = r.empty(); err == nil {
		r.mu.Lock()
		r.buf, r.spare = r.spare[:0], r.buf
		r.mu.Unlock()
		if some = len(r.spare) > 0; some {
			if err = r.watch.Records(r.spare); err != nil {
				err = &protocol.IllegalFrame{Why: err.Error()}
			}
		}
	}
	r.failed = err
	return some, err
}

// empty makes room in the ring, and says how much waits to be handed over.
func (r *reel) empty() (waiting int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buf, err = r.ring.take(r.buf)
	return len(r.buf), err
}

// makeRoom is what the child waits for when the ring is full.
func (r *reel) makeRoom() error {
	waiting, err := r.empty()
	if err == nil && waiting > maxWaiting {
		_, err = r.take()
	}
	return err
}

// stop hands over the last; the child is stopped or gone. The error is the child's
// fault, where it is a *hatch.IllegalFrame.
func (r *reel) stop() error {
	close(r.over)
	<-r.ended
	_, err := r.take()
	return errors.Join(err, r.ring.close())
}
