package main

import (
	"bytes"
	"context"
	"errors"
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

const (
	startTimeout = 3 * time.Minute // the first start creates the databases
	stopTimeout  = 20 * time.Second
)

// glasshouse is a service that is measured, a child of this program.
type glasshouse struct {
	*client
	cmd     *exec.Cmd
	exited  chan struct{}
	dir     string           // data folder, which Close removes
	address string           // on which it listens
	command func() *exec.Cmd // starts it
}

// startGlasshouse starts a binary on a free port with a temporary data folder and returns when the service
// is ready.
func startGlasshouse(ctx context.Context, binary, python string, settings ...string) (*glasshouse, error) {
	dir, err := os.MkdirTemp("", "glasshouse-bench-")
	if err != nil {
		return nil, err
	}
	g := &glasshouse{dir: dir}
	g.address, err = freeAddress()
	if err == nil {
		err = os.Chmod(dir, 0o755) // the embedded PostgreSQL may run as another user
	}
	if err == nil { // the service must make no sample executions while it is measured
		err = os.WriteFile(filepath.Join(dir, "samples.made"), nil, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	g.command = func() *exec.Cmd {
		arguments := []string{"serve", "--listen", g.address, "--data-dir", dir, "--python", python}
		cmd := exec.Command(binary, append(arguments, settings...)...)
		cmd.Env = append(withoutSettings(os.Environ()), "GLASSHOUSE_SAMPLES=false") // of older binaries
		return cmd
	}
	if err := g.start(ctx); err != nil {
		if g.exited == nil { // there is no process
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		g.Close()
		return nil, err
	}
	return g, nil
}

// start starts the process and the client, and returns when the service is ready.
func (g *glasshouse) start(ctx context.Context) error {
	output, cmd, exited := &tail{}, g.command(), make(chan struct{})
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		return err
	}
	g.cmd, g.exited = cmd, exited
	go func() {
		_ = cmd.Wait() // its output has the reason for the failure
		close(exited)
	}()
	if err := g.waitUntilReady(ctx, g.address); err != nil {
		return fmt.Errorf("%w; the end of its output:\n%s", err, output)
	}
	key, err := os.ReadFile(filepath.Join(g.dir, "admin.key"))
	if err != nil {
		return err
	}
	g.client = newClient("http://"+g.address, strings.TrimSpace(string(key)))
	return nil
}

// killAndStart kills the service as kill -9 does, and starts it again on its data folder.
func (g *glasshouse) killAndStart(ctx context.Context) error {
	if err := g.cmd.Process.Kill(); err != nil {
		return err
	}
	<-g.exited
	return g.start(ctx)
}

// withoutSettings removes the service's settings from an environment: the default configuration is measured.
func withoutSettings(environ []string) (out []string) {
	for _, e := range environ {
		if !strings.HasPrefix(e, "GLASSHOUSE_") {
			out = append(out, e)
		}
	}
	return out
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func (g *glasshouse) waitUntilReady(ctx context.Context, address string) error {
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
		case <-g.exited:
			return errors.New("the service ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("the service was not ready within %s", startTimeout)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Close stops the service, by force after stopTimeout, and removes its data folder.
func (g *glasshouse) Close() {
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-g.exited:
	case <-time.After(stopTimeout):
		progress("the service did not stop within %s of SIGTERM and is killed", stopTimeout)
		_ = g.cmd.Process.Kill()
		<-g.exited
	}
	_ = os.RemoveAll(g.dir)
}

// tail keeps the last bytes that are written to it.
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
