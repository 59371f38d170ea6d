package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startTimeout covers a first start, which makes the databases.
const startTimeout = 3 * time.Minute

// service is the Glasshouse being measured, a child of this program.
type service struct {
	client *client
	cmd    *exec.Cmd
	exited chan struct{}
	dir    string // removed by Close, "" where it is the caller's own
}

// startService starts the binary on a free port of the loopback, with the settings, and
// returns when it is ready. dataDir "" means a temporary folder.
func startService(ctx context.Context, binary, python, dataDir string, settings ...string) (*service, error) {
	s := &service{exited: make(chan struct{})}
	if dataDir == "" {
		dir, err := os.MkdirTemp("", "glasshouse-bench-")
		if err != nil {
			return nil, err
		}
		// The embedded PostgreSQL may run as another user, who must pass through.
		if err := os.Chmod(dir, 0o755); err != nil {
			return nil, err
		}
		dataDir, s.dir = dir, dir
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	words := &tail{}
	s.cmd = exec.Command(binary, append([]string{"serve", "--listen", address, "--data-dir", dataDir, "--python", python}, settings...)...)
	s.cmd.Env = plainEnviron()
	s.cmd.Stdout, s.cmd.Stderr = words, words
	if err := s.cmd.Start(); err != nil {
		s.Close()
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait() // how it ended shows in its own words
		close(s.exited)
	}()
	if err := s.ready(ctx, address); err != nil {
		s.Close()
		return nil, fmt.Errorf("%w; its last words:\n%s", err, words)
	}
	key, err := os.ReadFile(filepath.Join(dataDir, "admin.key"))
	if err != nil {
		s.Close()
		return nil, err
	}
	s.client = newClient("http://"+address, strings.TrimSpace(string(key)))
	return s, nil
}

// plainEnviron is the environment without settings of the service: what is
// measured is the default configuration.
func plainEnviron() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "GLASSHOUSE_") {
			env = append(env, e)
		}
	}
	return env
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// ready waits until the service says that it is, or has ended.
func (s *service) ready(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.exited:
			return fmt.Errorf("the service ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("the service was not ready within %s", startTimeout)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Close stops the service, by force if it takes longer than 20 seconds, and
// removes its temporary folder.
func (s *service) Close() {
	if s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-s.exited:
		case <-time.After(20 * time.Second):
			progress("the service did not stop within 20 seconds of SIGTERM; killing it")
			_ = s.cmd.Process.Kill()
			<-s.exited
		}
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// tail keeps the last words that a process said.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if extra := len(t.buf) - tailBytes; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}
