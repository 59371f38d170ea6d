package supervisor

import (
	"context"
	"sync"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
)

// Session is the Python session of one sandbox: its guest process and its files. It is safe
// for concurrent use, except that only one run or inspection may be active at a time.
type Session struct {
	supervisor *Supervisor
	sandbox    sandbox.Sandbox
	starting   sync.Mutex // held while a guest is started

	mu        sync.Mutex
	process   *isolate.Process    // nil: no guest
	directory *isolate.SessionDir // nil before the first guest
	uploads   *Uploads
	workspace *Workspace
	collected map[string]fileState // artifacts that were collected; used by CollectArtifacts alone
	// noArtifacts is the state of /session/artifacts when it was empty; used by CollectArtifacts alone.
	noArtifacts emptyFolder
	closed      bool
	onClose     func()              // called once by Close; may be nil
	start       *sandbox.GuestStart // of the guest; nil after its first run
	cpu         cpuMeter
}

func (s *Supervisor) newSession(sb sandbox.Sandbox) *Session {
	session := &Session{supervisor: s, sandbox: sb, uploads: newUploads(sb, &s.Uploads, s.CPU)}
	session.workspace = &Workspace{session: session}
	return session
}

// guest returns the live guest process. It starts one if there is none.
func (s *Session) guest(ctx context.Context, code string) (*isolate.Process, error) {
	s.starting.Lock()
	defer s.starting.Unlock()
	s.mu.Lock()
	process, directory, closed := s.process, s.directory, s.closed
	s.mu.Unlock()
	if closed {
		return nil, errDeleted()
	}
	if process != nil {
		select {
		case <-process.Done(): // killed between runs
			process.Close()
		default:
			return process, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.supervisor.queueTimeout)
	defer cancel()
	began := time.Now()
	process, err := s.supervisor.start(ctx, isolate.ProcessSpec{
		Policy: s.sandbox.Policy, SessionDir: directory, Code: code, User: s.sandbox.Owner,
	})
	if err != nil {
		return nil, err
	}
	s.supervisor.shareLargeFrames(process, s.sandbox.Owner)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start = &sandbox.GuestStart{At: began, Took: time.Since(began), FromPool: process.FromPool}
	last := s.directory
	s.process, s.directory, process.SessionDir = process, process.SessionDir, nil
	s.uploads.attach(s.directory)
	if last != nil && last != s.directory {
		last.Close() // the process has another descriptor of the same mount
	}
	s.cpu.follow(process) // the CPU time of the start does not count for the run
	if s.closed {
		s.release(isolate.ExitTimeout)
		return nil, errDeleted()
	}
	return process, nil
}

func errDeleted() error { return sandbox.Errorf(sandbox.FaultGone, "the sandbox was deleted") }

// Environment returns the environment version of the live guest; nil if there is none.
func (s *Session) Environment() *sandbox.EnvironmentVersion {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	version := s.process.EnvironmentVersion()
	return &version
}

// drop ends the guest process. /session stays for the next one.
func (s *Session) drop(process *isolate.Process) {
	process.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == process {
		s.process = nil
		s.cpu.follow(nil)
	}
}

// Restart ends the guest process. The next run starts another one, without variables; the files stay. No run or
// inspection may be active.
func (s *Session) Restart() {
	s.mu.Lock()
	process := s.process
	s.mu.Unlock()
	if process != nil {
		s.drop(process)
	}
}

// Reset ends the guest process and removes all files of the session. The next run begins in an empty one. No run or
// inspection may be active.
func (s *Session) Reset() {
	s.Restart()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uploads.reset()
	if s.directory != nil {
		s.directory.Close()
		s.directory = nil
	}
	s.collected, s.noArtifacts = nil, emptyFolder{}
}

// Close is CloseWithin with isolate.ExitTimeout.
func (s *Session) Close() { s.CloseWithin(isolate.ExitTimeout) }

// CloseWithin ends the session. Its process and its files are gone when it returns, or else, if the process has not
// exited within the timeout or the files cannot be removed, soon afterwards. No code of it runs any more.
func (s *Session) CloseWithin(timeout time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.onClose != nil {
		defer s.onClose()
		s.onClose = nil
	}
	s.release(timeout)
}

// release closes the process and the files. The caller holds mu.
func (s *Session) release(timeout time.Duration) {
	if s.process != nil {
		s.process.CloseWithin(timeout)
		s.process = nil
	}
	s.uploads.close()
	if s.directory != nil {
		s.directory.Close()
		s.directory = nil
	}
	s.workspace.close()
}

// Uploads returns the files of its /data.
func (s *Session) Uploads() *Uploads { return s.uploads }

// Usage returns the current resource usage of the guest process, as the kernel counts it. The CPU share is 0: between
// runs the guest is frozen.
func (s *Session) Usage() map[string]any {
	s.mu.Lock()
	process := s.process
	s.mu.Unlock()
	if process == nil {
		return map[string]any{"memory_mb": 0.0, "cpu_percent": 0.0, "num_threads": 0, "open_files": 0}
	}
	threads, files := process.ThreadAndFileCounts()
	return map[string]any{
		"memory_mb":   megabytes(process.Memory()),
		"cpu_percent": 0.0,
		"num_threads": threads,
		"open_files":  files,
	}
}
