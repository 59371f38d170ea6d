// Package embedded starts and supervises a private PostgreSQL, from the system's
// packages, for a service that was given no database.
//
// It listens on a unix socket in a folder of mode 0700 only, never runs as root,
// and dies with the service: one goroutine holds the thread that is its parent
// (PDEATHSIG is tied to a thread), waits for it, and starts it again where it
// ends unasked. A second goroutine copies the server's words into a log of bounded
// size. A lock in the folder keeps two services apart; whatever server a killed
// service left behind there is ended first.
//
// Files: install.go finds the programs and makes the folders, supervise.go starts
// and ends the server, setup.go makes roles and databases, demo.go the demo data.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sirupsen/logrus"
)

// Config says where the server lives.
type Config struct {
	Dir    string // the service's data folder; made where it is missing
	BinDir string // of initdb and postgres; "" looks for the newest installed, or the one an existing cluster needs
	User   string // the account to run as where the service is root; "" is postgres, else nobody
	Log    logrus.FieldLogger

	Settings []string // of PostgreSQL, as name=value, beside those that the package sets; tests switch fsync off
}

// Server is the running server.
type Server struct {
	bin, data, socket string
	cred              *syscall.Credential // nil: run as we are
	log               logrus.FieldLogger
	serverLog         *boundedLog
	lock              *os.File
	settings          []string

	closing chan struct{} // closed by Close
	ended   chan struct{} // closed when the supervisor has ended; nil before it began
	once    sync.Once

	mu           sync.Mutex
	process      *os.Process // nil between two lives
	failedStarts int         // lives in a row that ended before the server answered
}

// Roles of the server, and its databases.
const (
	RoleAdmin   = "glasshouse"         // superuser, for set-up only
	RoleHistory = "glasshouse_history" // owns DatabaseHistory
	RoleOwner   = "glasshouse_owner"   // owns DatabaseKnowledge
	RoleReader  = "glasshouse_reader"  // SELECT in DatabaseKnowledge and nothing else
	RoleWriter  = "glasshouse_writer"  // and INSERT, UPDATE and DELETE, for what an admin applies

	DatabaseHistory   = "history"
	DatabaseKnowledge = "knowledge"
)

const (
	startTimeout  = 60 * time.Second // crash recovery may take a while
	stopTimeout   = 20 * time.Second
	maxSocketPath = 100 // bytes; the kernel's limit is 107
)

// Start makes the cluster where there is none, ends what a killed service left,
// starts the server and waits until it answers. Its errors say what to do.
func Start(ctx context.Context, c Config) (*Server, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	s := &Server{log: c.Log, settings: append(slices.Clone(settings), c.Settings...), closing: make(chan struct{})}
	if s.log == nil {
		s.log = logrus.StandardLogger()
	}
	if os.Geteuid() == 0 {
		if s.cred, err = lookupAccount(c.User); err != nil {
			return nil, err
		}
	}
	if err := s.makeFolders(dir); err != nil {
		return nil, err
	}
	if s.lock, err = lockFolder(ctx, filepath.Join(dir, "postgres.lock")); err != nil {
		return nil, err
	}
	if err := s.start(ctx, dir, c.BinDir); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, dir, bin string) (err error) {
	if s.serverLog, err = openLog(filepath.Join(dir, "postgres.log")); err != nil {
		return err
	}
	if s.bin, err = findBin(bin, s.data); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(s.data, "PG_VERSION")); errors.Is(err, fs.ErrNotExist) {
		if err := s.initdb(ctx); err != nil {
			return err
		}
	}
	if err := s.stopPrevious(ctx); err != nil {
		return err
	}
	s.ended = make(chan struct{})
	go s.supervise()
	if err := s.waitUntilReady(ctx); err != nil {
		return fmt.Errorf("%w; the server's own words are in %s: %s", err, s.serverLog.path, s.serverLog.tail())
	}
	if err := s.setUp(ctx); err != nil {
		return fmt.Errorf("set up the embedded PostgreSQL: %w", err)
	}
	return nil
}

// URL is a connection URL for a role and a database of the server.
func (s *Server) URL(role, database string) string { return connectionURL(s.socket, role, database) }

// URL is the same for the server of a data folder, which another process runs.
func URL(dir, role, database string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	return connectionURL(socketDir(filepath.Join(dir, "postgres")), role, database), err
}

func connectionURL(socket, role, database string) string {
	// libpq's URLs know %20 only: a plus is a plus.
	escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	return "postgres:///" + escape(database) + "?host=" + escape(socket) + "&user=" + escape(role)
}

// Close shuts the server down (fast: open transactions are rolled back) and waits
// until it is gone. A second call does nothing.
func (s *Server) Close() error {
	var err error
	s.once.Do(func() {
		close(s.closing)
		if s.ended != nil {
			err = s.shutDown()
		}
		if s.serverLog != nil {
			s.serverLog.close()
		}
		_ = s.lock.Close() // last: now another service may have the folder
	})
	return err
}

func (s *Server) shutDown() error {
	s.signal(syscall.SIGINT)
	select {
	case <-s.ended:
		return nil
	case <-time.After(stopTimeout):
	}
	s.signal(syscall.SIGQUIT)
	<-s.ended
	return fmt.Errorf("the embedded PostgreSQL did not stop within %s and was ended at once; it recovers at the next start", stopTimeout)
}

// await waits until the server answers.
func (s *Server) waitUntilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.URL(RoleAdmin, "postgres"))
		if err == nil {
			s.mu.Lock()
			s.failedStarts = -1 // from now on it is restarted for ever
			s.mu.Unlock()
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the embedded PostgreSQL does not answer: %w", err)
		case <-s.ended:
			return errors.New("the embedded PostgreSQL ends as soon as it is started")
		case <-tick.C:
		}
	}
}
