package parse

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
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
const maxSmallStatement = 16 << 10

// mostAnswer is the most bytes of an answer: a child that its statement broke may send
// anything. The largest tree has some eighty bytes for each of the tokens that the gate
// lets pass.
const maxAnswerBytes = 64 << 20

// ErrBroken says that the parser broke on a statement, or took too long for it.
var ErrParserFailed = errors.New("the parser could not take the statement")

// child is one process, used by one goroutine at a time.
type child struct {
	cmd       *exec.Cmd
	in        *os.File
	out       *os.File
	send      *gob.Encoder
	buf       *bufio.Writer
	remaining *io.LimitedReader // of out, for this answer
	read      *gob.Decoder
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

// Parse has a child parse the statement, and hands over what came of it, to be judged
// while the child works out the fingerprint, which is returned: the same whatever the
// constants, and none where there is a fault. The error is ErrBroken where the child
// died of it, and the context's where nobody waits any more; what was taken is void then,
// and may be handed over once more.
func (p *Pool) Parse(ctx context.Context, q Request, take func(Result)) (fingerprint string, err error) {
	if bad := CheckText(q.SQL); bad != nil {
		take(Result{Fault: bad})
		return "", nil
	}
	slots := p.small
	if len(q.SQL) > maxSmallStatement {
		slots = p.large
	}
	var c *child
	select {
	case c = <-slots:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { slots <- c }()
	fresh := c == nil
	fingerprint, err = p.ask(ctx, &c, q, take)
	if errors.Is(err, ErrParserFailed) && !fresh {
		// It may have been ended by somebody else since it last answered.
		fingerprint, err = p.ask(ctx, &c, q, take)
	}
	return fingerprint, err
}

// ask sends one statement; a child that does not answer in full is ended, and *slot nil.
func (p *Pool) ask(ctx context.Context, slot **child, q Request, take func(Result)) (fingerprint string, err error) {
	c := *slot
	if c == nil {
		if c, err = start(); err != nil {
			return "", fmt.Errorf("start the parser: %w", err)
		}
	}
	*slot = nil
	defer func() { // where take panics, too
		if *slot == nil {
			c.end()
		}
	}()
	deadline := time.Now().Add(wallClockFactor*cpuLimit(q) + time.Second)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	_ = c.in.SetDeadline(deadline)
	_ = c.out.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = c.out.SetReadDeadline(time.Unix(1, 0)) })
	fingerprint, err = c.ask(q, take)
	if !stop() && err == nil {
		err = ctx.Err() // the deadline may still be about to be set: not to be used again
	}
	switch {
	case err == nil:
		*slot = c
		return fingerprint, nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	}
	return "", fmt.Errorf("%w: %w", ErrParserFailed, err)
}

func (c *child) ask(q Request, take func(Result)) (fingerprint string, err error) {
	if err := c.send.Encode(q); err != nil {
		return "", err
	}
	if err := c.buf.Flush(); err != nil {
		return "", err
	}
	c.remaining.N = maxAnswerBytes
	var result Result
	if err := c.read.Decode(&result); err != nil {
		return "", err
	}
	take(result)
	if result.Fault == nil {
		err = c.read.Decode(&fingerprint)
	}
	return fingerprint, err
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
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{childArgv0}, Env: []string{}, Dir: "/", Stdin: theirIn, Stdout: theirOut}
	// In a group of its own, so that a terminal's interrupt ends the service first.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_, _ = theirIn.Close(), theirOut.Close()
	if err != nil {
		_, _ = in.Close(), out.Close()
		return nil, err
	}
	buf, left := bufio.NewWriter(in), &io.LimitedReader{R: out}
	return &child{cmd: cmd, in: in, out: out, buf: buf, send: gob.NewEncoder(buf), remaining: left, read: gob.NewDecoder(bufio.NewReader(left))}, nil
}

func (c *child) end() {
	_, _ = c.in.Close(), c.out.Close()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}
