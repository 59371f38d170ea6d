package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess/history/wal"
	"glasshouse/sandbox"
)

const (
	maxBatchRows  = 512      // of one transaction
	maxBatchBytes = 32 << 20 // of one transaction's records; one larger record makes a batch of its own

	insertTimeout  = 30 * time.Second // of one transaction, in addition to the time that its bytes take
	minInsertBytes = 1 << 20          // a second; a slower connection counts as lost
)

// inserter inserts rows into PostgreSQL over a connection of its own. One goroutine may use it.
type inserter struct {
	connect    func(context.Context) (*pgx.Conn, error)
	node       node   // this one, with its epoch
	refusedDir string // for the records that PostgreSQL refuses
	logger     logrus.FieldLogger

	conn        *pgx.Conn       // nil: not connected
	unreachable bool            // the last attempt failed, and the log says so
	hasProgress map[string]bool // executions that may have rows in the table progress
}

// connectForInserts connects to the history database. Large values are compressed with LZ4 where the server has it:
// PostgreSQL's own method took nine tenths of the server's CPU time for records of 900 kB.
func connectForInserts(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		_, err := conn.Exec(ctx, "SELECT set_config(name, 'lz4', false) FROM pg_settings "+
			"WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)").ReadAll()
		return err
	}
	return pgx.ConnectConfig(ctx, config)
}

// replay inserts the records that the write-ahead log held when it was opened.
func (in *inserter) replay(records [][]byte) error {
	var b backlog
	for n, record := range records {
		r, err := parseRow(record)
		if err == nil {
			b.add(r, "", uint64(n+1), wal.Position{}, time.Now())
			continue
		}
		// One unreadable record must not keep the service from starting.
		path := filepath.Join(in.refusedDir, fmt.Sprintf("unread-%d-%d.json", time.Now().Unix(), n))
		if err := writeFileDurably(path, record); err != nil {
			return err
		}
		in.logger.WithError(err).Error("a record of history's write-ahead log cannot be read; its bytes are in " + path)
	}
	inserted := b.rows
	for b.rows > 0 {
		if _, err := in.insert(b.take(math.MaxInt, math.MaxInt)); err != nil {
			return err
		}
		b.inserted(time.Now())
	}
	in.logger.Infof("history: inserted %d records that were still in the write-ahead log", inserted)
	return nil
}

// insert tries once to insert rows with different keys, in batches. It returns the rows that it could not insert, and
// the error.
func (in *inserter) insert(rows []row) (left []row, err error) {
	total := len(rows)
	for len(rows) > 0 {
		n, size := 0, 0
		for n < len(rows) && n < maxBatchRows && (n == 0 || size+len(rows[n].record) <= maxBatchBytes) {
			size += len(rows[n].record)
			n++
		}
		left, err := in.insertOrRefuse(rows[:n])
		if err != nil {
			left = slices.Concat(left, rows[n:])
			if !in.unreachable {
				in.logger.WithError(err).Warnf("the history database does not accept %d records; they wait in the "+
					"write-ahead log", len(left))
			}
			in.unreachable = true
			if !isReplaced(err) {
				in.close()
			}
			return left, err
		}
		rows = rows[n:]
	}
	if in.unreachable {
		in.logger.Infof("the history database is reachable again; inserted %d records that waited", total)
	}
	in.unreachable = false
	return nil, nil
}

// insertOrRefuse inserts rows in one transaction or, if PostgreSQL refuses them, one by one. It stores a row as a file
// (refuse) if PostgreSQL accepts other rows but not this one, or if the error concerns the row's values. It returns the
// rows that are neither in PostgreSQL nor in a file.
func (in *inserter) insertOrRefuse(rows []row) (left []row, err error) {
	if err = in.insertBatch(rows); err == nil || isConnectionError(err) {
		return rows, err
	}
	var errs []error // of left
	for n, r := range rows {
		err := in.insertBatch([]row{r})
		if isConnectionError(err) {
			return slices.Concat(left, rows[n:]), err
		}
		if err != nil {
			left, errs = append(left, r), append(errs, err)
		}
	}
	takesOthers := len(left) < len(rows)
	for n, r := range left {
		if !takesOthers && !isDataError(errs[n]) {
			return left[n:], errs[n]
		}
		if err := in.refuse(r, errs[n]); err != nil {
			return left[n:], err
		}
	}
	return nil, nil
}

// insertBatch inserts rows in one transaction. If the connection was lost before, after a restart of the server for
// example, it tries a new connection once.
func (in *inserter) insertBatch(rows []row) error {
	reused := in.conn != nil
	err := in.tryInsert(rows)
	if reused && isConnectionError(err) {
		in.close()
		err = in.tryInsert(rows)
	}
	return err
}

func (in *inserter) tryInsert(rows []row) error {
	timeout := insertTimeout
	for _, r := range rows {
		timeout += time.Duration(len(r.record)) * time.Second / minInsertBytes
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if in.conn == nil {
		var err error
		if in.conn, err = in.connect(ctx); err != nil {
			return err
		}
	}
	var ended []string
	for _, r := range rows {
		switch {
		case r.isProgress():
			in.hasProgress[r.executionID] = true
		case r.isEnd() && in.hasProgress[r.executionID]:
			ended = append(ended, r.executionID)
		}
	}
	if err := insertRows(ctx, in.conn, in.node, rows, ended); err != nil {
		return err
	}
	for _, r := range rows {
		if r.isEnd() {
			delete(in.hasProgress, r.executionID)
		}
	}
	return nil
}

// refuse stores the record of a row as a file, and inserts a row that points to the file.
func (in *inserter) refuse(r row, reason error) error {
	name := strings.ReplaceAll(r.key, "/", ".") + ".json"
	if r.isExecution() && !r.isEnd() {
		name = r.key + ".opening.json"
	}
	path := filepath.Join(in.refusedDir, name)
	if err := writeFileDurably(path, r.record); err != nil {
		return err
	}
	in.logger.WithError(reason).WithField("record", r.key).
		Error("the history database refuses a record; its bytes are in " + path)
	if !r.isExecution() {
		return nil // the record of the execution's end will contain this progress
	}
	text := "the history database refused the record of this execution (" + reason.Error() +
		"); the record is in the service's data folder: history/refused/" + name
	pointer, err := executionRow(&sandbox.Execution{
		ID: r.executionID, SandboxID: r.sandboxID, User: r.user, Kind: r.summary.Kind, Status: r.summary.Status,
		CreatedAt: r.summary.CreatedAt, Timestamp: r.summary.CreatedAt, CompletedAt: r.summary.CompletedAt,
		ExpiresAt: r.expiresAt, Error: &text,
	})
	if err == nil {
		err = in.insertBatch([]row{pointer})
	}
	if isConnectionError(err) {
		return err
	}
	return nil // if PostgreSQL refuses the pointer too, the file and the log have the record
}

// close closes the connection; the next insert makes a new one.
func (in *inserter) close() {
	if in.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxRetryDelay)
	defer cancel()
	_ = in.conn.Close(ctx)
	in.conn = nil
}

// writeFileDurably writes a file that is on disk when it returns.
func writeFileDurably(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return err
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
