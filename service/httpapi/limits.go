package httpapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// A record takes several times its size while it is encoded, and memory until its client has read it. These limits hold
// for each account.
const (
	maxRecordResponses = 4                // concurrent responses with records, until they are read
	recordSlotWait     = 10 * time.Second // for one of maxRecordResponses
)

// limits bound the memory that the requests of one account, and the responses to one user, take.
type limits struct {
	bodies  limit.Bodies
	records *limit.Keyed
	unread  *limit.Responses // by user
}

func newLimits(unread *limit.Responses) limits {
	if unread == nil {
		unread = limit.NewResponses(limit.MaxUnreadBytes)
	}
	return limits{limit.NewBodies(), limit.NewKeyed(maxRecordResponses), unread}
}

// holdRecords takes one of the account's slots for responses with records, until the response is
// read. It returns FaultLimit if none becomes free in time.
func (l limits) holdRecords(ctx context.Context, account string) error {
	t := limit.TransferOf(ctx)
	if t == nil || t.OnEnd != nil {
		return nil
	}
	release, err := l.records.Acquire(ctx, account, recordSlotWait)
	if errors.Is(err, limit.ErrFull) {
		return &sandbox.Error{
			Fault: sandbox.FaultLimit, RetryAfter: 2,
			Detail: fmt.Sprintf("too many unread responses with records (%d); read them and retry", maxRecordResponses),
		}
	}
	if err != nil {
		return err
	}
	t.OnEnd = release
	return nil
}
