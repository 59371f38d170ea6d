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
	"strconv"
	"syscall"
	"time"
)

//go:embed peers/*.py
var peerPrograms embed.FS

// peer is a process of a peer, in a folder with our programs. stop ends it.
type peer struct {
	cmd *exec.Cmd
	dir string
}

// startPeer starts a command in a folder that has the peers' programs.
func startPeer(ctx context.Context, prepare func(*exec.Cmd) error, args ...string) (*peer, error) {
	dir, err := os.MkdirTemp("", "bench-peer")
	if err != nil {
		return nil, err
	}
	p := &peer{exec.CommandContext(ctx, args[0], args[1:]...), dir}
	entries, err := peerPrograms.ReadDir("peers")
	for _, entry := range entries {
		body, readErr := peerPrograms.ReadFile("peers/" + entry.Name())
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(dir, entry.Name()), body, 0o600))
	}
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), "HOME="+dir)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // stop kills its workers, too
	if err == nil && prepare != nil {
		err = prepare(p.cmd)
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, nil
}

func (p *peer) stop() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.cmd.Wait()
	_ = os.RemoveAll(p.dir)
}

// server is a peer that answers in the words of the API.
type server struct {
	*peer
	*client
}

// startServer starts a server and returns when it answers.
func startServer(ctx context.Context, python string, command serverCommand) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p, err := startPeer(ctx, nil, command.command(python, address)...)
	if err != nil {
		return nil, err
	}
	s := &server{p, newClient("http://"+address, "")}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if err = s.call(ctx, "POST", command.readyPath, map[string]any{"code": "1+1"}, nil); err == nil {
			return s, nil
		}
	}
	s.stop()
	return nil, fmt.Errorf("%s did not answer within 20 s: %w", command.name, err)
}

// kernel is a Jupyter kernel with its client.
type kernel struct {
	*peer   // the client
	trigger io.WriteCloser
	times   *bufio.Scanner
}

func startKernel(ctx context.Context, python string) (*kernel, error) {
	var k kernel
	var err error
	k.peer, err = startPeer(ctx, func(cmd *exec.Cmd) error {
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		k.times = bufio.NewScanner(out)
		k.trigger, err = cmd.StdinPipe()
		return err
	}, python, "jupyter_kernel.py")
	return &k, err
}

// runOnce runs 1+1 and returns the milliseconds that the client measured.
func (k *kernel) runOnce() (float64, error) {
	if _, err := io.WriteString(k.trigger, "\n"); err != nil {
		return 0, err
	}
	if !k.times.Scan() {
		return 0, fmt.Errorf("the Jupyter kernel ended: %w", errors.Join(k.times.Err(), io.ErrUnexpectedEOF))
	}
	ns, err := strconv.ParseInt(k.times.Text(), 10, 64)
	return inMilliseconds(time.Duration(ns)), err
}

// stop lets the client end its kernel, which has a process group of its own.
func (k *kernel) stop() {
	_ = k.trigger.Close()
	kill := time.AfterFunc(10*time.Second, func() { _ = k.cmd.Process.Kill() })
	for k.times.Scan() {
	}
	kill.Stop()
	k.peer.stop()
}
