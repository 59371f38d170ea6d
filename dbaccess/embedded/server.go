// Package embedded starts and supervises a private PostgreSQL, from the system's
// packages, for a service that was given no database.
//
// It listens on a unix socket in a folder of mode 0700 only, never runs as root,
// and dies with the service: one goroutine holds the thread that is its parent
// (PDEATHSIG is tied to a thread), waits for it, and starts it again where it
// ends unasked. A server that a killed service left behind is ended first.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sirupsen/logrus"
)

// Config says where the server lives.
type Config struct {
	Dir    string // the service's data folder
	BinDir string // of initdb and postgres; "" looks for the newest installed
	User   string // the account to run as where the service is root; "" is postgres
	Log    logrus.FieldLogger
}

// Server is the running server.
type Server struct {
	bin, data, socket string
	cred              *syscall.Credential
	log               logrus.FieldLogger

	mu     sync.Mutex
	pid    int
	closed bool
	gone   chan struct{} // the supervisor has ended
}

// Roles of the server, and its databases.
const (
	RoleAdmin   = "glasshouse"
	RoleHistory = "glasshouse_history"
	RoleOwner   = "glasshouse_owner"
	RoleReader  = "glasshouse_reader"

	DatabaseHistory   = "history"
	DatabaseKnowledge = "knowledge"
)

// Start makes the cluster where there is none, ends what a killed service left,
// starts the server and waits until it answers.
func Start(ctx context.Context, c Config) (*Server, error) {
	s := &Server{log: c.Log, gone: make(chan struct{})}
	var err error
	if s.bin, err = findBin(c.BinDir); err != nil {
		return nil, err
	}
	home := filepath.Join(c.Dir, "postgres")
	s.data, s.socket = filepath.Join(home, "data"), filepath.Join(home, "socket")
	if len(s.socket) > 80 { // a unix socket's path has 107 bytes
		s.socket = filepath.Join(os.TempDir(), fmt.Sprintf("glasshouse-%d-%x", os.Geteuid(), fnv(home)))
	}
	if os.Geteuid() == 0 {
		if s.cred, err = account(c.User); err != nil {
			return nil, err
		}
	}
	for _, dir := range []string{home, s.socket} {
		if err := s.makeFolder(dir); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(filepath.Join(s.data, "PG_VERSION")); errors.Is(err, fs.ErrNotExist) {
		if err := s.initdb(); err != nil {
			return nil, err
		}
	}
	if err := s.endOld(ctx); err != nil {
		return nil, err
	}
	started := make(chan error, 1)
	go s.supervise(started)
	if err := <-started; err != nil {
		return nil, err
	}
	if err := s.await(ctx); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("%w; the server's own words are in %s", err, filepath.Join(home, "postgres.log"))
	}
	if err := s.setUp(ctx); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("set up the embedded database: %w", err)
	}
	return s, nil
}

// URL is a connection URL for a role and a database of the server.
func (s *Server) URL(role, database string) string {
	return "postgres:///" + database + "?host=" + url.QueryEscape(s.socket) + "&user=" + role
}

// Close shuts the server down (fast) and waits until it is gone.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	pid := s.pid
	s.mu.Unlock()
	if pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGINT)
	}
	select {
	case <-s.gone:
		return nil
	case <-time.After(20 * time.Second):
		_ = syscall.Kill(pid, syscall.SIGQUIT)
		<-s.gone
		return errors.New("the embedded PostgreSQL did not stop within 20 s and was ended at once")
	}
}

func findBin(dir string) (string, error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	sort.Slice(dirs, func(i, j int) bool { return versionOf(dirs[i]) > versionOf(dirs[j]) })
	if dir != "" {
		dirs = []string{dir}
	} else if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	for _, d := range dirs {
		if _, err := os.Stat(filepath.Join(d, "initdb")); err == nil {
			return d, nil
		}
	}
	return "", errors.New("no PostgreSQL server is installed: run `apt-get install postgresql` as root, or name a database with --database-url and --knowledge-url")
}

func versionOf(bin string) int {
	v, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return v
}

