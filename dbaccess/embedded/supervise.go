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
	backoffResetAfter = time.Minute // a life this long starts the backoff anew
	maxFailedStarts   = 4           // lives in a row, before the first answer, that make Start give up
)

// settings suit a small machine that runs other things too. What agents' SQL gets
// wrong is told to them and kept in history: the log is for the server's own
// trouble (in log_min_messages, "log" is above "error").
var settings = []string{
	"listen_addresses=", "unix_socket_permissions=0700", "max_connections=100",
	"shared_buffers=128MB", "work_mem=8MB", "maintenance_work_mem=64MB", "max_wal_size=512MB",
	"max_worker_processes=4", "max_parallel_workers_per_gather=0", "jit=off",
	"fsync=on", "full_page_writes=on", "wal_level=minimal", "max_wal_senders=0", "wal_compression=on",
	"timezone=UTC", "log_timezone=UTC", "log_min_messages=log", "log_min_error_statement=panic", "log_checkpoints=off",
}

// supervise runs the server again and again until Close, on one thread: that
// thread's end, with the service, is what ends the server (PDEATHSIG).
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
		hopeless := s.failedStarts >= maxFailedStarts
		s.mu.Unlock()
		select {
		case <-s.closing:
			return
		default:
		}
		if hopeless {
			return
		}
		if time.Since(began) > backoffResetAfter {
			backoff = firstBackoff
		}
		s.log.WithError(err).Errorf("the embedded PostgreSQL ended; starting it again in %s", backoff)
		// A killed postmaster's children may live on and hold the shared memory.
		s.killStrays()
		select {
		case <-s.closing:
			return
		case <-time.After(backoff):
		}
	}
}

// start starts one life of the server, unless Close was called.
func (s *Server) startProcess() (*exec.Cmd, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closing:
		return nil, errors.New("closed")
	default:
	}
	args := []string{"-D", s.data, "-k", s.socket}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	cmd := s.command("postgres", args...)
	words, err := s.serverLog.newWriter()
	if err != nil {
		return nil, err
	}
	defer words.Close()
	cmd.Stdout, cmd.Stderr = words, words
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
		_ = s.process.Signal(sig) // ErrProcessDone where it has just ended
	}
}

// command is a program of the server's, in a process group of its own so that a
// Ctrl-C at the service's terminal does not reach it.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = filepath.Dir(s.data)
	cmd.Env = []string{"LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TZ=UTC", "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true}
	return cmd
}

// endOld ends a server that runs on our folder: its service was killed. We hold
// the folder's lock, so no living service is its owner.
func (s *Server) stopPrevious(ctx context.Context) error {
	body, err := os.ReadFile(filepath.Join(s.data, "postmaster.pid"))
	if err == nil {
		pid, _ := strconv.Atoi(strings.SplitN(string(body), "\n", 2)[0])
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT} {
			if !s.isOurs(pid) {
				break // stale: postgres itself sees to the file
			}
			_ = syscall.Kill(pid, sig)
			if err := s.waitForExit(ctx, pid); err != nil {
				return err
			}
		}
	}
	s.killStrays()
	// A zombie that nobody has reaped yet still counts as alive to postgres; none of
	// the cluster's processes lives, so its lock means nothing.
	locks, _ := filepath.Glob(filepath.Join(s.socket, ".s.PGSQL.*.lock"))
	for _, lock := range append(locks, filepath.Join(s.data, "postmaster.pid")) {
		if err := os.Remove(lock); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// waitGone waits for an earlier server's end, some seconds at the most.
func (s *Server) waitForExit(ctx context.Context, pid int) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(5 * time.Second); s.isOurs(pid) && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the PostgreSQL of an earlier service (pid %d) to end: %w", pid, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// ours says whether a process is a living postgres that works in our data folder.
// All of a cluster's processes have that folder as their working directory.
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

// endStrays kills what is left of a server without a postmaster. Nothing committed
// is lost: the next start replays the log.
func (s *Server) killStrays() {
	all, _ := os.ReadDir("/proc")
	for _, entry := range all {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && s.isOurs(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
