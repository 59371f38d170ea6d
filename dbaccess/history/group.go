package history

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const groupMax = 256 // statements of one commit

// job is one statement that waits for its commit.
type job struct {
	ctx  context.Context
	sql  string
	args []any
	done chan error
}

// group commits what waits together.
type group struct {
	pool *pgxpool.Pool
	sync string // synchronous_commit
	jobs chan job
	stop chan struct{}
	over chan struct{}
}

func newGroup(pool *pgxpool.Pool, synchronous string) *group {
	g := &group{pool: pool, sync: synchronous, jobs: make(chan job, 4*groupMax), stop: make(chan struct{}), over: make(chan struct{})}
	go g.run()
	return g
}

func (g *group) close() {
	close(g.stop)
	<-g.over
}

// do queues a statement and waits for its commit.
func (g *group) do(ctx context.Context, sql string, args ...any) error {
	j := job{ctx: ctx, sql: sql, args: args, done: make(chan error, 1)}
	select {
	case g.jobs <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-g.stop:
		return errors.New("history is closed")
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *group) run() {
	defer close(g.over)
	for {
		var batch []job
		select {
		case j := <-g.jobs:
			batch = append(batch, j)
		case <-g.stop:
			select {
			case j := <-g.jobs:
				batch = append(batch, j)
			default:
				return
			}
		}
	gather:
		for len(batch) < groupMax {
			select {
			case j := <-g.jobs:
				batch = append(batch, j)
			default:
				break gather
			}
		}
		g.commit(batch)
	}
}

// commit writes a batch. One bad statement must not take the others with it: then
// each is written alone. A lost server is tried again while anyone waits.
func (g *group) commit(batch []job) {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		err := g.write(batch)
		if err == nil || !lost(err) {
			if err != nil && len(batch) > 1 {
				for _, j := range batch {
					g.commit([]job{j})
				}
				return
			}
			for _, j := range batch {
				j.done <- err
			}
			return
		}
		still := batch[:0]
		for _, j := range batch {
			if j.ctx.Err() == nil {
				still = append(still, j)
			} else {
				j.done <- err
			}
		}
		if batch = still; len(batch) == 0 {
			return
		}
		time.Sleep(wait)
	}
}

func (g *group) write(batch []job) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var b pgx.Batch
	b.Queue("BEGIN")
	b.Queue("SET LOCAL synchronous_commit = " + g.sync)
	for _, j := range batch {
		b.Queue(j.sql, j.args...)
	}
	b.Queue("COMMIT")
	results := g.pool.SendBatch(ctx, &b)
	var first error
	for range len(batch) + 3 {
		if _, err := results.Exec(); err != nil && first == nil {
			first = err
		}
	}
	return errors.Join(first, results.Close())
}
