package access

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

// Activity is something that a key may do a limited number of times concurrently.
type Activity int

const (
	Executions  Activity = iota // also a statement that a client sends
	Inspections                 // work that runs no user code, but takes a process or a statement: a check, a schema
	Commands                    // what a debugger makes a stopped program do, one after the other
	activities
)

// plural returns the activity for an error.
func (a Activity) plural() string {
	if a == Inspections {
		return "concurrent checks, completions, schemas and the like"
	}
	return "concurrent executions"
}

// quotas count the running executions and the CPU time of accounts. CPU time is counted every sampleInterval, and
// written to history every usageInterval.
type quotas struct {
	requests limit.Rates

	mu         sync.Mutex
	accounts   map[string]*usage
	isSampling bool                         // sampleUsage will be called
	spent      map[accountDay]time.Duration // by accounts without a limit; history does not have it yet
}

// accountDay is a day of an account, at 00:00 UTC.
type accountDay struct {
	account string
	day     time.Time
}

// CountCPU counts the CPU time of a run that has ended, so that people see what each key cost. The time of keys with a
// limit of CPU time is counted while they run.
func (s *Service) CountCPU(caller sandbox.Key, used time.Duration) {
	if s.keyLimits(caller).CPUSeconds > 0 || used <= 0 {
		return
	}
	q := &s.quotas
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.spent == nil {
		q.spent = map[accountDay]time.Duration{}
	}
	q.spent[accountDay{caller.Account, s.Clock().Truncate(24 * time.Hour)}] += used
}

// usage is the usage of one account.
type usage struct {
	active  [activities]int    // what happens now
	metered map[*metering]bool // what happens now and uses CPU time that is limited
	day     time.Time          // the day of cpu, at 00:00 UTC; zero until cpu was read from history
	cpu     time.Duration      // used on day
	unsaved time.Duration      // part of cpu that history does not have yet
}

// Meter measures the CPU time of an activity while it happens. Its functions never wait.
type Meter struct {
	TakeCPU  func() time.Duration // the CPU time since it was last called; nil: the activity uses none that counts
	IsPaused func() bool          // the activity uses none now, and need not end at the limit; nil: never
}

// metering is an activity that is measured.
type metering struct {
	Meter
	limits sandbox.KeyLimits
	end    context.CancelCauseFunc
}

// count counts the CPU time that the activities of an account have used since the last call. The caller holds q.mu.
func (u *usage) count() {
	for m := range u.metered {
		cpu := m.TakeCPU()
		u.cpu += cpu
		u.unsaved += cpu
	}
}

// checkCPU returns FaultLimit if the account has used the CPU time that a key may use per day. The caller holds q.mu.
func (u *usage) checkCPU(limits sandbox.KeyLimits, now time.Time) error {
	if u.cpu < time.Duration(limits.CPUSeconds)*time.Second {
		return nil
	}
	tomorrow := now.Truncate(24 * time.Hour).Add(24 * time.Hour)
	return &sandbox.Error{
		Fault: sandbox.FaultLimit, RetryAfter: int(math.Ceil(tomorrow.Sub(now).Seconds())),
		Detail: fmt.Sprintf("this key may use %d seconds of CPU time per day and has used %.1f; retry after 00:00 UTC",
			limits.CPUSeconds, u.cpu.Seconds()),
	}
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

// usageOf returns the usage of an account. The caller holds q.mu.
func (q *quotas) usageOf(account string) *usage {
	if q.accounts == nil {
		q.accounts = map[string]*usage{}
	}
	u := q.accounts[account]
	if u == nil {
		u = &usage{metered: map[*metering]bool{}}
		q.accounts[account] = u
	}
	return u
}

// Begin counts an activity that is about to begin, and its CPU time while it happens. The activity ends when the
// returned context ends: the cause is FaultLimit if the key has used its CPU time of the day. The caller calls end when
// the activity has ended. Begin returns FaultLimit if the key already does the same too often, or has used its CPU
// time.
func (s *Service) Begin(
	ctx context.Context, caller sandbox.Key, what Activity, m Meter,
) (_ context.Context, end func(), err error) {
	limits := s.keyLimits(caller)
	if limits.Concurrent == 0 && limits.CPUSeconds == 0 {
		return ctx, func() {}, nil
	}
	now := s.Clock()
	if limits.CPUSeconds > 0 {
		if err := s.loadUsage(ctx, caller.Account, now.Truncate(24*time.Hour)); err != nil {
			return nil, nil, err
		}
	}
	q := &s.quotas
	q.mu.Lock()
	defer q.mu.Unlock()
	u := q.usageOf(caller.Account)
	if limits.Concurrent > 0 && u.active[what] >= limits.Concurrent && what != Commands {
		return nil, nil, &sandbox.Error{
			Fault: sandbox.FaultLimit, RetryAfter: 1,
			Detail: fmt.Sprintf("this key may have %d %s; wait until one ends", limits.Concurrent, what.plural()),
		}
	}
	if limits.CPUSeconds > 0 {
		u.count()
		if err := u.checkCPU(limits, now); err != nil {
			return nil, nil, err
		}
	}
	u.active[what]++
	if limits.CPUSeconds == 0 || m.TakeCPU == nil {
		return ctx, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			u.active[what]--
		}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	measured := &metering{m, limits, cancel}
	u.metered[measured] = true
	s.sampleLater()
	return ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		u.count()
		delete(u.metered, measured)
		u.active[what]--
		cancel(nil)
	}, nil
}

