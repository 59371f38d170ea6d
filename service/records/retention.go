package records

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"glasshouse/sandbox"
)

const (
	retentionInterval = time.Hour   // between two checks of the limits
	retentionRetry    = time.Minute // after a check that failed
	// retentionBatch is the number of executions that one transaction deletes. The writer of history waits for the
	// transaction, because both change the kept counts.
	retentionBatch   = 100
	retentionTimeout = time.Minute // of one batch
	sizeTimeout      = 10 * time.Minute
	// retentionPause is how long the service pauses after a batch, relative to the time that the batch took. So
	// deletion takes at most a third of the time of one connection.
	retentionPause    = 2
	minRetentionPause = 5 * time.Millisecond
)

// retentionActor is the user of the audit entries of deletions by limits. These entries have no key.
const retentionActor = "retention"

// retention is the state of the goroutine that deletes the oldest executions.
type retention struct {
	mu     sync.Mutex
	status sandbox.HistoryRetention
}

// RetentionStatus returns the limits of history and what was deleted because of them.
func (s *Service) RetentionStatus() sandbox.HistoryRetention {
	s.retention.mu.Lock()
	defer s.retention.mu.Unlock()
	st := s.retention.status
	st.MaxAgeSeconds, st.MaxBytes = s.HistoryMaxAge.Seconds(), s.HistoryMaxBytes
	return st
}

// update changes the status.
func (r *retention) update(change func(*sandbox.HistoryRetention)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.status)
}

// runRetention applies the limits of history and of recordings at once and then every retentionInterval, until the
// service closes. It runs in a goroutine of its own.
func (s *Service) runRetention() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-s.stop:
		case <-ctx.Done():
		}
	}()
	for {
		next := retentionInterval
		if err := s.ApplyRetention(ctx); err != nil && ctx.Err() == nil {
			next = retentionRetry
			s.Log.WithError(err).Warnf("could not delete all executions beyond the limits of history; the next "+
				"attempt is in %s", next)
		}
		s.pruneRecordings(ctx)
		s.pruneInputs(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
	}
}

// ApplyRetention deletes the executions beyond the limits of history, the oldest first, with everything that belongs to
// them. It deletes in small batches with pauses. A second call continues what a first one that was interrupted has
// left. Executions that run, and those whose writes wait for a decision, stay.
func (s *Service) ApplyRetention(ctx context.Context) (err error) {
	s.retention.update(func(st *sandbox.HistoryRetention) { st.IsDeleting = true })
	defer func() {
		now := s.Clock()
		s.retention.update(func(st *sandbox.HistoryRetention) {
			st.IsDeleting, st.Error = false, ""
			if err != nil {
				st.Error = err.Error()
			} else {
				st.CheckedAt = &now
			}
		})
	}()
	now := s.deletionTime()
	err = s.eraseExpired(ctx, deletion{before: now, byKey: true, setting: "history_days"})
	if err == nil && s.HistoryMaxAge > 0 {
		err = s.eraseExpired(ctx, deletion{before: now.Add(-s.HistoryMaxAge), setting: "history-max-age"})
	}
	if err == nil && s.HistoryMaxBytes > 0 {
		var before time.Time
		sizeCtx, cancel := context.WithTimeout(ctx, sizeTimeout)
		defer cancel()
		if before, err = s.History.SizeLimit(sizeCtx, s.HistoryMaxBytes); err == nil && !before.IsZero() {
			err = s.eraseExpired(ctx, deletion{before: before, setting: "history-max-mb"})
		}
	}
	return err
}

// deletionTime returns the time from which the age of what may be deleted is measured. If the machine's clock was set
// forward since the service started, the service goes on without the jump, so that a wrong clock deletes nothing.
func (s *Service) deletionTime() time.Time {
	now, unset := s.Clock().Round(0), s.startedAt.Round(0).Add(s.Elapsed()) // without monotonic readings
	if now.After(unset) {
		return unset
	}
	return now
}

// deletion is what a limit of history deletes: the executions that began before a time, and then the sandboxes and
// conversations that ended before it, or, if byKey is set, only the executions whose own time of expiry is before it.
type deletion struct {
	setting string // of the service, or of keys
	before  time.Time
	byKey   bool
}

// eraseExpired carries out a deletion. The audit log has an entry before the first batch and one after the last.
func (s *Service) eraseExpired(ctx context.Context, d deletion) (err error) {
	total, announced := sandbox.Erased{}, false
	note := func(ctx context.Context, erased *sandbox.Erased) error {
		detail, err := json.Marshal(struct {
			Before  time.Time       `json:"before"`
			Setting string          `json:"setting"`
			Erased  *sandbox.Erased `json:"erased,omitempty"`
		}{d.before, d.setting, erased})
		if err != nil {
			return err
		}
		caller := sandbox.Key{User: retentionActor}
		return s.Access.AuditDetail(ctx, caller, sandbox.AuditErased, "history", "", detail)
	}
	defer func() {
		if !announced {
			return
		}
		s.Log.Infof("history: deleted %d executions, %d sandboxes and %d conversations from before %s (%s)",
			total.Executions, total.Sandboxes, total.Conversations, d.before.Format(time.RFC3339), d.setting)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), retentionTimeout) // also after an interruption
		defer cancel()
		err = errors.Join(err, note(ctx, &total))
	}()
	announce := func() error {
		if announced {
			return nil
		}
		err := note(ctx, nil)
		announced = err == nil
		return err
	}
	for {
		began := time.Now()
		ids, err := s.History.ExpiredExecutions(ctx, d.before, d.byKey, retentionBatch)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			break
		}
		if err := announce(); err != nil {
			return err
		}
		erased, err := s.eraseBatch(ctx, ids)
		total.Add(erased)
		if err == nil {
			err = pause(ctx, time.Since(began))
		}
		if err != nil {
			return err
		}
	}
	for !d.byKey {
		began := time.Now()
		erased, err := s.History.EraseEnded(ctx, d.before, retentionBatch)
		total.Add(erased)
		if err != nil || erased.Sandboxes+erased.Conversations == 0 {
			return err
		}
		if err := announce(); err != nil {
			return err
		}
		if err := pause(ctx, time.Since(began)); err != nil {
			return err
		}
	}
	return nil
}

// eraseBatch deletes executions, and removes them from memory and from the blob store.
func (s *Service) eraseBatch(ctx context.Context, ids []string) (sandbox.Erased, error) {
	ctx, cancel := context.WithTimeout(ctx, retentionTimeout)
	defer cancel()
	erased, err := s.History.EraseExecutions(ctx, ids)
	if err != nil {
		return sandbox.Erased{}, err
	}
	isErased := map[string]bool{}
	for _, id := range ids {
		isErased[id] = true
	}
	s.retention.update(func(st *sandbox.HistoryRetention) { st.Deleted += int64(erased.Executions) })
	err = s.forget(erased, func(execution, _ string) bool { return isErased[execution] })
	erased.Files = nil // they would add up
	return erased, err
}

// pause waits after a batch that took some time.
func pause(ctx context.Context, took time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(max(retentionPause*took, minRetentionPause)):
		return nil
	}
}
