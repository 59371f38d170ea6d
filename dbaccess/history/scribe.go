package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/sirupsen/logrus"

	"glasshouse/sandbox"
)

const (
	batchRows  = 512      // of one transaction,
	batchBytes = 32 << 20 // about

	slowest = 1 << 20 // bytes a second of a connection that is not taken for lost
)

// scribe writes executions to the database over a connection of its own. One goroutine
// may use it.
type scribe struct {
	connect func(context.Context) (*pgx.Conn, error)
	refused string // the folder for what the database does not take
	say     logrus.FieldLogger
	conn    *pgx.Conn // nil while there is none
	away    bool
	told    map[string]bool // the executions whose progress may be in the database
}

// write is one attempt. It returns the rows that are not written, and why.
func (s *scribe) write(rows []row) (left []row, err error) {
	all := len(rows)
	for len(rows) > 0 {
		n, size := 0, 0
		for n < len(rows) && n < batchRows && (n == 0 || size+len(rows[n].body) <= batchBytes) {
			size += len(rows[n].body)
			n++
		}
		left, err := s.commitOrEach(rows[:n])
		if err != nil {
			left = slices.Concat(left, rows[n:])
			if !s.away {
				s.say.WithError(err).Warnf("the history database does not take %d executions, which wait for it in the log", len(left))
			}
			s.away = true
			s.close()
			return left, err
		}
		rows = rows[n:]
	}
	if s.away {
		s.say.Infof("the history database is there again; %d executions were waiting", all)
	}
	s.away = false
	return nil, nil
}

// commit writes rows of different places as one transaction. A connection that is
// found dead, after a restart of the server, is replaced once.
func (s *scribe) commit(rows []row) error {
	fresh := s.conn == nil
	err := s.attempt(rows)
	if !fresh && lost(err) {
		s.close()
		err = s.attempt(rows)
	}
	return err
}

func (s *scribe) attempt(rows []row) error {
	limit := writeLimit
	for _, r := range rows {
		limit += time.Duration(len(r.body)) * time.Second / slowest
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if s.conn == nil {
		var err error
		if s.conn, err = s.connect(ctx); err != nil {
			return err
		}
	}
	var over []string
	for _, r := range rows {
		switch {
		case r.kind != "":
			s.told[r.e.ID] = true
		case r.completed != nil && s.told[r.e.ID]:
			over = append(over, clean(r.e.ID))
		}
	}
	if err := writeRows(ctx, s.conn, rows, over); err != nil {
		return err
	}
	for _, r := range rows {
		if r.completed != nil {
			delete(s.told, r.e.ID)
		}
	}
	return nil
}

// commitOrEach writes rows together or, where the database answers that it does not take
// them, one by one: one bad row spoils no other. What it then does not take although it
// takes others, or for what is in it, is kept as a file, and said. It returns the rows that
// are neither written nor kept.
func (s *scribe) commitOrEach(rows []row) (left []row, err error) {
	if err = s.commit(rows); err == nil || lost(err) {
		return rows, err
	}
	var why []error
	for n, r := range rows {
		err := s.commit([]row{r})
		if lost(err) {
			return slices.Concat(left, rows[n:]), err
		}
		if err != nil {
			left, why = append(left, r), append(why, err)
		}
	}
	others := len(left) < len(rows)
	for n, r := range left {
		if !others && !refuses(why[n]) {
			return left[n:], why[n]
		}
		if err := s.refuse(r, why[n]); err != nil {
			return left[n:], err
		}
	}
	return nil, nil
}

// refuse keeps what the database does not take as a file, and has a row point to it.
func (s *scribe) refuse(r row, why error) error {
	name := clean(r.e.ID) + ".json"
	if r.kind != "" {
		name = fmt.Sprintf("%s.%s.%d.json", clean(r.e.ID), r.kind, r.number)
	} else if r.completed == nil {
		name = clean(r.e.ID) + ".opening.json"
	}
	path := filepath.Join(s.refused, name)
	if err := keepFile(path, r.body); err != nil {
		return err
	}
	s.say.WithError(why).WithField("execution_id", r.e.ID).Error("the history database refuses an execution; it is kept in " + path)
	if r.kind != "" {
		return nil // its end will have it
	}
	text := "the history database refused this execution (" + why.Error() + "); the service's folder has it: history/refused/" + name
	short := sandbox.Execution{
		ID: r.e.ID, SandboxID: r.e.SandboxID, User: r.e.User, Kind: r.e.Kind, Status: r.e.Status, CreatedAt: r.e.CreatedAt, Timestamp: r.e.CreatedAt,
		CompletedAt: r.completed, Error: &text,
	}
	pointer, err := rowOf(&short, r.completed != nil)
	if err == nil {
		err = s.commit([]row{pointer})
	}
	if lost(err) {
		return err
	}
	return nil // where not even that is taken, the file and the log say it
}

// keepFile writes a file that is on disk when it returns.
func keepFile(path string, body []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// refuses says whether err is of a row's values, which no other attempt would change:
// of SQLSTATE's classes data exception, integrity constraint and program limit.
func refuses(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23") || strings.HasPrefix(pg.Code, "54"))
}

// replay writes what a log had.
func (s *scribe) replay(payloads [][]byte) error {
	var rows []row
	at := map[string]int{}
	for n, body := range payloads {
		r, err := rowIn(body)
		if err != nil { // one record may not keep the service from its start
			path := filepath.Join(s.refused, fmt.Sprintf("unread-%d-%d.json", time.Now().Unix(), n))
			if failed := keepFile(path, body); failed != nil {
				return failed
			}
			s.say.WithError(err).Error("a record of history's log can't be read; it is kept in " + path)
			continue
		}
		if n, earlier := at[r.place()]; earlier {
			rows[n] = r
			continue
		}
		at[r.place()] = len(rows)
		rows = append(rows, r)
	}
	_, err := s.write(withoutOver(rows))
	if err == nil {
		s.say.Infof("%d records of executions were in the log when the service last ended; they are in history now", len(rows))
	}
	return err
}

// close ends the connection; the next write makes another.
func (s *scribe) close() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWait)
	defer cancel()
	_ = s.conn.Close(ctx)
	s.conn = nil
}
