package history

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sirupsen/logrus"

	"glasshouse/sandbox"
)

// ownershipLock is the key of the advisory lock. migrate uses another one.
const ownershipLock = 7236849272

const (
	leaseDuration   = 10 * time.Second       // after its last sign of life, a node has this long to return
	renewInterval   = 2 * time.Second        // between two signs of life
	renewTimeout    = 5 * time.Second        // of one sign of life, and of one attempt to reconnect
	leaseMargin     = 2 * time.Second        // this node stops before others regard its lease as ended
	lockPatience    = time.Second            // for the lock of another node
	ownLockPatience = 30 * time.Second       // for the lock that a killed process of this node left; see keepAlive
	lockRetryDelay  = 100 * time.Millisecond // between two attempts to lock
)

// ownership makes this node the only one that uses a history database. A service that starts closes the executions
// which it finds open, so two services on one database would cancel each other's executions.
//
// The node holds a session-level advisory lock on a connection of its own, and renews its row in nodes. PostgreSQL
// releases the lock when the process or its machine dies. If the connection is lost, ownership connects and locks
// again. Another node takes the database only when the lock is free and the lease of the last node has ended. So a node
// can return after a restart of PostgreSQL. If it returns too late, it finds a higher epoch in nodes and refuses all
// new work until it is restarted.
type ownership struct {
	connect func(context.Context) (*pgx.Conn, error)
	lease   time.Duration
	logger  logrus.FieldLogger
	node    node
	stop    context.CancelFunc
	stopped chan struct{} // closed when keep has ended

	mu        sync.Mutex
	confirmed time.Time // when the last statement that confirmed the ownership was sent
	refused   error     // why the ownership was not confirmed since; nil: it was
	takenBy   *node     // another node that took the database; then this node never owns it again

	// Used by one goroutine: first that of acquire, then that of keep.
	conn    *pgx.Conn // holds the lock; nil: the connection is lost
	backend backend   // of the last conn
}

// backend identifies a process of PostgreSQL.
type backend struct {
	pid     uint32
	started time.Time
}

// ErrOwned is the error of Open if another service uses the database.
var ErrOwned = errors.New("another service uses this database")

// errNotHeld means that the connection does not hold the lock, or that nodes has another node with this epoch or with a
// higher one.
var errNotHeld = errors.New("the lock on the history database is lost")

// newOwnership returns the ownership that acquire takes. config is that of the database's other connections.
func newOwnership(config *pgx.ConnConfig, n node, lease time.Duration, logger logrus.FieldLogger) *ownership {
	config = config.Copy()
	config.RuntimeParams["application_name"] = "glasshouse-owner"
	config.RuntimeParams["synchronous_commit"] = "off" // nothing is lost with a sign of life
	keepAlive(config.RuntimeParams)
	return &ownership{
		connect: func(ctx context.Context) (*pgx.Conn, error) {
			return pgx.ConnectConfig(ctx, config.Copy())
		},
		lease: lease, logger: logger, node: n, stopped: make(chan struct{}),
	}
}

// keepAlive makes PostgreSQL notice within 20 s that the machine of a client is gone, and release its lock.
func keepAlive(params map[string]string) {
	params["tcp_keepalives_idle"], params["tcp_keepalives_interval"], params["tcp_keepalives_count"] = "5", "5", "3"
}

// acquire locks the database. It waits until the lease of another node that was killed has ended. It returns an error
// that names the other node if that node runs. The caller then calls register and close, or only close.
func (o *ownership) acquire(ctx context.Context) (err error) {
	if o.conn, err = o.connect(ctx); err != nil {
		return err
	}
	waiting := false
	for began := time.Now(); ; {
		locked, err := o.lock(ctx)
		if err != nil {
			return err
		}
		last, left, err := lastNode(ctx, o.conn, o.lease)
		if err != nil {
			return err
		}
		isOther := last != nil && last.ID != o.node.ID
		switch {
		case locked && (!isOther || left == 0):
			return nil
		case locked:
			if _, err := o.conn.Exec(ctx, `SELECT pg_advisory_unlock($1)`, int64(ownershipLock)); err != nil {
				return err
			}
			if !waiting {
				o.logger.Warnf("history: the node %s used the database a moment ago and did not end properly; "+
					"waiting %.0f s in case it returns", last, left.Seconds())
			}
			waiting, began = true, time.Now()
		case isOther && time.Since(began) > lockPatience:
			return fmt.Errorf("%w: node %s; stop that service, or give this one another database", ErrOwned, last)
		case time.Since(began) > ownLockPatience:
			return fmt.Errorf("%w: stop it, or give this one another database", ErrOwned)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(lockRetryDelay):
		}
	}
}

// lock tries to lock the database on conn.
func (o *ownership) lock(ctx context.Context) (locked bool, err error) {
	err = o.conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, int64(ownershipLock)).Scan(&locked)
	return locked, err
}

// register makes this node the owner with a new epoch, and starts to renew the lease. The schema must be migrated.
func (o *ownership) register(ctx context.Context) error {
	sent := time.Now()
	if err := o.node.register(ctx, o.conn); err != nil {
		return err
	}
	if err := o.noteBackend(ctx); err != nil {
		return err
	}
	o.confirmed = sent
	ctx, o.stop = context.WithCancel(context.Background())
	go o.keep(ctx)
	return nil
}

