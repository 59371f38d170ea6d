package service

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// UsageStore keeps the CPU time that accounts have used, by day.
type UsageStore interface {
	CPUUsed(ctx context.Context, account string, day time.Time) (time.Duration, error)
	AddCPU(ctx context.Context, account string, day time.Time, used time.Duration) error
}

// activity is something that a key may do a limited number of times concurrently.
type activity int

const (
	executions  activity = iota // also a statement that a client sends
	inspections                 // work that runs no user code, but takes a process or a statement: a check, a schema
	activities
)

// plural returns the activity for an error.
func (a activity) plural() string {
	if a == inspections {
		return "concurrent checks, completions, schemas and the like"
	}
	return "concurrent executions"
}

// quotas count the running executions and the CPU time of accounts. CPU time is written to
// history every usageInterval.
type quotas struct {
	requests limit.Rates

	mu       sync.Mutex
	accounts map[string]*usage
}

// usage is the usage of one account.
type usage struct {
	active  [activities]int // what happens now
	day     time.Time       // the day of cpu, at 00:00 UTC; zero until cpu was read from history
	cpu     time.Duration   // used on day
	unsaved time.Duration   // part of cpu that history does not have yet
}

// keyLimits returns the key's limits. A limit that the key does not have is the operator's default, or none for an
// admin's key.
func (s *Service) keyLimits(caller sandbox.Key) sandbox.KeyLimits {
	l := caller.Limits
	if caller.Role == sandbox.RoleAdmin {
		return l
	}
	for own, operators := range map[*int]int{
		&l.Requests: s.KeyLimits.Requests, &l.Concurrent: s.KeyLimits.Concurrent, &l.CPUSeconds: s.KeyLimits.CPUSeconds,
	} {
		if *own == 0 {
			*own = operators
		}
	}
	return l
}

// usageOf returns the usage of the caller's account. The caller of usageOf holds q.mu.
func (q *quotas) usageOf(caller sandbox.Key) *usage {
	if q.accounts == nil {
		q.accounts = map[string]*usage{}
	}
	u := q.accounts[caller.Account]
	if u == nil {
		u = &usage{}
		q.accounts[caller.Account] = u
	}
	return u
}

// Admit counts one request of a key. It returns FaultLimit if the key has no requests left.
func (s *Service) Admit(caller sandbox.Key) (limit.RateState, error) {
	state, ok := s.quotas.requests.Take(caller.Account, s.keyLimits(caller).Requests, s.Clock())
	if ok {
		return state, nil
	}
	wait := int(math.Ceil(state.RetryAfter.Seconds()))
	return state, &sandbox.Error{
		Fault: sandbox.FaultLimit, RetryAfter: wait,
		Detail: fmt.Sprintf("this key may make %d requests per minute; retry in %d s", state.Limit, wait),
	}
}

// beginUsage counts an activity that is about to begin. The returned function counts it as ended and adds its CPU time.
// beginUsage returns FaultLimit if the key already does the same too often, or has used its CPU time of the day.
func (s *Service) beginUsage(
	ctx context.Context, caller sandbox.Key, what activity,
) (end func(cpu time.Duration), err error) {
	limits := s.keyLimits(caller)
	if limits.Concurrent == 0 && limits.CPUSeconds == 0 {
		return func(time.Duration) {}, nil
	}
	now := s.Clock()
	today := now.Truncate(24 * time.Hour)
	if limits.CPUSeconds > 0 {
		if err := s.loadUsage(ctx, caller, today); err != nil {
			return nil, err
		}
	}
	q := &s.quotas
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.usageOf(caller)
	if limits.Concurrent > 0 && u.active[what] >= limits.Concurrent {
		return nil, &sandbox.Error{
			Fault: sandbox.FaultLimit, RetryAfter: 1,
			Detail: fmt.Sprintf("this key may have %d %s; wait until one ends", limits.Concurrent, what.plural()),
		}
	}
	if maxCPU := time.Duration(limits.CPUSeconds) * time.Second; maxCPU > 0 && u.cpu >= maxCPU {
		return nil, &sandbox.Error{
			Fault: sandbox.FaultLimit, RetryAfter: int(math.Ceil(today.Add(24 * time.Hour).Sub(now).Seconds())),
			Detail: fmt.Sprintf(
				"this key may use %d seconds of CPU time per day and has used %.1f; retry after 00:00 UTC",
				limits.CPUSeconds,
				u.cpu.Seconds(),
			),
		}
	}
	u.active[what]++
	return func(cpu time.Duration) {
		q.mu.Lock()
		defer q.mu.Unlock()
		u.active[what]--
		if limits.CPUSeconds > 0 {
			u.cpu += cpu
			u.unsaved += cpu
		}
	}, nil
}

// loadUsage reads from history the CPU time that an account has used today, once per day.
func (s *Service) loadUsage(ctx context.Context, caller sandbox.Key, today time.Time) error {
	q := &s.quotas
	q.mu.Lock()
	loaded := q.usageOf(caller).day.Equal(today)
	q.mu.Unlock()
	if loaded {
		return nil
	}
	if err := s.saveUsage(ctx); err != nil { // the unsaved time belongs to the previous day
		return err
	}
	used, err := s.History.CPUUsed(ctx, caller.Account, today)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if u := q.usageOf(caller); !u.day.Equal(today) {
		u.day, u.cpu = today, used+u.unsaved
	}
	return nil
}

// usageInterval is the time between two writes of CPU time to history. A crash loses at most the time of one interval.
const usageInterval = 5 * time.Second

// logSaveUsage calls saveUsage with a timeout, and logs its error.
func (s *Service) logSaveUsage() {
	ctx, cancel := context.WithTimeout(context.Background(), usageInterval)
	defer cancel()
	if err := s.saveUsage(ctx); err != nil {
		s.Log.WithError(err).Warn("could not save the CPU time that keys have used; it is written with the next save")
	}
}

// saveUsage writes the CPU time that was used since the last call. If the write fails, the next call writes the time.
func (s *Service) saveUsage(ctx context.Context) (err error) {
	type entry struct {
		account string
		day     time.Time
		cpu     time.Duration
	}
	q := &s.quotas
	var entries []entry
	q.mu.Lock()
	for account, u := range q.accounts {
		if u.unsaved >= time.Millisecond {
			entries = append(entries, entry{account, u.day, u.unsaved})
			u.unsaved = 0
		}
	}
	q.mu.Unlock()
	for _, e := range entries {
		addErr := s.History.AddCPU(ctx, e.account, e.day, e.cpu)
		if addErr == nil {
			continue
		}
		err = errors.Join(err, addErr)
		q.mu.Lock()
		q.accounts[e.account].unsaved += e.cpu
		q.mu.Unlock()
	}
	return err
}

// ErrLargeBodies is the error for a large request body, if limit.Bodies has no slot for it.
var ErrLargeBodies error = &sandbox.Error{
	Fault: sandbox.FaultLimit, RetryAfter: 2,
	Detail: "too many of your large requests are still being received; send fewer at the same time",
}
