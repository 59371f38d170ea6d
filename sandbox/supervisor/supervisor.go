package supervisor

import (
	"context"
	"encoding/json"
	"runtime"
	"sync/atomic"
	"time"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/egress"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/stages"
)

// RequestHandler answers the requests of running code. The name of a database may be "". Run's goroutine calls it.
type RequestHandler interface {
	Query(
		ctx context.Context, database, sql string, params map[string]any, sink sandbox.RowSink,
	) (sandbox.QuerySummary, error)
	// Stages runs a statement, and returns the rows after each of its stages.
	Stages(ctx context.Context, database, sql string, params map[string]any) (*stages.Stages, error)
	Schema(ctx context.Context, database, table string) (sandbox.Table, error)
	Tables(ctx context.Context, database string) ([]string, error)
	History(ctx context.Context) ([]sandbox.Execution, error)
}

// Recorder stores the outputs and the connections of a run.
type Recorder interface {
	// Show stores a rich output and returns it in the form for the outcome and the listener.
	// Run's goroutine calls it.
	Show(context.Context, sandbox.Output) sandbox.Output
	// Connection is called when a connection to the outside opens and when it ends, with
	// the connection's number. If it returns an error at the opening, the connection is
	// closed. Many goroutines call it, all before Run returns.
	Connection(number int64, c sandbox.Connection) error
}

// Inputs has what enters a run, and what another run could not compute again. Run's goroutine calls its methods.
type Inputs interface {
	// Seed returns the seed of the run's randomness: 64 hex digits, or "" for the kernel's randomness. Clock returns
	// the readings of clocks that the code gets again; nil: it reads the machine's clocks, and the guest logs them.
	Seed() string
	Clock() []byte
	// Request gets a request of the code, as JSON that does not change later. It returns the frames that answer it, or
	// nil: the RequestHandler answers it, and Answered gets its frames. An error refuses the request: it is a
	// *sandbox.Refusal, or one whose text the code does not get.
	Request(ctx context.Context, body []byte) (answer []byte, err error)
	// Answered gets a part of the answer to the last request. frames returns its size bytes, which do not change later.
	Answered(size int, frames func() []byte)
}

// DebugDriver drives a debugged run. Its methods are called in the order of the program,
// one at a time, except Records, which is also called while the program is stopped. An
// error means that the guest broke the protocol, and ends the run.
type DebugDriver interface {
	// Begin gets a function that makes the program stop at its next line, valid while the
	// run lasts. It returns the breakpoints as JSON; nil means that the program never stops.
	Begin(pause func()) (breakpoints json.RawMessage)
	// Records gets the recorder's bytes, which are valid until Records returns, and the
	// number of steps that the recorder still holds. The guest can forge both.
	Records(records []byte, heldSteps uint64) error
	// Logged gets the message of a log point.
	Logged([]byte)
	// Stopped is called while the program is stopped. It may call command, and returns
	// how the program continues. The run's deadline is suspended. ctx ends when the run
	// must end.
	Stopped(ctx context.Context, location []byte, command Command) (resume any, err error)
}

// Command makes a stopped program execute a command, and returns its answer. After limit, or when ctx ends, the
// supervisor interrupts the command, and the program answers that it was interrupted. If the command continues, the
// run is killed. The limit is the program's: it begins when the user may cause work again (workMeter), which takes
// seconds where the program recorded much on a busy machine.
type Command func(ctx context.Context, limit time.Duration, command any) ([]byte, error)

// OutputListener gets the output of a run while it runs. The calls for one stream come in
// order; stdout and stderr have separate goroutines. All calls end before Run returns.
type OutputListener interface {
	Print(stream string, text []byte) // "stdout" or "stderr"; text is valid until it returns
	// PrintLate gets text of a thread that the earlier execution with this ID began; the guest may forge the ID.
	PrintLate(executionID, stream, text string)
	Note(sandbox.Note)
	Output(sandbox.Output)
}

