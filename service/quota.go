package service

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"glasshouse/sandbox"
)

// UsageStore keeps what keys have used.
type UsageStore interface {
	CPUUsed(ctx context.Context, account string, day time.Time) (time.Duration, error)
	AddCPU(ctx context.Context, account string, day time.Time, used time.Duration) error
}

// RateLimitState is what a key has left of its requests.
type RateLimitState struct {
	Limit     int // a minute; 0 is no limit
	Remaining int
	Reset     int // seconds until all of it is there again
}

// quotas count what accounts use. Requests are a bucket that fills steadily and holds
// a minute's worth; CPU time is written to history as it is used, a little late.
type quotas struct {
	mu       sync.Mutex
	accounts map[string]*account
}

type account struct {
	tokens  float64 // requests that may come now
	at      time.Time
	running int
	day     time.Time // in UTC, that cpu is of; zero where history was not asked yet
	cpu     time.Duration
	unsaved time.Duration
}

// limits are a key's own, or else the operator's for all keys but an admin's.
func (s *Service) limits(caller sandbox.Key) sandbox.KeyLimits {
	l := caller.Limits
	if caller.Role == sandbox.RoleAdmin {
		return l
	}
	for own, all := range map[*int]int{&l.Requests: s.KeyLimits.Requests, &l.Concurrent: s.KeyLimits.Concurrent, &l.CPUSeconds: s.KeyLimits.CPUSeconds} {
		if *own == 0 {
			*own = all
		}
	}
	return l
}

// of is the account of a key. The caller holds the lock.
func (q *quotas) of(caller sandbox.Key) *account {
	if q.accounts == nil {
		q.accounts = map[string]*account{}
	}
	a := q.accounts[caller.Account]
	if a == nil {
		a = &account{}
		q.accounts[caller.Account] = a
	}
	return a
}

// Admit counts one request of a key. FaultLimit where it has had all of its share.
func (s *Service) Admit(caller sandbox.Key) (RateLimitState, error) {
	limit := s.limits(caller).Requests
	if limit == 0 {
		return RateLimitState{}, nil
	}
	q, now, most := &s.quotas, s.Clock(), float64(limit)
	q.mu.Lock()
	defer q.mu.Unlock()
	a, rate := q.of(caller), most/60
	if a.at.IsZero() {
		a.tokens = most
	} else {
		a.tokens = min(most, a.tokens+rate*now.Sub(a.at).Seconds())
	}
	a.at = now
	var err error
	if a.tokens < 1 {
		wait := int(math.Ceil((1 - a.tokens) / rate))
		err = &sandbox.Error{Fault: sandbox.FaultLimit, Detail: fmt.Sprintf("this key may make %d requests a minute; wait %d s", limit, wait), RetryAfter: wait}
	} else {
		a.tokens--
	}
	return RateLimitState{Limit: limit, Remaining: int(a.tokens), Reset: int(math.Ceil((most - a.tokens) / rate))}, err
}

// enter counts an execution that is about to run, and leave what it came to.
// FaultLimit where the key's are too many, or have used its CPU time of the day.
func (s *Service) enter(ctx context.Context, caller sandbox.Key) (leave func(used time.Duration), err error) {
	limits := s.limits(caller)
	if limits.Concurrent == 0 && limits.CPUSeconds == 0 {
		return func(time.Duration) {}, nil
	}
	now := s.Clock()
	today := now.Truncate(24 * time.Hour)
	if limits.CPUSeconds > 0 {
		if err := s.recall(ctx, caller, today); err != nil {
			return nil, err
		}
	}
	q := &s.quotas
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.of(caller)
	if limits.Concurrent > 0 && a.running >= limits.Concurrent {
		return nil, &sandbox.Error{Fault: sandbox.FaultLimit, Detail: fmt.Sprintf("this key may run %d executions at once, and they are running", limits.Concurrent), RetryAfter: 1}
	}
	if most := time.Duration(limits.CPUSeconds) * time.Second; most > 0 && a.cpu >= most {
		return nil, &sandbox.Error{Fault: sandbox.FaultLimit, Detail: fmt.Sprintf("this key may use %d seconds of CPU time a day, and has used %.1f; the next day begins at 00:00 UTC", limits.CPUSeconds, a.cpu.Seconds()),
			RetryAfter: int(math.Ceil(today.Add(24 * time.Hour).Sub(now).Seconds()))}
	}
	a.running++
	return func(used time.Duration) {
		q.mu.Lock()
		defer q.mu.Unlock()
		a.running--
		if limits.CPUSeconds > 0 {
			a.cpu += used
			a.unsaved += used
		}
	}, nil
}

// recall asks history what an account has used on a day that is new here.
func (s *Service) recall(ctx context.Context, caller sandbox.Key, today time.Time) error {
	q := &s.quotas
	q.mu.Lock()
	known := q.of(caller).day.Equal(today)
	q.mu.Unlock()
	if known {
		return nil
	}
	if err := s.saveUsage(ctx); err != nil { // of the day before
		return err
	}
	used, err := s.History.CPUUsed(ctx, caller.Account, today)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if a := q.of(caller); !a.day.Equal(today) {
		a.day, a.cpu = today, used+a.unsaved
	}
	return nil
}

// saveEvery is how much of what keys have used a crash may lose, in time.
const saveEvery = 5 * time.Second

// save is saveUsage for who has nobody to tell.
func (s *Service) save() {
	ctx, done := context.WithTimeout(context.Background(), saveEvery)
	defer done()
	if err := s.saveUsage(ctx); err != nil {
		s.Log.WithError(err).Warn("save what keys have used")
	}
}

// saveUsage writes what was used since it was last called.
func (s *Service) saveUsage(ctx context.Context) (err error) {
	type entry struct {
		who  string
		day  time.Time
		used time.Duration
	}
	q := &s.quotas
	var entries []entry
	q.mu.Lock()
	for who, a := range q.accounts {
		if a.unsaved >= time.Millisecond {
			entries = append(entries, entry{who, a.day, a.unsaved})
			a.unsaved = 0
		}
	}
	q.mu.Unlock()
	for _, e := range entries {
		failed := s.History.AddCPU(ctx, e.who, e.day, e.used)
		if failed == nil {
			continue
		}
		err = errors.Join(err, failed)
		q.mu.Lock()
		q.accounts[e.who].unsaved += e.used
		q.mu.Unlock()
	}
	return err
}
