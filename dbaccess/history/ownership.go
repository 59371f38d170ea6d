package history

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/sirupsen/logrus"

	"glasshouse/sandbox"
)

// ownershipLock is the key of the advisory lock of register. migrate uses another one.
const ownershipLock = 7236849272

const (
	leaseDuration = 10 * time.Second       // after its last sign of life, a node has this long to return
	renewInterval = 2 * time.Second        // between two signs of life
	renewTimeout  = 5 * time.Second        // of one sign of life, and of one attempt to connect
	leaseMargin   = 2 * time.Second        // this node stops before others regard its lease as ended
	flushPatience = 30 * time.Second       // for a transaction of the node that this one replaces
	watchInterval = 100 * time.Millisecond // between two looks at another node
	maxWatchGap   = time.Second            // a look that takes longer says nothing about the other node
)

// ownership makes this node the only one that uses a history database. A service that starts closes the executions
// which it finds open, so two services on one database would cancel each other's executions.
//
// The node that uses the database is the one with the highest epoch in the table nodes, unless it has ended. It renews
// its row every renewInterval. Another node watches the row before it takes the database: it takes it if the row does
// not change for the duration of the lease, by its own clock, and gives up when the row changes. To take it, it gives
// both nodes new epochs. Each transaction of the writer begins with a check of its epoch (require_node), so a service
// that was only slow stores no executions after another one has taken its place. It refuses all new work until it is
// restarted. The ends that it has answered are in its log, and its next start on this database stores them.
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
	conn *pgx.Conn // nil: the connection is lost
	last *node     // the node that acquire found last; nil: none
}

// ErrOwned is the error of Open if another service uses the database.
var ErrOwned = errors.New("another service uses this database")

// errReplaced means that nodes has another node with this epoch or with a higher one.
var errReplaced = errors.New("another node has used the history database since")

// newOwnership returns the ownership that acquire takes. config is that of the database's other connections.
func newOwnership(config *pgx.ConnConfig, n node, lease time.Duration, logger logrus.FieldLogger) *ownership {
	config = config.Copy()
	config.RuntimeParams["application_name"] = "glasshouse-owner"
	config.RuntimeParams["synchronous_commit"] = "off" // nothing is lost with a sign of life
	return &ownership{
		connect: func(ctx context.Context) (*pgx.Conn, error) {
			return pgx.ConnectConfig(ctx, config.Copy())
		},
		lease: lease, logger: logger, node: n, stopped: make(chan struct{}),
	}
}

// acquire waits until the lease of another node that was killed has ended. It returns an error that names the other
// node if that node runs. The caller then calls register and close, or only close.
func (o *ownership) acquire(ctx context.Context) (err error) {
	if o.conn, err = o.connect(ctx); err != nil {
		return err
	}
	for since := time.Now(); ; {
		asked := time.Now()
		before := o.last
		if o.last, err = lastNode(ctx, o.conn); err != nil {
			return err
		}
		switch {
		case !o.last.mayRun(o.node):
			return nil
		case before == nil || before.Epoch != o.last.Epoch:
			since = time.Now()
			o.logger.Warnf("history: the node %s has not ended its use of the database; waiting up to %.0f s for a "+
				"sign of life", o.last, o.lease.Seconds())
		case !before.SeenAt.Equal(o.last.SeenAt):
			return errOwnedBy(o.last)
		case time.Since(asked) > maxWatchGap:
			since = time.Now() // the server was slow, for the other node too
		case time.Since(since) >= o.lease:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(watchInterval):
		}
	}
}

func errOwnedBy(n *node) error {
	return fmt.Errorf("%w: node %s; stop that service, or give this one another database", ErrOwned, n)
}

// isFirst reports whether acquire found no node, and perhaps no table of nodes.
func (o *ownership) isFirst() bool { return o.last == nil }

// register makes this node the owner with a new epoch, in place of the one that acquire found, and starts to renew the
// lease. It waits for a transaction in which the other node stores executions, which the server may still have when
// that node is gone. It returns an error if another node has used the database since acquire. The table nodes must
// exist.
func (o *ownership) register(ctx context.Context) error {
	var sent time.Time
	err := pgx.BeginFunc(ctx, o.conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SELECT set_config('synchronous_commit', 'on', true),
			set_config('lock_timeout', $2, true), pg_advisory_xact_lock($1)`,
			int64(ownershipLock), strconv.FormatInt(flushPatience.Milliseconds(), 10))
		if err == nil {
			_, err = tx.Exec(ctx, `SELECT FROM nodes ORDER BY epoch DESC LIMIT 1 FOR UPDATE`)
		}
		if err != nil {
			return err
		}
		last, err := lastNode(ctx, tx)
		if err != nil {
			return err
		}
		if last.mayRun(o.node) && (o.isFirst() || last.Epoch != o.last.Epoch || !last.SeenAt.Equal(o.last.SeenAt)) {
			return errOwnedBy(last)
		}
		if last.mayRun(o.node) && last.ID != o.node.ID {
			if err := last.replace(ctx, tx); err != nil {
				return err
			}
		}
		sent = time.Now()
		return o.node.register(ctx, tx)
	})
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "55P03" && o.last != nil { // lock_timeout
		return fmt.Errorf("the node %s is silent, but the server still has a transaction of it, or a service that "+
			"starts: try again, or end it with pg_terminate_backend: %w", o.last, err)
	}
	if err != nil {
		return err
	}
	o.confirmed = sent
	ctx, o.stop = context.WithCancel(context.Background())
	go o.keep(ctx)
	return nil
}

// check returns FaultUnavailable unless this node owns the database.
func (o *ownership) check() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.takenBy != nil || errors.Is(o.refused, errReplaced) {
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
	for pause := renewInterval; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		err := o.confirm(ctx)
		o.mu.Lock()
		o.refused = err
		o.mu.Unlock()
		if err == nil {
			if reported != nil {
				o.logger.Info("history: the history database confirms again that only this service uses it")
			}
			reported, pause = nil, renewInterval
			continue
		}
		pause = maxRetryDelay
		var other *node
		if errors.Is(err, errReplaced) {
			other = o.successor(ctx)
		}
		if other != nil {
			o.mu.Lock()
			o.takenBy = other
			o.mu.Unlock()
			o.logger.Errorf("history: the node %s has taken over the history database while this service gave no sign "+
				"of life. This service starts no new work and answers 503. Stop one of the two services, and restart "+
				"this one if it remains. Its next start stores the ends that it has answered since", other)
			return
		}
		if (reported == nil || isReadOnly(err) && !isReadOnly(reported)) && ctx.Err() == nil {
			o.logger.WithError(err).Warn("history: the history database does not confirm that only this service " +
				"uses it; trying again")
			reported = err
		}
	}
}

// confirm renews the lease, on a new connection if there is none.
func (o *ownership) confirm(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTimeout) // close still needs the connection
	defer cancel()
	if o.conn == nil {
		if o.conn, err = o.connect(ctx); err != nil {
			o.conn = nil
			return err
		}
	}
	sent := time.Now()
	if err = o.node.renew(ctx, o.conn); err != nil {
		o.disconnect()
		return err
	}
	o.mu.Lock()
	o.confirmed = sent
	o.mu.Unlock()
	return nil
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
	last, err := lastNode(ctx, conn)
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

// close ends the lease.
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
