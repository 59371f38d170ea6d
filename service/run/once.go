package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// keyedID returns the ID of the execution of a user's request with an idempotency key. A repeat of the request finds
// the execution by it, in this service and in a later one, for as long as history keeps the execution.
func keyedID(user, key string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(user), user, key))
	sum[15] &^= 3 // as in all IDs; see access.NewID
	return hex.EncodeToString(sum[:16])
}

// once runs a request with an idempotency key, if no request with the key has run before. Otherwise it waits for the
// end of that one and returns its execution. The run goes on if ctx ends, because the caller may have lost its
// connection and ask again. A request without a key always runs, and ends with ctx.
func (s *Service) once(
	ctx context.Context, caller sandbox.Key, sandboxID string, request sandbox.Request,
	execute func(context.Context) (*sandbox.Execution, error),
) (*sandbox.Execution, error) {
	if request.IdempotencyKey == "" {
		return execute(ctx)
	}
	release, err := s.keyed.Acquire(ctx, keyedID(caller.User, request.IdempotencyKey), limit.Forever)
	if err != nil {
		return nil, err
	}
	first, err := s.firstOf(ctx, caller, sandboxID, request)
	if first != nil || err != nil {
		release()
		return first, err
	}
	type result struct {
		execution *sandbox.Execution
		err       error
	}
	ended := make(chan result, 1)
	go func() {
		defer release()
		execution, err := execute(context.WithoutCancel(ctx))
		ended <- result{execution, err}
	}()
	select {
	case r := <-ended:
		return r.execution, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// startOnce is start for a request that may have an idempotency key. It returns the event log of the execution that the
// first request with the key has, even if that one runs.
func (s *Service) startOnce(
	ctx context.Context, caller sandbox.Key, sandboxID string, request sandbox.Request,
	execute func(context.Context, *EventLog) (*sandbox.Execution, error),
) (*EventLog, error) {
	if request.IdempotencyKey == "" {
		return s.start(ctx, execute)
	}
	id := keyedID(caller.User, request.IdempotencyKey)
	if log := s.eventLogs.follow(id); log != nil {
		if _, err := log.Next(ctx, 0); err == nil { // the execution is on record
			first, _ := log.Execution()
			if err := checkRepeat(first, sandboxID, request); err != nil {
				return nil, err
			}
			return log, nil
		}
	}
	release, err := s.keyed.Acquire(ctx, id, limit.Forever)
	if err != nil {
		return nil, err
	}
	first, err := s.firstOf(ctx, caller, sandboxID, request)
	switch {
	case err != nil:
		release()
		return nil, err
	case first != nil:
		release()
		return replay(*first), nil
	}
	return s.start(ctx, func(ctx context.Context, log *EventLog) (*sandbox.Execution, error) {
		defer release()
		return execute(ctx, log)
	})
}

// firstOf returns the execution of the first request with the key of a repeat, or nil if there is none on record. The
// caller holds the slot of the key, so no request with it runs in this service.
func (s *Service) firstOf(
	ctx context.Context, caller sandbox.Key, sandboxID string, request sandbox.Request,
) (*sandbox.Execution, error) {
	first, err := s.History.Execution(ctx, keyedID(caller.User, request.IdempotencyKey))
	if sandbox.FaultOf(err) == sandbox.FaultNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := checkRepeat(&first, sandboxID, request); err != nil {
		return nil, err
	}
	return &first, nil
}

// checkRepeat returns FaultInvalid unless a request is the one that made an execution. The record has neither the files
// nor the config of a request, so these may differ.
func checkRepeat(first *sandbox.Execution, sandboxID string, request sandbox.Request) error {
	isSame := first.Code == request.Code && first.Kind == request.Kind &&
		(sandboxID == "" || first.SandboxID == sandboxID) &&
		bytes.Equal(compact(first.Context), compact(json.RawMessage(request.Context)))
	if isSame {
		return nil
	}
	return &sandbox.Error{
		Fault: sandbox.FaultInvalid, Field: "Idempotency-Key",
		Detail: "another request had this key, that of execution " + first.ID + ": send a new key with each request",
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
