package httpapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// A response takes memory until its client has read it, and a record takes several times its size
// while it is encoded. These limits hold for each account.
const (
	maxRecordResponses = 4                // concurrent responses with records, until they are read
	maxUnreadBytes     = 64 << 20         // of large responses; an account with more gets no other response
	recordSlotWait     = 10 * time.Second // for one of maxRecordResponses
)

// limits bound the memory that the requests of one account and the responses to it take.
type limits struct {
	bodies  limit.Bodies
	records *limit.Keyed
	unread  *limit.Responses
}

func newLimits() limits {
	return limits{limit.NewBodies(), limit.NewKeyed(maxRecordResponses), limit.NewResponses(maxUnreadBytes)}
}

// admit returns FaultLimit for an account with too many unread bytes, and counts the bytes of this
// request's response.
func (l limits) admit(ctx context.Context, account string) error {
	if l.unread.Full(account) {
		return &sandbox.Error{
			Fault: sandbox.FaultLimit, RetryAfter: 2,
			Detail: fmt.Sprintf("more than %d MB of responses are unread; read them and retry", maxUnreadBytes>>20),
		}
	}
	if t := limit.TransferOf(ctx); t != nil {
		t.OnLargeWrite = func(n int) func() { return l.unread.Add(account, n) }
	}
	return nil
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
