package dbaccess

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"glasshouse/sandbox"
)

// overdue knows the statements that the server still runs after their connections were closed. PostgreSQL ends a
// cancelled statement only where its code looks for that. It does not while it compares two polygons, evaluates an
// XPath, or replaces or translates a long text, which can take days. Such a statement keeps its slots until it has
// ended. So a user never has more statements on the server than the limits allow.
type overdue struct {
	report  func(Overdue)
	closing context.Context // ends when the reader is closed

	mu        sync.Mutex
	ofUser    map[string]int // statements that are reported
	ofSandbox map[string]int
}

// Overdue is a statement that the server runs, or has run, for longer than overdueAfter after it was cancelled.
type Overdue struct {
	User     string
	PID      uint32        // of the server's process
	Took     time.Duration // since it began
	HasEnded bool
}

const (
	overdueAfter     = time.Second          // after which a statement is reported
	firstOverdueWait = 5 * time.Millisecond // in which the server ends most cancelled statements
	maxOverdueWait   = 2 * time.Second      // between two questions to the server
	overdueTimeout   = 5 * time.Second      // of a question
)

// serverProcess is a process of the server that ran a statement.
type serverProcess struct {
	pool   *pgxpool.Pool // of the same login, which sees when the process began
	pid    uint32
	began  time.Time // the statement
	limits sandbox.QueryLimits
}

// await calls end when the server's process has ended, or when the reader is closed. The connection is closed.
func (o *overdue) await(p serverProcess, end func()) {
	defer end()
	closed, isReported := time.Now(), false
	for wait := firstOverdueWait; ; wait = min(2*wait, maxOverdueWait) {
		select {
		case <-time.After(wait):
		case <-o.closing.Done():
			return
		}
		if !p.exists(o.closing) {
			if isReported {
				o.note(p, -1)
			}
			return
		}
		if !isReported && time.Since(closed) >= overdueAfter {
			isReported = true
			o.note(p, 1)
		}
	}
}

// exists asks the server whether the process exists. Another process that has got its number began later. If the server
// cannot be reached, the answer is no: statements then fail for that reason, and do not wait. The login may not read
// pg_stat_activity (policy.SQLRevoke).
func (p serverProcess) exists(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, overdueTimeout)
	defer cancel()
	var exists bool
	err := readCatalog(ctx, p.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_get_backend_idset() AS id
			WHERE pg_stat_get_backend_pid(id) = $1
			AND pg_stat_get_backend_start(id) < clock_timestamp() - $2 * interval '1 microsecond')`,
			int32(p.pid), time.Since(p.began).Microseconds()).Scan(&exists)
	})
	return exists || errors.Is(err, context.DeadlineExceeded)
}

// note counts a statement, if change is 1, or no longer, if it is -1.
func (o *overdue) note(p serverProcess, change int) {
	o.mu.Lock()
	for key, counts := range map[string]map[string]int{p.limits.User: o.ofUser, p.limits.Sandbox: o.ofSandbox} {
		if counts[key] += change; counts[key] == 0 {
			delete(counts, key)
		}
	}
	o.mu.Unlock()
	if o.report != nil {
		o.report(Overdue{User: p.limits.User, PID: p.pid, Took: time.Since(p.began), HasEnded: change < 0})
	}
}

// overdueRefusal returns a refusal if all places of a user or a sandbox are taken by overdue statements: another
// statement could wait for days.
func (r *Reader) overdueRefusal(l sandbox.QueryLimits) error {
	o := &r.overdue
	o.mu.Lock()
	ofUser, ofSandbox := o.ofUser[l.User], o.ofSandbox[l.Sandbox]
	o.mu.Unlock()
	whose, count := "your", ofUser
	switch {
	case l.User != "" && r.config.PerUser > 0 && ofUser >= r.config.PerUser:
	case l.Sandbox != "" && r.config.PerSandbox > 0 && ofSandbox >= r.config.PerSandbox:
		whose, count = "this sandbox's", ofSandbox
	default:
		return nil
	}
	return &sandbox.Refusal{
		Reason: "unavailable",
		Message: fmt.Sprintf("PostgreSQL still runs %d of %s earlier statements, which were cancelled, and that is "+
			"the limit of statements at the same time: PostgreSQL cannot interrupt what they do", count, whose),
		Hint: "wait until they end, or ask the operator to restart PostgreSQL; such statements compare " +
			"polygons, or replace or search in very long texts",
		Failed: true,
	}
}
