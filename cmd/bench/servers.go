package main

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed peers/*.py
var peerPrograms embed.FS

// peer is a program of others, with ours in a folder of its own. It must be stopped.
type peer struct {
	cmd    *exec.Cmd
	folder string
}

// server is one that is spoken to over HTTP, in the API's own words.
type server struct {
	*peer
	*client
}

// launch starts a command in a folder that has our programs.
func launch(ctx context.Context, prepare func(*exec.Cmd) error, name string, args ...string) (*peer, error) {
	folder, err := os.MkdirTemp("", "bench-peer")
	if err != nil {
		return nil, err
	}
	p := &peer{folder: folder, cmd: exec.CommandContext(ctx, name, args...)}
	entries, err := peerPrograms.ReadDir("peers")
	for _, entry := range entries {
		body, readErr := peerPrograms.ReadFile("peers/" + entry.Name())
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(folder, entry.Name()), body, 0o600))
	}
	p.cmd.Dir, p.cmd.Env = folder, append(os.Environ(), "HOME="+folder)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its workers end with it
	if err == nil && prepare != nil {
		err = prepare(p.cmd)
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		_ = os.RemoveAll(folder)
		return nil, err
	}
	return p, nil
}

func (p *peer) stop() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.cmd.Wait()
	_ = os.RemoveAll(p.folder)
}

func serve(ctx context.Context, path string, command func(address string) []string) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := command(address)
	p, err := launch(ctx, nil, args[0], args[1:]...)
	if err != nil {
		return nil, err
	}
	s := &server{p, newClient("http://"+address, "")}
	if err := s.ready(ctx, path); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// startForking starts a server that forks, one of our programs, with two workers a core.
func startForking(ctx context.Context, python, program string) (*server, error) {
	return serve(ctx, "/execute", func(address string) []string {
		return []string{python, filepath.Join(filepath.Dir(python), "uwsgi"), "--http-socket", address, "--add-header", "Connection: close", "--master", "--processes", strconv.Itoa(2 * runtime.NumCPU()),
			"--wsgi-file", program, "--callable", "app", "--disable-logging"}
	})
}

// startREPL starts a REPL server, with one process, as its sessions are in that.
func startREPL(ctx context.Context, python string) (*server, error) {
	return serve(ctx, "/loop/none", func(address string) []string {
		host, port, _ := strings.Cut(address, ":")
		return []string{python, "-m", "uvicorn", "--host", host, "--port", port, "--log-level", "warning", "--no-access-log", "repl:app"}
	})
}

// kernel is a Jupyter kernel and its client.
type kernel struct {
	*peer // the client
	ask   io.WriteCloser
	times *bufio.Scanner
}

func startKernel(ctx context.Context, python string) (*kernel, error) {
	var k kernel
	var err error
	k.peer, err = launch(ctx, func(cmd *exec.Cmd) error {
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		k.times = bufio.NewScanner(out)
		k.ask, err = cmd.StdinPipe()
		return err
	}, python, "kernel.py")
	return &k, err
}

// stop lets the client end its kernel, which is in a session of its own.
func (k *kernel) stop() {
	_ = k.ask.Close()
	late := time.AfterFunc(10*time.Second, func() { _ = k.cmd.Process.Kill() })
	for k.times.Scan() {
	}
	late.Stop()
	k.peer.stop()
}

// once runs 1+1 once.
func (k *kernel) once() (time.Duration, error) {
	if _, err := io.WriteString(k.ask, "\n"); err != nil {
		return 0, err
	}
	if !k.times.Scan() {
		return 0, fmt.Errorf("the kernel ended: %w", errors.Join(k.times.Err(), io.ErrUnexpectedEOF))
	}
	ns, err := strconv.ParseInt(k.times.Text(), 10, 64)
	return time.Duration(ns), err
}