// Supervisor opens sessions. It is safe for concurrent use.
type Supervisor struct {
	// Network configures the egress broker of each run whose sandbox has the network on.
	// The session sets the hosts and the callbacks. Set it before the first run.
	Network egress.Config
	// ConnectionEnded is called for each connection of a run that has ended or was refused; nil: not. It is called by
	// several goroutines. Set it before the first run.
	ConnectionEnded func(sandbox.Connection)
	// Uploads limits the uploads of all sessions together. Set it before the first session.
	Uploads UploadSpace
	// CPU shares the work for printed output and for uploads; nil: unlimited. Set it before the first session.
	CPU *limit.CPU
	// Share bounds the statements of guests; nil: unlimited. Set it before the first session.
	Share *limit.Share
	// Work charges users for the frames and the output of their guests. Set its floor before the first session.
	Work limit.Work

	isolator     *isolate.Isolator
	queueTimeout time.Duration // how long a start may wait for a free guest
	starts       *limit.Shared // concurrent starts of guests
	largeFrames  *limit.Shared // frames of more than 1 MiB that are being received
	runs         atomic.Int64  // number of active runs
	stub         RunFunc       // nil except in tests; see NewStub
	onStubClose  func()        // nil except in tests; see NewStub
}

// The number of guests that start concurrently: enough to keep the zygotes busy, and at least
// so many that a limit.Shared has a reserve.
const (
	startsPerCPU = 2
	minStarts    = 5
)

// maxLargeFrames is how many frames of more than 1 MiB may be received concurrently. A guest can send most of a frame
// of
// 32 MiB and then wait, and the service holds what it has sent.
const maxLargeFrames = 10

// New returns a Supervisor. A start waits at most queueTimeout for a free guest.
func New(isolator *isolate.Isolator, queueTimeout time.Duration) *Supervisor {
	return &Supervisor{
		isolator: isolator, queueTimeout: queueTimeout,
		starts:      limit.NewShared(max(startsPerCPU*runtime.NumCPU(), minStarts), isolator.Users()),
		largeFrames: limit.NewShared(maxLargeFrames, isolator.Users()),
	}
}

// Ready returns an error if no session can be opened now.
func (s *Supervisor) Ready() error { return s.isolator.Ready() }

// Full returns FaultFull, with the reason, if something of the machine has run out that a new session for code needs.
func (s *Supervisor) Full(code string) error {
	if s.stub != nil {
		return nil
	}
	return s.isolator.Full(code)
}

// Isolation returns the level of all sessions, and the mechanism that enforces each limit.
func (s *Supervisor) Isolation() sandbox.Isolation { return s.isolator.Isolation() }

// Open returns a session for sb, with a guest process. If the session will run only one
// piece of code, code is that text, and the guest has imported the packages that it needs;
// "" means all warm packages. Open returns FaultFull if no guest became free in time. The
// caller closes the session.
func (s *Supervisor) Open(ctx context.Context, sb sandbox.Sandbox, code string) (*Session, error) {
	session := s.newSession(sb)
	if s.stub != nil {
		session.onClose = s.onStubClose
		return session, nil
	}
	if _, err := session.guest(ctx, code); err != nil {
		return nil, err
	}
	return session, nil
}

// shareLargeFrames makes a process send its large frames in the turn of its user.
func (s *Supervisor) shareLargeFrames(process *isolate.Process, user string) {
	process.Conn.ReserveLarge = func() (release func(), err error) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			select {
			case <-process.Done():
				cancel()
			case <-ctx.Done():
			}
		}()
		return s.largeFrames.Acquire(ctx, user, limit.Forever)
	}
}

// start starts a guest in the turn of its user.
func (s *Supervisor) start(ctx context.Context, spec isolate.ProcessSpec) (*isolate.Process, error) {
	release, err := s.starts.Acquire(ctx, spec.User, limit.Forever)
	if err != nil {
		return nil, isolate.FullError(err)
	}
	defer release()
	spec.First = s.starts.Held(spec.User) == 1
	return s.isolator.Start(ctx, spec)
}
