package supervisor

import (
	"errors"
	"sync"
	"time"

	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/protocol"
)

// How long records may wait in the ring: minPumpInterval while the program writes records,
// and up to maxPumpInterval while it writes none.
const (
	minPumpInterval = 4 * time.Millisecond
	maxPumpInterval = 16 * time.Millisecond
)

// maxPendingBytes is how many bytes may wait for the debugger before the guest must wait.
const maxPendingBytes = 1 << 20

// recordingPump delivers the records of a debugged run to the debugger: at intervals, before
// each frame of the guest, and at the end of the run, even if the run was killed. When the
// guest reports that the ring is full, the pump empties it without waiting for the debugger.
type recordingPump struct {
	process  *isolate.Process
	debugger DebugDriver
	meter    *workMeter
	ring     *ring
	full     chan struct{} // has one value after the ring was full
	stopping chan struct{}
	ended    chan struct{}

	delivering sync.Mutex // held while records are delivered; guards delivery and failed
	delivery   []byte
	held       uint64 // as the debugger knows it: steps that the guest holds
	failed     error  // the guest broke the protocol

	mu      sync.Mutex // guards the ring and the fields below
	pending []byte     // read from the ring, not delivered yet
	broken  bool       // nobody takes pending records at intervals any more
	taken   *sync.Cond // pending or broken has changed
}

// startRecordingPump starts a pump with a new ring. The caller stops it.
func startRecordingPump(process *isolate.Process, debugger DebugDriver, meter *workMeter) (*recordingPump, error) {
	ring, err := newRing()
	if err != nil {
		return nil, err
	}
	p := &recordingPump{
		process: process, debugger: debugger, meter: meter, ring: ring,
		full: make(chan struct{}, 1), stopping: make(chan struct{}), ended: make(chan struct{}),
	}
	p.taken = sync.NewCond(&p.mu)
	go p.deliverAtIntervals()
	return p, nil
}

func (p *recordingPump) deliverAtIntervals() {
	defer close(p.ended)
	interval := minPumpInterval
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-p.stopping:
			return
		case <-p.full:
		case <-timer.C:
		}
		delivered, err := p.deliver()
		if err != nil {
			p.process.Kill() // ends the run loop
			p.mu.Lock()
			p.broken = true
			p.mu.Unlock()
			p.taken.Broadcast()
			return
		}
		if interval = min(2*interval, maxPumpInterval); delivered {
			interval = minPumpInterval
		}
		timer.Reset(interval)
	}
}

// deliver gives the debugger all waiting records, and reports whether there were any. An
// error means that the guest broke the protocol; all later calls return it again.
func (p *recordingPump) deliver() (delivered bool, err error) {
	p.delivering.Lock()
	defer p.delivering.Unlock()
	if p.failed != nil {
		return false, p.failed
	}
	if _, err = p.readRing(); err == nil {
		p.mu.Lock()
		p.pending, p.delivery = p.delivery[:0], p.pending
		p.mu.Unlock()
		p.taken.Broadcast()
		held := p.ring.heldSteps()
		if delivered = len(p.delivery) > 0; delivered || held != p.held {
			p.held = held
			err = p.meter.measure(len(p.delivery), func() error { return p.debugger.Records(p.delivery, held) })
			if err != nil {
				err = &protocol.IllegalFrame{Why: err.Error()}
			}
		}
	}
	p.failed = err
	return delivered, err
}

// readRing moves the content of the ring to pending, and returns how many bytes are pending.
func (p *recordingPump) readRing() (pending int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending, err = p.ring.read(p.pending)
	return len(p.pending), err
}

// emptyRing frees the space of the ring for a waiting guest, and lets the pump deliver at once. It waits for the
// debugger only if more than maxPendingBytes are pending, and only until the pump takes them: the guest then runs on
// while they are delivered.
func (p *recordingPump) emptyRing() error {
	pending, err := p.readRing()
	if err != nil {
		return err
	}
	select {
	case p.full <- struct{}{}:
	default: // the pump has not seen the last one
	}
	if pending <= maxPendingBytes {
		return nil
	}
	p.mu.Lock()
	for len(p.pending) > maxPendingBytes && !p.broken {
		p.taken.Wait()
	}
	broken := p.broken
	p.mu.Unlock()
	if broken {
		_, err = p.deliver()
	}
	return err
}

// stop delivers the last records. The guest is frozen or has ended. A *protocol.IllegalFrame
// in the error means that the guest broke the protocol; any other error is internal.
func (p *recordingPump) stop() error {
	close(p.stopping)
	<-p.ended
	_, err := p.deliver()
	return errors.Join(err, p.ring.close())
}
