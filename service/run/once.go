package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// keyedID returns the ID of the execution of an attempt, from 0, at a user's request with an idempotency key. A repeat
// of the request finds the execution by it, in this service and in a later one, as long as history keeps the execution.
func keyedID(user, key string, attempt int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %d %s", len(user), user, attempt, key))
	sum[15] &^= 3 // as in all IDs; see access.NewID
	return hex.EncodeToString(sum[:16])
}

// executor runs a request with the observers that it is given.
type executor func(context.Context, sandbox.Request, observers) (*sandbox.Execution, error)

// once runs a request with an idempotency key, if no request with the key has run before. Otherwise it waits for the
// end of that one and returns its execution. From its record on, the run does not end with ctx, because the caller may
// have lost its connection and ask again. A request without a key always runs, and ends with ctx.
func (s *Service) once(
	ctx context.Context, caller sandbox.Key, sandboxID string, request sandbox.Request, execute executor,
) (*sandbox.Execution, error) {
	if request.IdempotencyKey == "" {
		return execute(ctx, request, observers{})
	}
	release, err := s.keyed.Acquire(ctx, keyedID(caller.User, request.IdempotencyKey, 0), limit.Forever)
	if err != nil {
		return nil, err
	}
	first, err := s.attempt(ctx, caller, sandboxID, &request)
	if first != nil || err != nil {
		release()
		return first, err
	}
	runCtx, cancel, recorded := untilRecorded(ctx)
	type result struct {
		execution *sandbox.Execution
		err       error
	}
	ended := make(chan result, 1)
	go func() {
		defer s.endAttempt(caller, request, release)
		defer cancel()
		execution, err := execute(runCtx, request, observers{recorded: recorded})
		ended <- result{execution, err}
	}()
	select {
	case r := <-ended:
		return r.execution, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// followInterval is how often startOnce looks whether the first request has got its slot.
const followInterval = 200 * time.Millisecond

// startOnce is once for start: it returns the event log of the execution as soon as its code runs, even if an earlier
// request with the key runs it.
func (s *Service) startOnce(
	ctx context.Context, caller sandbox.Key, sandboxID string, request sandbox.Request, events executor,
) (*EventLog, error) {
	execute := func(ctx context.Context, log *EventLog, recorded func() bool) (*sandbox.Execution, error) {
		return events(ctx, request, observers{events: log, recorded: recorded})
	}
	if request.IdempotencyKey == "" {
		return s.start(ctx, func(ctx context.Context, log *EventLog) (*sandbox.Execution, error) {
			return execute(ctx, log, nil)
		})
	}
	base := keyedID(caller.User, request.IdempotencyKey, 0)
	var release func()
	for err := limit.ErrFull; err != nil; {
		if log := s.followAttempt(base); log != nil {
			if _, err := log.Next(ctx, 0); err == nil { // its code runs
				first, _ := log.Execution()
				if err := checkRepeat(first, caller, sandboxID, request); err != nil {
					return nil, err
				}
				return log, nil
			}
		}
		if release, err = s.keyed.Acquire(ctx, base, followInterval); err != nil && !errors.Is(err, limit.ErrFull) {
			return nil, err
		}
	}
	first, err := s.attempt(ctx, caller, sandboxID, &request)
	if first != nil || err != nil {
		release()
		if err != nil {
			return nil, err
		}
		return replay(*first), nil
	}
	runCtx, cancel, recorded := untilRecorded(ctx)
	defer cancel() // start's context does not end with it
	return s.start(runCtx, func(ctx context.Context, log *EventLog) (*sandbox.Execution, error) {
		defer s.endAttempt(caller, request, release)
		return execute(ctx, log, recorded)
	})
}

// untilRecorded returns a context that ends with ctx until recorded is called. recorded returns false if the context
// has ended.
func untilRecorded(ctx context.Context) (_ context.Context, cancel context.CancelFunc, recorded func() bool) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return out, cancel, context.AfterFunc(ctx, cancel)
}

// attempt returns the execution of the first request with the key of a request. If none has run, it returns nil and
// gives the request the ID of its execution. The caller holds the slot of the key, so no request with it runs in this
// service. If attempt returns nil, nil, the caller calls endAttempt at the end.
func (s *Service) attempt(
	ctx context.Context, caller sandbox.Key, sandboxID string, request *sandbox.Request,
) (first *sandbox.Execution, err error) {
	base := keyedID(caller.User, request.IdempotencyKey, 0)
	for n := 0; ; n++ {
		id := keyedID(caller.User, request.IdempotencyKey, n)
		switch exists, err := s.History.HasExecution(ctx, id); {
		case err != nil:
			return nil, err
		case !exists:
			s.mu.Lock()
			s.attempts[base] = id
			s.mu.Unlock()
			request.ExecutionID = id
			return nil, nil
		}
		if first == nil {
			if err := s.Access.HoldLarge(ctx, caller.User); err != nil {
				return nil, err
			}
		}
		e, err := s.History.Execution(ctx, id)
		if err != nil {
			return nil, err
		}
		if first = &e; wasRefused(first) {
			continue
		}
		if err := checkRepeat(first, caller, sandboxID, *request); err != nil {
			return nil, err
		}
		if first.CompletedAt == nil { // its end could not be stored
			return nil, sandbox.Errorf(sandbox.FaultUnavailable, "history lacks the end of execution %s, which had "+
				"the same Idempotency-Key", id)
		}
		return first, nil
	}
}

// wasRefused reports whether an execution is on record whose code did not begin, because the service had no process
// for it, for example. The client got an error then.
func wasRefused(e *sandbox.Execution) bool {
	return e.CompletedAt != nil && e.Status == sandbox.StatusFailed && e.Usage.StartMS == 0 && e.Exception == nil
}

func (s *Service) endAttempt(caller sandbox.Key, request sandbox.Request, release func()) {
	s.mu.Lock()
	delete(s.attempts, keyedID(caller.User, request.IdempotencyKey, 0))
	s.mu.Unlock()
	release()
}

// followAttempt returns the event log of a running request with a key; nil: there is none.
func (s *Service) followAttempt(base string) *EventLog {
	s.mu.Lock()
	id, runs := s.attempts[base]
	s.mu.Unlock()
	if !runs {
		return nil
	}
	return s.eventLogs.follow(id)
}

// checkRepeat returns FaultInvalid unless a request has the code, the variables and the sandbox of the one that made an
// execution. The record has neither the files nor the config of a request, so these may differ.
func checkRepeat(first *sandbox.Execution, caller sandbox.Key, sandboxID string, request sandbox.Request) error {
	if first.User != caller.User { // no ID of this service
		return sandbox.Errorf(sandbox.FaultNotFound, "the execution with this Idempotency-Key is not yours")
	}
	isSame := first.Code == request.Code && first.Kind == request.Kind &&
		(sandboxID == "" || first.SandboxID == sandboxID) &&
		bytes.Equal(compact(first.Context), compact(json.RawMessage(request.Context)))
	if isSame {
		return nil
	}
	return &sandbox.Error{
		Fault: sandbox.FaultInvalid, Field: "Idempotency-Key",
		Detail: "another request had this key, that of execution " + first.ID + ": send a new key with each new " +
			"request, and the same one with its repeats",
	}
}

// compact returns JSON without spaces. No JSON is the empty object.
func compact(text json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return []byte("{}")
	}
	return out.Bytes()
}
