package history

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/sirupsen/logrus"
)

const (
	batchRows  = 512      // of one transaction,
	batchBytes = 32 << 20 // about
)

// scribe writes executions to the database over a connection of its own. One goroutine
// may use it.
type scribe struct {
	connect func(context.Context) (*pgx.Conn, error)
	refused string // the folder for what the database does not take
	say     logrus.FieldLogger
	conn    *pgx.Conn // nil while there is none
	away    bool
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
		err := s.commit(rows[:n])
		if refuses(err) {
			err = s.each(rows[:n])
		}
		if err != nil {
			if !s.away {
				s.say.WithError(err).Warnf("the history database does not answer; %d executions wait for it in the log", len(rows))
			}
			s.away = true
			s.close()
			return rows, err
		}
		rows = rows[n:]
	}
	if s.away {
		s.say.Infof("the history database answers again; %d executions were waiting", all)
	}
	s.away = false
	return nil, nil
}

func (s *scribe) commit(rows []row) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	if s.conn == nil {
		var err error
		if s.conn, err = s.connect(ctx); err != nil {
			return err
		}
	}
	return writeRows(ctx, s.conn, rows)
}

// each writes rows one by one. What the database does not take is kept as a file, and
// said: one bad row spoils no other.
func (s *scribe) each(rows []row) error {
	for _, r := range rows {
		err := s.commit([]row{r})
		if refuses(err) {
			path := filepath.Join(s.refused, clean(r.e.ID)+".json")
			why := err
			if err = errors.Join(os.MkdirAll(s.refused, 0o700), os.WriteFile(path, r.body, 0o600)); err == nil {
				s.say.WithError(why).WithField("execution_id", r.e.ID).Error("the history database refuses an execution; it is kept in " + path)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
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
	for _, body := range payloads {
		e, err := decode(body)
		if err != nil {
			return err
		}
		r, err := rowOf(&e, e.CompletedAt != nil)
		if err != nil {
			return err
		}
		if n, earlier := at[e.ID]; earlier {
			rows[n] = r
			continue
		}
		at[e.ID] = len(rows)
		rows = append(rows, r)
	}
	_, err := s.write(rows)
	if err == nil {
		s.say.Infof("%d executions were in the log when the service last ended; they are in history now", len(rows))
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