func account(name string) (*syscall.Credential, error) {
	if name == "" {
		name = "postgres"
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root and there is no account %q: %w", name, err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func fnv(s string) uint32 {
	h := uint32(2166136261)
	for _, b := range []byte(s) {
		h = (h ^ uint32(b)) * 16777619
	}
	return h
}

// makeFolder makes a folder that only the server's account and root may enter,
// and sees that the account can reach it.
func (s *Server) makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if s.cred == nil {
		return os.Chmod(dir, 0o700)
	}
	for up := filepath.Dir(dir); up != "/"; up = filepath.Dir(up) {
		st, err := os.Stat(up)
		if err != nil {
			return err
		}
		owner := st.Sys().(*syscall.Stat_t).Uid
		if st.Mode().Perm()&0o001 == 0 && owner != s.cred.Uid {
			return fmt.Errorf("PostgreSQL runs as another account than root and cannot enter %s: choose another --data-dir, or `chmod o+x %s`", up, up)
		}
	}
	if err := os.Chown(dir, int(s.cred.Uid), int(s.cred.Gid)); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700)
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = filepath.Dir(s.data)
	cmd.Env = []string{"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TZ=UTC", "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true}
	return cmd
}

func (s *Server) initdb() error {
	// Made aside and renamed: a cluster is there whole or not at all.
	fresh := s.data + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	cmd := s.command("initdb", "-D", fresh, "-U", RoleAdmin, "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-instructions", "-k")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return os.Rename(fresh, s.data)
}

// endOld ends a server that runs on our folder: its service was killed.
func (s *Server) endOld(ctx context.Context) error {
	body, err := os.ReadFile(filepath.Join(s.data, "postmaster.pid"))
	if err != nil {
		return nil
	}
	pid, _ := strconv.Atoi(strings.SplitN(string(body), "\n", 2)[0])
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if pid <= 1 || !strings.Contains(string(line), s.data) {
		return nil // stale: postgres itself sees to the file
	}
	for n, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		_ = syscall.Kill(pid, sig)
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
			if syscall.Kill(pid, 0) == syscall.ESRCH {
				return nil
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Millisecond):
			}
		}
		s.log.Warnf("the PostgreSQL of an earlier service (pid %d) is still there after %s (try %d)", pid, sig, n+1)
	}
	return fmt.Errorf("a PostgreSQL of an earlier service (pid %d) cannot be ended", pid)
}

// supervise runs the server again and again until Close, on one thread.
func (s *Server) supervise(started chan<- error) {
	runtime.LockOSThread()
	defer close(s.gone)
	for backoff := 100 * time.Millisecond; ; backoff = min(2*backoff, 5*time.Second) {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return
		}
		cmd, err := s.start()
		if err == nil {
			s.pid = cmd.Process.Pid
		}
		s.mu.Unlock()
		if started != nil {
			started <- err
			started = nil
			if err != nil {
				return
			}
		}
		if err == nil {
			began := time.Now()
			err = cmd.Wait()
			if time.Since(began) > time.Minute {
				backoff = 100 * time.Millisecond
			}
		}
		s.mu.Lock()
		closed := s.closed
		s.pid = 0
		s.mu.Unlock()
		if closed {
			return
		}
		s.log.Errorf("the embedded PostgreSQL ended (%v); starting it again in %s", err, backoff)
		time.Sleep(backoff)
	}
}

func (s *Server) start() (*exec.Cmd, error) {
	path := filepath.Join(filepath.Dir(s.data), "postgres.log")
	if st, err := os.Stat(path); err == nil && st.Size() > 16<<20 {
		_ = os.Rename(path, path+".1")
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := s.command("postgres", "-D", s.data, "-k", s.socket, "-c", "listen_addresses=", "-c", "unix_socket_permissions=0700",
		"-c", "shared_buffers=128MB", "-c", "max_connections=100", "-c", "timezone=UTC", "-c", "log_timezone=UTC", "-c", "jit=off",
		"-c", "max_wal_size=512MB", "-c", "max_worker_processes=4", "-c", "max_parallel_workers_per_gather=0", "-c", "wal_level=minimal", "-c", "max_wal_senders=0")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr.Pdeathsig = syscall.SIGINT
	return cmd, cmd.Start()
}

// await waits until the server answers.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.URL(RoleAdmin, "postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the embedded PostgreSQL does not answer: %w", err)
		case <-s.gone:
			return errors.New("the embedded PostgreSQL ended at once")
		case <-time.After(20 * time.Millisecond):
		}
	}
}
