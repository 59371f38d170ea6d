package supervisor

import (
	"context"
	"sync"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
)

// CompatRunner opens sessions that share one /session. Several sessions may be open at the
// same time. A mount can be attached in one process only, and each process clones it for the
// next process when it starts. So processes start one after the other, but run in parallel.
// Without private mounts, only one session may be open at a time.
type CompatRunner struct {
	supervisor *Supervisor
	exclusive  sync.Mutex // held by a session if there are no private mounts

	mu        sync.Mutex
	directory *isolate.SessionDir // for the next process; nil before the first
	closed    bool
}

// NewCompatRunner returns a CompatRunner, which the caller closes. Its folder is the
// isolator's shared folder of the machine, if the isolator has one.
func (s *Supervisor) NewCompatRunner() *CompatRunner { return &CompatRunner{supervisor: s} }

// Open starts a process for sb in the shared /session. The caller closes the session.
func (r *CompatRunner) Open(ctx context.Context, sb sandbox.Sandbox) (session *Session, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.supervisor.queueTimeout)
	defer cancel()
	session = r.supervisor.newSession(sb)
	if r.isExclusive() {
		r.exclusive.Lock()
		session.onClose = r.exclusive.Unlock
		defer func() {
			if err != nil {
				r.exclusive.Unlock()
			}
		}()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errDeleted()
	}
	if r.directory == nil {
		if r.directory, err = r.supervisor.isolator.SharedSessionDir(ctx); err != nil {
			return nil, err
		}
	}
	process, err := r.supervisor.start(ctx, isolate.ProcessSpec{
		Policy: sb.Policy, SessionDir: r.directory, User: sb.Owner, Unpinned: true,
	})
	if err != nil {
		if r.directory != nil && r.directory.HasMounts() { // a failed start may have used up the mount
			r.directory.Close()
			r.directory = nil
		}
		return nil, err
	}
	if r.directory != nil && r.directory != process.SessionDir {
		r.directory.Close() // the process has another descriptor of the same mount
	}
	r.directory, process.SessionDir = process.SessionDir, nil
	if !r.directory.HasMounts() && session.onClose == nil { // the first session
		r.exclusive.Lock()
		session.onClose = r.exclusive.Unlock
	}
	r.supervisor.shareLargeFrames(process, sb.Owner)
	session.process = process
	session.cpu.follow(process)
	return session, nil
}

// isExclusive reports whether there are no private mounts.
func (r *CompatRunner) isExclusive() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.directory != nil && !r.directory.HasMounts()
}

// Close closes the shared folder. Open sessions can use it until they are closed.
func (r *CompatRunner) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.directory != nil {
		r.directory.Close()
	}
}
