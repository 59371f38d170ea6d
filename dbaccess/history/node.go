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

// register stores the node as the one that uses the database, with the next epoch.
func (n *node) register(ctx context.Context, tx pgx.Tx) error {
	return tx.QueryRow(ctx, `INSERT INTO nodes (id, epoch, host, pid, folder, started_at, seen_at)
		SELECT $1, coalesce(max(epoch), 0) + 1, $2, $3, $4, clock_timestamp(), clock_timestamp() FROM nodes
		ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, host = excluded.host, pid = excluded.pid,
			folder = excluded.folder, started_at = excluded.started_at, seen_at = excluded.seen_at, ended_at = NULL
		RETURNING epoch, started_at`, n.ID, n.Host, n.PID, n.Folder).Scan(&n.Epoch, &n.StartedAt)
}

// replace gives the node the next epoch, which its service does not have, so its service stores no more executions. The
// caller has locked the row of the node.
func (n *node) replace(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `UPDATE nodes SET epoch = (SELECT max(epoch) + 1 FROM nodes), ended_at = now()
		WHERE id = $1`, n.ID)
	return err
}

// renew stores a sign of life of the node, or returns errReplaced if another node has used the database since. The
// database may have lost the node, because a standby that lacks it has become the primary server. Then renew stores the
// node again.
func (n *node) renew(ctx context.Context, conn *pgx.Conn) error {
	// No change of a key: that would wait for the transactions of the writer.
	tag, err := conn.Exec(ctx, `UPDATE nodes SET seen_at = now() WHERE id = $1 AND epoch = $2
		AND NOT EXISTS (SELECT FROM nodes WHERE epoch > $2)`, n.ID, n.Epoch)
	if err != nil || tag.RowsAffected() > 0 {
		return err
	}
	tag, err = conn.Exec(ctx, `INSERT INTO nodes (id, epoch, host, pid, folder, started_at, seen_at)
		SELECT $1, $2, $3, $4, $5, $6, now()
			WHERE NOT EXISTS (SELECT FROM nodes WHERE epoch > $2 OR epoch = $2 AND id <> $1)
		ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, host = excluded.host, pid = excluded.pid,
			folder = excluded.folder, started_at = excluded.started_at, seen_at = excluded.seen_at, ended_at = NULL`,
		n.ID, n.Epoch, n.Host, n.PID, n.Folder, n.StartedAt)
	if err == nil && tag.RowsAffected() == 0 {
		return errReplaced
	}
	return err
}

// mayRun reports whether the service of a node that used the database last may still run when one with the folder of
// another node starts: the folder of a service that was killed may be used at once, and a copy of it may not. n is nil
// if no node has used the database.
func (n *node) mayRun(other node) bool {
	isSame := n != nil && n.ID == other.ID && n.Host == other.Host && n.Folder == other.Folder
	return n != nil && n.EndedAt == nil && !isSame
}

// follows reports whether a node has used the database after another one.
func (n *node) follows(before node) bool {
	return n.Epoch > before.Epoch || n.Epoch == before.Epoch && n.ID != before.ID
}

// lastNode returns the node that used the database last, or nil if none has.
func lastNode(ctx context.Context, db interface { // a connection or a transaction
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (*node, error) {
	var exists bool
	if err := db.QueryRow(ctx, `SELECT to_regclass('nodes') IS NOT NULL`).Scan(&exists); err != nil || !exists {
		return nil, err
	}
	var n node
	err := db.QueryRow(ctx, `SELECT id, epoch, host, pid, folder, started_at, seen_at, ended_at FROM nodes
		ORDER BY epoch DESC LIMIT 1`).Scan(&n.ID, &n.Epoch, &n.Host, &n.PID, &n.Folder, &n.StartedAt, &n.SeenAt,
		&n.EndedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &n, err
}
