package host

import (
	"context"
	"sync"

	"golang.org/x/sys/unix"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
)

// Workshop is one /session that many sessions have, at the same time or one after
// another; it lasts until Close. A mount can be put into one child only, which makes
// the next one's as it is born: births are one by one, runs are not.
type Workshop struct {
	host *Host

	mu     sync.Mutex
	mount  int // for the next child; -1 before the first
	uid    int // that all of them have
	closed bool
}

// Workshop makes one, in the isolator's folder of the host's where it has one.
func (h *Host) Workshop() *Workshop { return &Workshop{host: h, mount: -1} }

// Open starts a child of its own for the sandbox, in this workshop. The session is
// good for as long as the child lives.
func (w *Workshop) Open(ctx context.Context, box sandbox.Sandbox) (*Session, error) {
	ctx, cancel := context.WithTimeout(ctx, w.host.queue)
	defer cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, gone()
	}
	if w.mount < 0 {
		mount, uid, ok, err := w.host.isolator.Folder()
		if err != nil {
			return nil, err
		}
		if ok {
			w.mount, w.uid = mount, uid
		}
	}
	p, err := w.host.isolator.Start(ctx, isolate.Spec{Policy: box.Policy, Session: w.mount, UID: w.uid})
	if w.mount >= 0 { // a child has it, and what comes of that
		_ = unix.Close(w.mount)
		w.mount = -1
	}
	if err != nil {
		return nil, err
	}
	w.mount, w.uid, p.Session = p.Session, p.UID, -1
	s := &Session{host: w.host, box: box, mount: -1, process: p, uid: p.UID}
	s.cpu, _, _ = p.Used()
	return s, nil
}

// Close lets the folder go; sessions that are open keep it as long as they last.
func (w *Workshop) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.mount >= 0 {
		_ = unix.Close(w.mount)
		w.mount = -1
	}
}
