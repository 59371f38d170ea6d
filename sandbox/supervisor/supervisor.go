package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/egress"
	"glasshouse/sandbox/isolate"
)

// Isolator starts children behind the wall.
type Isolator interface {
	Start(context.Context, isolate.ProcessSpec) (*isolate.Process, error)
	Isolation() sandbox.Isolation // its map is not to be changed
	Ready() error
	SharedSessionDir(context.Context) (*isolate.SessionDir, error)
}

// RequestHandler answers what running code asks, and is handed what it shows.
type RequestHandler interface {
	Database
	History(ctx context.Context) ([]sandbox.Execution, error)
	// Show returns a rich output as the execution is to have it. It is called from the
	// goroutine of Run, as all of a Desk is, and may write to the execution.
	Show(context.Context, sandbox.Output) sandbox.Output
	// Connection is told of a connection out as it opens and when it is over, with its
	// number. An error keeps it from being used. It is called from many goroutines, all
	// before Run returns.
	Connection(number int64, c sandbox.Connection) error
}

// Database is the one that code reads.
type Database interface {
	Query(ctx context.Context, sql string, params map[string]any, sink sandbox.RowSink) (sandbox.QuerySummary, error)
	Schema(ctx context.Context, table string) (sandbox.Table, error)
	Tables(ctx context.Context) ([]string, error)
}

// DebugDriver takes what a watched run tells, in order, one thing at a time, but for Records
// while the program stands. An error says that no child of ours tells such; it ends the
// run.
type DebugDriver interface {
	// Begin is told how to have the program stop at its next line, for as long as it
	// runs, and says where else it is to stop; nil: it never stops.
	Begin(attention func()) (stops json.RawMessage)
	// Records takes what the recorder wrote; the bytes are valid until it returns.
	Records([]byte) error
	// Logged takes what a log point said.
	Logged([]byte)
	// Stopped is called while the program stands: it may Ask, and returns with how to
	// go on. The run's deadline waits as long. ctx ends when the run is to end.
	Stopped(ctx context.Context, where []byte, ask Command) (resume any, err error)
}

// Command has a program that stands do something, and returns its answer. What goes on when
// ctx ends is interrupted, and answers that; what goes on even then ends the run.
type Command func(ctx context.Context, command any) ([]byte, error)

// OutputListener is told what a run does while it does it, in the order of the program as
// far as that can be known: of stdout and stderr each in its own. The two streams are
// told from goroutines of their own; all is told before Run returns.
type OutputListener interface {
	Print(stream string, text []byte) // "stdout" or "stderr"; text is valid until it returns
	Note(sandbox.Note)
	Output(sandbox.Output)
}

// Supervisor opens sessions.
type Supervisor struct {
	// Network is what the broker of each run is made of where a sandbox has the network
	// on, but for its hosts and its logs. It is set before the first run, if at all.
	Network egress.Config
	// Uploads is what the uploads of all sessions may take; likewise.
	Uploads UploadSpace

	isolator Isolator
	queue    time.Duration // how long a start may wait for a free child
	runs     atomic.Int64  // that go on
}

// New returns a Host whose starts wait at most queue for a free child.
func New(isolator Isolator, queue time.Duration) *Supervisor {
	return &Supervisor{isolator: isolator, queue: queue}
}

// Ready says why no session could be opened now; nil where one could.
func (h *Supervisor) Ready() error { return h.isolator.Ready() }

// Isolation is the wall that every session is behind, and what holds each limit.
func (h *Supervisor) Isolation() sandbox.Isolation { return h.isolator.Isolation() }

// Session is one sandbox's live Python. It is safe for concurrent use, but runs
// one thing at a time: the caller sees to that.
type Session struct {
	host  *Supervisor
	box   sandbox.Sandbox
	start sync.Mutex // one child is started at a time

	mu      sync.Mutex
	process *isolate.Process
	home    *isolate.SessionDir // its files, once there was a child
	uploads *Uploads
	marks   map[string]mark // of the artifacts that were collected; the run's alone
	closed  bool
	leave   func()        // called once, when it is closed; may be nil
	cpu     time.Duration // used by the process before this run
}

// Open starts a child for the sandbox: one that has the warm packages that code
// seems to need, where that is all it will run, and else, where code is "", all.
// FaultFull where none came free in time.
func (h *Supervisor) Open(ctx context.Context, box sandbox.Sandbox, code string) (*Session, error) {
	s := &Session{host: h, box: box, uploads: newUploads(box, &h.Uploads)}
	_, err := s.child(ctx, code)
	return s, err
}

// child returns the live process, starting one where there is none.
func (s *Session) child(ctx context.Context, code string) (*isolate.Process, error) {
	s.start.Lock()
	defer s.start.Unlock()
	s.mu.Lock()
	p, home, closed := s.process, s.home, s.closed
	s.mu.Unlock()
	if closed {
		return nil, gone()
	}
	if p != nil {
		select {
		case <-p.Done(): // the kernel or the host's death took it between runs
			_ = p.Close()
		default:
			return p, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.host.queue)
	defer cancel()
	p, err := s.host.isolator.Start(ctx, isolate.ProcessSpec{Policy: s.box.Policy, SessionDir: home, Code: code})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.home != nil && s.home != p.SessionDir {
		_ = s.home.Close() // another descriptor of the same mount
	}
	s.process, s.home, p.SessionDir = p, p.SessionDir, nil
	if err := s.uploads.attach(s.home); err != nil {
		return nil, errors.Join(err, s.release())
	}
	s.cpu = p.CPU() // its birth is not the run's to pay
	if s.closed {
		_ = s.release()
		return nil, gone()
	}
	return p, nil
}

func gone() error { return sandbox.Errorf(sandbox.FaultGone, "the sandbox was deleted") }

// Environment is that of its live child; nil where there is none.
func (s *Session) Environment() *sandbox.EnvironmentVersion {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	edition := s.process.EnvironmentVersion()
	return &edition
}

// drop ends the child; /session stays for the next one.
func (s *Session) drop(p *isolate.Process) error {
	err := p.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == p {
		s.process = nil
	}
	return err
}

// Close ends the session: its process and its files are gone when it returns.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.leave != nil {
		defer s.leave()
		s.leave = nil
	}
	return s.release()
}

func (s *Session) release() error {
	var err error
	if s.process != nil {
		err = s.process.Close()
		s.process = nil
	}
	if s.home != nil {
		err = errors.Join(err, s.home.Close())
		s.home = nil
	}
	s.uploads.close()
	return err
}

// Uploads are the files at its /data.
func (s *Session) Uploads() *Uploads { return s.uploads }

// Usage is what the live process has now, as the kernel counts it.
func (s *Session) Usage() map[string]any {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if p == nil {
		return map[string]any{"memory_mb": 0.0, "cpu_percent": 0.0, "num_threads": 0, "open_files": 0}
	}
	threads, files := p.ThreadAndFileCounts()
	// Between runs it is frozen: its share of the CPU is nothing.
	return map[string]any{"memory_mb": mb(p.Memory()), "cpu_percent": 0.0, "num_threads": threads, "open_files": files}
}

func mb(bytes int64) float64 { return float64(bytes*100>>20) / 100 }