// LimitReached returns the FaultLimit for which an activity was ended; nil if it was not.
func LimitReached(ctx context.Context) error {
	if cause := context.Cause(ctx); sandbox.FaultOf(cause) == sandbox.FaultLimit {
		return cause
	}
	return nil
}

// EndedByCPUSeconds is Usage.EndedBy of a run whose key has used its CPU time of the day.
const EndedByCPUSeconds = "cpu_seconds_per_day"

// sampleInterval is the time between two measurements of the CPU time of all activities. An activity goes on at most so
// long after its key has used its CPU time.
const sampleInterval = 100 * time.Millisecond

// sampleLater calls sampleUsage after sampleInterval. The caller holds q.mu.
func (s *Service) sampleLater() {
	if !s.quotas.isSampling {
		s.quotas.isSampling = true
		time.AfterFunc(sampleInterval, s.sampleUsage)
	}
}

// sampleUsage counts the CPU time of all activities, and ends those whose key has used its CPU time of the day.
func (s *Service) sampleUsage() {
	q, now := &s.quotas, s.Clock()
	today := now.Truncate(24 * time.Hour)
	var before []string // accounts whose CPU time is that of the day before
	q.mu.Lock()
	for account, u := range q.accounts {
		u.count()
		if len(u.metered) > 0 && !u.day.Equal(today) {
			before = append(before, account)
			continue
		}
		for m := range u.metered {
			if err := u.checkCPU(m.limits, now); err != nil && (m.IsPaused == nil || !m.IsPaused()) {
				m.end(err)
			}
		}
	}
	q.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), usageInterval)
	defer cancel()
	for _, account := range before {
		if err := s.loadUsage(ctx, account, today); err != nil {
			s.Log.WithError(err).Warn("could not read the CPU time of a key; its executions have no limit until it can")
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isSampling = false
	for _, u := range q.accounts {
		if len(u.metered) > 0 {
			s.sampleLater()
		}
	}
}

// loadUsage reads from history the CPU time that an account has used today, once per day.
func (s *Service) loadUsage(ctx context.Context, account string, today time.Time) error {
	q := &s.quotas
	q.mu.Lock()
	loaded := q.usageOf(account).day.Equal(today)
	q.mu.Unlock()
	if loaded {
		return nil
	}
	if err := s.saveUsage(ctx); err != nil { // the unsaved time belongs to the previous day
		return err
	}
	used, err := s.History.CPUUsed(ctx, account, today)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if u := q.usageOf(account); !u.day.Equal(today) {
		u.day, u.cpu = today, used+u.unsaved
	}
	return nil
}

// usageInterval is the time between two writes of CPU time to history. A crash loses at most the time of one interval.
const usageInterval = 5 * time.Second

// runSaver saves the CPU time of keys until the service closes. It runs in a goroutine of its own.
func (s *Service) runSaver() {
	ticker := time.NewTicker(usageInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			s.logSaveUsage()
		}
	}
}

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
	var entries, spent []entry
	q.mu.Lock()
	for account, u := range q.accounts {
		if u.unsaved >= time.Millisecond {
			entries = append(entries, entry{account, u.day, u.unsaved})
			u.unsaved = 0
		}
	}
	for at, cpu := range q.spent {
		if cpu >= time.Millisecond {
			spent = append(spent, entry{at.account, at.day, cpu})
			delete(q.spent, at)
		}
	}
	q.mu.Unlock()
	for _, e := range spent {
		if addErr := s.History.AddCPU(ctx, e.account, e.day, e.cpu); addErr != nil {
			err = errors.Join(err, addErr)
			q.mu.Lock()
			q.spent[accountDay{e.account, e.day}] += e.cpu
			q.mu.Unlock()
		}
	}
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
