package history

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// node is a service with a folder, as the table nodes has it. The id is in a file of the folder, so a node keeps its
// id when its service restarts, and loses it with the folder.
type node struct {
	ID        string
	Epoch     int64 // number of its last start on this database, counted over all nodes
	Host      string
	PID       int
	Folder    string
	StartedAt time.Time
	SeenAt    time.Time
	EndedAt   *time.Time // nil: it runs, or it was killed
}

// String names the node for an operator.
func (n node) String() string {
	return fmt.Sprintf("%s (host %s, process %d, folder %s, started %s)",
		n.ID, n.Host, n.PID, n.Folder, n.StartedAt.UTC().Format(time.DateTime+" UTC"))
}

// openNode returns the node of a folder. It makes the folder and the node's id if they do not exist.
func openNode(dir string) (node, error) {
	path := filepath.Join(dir, "node")
	text, err := os.ReadFile(path)
	id := strings.TrimSpace(string(text))
	if errors.Is(err, fs.ErrNotExist) || err == nil && id == "" {
		var random [8]byte
		_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the process instead
		id = hex.EncodeToString(random[:])
		err = writeFileDurably(path, []byte(id+"\n"))
	}
	if err != nil {
		return node{}, fmt.Errorf("the id of this node: %w", err)
	}
	folder, err := filepath.Abs(dir)
	host, hostErr := os.Hostname()
	return node{ID: clean(id), Host: clean(host), PID: os.Getpid(), Folder: clean(folder)}, errors.Join(err, hostErr)
}

// register stores the node as the one that uses the database, with the next epoch, on the database's disk.
func (n *node) register(ctx context.Context, conn *pgx.Conn) error {
	var batch pgx.Batch // one transaction
	batch.Queue(`SELECT set_config('synchronous_commit', 'on', true)`)
	batch.Queue(`INSERT INTO nodes (id, epoch, host, pid, folder, started_at, seen_at)
		SELECT $1, coalesce(max(epoch), 0) + 1, $2, $3, $4, now(), now() FROM nodes
		ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, host = excluded.host, pid = excluded.pid,
			folder = excluded.folder, started_at = excluded.started_at, seen_at = excluded.seen_at, ended_at = NULL
		RETURNING epoch, started_at`, n.ID, n.Host, n.PID, n.Folder).QueryRow(func(row pgx.Row) error {
		return row.Scan(&n.Epoch, &n.StartedAt)
	})
	return conn.SendBatch(ctx, &batch).Close()
}

// renew stores a sign of life of the node if conn holds the lock and no other node has used the database since. The
// database may have lost the node, because a standby that lacks it has become the primary server. Then renew stores the
// node again.
func (n *node) renew(ctx context.Context, conn *pgx.Conn) (pgconn.CommandTag, error) {
	return conn.Exec(ctx, `INSERT INTO nodes (id, epoch, host, pid, folder, started_at, seen_at)
		SELECT $1, $2, $3, $4, $5, $6, now()
			WHERE NOT EXISTS (SELECT FROM nodes WHERE epoch > $2 OR epoch = $2 AND id <> $1)
			AND EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
				AND classid::bigint << 32 | objid::bigint = $7 AND granted)
		ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, host = excluded.host, pid = excluded.pid,
			folder = excluded.folder, started_at = excluded.started_at, seen_at = excluded.seen_at, ended_at = NULL`,
		n.ID, n.Epoch, n.Host, n.PID, n.Folder, n.StartedAt, int64(ownershipLock))
}

// follows reports whether a node has used the database after another one.
func (n *node) follows(before node) bool {
	return n.Epoch > before.Epoch || n.Epoch == before.Epoch && n.ID != before.ID
}

// lastNode returns the node that used the database last, and how long its lease still lasts. It returns nil if no node
// has used the database. A lease begins again when PostgreSQL starts, because its node can renew it only then.
func lastNode(ctx context.Context, conn *pgx.Conn, lease time.Duration) (last *node, left time.Duration, err error) {
	var exists bool
	if err = conn.QueryRow(ctx, `SELECT to_regclass('nodes') IS NOT NULL`).Scan(&exists); err != nil || !exists {
		return nil, 0, err
	}
	last = &node{}
	var used float64 // seconds of the lease
	err = conn.QueryRow(ctx, `SELECT id, epoch, host, pid, folder, started_at, seen_at, ended_at,
			extract(epoch FROM clock_timestamp() - greatest(seen_at, pg_postmaster_start_time()))
		FROM nodes ORDER BY epoch DESC LIMIT 1`).Scan(&last.ID, &last.Epoch, &last.Host, &last.PID, &last.Folder,
		&last.StartedAt, &last.SeenAt, &last.EndedAt, &used)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, 0, nil
	}
	if last.EndedAt == nil {
		left = max(lease-time.Duration(used*float64(time.Second)), 0)
	}
	return last, left, err
}