// noteBackend remembers the server's process that holds the lock.
func (o *ownership) noteBackend(ctx context.Context) error {
	return o.conn.QueryRow(ctx, `SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()`).
		Scan(&o.backend.pid, &o.backend.started)
}

// check returns FaultUnavailable unless this node owns the database.
func (o *ownership) check() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.takenBy != nil {
		return &sandbox.Error{Fault: sandbox.FaultUnavailable, Detail: "another service has taken over the history " +
			"database, so this one starts no new work: ask the operator, who finds the reason in the service's log"}
	}
	silent := time.Since(o.confirmed)
	if isReadOnly(o.refused) {
		return unavailable(o.refused) // at once: a record would wait for the server only to be refused
	}
	if silent > o.lease-leaseMargin {
		return &sandbox.Error{Fault: sandbox.FaultUnavailable, RetryAfter: 2, Detail: fmt.Sprintf(
			"the history database has not confirmed for %.0f s that only this service uses it, and nothing runs "+
				"without history: try again in a moment", silent.Seconds())}
	}
	return nil
}

// keep renews the lease, and reconnects if the connection is lost. It ends with ctx, or when another node has taken
// the database.
func (o *ownership) keep(ctx context.Context) {
	defer close(o.stopped)
	var reported error // the reason in the log why the ownership is not confirmed
	for ctx.Err() == nil {
		if o.conn != nil {
			o.waitForLoss(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		err := o.confirm(ctx)
		o.mu.Lock()
		o.refused = err
		o.mu.Unlock()
		if err == nil {
			if reported != nil {
				o.logger.Info("history: this service has locked the history database again")
			}
			reported = nil
			continue
		}
		if other := o.successor(ctx); other != nil {
			o.mu.Lock()
			o.takenBy = other
			o.mu.Unlock()
			o.logger.Errorf("history: the node %s has taken over the history database while this service had lost "+
				"its connection. This service starts no new work and answers 503. Stop one of the two services, and "+
				"restart this one if it remains", other)
			return
		}
		if (reported == nil || isReadOnly(err) && !isReadOnly(reported)) && ctx.Err() == nil {
			o.logger.WithError(err).Warn("history: the connection that keeps other services off the history " +
				"database is lost; connecting again")
			reported = err
		}
		select {
		case <-ctx.Done():
		case <-time.After(maxRetryDelay):
		}
	}
}

// waitForLoss returns after renewInterval, or as soon as the connection is lost, which sets conn to nil.
func (o *ownership) waitForLoss(ctx context.Context) {
	waitCtx, cancel := context.WithTimeout(ctx, renewInterval)
	defer cancel()
	if _, err := o.conn.WaitForNotification(waitCtx); err != nil && waitCtx.Err() == nil {
		o.disconnect()
	}
}

// confirm renews the lease, on a new connection if there is none.
func (o *ownership) confirm(ctx context.Context) error {
	if o.conn == nil {
		if err := o.reconnect(ctx); err != nil {
			return err
		}
	}
	sent := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTimeout) // close still needs the connection
	defer cancel()
	tag, err := o.node.renew(ctx, o.conn)
	if err == nil && tag.RowsAffected() == 0 {
		err = errNotHeld
	}
	if err != nil {
		o.disconnect()
		return err
	}
	o.mu.Lock()
	o.confirmed = sent
	o.mu.Unlock()
	return nil
}

// reconnect connects and locks. If the server has not yet noticed that the last connection is lost, reconnect ends that
// connection's process.
func (o *ownership) reconnect(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	if o.conn, err = o.connect(ctx); err != nil {
		o.conn = nil
		return err
	}
	locked, err := o.lock(ctx)
	switch {
	case err == nil && locked:
		err = o.noteBackend(ctx)
	case err == nil:
		_, err = o.conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE pid = $1 AND backend_start = $2`, o.backend.pid, o.backend.started)
		err = errors.Join(errNotHeld, err)
	}
	if err != nil {
		o.disconnect()
	}
	return err
}

// successor returns the node that has taken the database from this one, or nil.
func (o *ownership) successor(ctx context.Context) *node {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	conn, err := o.connect(ctx)
	if err != nil {
		return nil
	}
	defer conn.Close(ctx)
	last, _, err := lastNode(ctx, conn, o.lease)
	if err != nil || last == nil || !last.follows(o.node) {
		return nil
	}
	return last
}

func (o *ownership) disconnect() {
	ctx, cancel := context.WithTimeout(context.Background(), maxRetryDelay)
	defer cancel()
	_ = o.conn.Close(ctx)
	o.conn = nil
}

// close ends the lease and releases the lock.
func (o *ownership) close() {
	if o.stop != nil {
		o.stop()
		<-o.stopped
	}
	if o.conn == nil {
		return
	}
	if o.stop != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		// If it fails, another node waits until the lease has ended.
		_, _ = o.conn.Exec(ctx, `UPDATE nodes SET seen_at = now(), ended_at = now() WHERE id = $1 AND epoch = $2`,
			o.node.ID, o.node.Epoch)
	}
	o.disconnect()
}
