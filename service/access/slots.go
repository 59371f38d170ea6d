package access

import (
	"cmp"
	"context"
	"errors"
	"time"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// minInspections is the least number of concurrent inspections of all users: so many that a limit.Shared has a reserve.
const minInspections = 5

// slotTimeout is the maximum time that an execution or an inspection waits for its slot.
const slotTimeout = 10 * time.Second

// AcquireSlot acquires one of the slots of executions or inspections for a user. It returns FaultFull if none becomes
// free in time. The caller calls release.
func AcquireSlot(ctx context.Context, slots *limit.Shared, user string) (release func(), err error) {
	release, err = slots.Acquire(ctx, user, slotTimeout)
	if errors.Is(err, limit.ErrFull) {
		return nil, &sandbox.Error{
			Fault: sandbox.FaultFull, Detail: "too many executions are running; try again", RetryAfter: 2,
		}
	}
	return release, err
}

// AcquireInspection acquires a slot of an inspection that does not count for the key.
func (s *Service) AcquireInspection(ctx context.Context, user string) (release func(), err error) {
	return AcquireSlot(ctx, s.inspections, user)
}

// BeginInspection takes work that runs no user code, but takes a process or a statement, through the key's limits, and
// waits for a slot. The work ends when the returned context ends, as in Begin. The caller calls end. It returns
// FaultLimit or FaultFull.
func (s *Service) BeginInspection(
	ctx context.Context, caller sandbox.Key, m Meter,
) (_ context.Context, end func(), err error) {
	ctx, endUsage, err := s.Begin(ctx, caller, Inspections, m)
	if err != nil {
		return nil, nil, err
	}
	release, err := s.AcquireInspection(ctx, caller.User)
	if err != nil {
		err = cmp.Or(LimitReached(ctx), err)
		endUsage()
		return nil, nil, err
	}
	return ctx, func() {
		release()
		endUsage()
	}, nil
}

// ErrStopping returns the FaultFull with which a service that is being stopped rejects new work.
func ErrStopping() error {
	return &sandbox.Error{
		Fault: sandbox.FaultFull, Detail: "the service is stopping; try again when it is back", RetryAfter: 5,
	}
}
