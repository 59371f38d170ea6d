package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	firstBackoff      = 50 * time.Millisecond
	maxBackoff        = 5 * time.Second
	backoffResetAfter = time.Minute     // a process that lived longer is restarted with firstBackoff
	maxFailedStarts   = 4               // processes in a row that end before Start has reached the server
	previousTimeout   = 5 * time.Second // for the server of a killed service to end
)

// settings suit a small machine that also runs other programs. The server's log has no errors of statements, because
// agents receive these errors and history keeps them; in log_min_messages, "log" is above "error".
var settings = []string{
	"listen_addresses=", "unix_socket_permissions=0700", "max_connections=100",
	"shared_buffers=128MB", "work_mem=8MB", "maintenance_work_mem=64MB", "max_wal_size=512MB",
	"max_worker_processes=4", "max_parallel_workers_per_gather=0", "jit=off",
	"fsync=on", "full_page_writes=on", "wal_level=minimal", "max_wal_senders=0", "wal_compression=on",
	"timezone=UTC", "log_timezone=UTC", "log_min_messages=log", "log_min_error_statement=panic", "log_checkpoints=off",
}

// supervise runs the server, and restarts it when it ends, until Close. It runs on one thread: the kernel stops the
// server when its parent thread ends (PDEATHSIG), and that thread ends with the service.
func (s *Server) supervise() {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	defer close(s.ended)
	for backoff := firstBackoff; ; backoff = min(2*backoff, maxBackoff) {
		began := time.Now()
		cmd, err := s.startProcess()
		if err == nil {
			err = cmd.Wait()
		}
		s.mu.Lock()
		s.process = nil
		if s.failedStarts >= 0 {
			s.failedStarts++
		}
		givesUp := s.failedStarts >= maxFailedStarts
		s.mu.Unlock()
		select {
		case <-s.closing:
			return
		default:
		}
		if givesUp {
			return
		}
		if time.Since(began) > backoffResetAfter {
			backoff = firstBackoff
		}
		s.log.WithError(err).Errorf("the embedded PostgreSQL ended; it is started again in %s", backoff)
		// The children of a killed postmaster may continue and hold the shared memory. A lock file that it had just
		// made is empty, and postgres does not start with such a file.
		_ = s.clear()
		select {
		case <-s.closing:
			return
		case <-time.After(backoff):
		}
	}
}

// startProcess starts a process of the server, unless Close was called.
func (s *Server) startProcess() (*exec.Cmd, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closing:
		return nil, errors.New("the server is closed")
	default:
	}
	args := []string{"-D", s.data, "-k", s.socket}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	cmd := s.command("postgres", args...)
	output, err := s.serverLog.newWriter()
	if err != nil {
		return nil, err
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr.Pdeathsig = syscall.SIGINT
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.process = cmd.Process
	return cmd, nil
}

func (s *Server) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		_ = s.process.Signal(sig) // ErrProcessDone if the process has just ended
	}
}

// environ is the environment of PostgreSQL's programs.
var environ = []string{"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TZ=UTC", "PATH=/usr/bin:/bin"}

// command returns a command for one of PostgreSQL's programs, in a process group of its own: a Ctrl-C at the service's
// terminal must not reach the program.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = filepath.Dir(s.data)
	cmd.Env = environ
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true}
	return cmd
}

// stopPrevious stops a server that a killed service left on the data folder. This service holds the folder's lock, so
// the server belongs to no living service.
func (s *Server) stopPrevious(ctx context.Context) error {
	body, err := os.ReadFile(filepath.Join(s.data, "postmaster.pid"))
	if err == nil {
		pid, _ := strconv.Atoi(strings.SplitN(string(body), "\n", 2)[0])
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT} {
			if !s.isOurs(pid) {
				break // postgres removes a stale file itself
			}
			_ = syscall.Kill(pid, sig)
			if err := s.waitForExit(ctx, pid); err != nil {
				return err
			}
		}
	}
	return s.clear()
}

// clear kills the processes of a server whose postmaster has ended, and removes the cluster's lock files if none is
// left.
func (s *Server) clear() error {
	if !s.killStrays() {
		return nil // postgres finds out by the lock files whether it may start
	}
	// postgres takes a zombie, or another process with the same number, for a running server.
	locks, _ := filepath.Glob(filepath.Join(s.socket, ".s.PGSQL.*.lock"))
	for _, lock := range append(locks, filepath.Join(s.data, "postmaster.pid")) {
		if err := os.Remove(lock); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// waitForExit waits until the process has ended, or for previousTimeout.
func (s *Server) waitForExit(ctx context.Context, pid int) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(previousTimeout); s.isOurs(pid) && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the PostgreSQL of a killed service (pid %d) to end: %w", pid, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// isOurs reports whether a process is a living postgres that has the data folder as its working directory, as all
// processes of a cluster have.
func (s *Server) isOurs(pid int) bool {
	if pid <= 1 {
		return false
	}
	proc := "/proc/" + strconv.Itoa(pid)
	dir, err := os.Readlink(proc + "/cwd")
	if err != nil || dir != s.data {
		return false
	}
	name, _ := os.ReadFile(proc + "/comm")
	return strings.TrimSpace(string(name)) == "postgres"
}

// killStrays kills the processes of a server whose postmaster was killed, and waits until they have ended, at most for
// previousTimeout. It reports whether all have. No committed data is lost: the next start replays PostgreSQL's
// write-ahead log.
func (s *Server) killStrays() bool {
	for end := time.Now().Add(previousTimeout); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		left, err := s.processes()
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err == nil && len(left) == 0 {
			return true
		}
	}
	return false
}

// processesAtCheckpoint is the number of processes that a server has which shuts down and whose connections have ended:
// the first one, and the one that writes the last checkpoint.
const processesAtCheckpoint = 2

// processes returns the processes of the cluster.
func (s *Server) processes() (ours []int, err error) {
	all, err := os.ReadDir("/proc")
	for _, entry := range all {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && s.isOurs(pid) {
			ours = append(ours, pid)
		}
	}
	return ours, err
}
