package debug

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"syscall"
	"time"

	"glasshouse/debugger"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/access"
)

// DefaultMaxSearchTime is how long a search of a recording may take. A million steps take about 5 s, and longer with
// breakpoints whose conditions are long.
const DefaultMaxSearchTime = 30 * time.Second

// SearchRecording calls search, which may read all steps of a recording. It is an inspection, and the CPU time of the
// calling thread in it counts for the key. After MaxSearchTime its context ends. SearchRecording returns the errors of
// search and of an inspection, and FaultInvalid for a search that takes too long.
func (s *Service) SearchRecording(
	ctx context.Context, caller sandbox.Key, search func(context.Context) error,
) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := syscall.Gettid()
	counted := supervisor.ThreadCPUTime(thread)
	takeCPU := func() time.Duration {
		used := supervisor.ThreadCPUTime(thread)
		taken := used - counted
		counted = used
		return taken
	}
	inspection, end, err := s.Access.BeginInspection(ctx, caller, access.Meter{TakeCPU: takeCPU})
	if err != nil {
		return err
	}
	defer end()
	maxTime := cmp.Or(s.MaxSearchTime, DefaultMaxSearchTime)
	limited, cancel := context.WithTimeout(inspection, maxTime)
	defer cancel()
	err = search(limited)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return sandbox.Errorf(sandbox.FaultInvalid, "this search of the recording takes longer than %s: use fewer or "+
			"shorter conditions", maxTime)
	}
	if err != nil {
		return cmp.Or(access.LimitReached(inspection), err)
	}
	return nil
}

// SearcherOf returns what calls the searches of a session for a caller.
func (s *Service) SearcherOf(caller sandbox.Key) debugger.Searcher {
	return func(ctx context.Context, search func(context.Context) error) error {
		return s.SearchRecording(ctx, caller, search)
	}
}
