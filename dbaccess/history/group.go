package history

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	groupMax   = 256              // statements of one commit
	groupBytes = 32 << 20         // of one commit's records, about
	writeLimit = 30 * time.Second // of one commit; a server that hangs longer counts as lost
	lastWait   = 250 * time.Millisecond
)

var errClosed = errors.New("history is closed")

// job is one statement that waits for its commit.
type job struct {
	ctx  context.Context
	sql  string
	args []any
	size int
	done chan error // has room for the one answer
}

// group commits what waits together: one goroutine with one connection of its own.
// A statement alone is its own transaction and one round trip; many are one
// pipeline that the server runs as one transaction.
type group struct {
	connect  func(context.Context) (*pgx.Conn, error)
	patience time.Duration // how long a statement waits for a lost server; 0: until its context ends
	jobs     chan job
	over     chan struct{}
	conn     *pgx.Conn // nil while there is none; the goroutine's alone

	mu     sync.RWMutex // held for reading while a job is put into jobs
	closed bool
}

func newGroup(patience time.Duration, connect func(context.Context) (*pgx.Conn, error)) *group {
	g := &group{connect: connect, patience: patience, jobs: make(chan job, groupMax), over: make(chan struct{})}
	go g.run()
	return g
}

// close ends the group after what waits in it is written or given up.
func (g *group) close() {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.jobs)
	}
	g.mu.Unlock()
	<-g.over
}

// do queues a statement and waits for its commit. Where ctx ends first the
// statement may still be committed.
func (g *group) do(ctx context.Context, size int, sql string, args ...any) error {
	if g.patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, g.patience)
		defer cancel()
	}
	j := job{ctx: ctx, sql: sql, args: args, size: size, done: make(chan error, 1)}
	if err := g.put(j); err != nil {
		return err
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-j.done: // both were ready: the answer is the better news
		return err
	default:
		return gaveUp(ctx, nil)
	}
}

func (g *group) put(j job) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.closed {
		return errClosed
	}
	select {
	case g.jobs <- j:
		return nil
	case <-j.ctx.Done():
		return gaveUp(j.ctx, nil)
	}
}

// gaveUp is the error of a statement whose caller ended before its commit.
func gaveUp(ctx context.Context, err error) error {
	return fmt.Errorf("%w: %w", errLost, errors.Join(context.Cause(ctx), err))
}

func (g *group) run() {
	defer close(g.over)
	defer g.drop()
	for first := range g.jobs {
		batch, size := []job{first}, first.size
	gather:
		for len(batch) < groupMax && size < groupBytes {
			select {
			case j, ok := <-g.jobs:
				if !ok {
					break gather
				}
				batch, size = append(batch, j), size+j.size
			default:
				break gather
			}
		}
		g.commit(batch)
	}
}

// commit writes a batch and answers its callers. One bad statement must not take
// the others with it: then each is written alone. While the server is lost the
// batch is tried again for as long as anyone waits; every statement may be run
// twice, because the answer to a commit can be lost with the server.
func (g *group) commit(batch []job) {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, lastWait) {
		err := g.write(batch)
		if err == nil || len(batch) == 1 && !lost(err) {
			for _, j := range batch {
				j.done <- err
			}
			return
		}
		if !lost(err) {
			for _, j := range batch {
				g.commit([]job{j})
			}
			return
		}
		g.drop()
		still := batch[:0]
		for _, j := range batch {
			if j.ctx.Err() == nil {
				still = append(still, j)
			} else {
				j.done <- gaveUp(j.ctx, err)
			}
		}
		if batch = still; len(batch) == 0 {
			return
		}
		time.Sleep(wait)
	}
}

func (g *group) write(batch []job) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	if g.conn == nil {
		conn, err := g.connect(ctx)
		if err != nil {
			return err
		}
		g.conn = conn
	}
	if len(batch) == 1 {
		_, err := g.conn.Exec(ctx, batch[0].sql, batch[0].args...)
		return err
	}
	var b pgx.Batch
	for _, j := range batch {
		b.Queue(j.sql, j.args...)
	}
	return g.conn.SendBatch(ctx, &b).Close() // the first error of any
}

// drop closes the connection; the next write makes another.
func (g *group) drop() {
	if g.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = g.conn.Close(ctx)
	g.conn = nil
}
