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

// group commits what waits together, over one connection of its own. There is no
// goroutine of its own while all is well: who comes first writes, for itself and for
// all who wait; who comes while it writes waits for the next. A statement alone is
// its own transaction and one round trip; many are one pipeline that the server runs
// as one transaction.
type group struct {
	connect  func(context.Context) (*pgx.Conn, error)
	patience time.Duration // how long a statement waits for a lost server; 0: until its context ends
	conn     *pgx.Conn     // nil while there is none; the writer's alone

	mu      sync.Mutex
	waiting []job
	writing bool // somebody is the writer
	closed  bool
	idle    *sync.Cond // writing has become false
}

func newGroup(patience time.Duration, connect func(context.Context) (*pgx.Conn, error)) *group {
	g := &group{connect: connect, patience: patience}
	g.idle = sync.NewCond(&g.mu)
	return g
}

// close ends the group after what waits in it is written or given up.
func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for g.writing {
		g.idle.Wait()
	}
	g.drop()
}

// do writes a statement and waits for its commit. Where ctx ends first the
// statement may still be committed.
func (g *group) do(ctx context.Context, size int, sql string, args ...any) error {
	if g.patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, g.patience)
		defer cancel()
	}
	j := job{ctx: ctx, sql: sql, args: args, size: size, done: make(chan error, 1)}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return errClosed
	}
	if !g.writing {
		g.writing = true
		g.mu.Unlock()
		err := g.write(ctx, []job{j})
		if !lost(err) {
			g.handOver()
			return err
		}
		g.drop()
		g.mu.Lock()
		g.waiting = append([]job{j}, g.waiting...)
		g.mu.Unlock()
		go g.run()
	} else {
		g.waiting = append(g.waiting, j)
		g.mu.Unlock()
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

// handOver ends the caller's turn as the writer; what came meanwhile is written by a
// goroutine that lives as long as there is more.
func (g *group) handOver() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) > 0 {
		go g.run()
		return
	}
	g.writing = false
	g.idle.Broadcast()
}

// run is the writer until nothing waits.
func (g *group) run() {
	for {
		g.mu.Lock()
		n, size := 0, 0
		for n < len(g.waiting) && n < groupMax && (n == 0 || size+g.waiting[n].size <= groupBytes) {
			size += g.waiting[n].size
			n++
		}
		if n == 0 {
			g.writing = false
			g.idle.Broadcast()
			g.mu.Unlock()
			return
		}
		batch := append([]job{}, g.waiting[:n]...)
		g.waiting = append([]job{}, g.waiting[n:]...)
		g.mu.Unlock()
		g.commit(batch)
	}
}

// gaveUp is the error of a statement whose caller ended before its commit.
func gaveUp(ctx context.Context, err error) error {
	return fmt.Errorf("%w: %w", errLost, errors.Join(context.Cause(ctx), err))
}

// commit writes a batch and answers its callers. One bad statement must not take
// the others with it: then each is written alone. While the server is lost the
// batch is tried again for as long as anyone waits; every statement may be run
// twice, because the answer to a commit can be lost with the server.
func (g *group) commit(batch []job) {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, lastWait) {
		err := g.write(context.Background(), batch)
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

// write is one attempt. Where it fails the connection may be gone with it.
func (g *group) write(ctx context.Context, batch []job) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
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
