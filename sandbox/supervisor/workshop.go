package supervisor

import (
	"context"
	"errors"
	"sync"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
)

// CompatRunner is one /session that many sessions have, at the same time or one after
// another; it lasts until Close. A mount can be put into one child only, which makes
// the next one's as it is born: births are one by one, runs are not. Where there are no
// private mounts, sessions are one by one, too.
type CompatRunner struct {
	host *Supervisor
	turn sync.Mutex // held by a session where there are no private mounts

	mu     sync.Mutex
	home   *isolate.SessionDir // for the next child; nil before the first
	closed bool
}

// NewCompatRunner makes one, in the isolator's shared folder of the host's where it has one.
func (h *Supervisor) NewCompatRunner() *CompatRunner { return &CompatRunner{host: h} }

// Open starts a child of its own for the sandbox, in this workshop. The session is
// good for as long as the child lives.
func (w *CompatRunner) Open(ctx context.Context, box sandbox.Sandbox) (s *Session, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.host.queue)
	defer cancel()
	s = &Session{host: w.host, box: box, uploads: newUploads(box, &w.host.Uploads)}
	if w.oneByOne() {
		w.turn.Lock()
		s.leave = w.turn.Unlock
		defer func() {
			if err != nil {
				w.turn.Unlock()
			}
		}()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, gone()
	}
	if w.home == nil {
		if w.home, err = w.host.isolator.SharedSessionDir(ctx); err != nil {
			return nil, err
		}
	}
	p, err := w.host.isolator.Start(ctx, isolate.ProcessSpec{Policy: box.Policy, SessionDir: w.home, Unpinned: true})
	if err != nil {
		if w.home != nil && w.home.MountFD() >= 0 { // a child may have it, and what came of that is lost
			err = errors.Join(err, w.home.Close())
			w.home = nil
		}
		return nil, err
	}
	if w.home != nil && w.home != p.SessionDir {
		_ = w.home.Close() // another descriptor of the same mount
	}
	w.home, p.SessionDir = p.SessionDir, nil
	if w.home.MountFD() < 0 && s.leave == nil { // the first one
		w.turn.Lock()
		s.leave = w.turn.Unlock
	}
	s.process = p
	s.cpu = p.CPU()
	return s, nil
}

func (w *CompatRunner) oneByOne() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.home != nil && w.home.MountFD() < 0
}

// Close lets the folder go; sessions that are open keep it as long as they last.
func (w *CompatRunner) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.home == nil {
		return nil
	}
	return w.home.Close()
}
