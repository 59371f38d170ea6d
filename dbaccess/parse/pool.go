package parse

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Pool is a few children, each with one statement at a time. Large statements
// have a child of their own, so that they never keep the others waiting. Its zero
// value is not usable; Open makes one.
type Pool struct {
	small, large chan *child // a nil is a place for a child yet to be started
}

// largest is the most bytes of a small statement: whatever it says, it is read in
// milliseconds.
const largest = 16 << 10

// ErrBroken says that the parser broke on a statement, or took too long for it.
var ErrBroken = errors.New("the parser could not take the statement")

// child is one process, used by one goroutine at a time.
type child struct {
	cmd  *exec.Cmd
	in   *os.File
	out  *os.File
	send *gob.Encoder
	buf  *bufio.Writer
	read *gob.Decoder
}

// Open makes a Pool of so many children, 0 for two, and one for large statements;
// each is started when it is first needed.
func Open(size int) *Pool {
	if size <= 0 {
		size = 2
	}
	p := &Pool{small: make(chan *child, size), large: make(chan *child, 1)}
	for range size {
		p.small <- nil
	}
	p.large <- nil
	return p
}

// Close ends the children, waiting for those at work.
func (p *Pool) Close() {
	for _, slots := range []chan *child{p.small, p.large} {
		for range cap(slots) {
			if c := <-slots; c != nil {
				c.end()
			}
		}
	}
}

// Parse has a child parse the statement. The error is ErrBroken where the child
// died of it, and the context's where nobody waits any more.
func (p *Pool) Parse(ctx context.Context, q Request) (Result, error) {
	if bad := Text(q.SQL); bad != nil {
		return Result{Fault: bad}, nil
	}
	slots := p.small
	if len(q.SQL) > largest {
		slots = p.large
	}
	var c *child
	select {
	case c = <-slots:
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	fresh := c == nil
	result, err := p.ask(ctx, &c, q)
	if errors.Is(err, ErrBroken) && !fresh {
		// It may have been ended by somebody else since it last answered.
		result, err = p.ask(ctx, &c, q)
	}
	slots <- c
	return result, err
}

// ask sends one statement; a child that does not answer is ended, and *c nil.
func (p *Pool) ask(ctx context.Context, c **child, q Request) (result Result, err error) {
	if *c == nil {
		if *c, err = start(); err != nil {
			*c = nil
			return result, fmt.Errorf("start the parser: %w", err)
		}
	}
	deadline := time.Now().Add(patience*limit(q) + time.Second)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	_ = (*c).in.SetDeadline(deadline)
	_ = (*c).out.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = (*c).out.SetReadDeadline(time.Unix(1, 0)) })
	if err = (*c).send.Encode(q); err == nil {
		err = (*c).buf.Flush()
	}
	if err == nil {
		err = (*c).read.Decode(&result)
	}
	if !stop() && err == nil {
		err = ctx.Err() // the deadline may still be about to be set: not to be used again
	}
	if err == nil {
		return result, nil
	}
	(*c).end()
	*c = nil
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	return Result{}, fmt.Errorf("%w: %w", ErrBroken, err)
}

func start() (*child, error) {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		_, _ = theirIn.Close(), in.Close()
		return nil, err
	}
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{stageName}, Env: []string{}, Dir: "/", Stdin: theirIn, Stdout: theirOut}
	// In a group of its own, so that a terminal's interrupt ends the service first.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_, _ = theirIn.Close(), theirOut.Close()
	if err != nil {
		_, _ = in.Close(), out.Close()
		return nil, err
	}
	buf := bufio.NewWriter(in)
	return &child{cmd: cmd, in: in, out: out, buf: buf, send: gob.NewEncoder(buf), read: gob.NewDecoder(bufio.NewReader(out))}, nil
}

func (c *child) end() {
	_, _ = c.in.Close(), c.out.Close()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}
