// Package embedded starts and supervises a private PostgreSQL, with the programs of the system's packages, for a
// service that was given no database:
//
//	server, err := embedded.Start(ctx, embedded.Config{Dir: dataDir, Log: log})
//	url := server.URL(embedded.RoleReader, embedded.DatabaseKnowledge)
//	err = server.Close()
//
// The package is responsible for:
//
//  1. Privacy: the server listens only on a unix socket in a folder of mode 0700, and never runs as root.
//  2. Lifetime: the server ends with the service, even if the service is killed, and is restarted if it ends by itself.
//     One goroutine holds the thread that is the server's parent (PDEATHSIG belongs to a thread) and waits for the
//     server. One more goroutine for each server process copies its output to a log of bounded size.
//  3. Folder: a lock keeps two services from using one folder. A server that a killed service left is stopped first.
//  4. Roles, databases and the demo data.
//  5. Dumps of the databases (dump.go).
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

// Config configures a Server.
type Config struct {
	Dir string             // the service's data folder; Start makes it if it is missing
	Log logrus.FieldLogger // required

	Settings []string // additional settings of PostgreSQL, as name=value; tests switch fsync off
	Programs string   // the folder of initdb and postgres; "": of an installed version
}

// Server is a running server. The caller closes it.
type Server struct {
	bin, data, socket string
	cred              *syscall.Credential // nil: the account of the service
	log               logrus.FieldLogger
	serverLog         *boundedLog
	lock              *os.File
	settings          []string

	closing   chan struct{} // closed by Close
	ended     chan struct{} // closed when supervise has ended; nil: it was not started
	closeOnce sync.Once

	mu           sync.Mutex
	process      *os.Process // nil: it ended, and the next one is not started yet
	failedStarts int         // in a row; -1: Start has reached the server
}

// The roles and databases of the server.
const (
	RoleAdmin   = "glasshouse"         // superuser, for the setup
	RoleHistory = "glasshouse_history" // owns DatabaseHistory
	RoleOwner   = "glasshouse_owner"   // owns DatabaseKnowledge
	RoleReader  = "glasshouse_reader"  // has only SELECT, in DatabaseKnowledge
	RoleWriter  = "glasshouse_writer"  // also INSERT, UPDATE and DELETE, for writes that an administrator approved

	DatabaseHistory   = "history"
	DatabaseKnowledge = "knowledge"
)

const (
	startTimeout  = 60 * time.Second // crash recovery takes time
	stopTimeout   = 20 * time.Second // a checkpoint takes time
	cancelTimeout = 750 * time.Millisecond
	lockTimeout   = 5 * time.Second // for a service that is closing to release the folder
	maxSocketPath = 100             // bytes; the kernel's limit is 107
)

// Start starts the server and returns when it answers. It first makes the cluster if there is none, and stops a server
// that a killed service left.
func Start(ctx context.Context, c Config) (*Server, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	s := &Server{
		bin: c.Programs, log: c.Log, settings: append(slices.Clone(settings), c.Settings...),
		closing: make(chan struct{}),
	}
	if os.Geteuid() == 0 {
		if s.cred, err = lookupAccount(); err != nil {
			return nil, err
		}
	}
	if err := s.makeFolders(dir); err != nil {
		return nil, err
	}
	if s.lock, err = lockFolder(ctx, filepath.Join(dir, "postgres.lock")); err != nil {
		return nil, err
	}
	if err := s.start(ctx, dir); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, dir string) (err error) {
	if s.serverLog, err = openLog(filepath.Join(dir, "postgres.log")); err != nil {
		return err
	}
	if s.bin == "" {
		if s.bin, err = findBin(s.data); err != nil {
			return err
		}
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
		return fmt.Errorf("%w; the server's log is in %s and ends with: %s", err, s.serverLog.path, s.serverLog.tail())
	}
	if err := s.setUp(ctx); err != nil {
		return fmt.Errorf("set up the embedded PostgreSQL: %w", err)
	}
	return nil
}

// URL returns a connection URL for a role and a database of the server.
func (s *Server) URL(role, database string) string { return connectionURL(s.socket, role, database) }

// URL returns a connection URL for the server of a data folder that another process runs.
func URL(dir, role, database string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	return connectionURL(socketDir(filepath.Join(dir, "postgres")), role, database), err
}

func connectionURL(socket, role, database string) string {
	// In a connection URL of PostgreSQL a plus sign is a plus sign, and only %20 is a space.
	escape := func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
	return "postgres:///" + escape(database) + "?host=" + escape(socket) + "&user=" + escape(role)
}

// Close shuts the server down, which rolls back open transactions, and waits until it has ended. A second call does
// nothing.
func (s *Server) Close() error {
	var err error
	s.closeOnce.Do(func() {
		close(s.closing)
		if s.ended != nil {
			err = s.shutDown()
		}
		if s.serverLog != nil {
			s.serverLog.close()
		}
		_ = s.lock.Close() // last: from now on another service may use the folder
	})
	return err
}

// shutDown stops the server in order, or immediately if a statement has not ended after cancelTimeout: PostgreSQL plans
// a query, and replaces in a long text, without looking for a signal to end.
func (s *Server) shutDown() error {
	began := time.Now()
	s.signal(syscall.SIGINT)
	what := "still ran a statement after"
	select {
	case <-s.ended:
		return nil
	case <-time.After(cancelTimeout):
	}
	if processes, err := s.processes(); err == nil && len(processes) <= processesAtCheckpoint {
		what = "did not shut down within"
		select {
		case <-s.ended:
			return nil
		case <-time.After(stopTimeout - cancelTimeout):
		}
	}
	s.signal(syscall.SIGQUIT)
	<-s.ended
	return fmt.Errorf("the embedded PostgreSQL %s %s and was stopped immediately; it recovers at the next start",
		what, time.Since(began).Round(time.Millisecond))
}

// waitUntilReady returns when the server answers, or has failed maxFailedStarts times.
func (s *Server) waitUntilReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.URL(RoleAdmin, "postgres"))
		if err == nil {
			s.mu.Lock()
			s.failedStarts = -1 // from now on there is no limit of restarts
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
