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

// Pool runs a few parser children, each with one statement at a time. Large statements have a child
// of their own, so small ones do not wait for them. Use Open to make one.
type Pool struct {
	small, large chan *child // a nil element is a child that is not started yet
}

// maxSmallStatement is the size in bytes below which any statement parses in milliseconds.
const maxSmallStatement = 16 << 10

// maxAnswerBytes bounds an answer, because a child with a corrupted parser may send anything. The
// largest tree has about 80 bytes for each of maxTokens.
const maxAnswerBytes = 64 << 20

// ErrParserFailed means that the parser crashed on a statement or took too long.
var ErrParserFailed = errors.New("the parser failed on the statement")

// child is one process, used by one goroutine at a time.
type child struct {
	cmd       *exec.Cmd
	in        *os.File
	out       *os.File
	send      *gob.Encoder
	buf       *bufio.Writer
	remaining *io.LimitedReader // of out, for the current answer
	read      *gob.Decoder
}

// Open returns a Pool with two children and one for large statements. Each is started when it is first needed.
// Close it.
func Open() *Pool {
	p := &Pool{small: make(chan *child, 2), large: make(chan *child, 1)}
	for range cap(p.small) {
		p.small <- nil
	}
	p.large <- nil
	return p
}

// Close ends the children after their current statements.
func (p *Pool) Close() {
	for _, slots := range []chan *child{p.small, p.large} {
		for range cap(slots) {
			if c := <-slots; c != nil {
				c.end()
			}
		}
	}
}

// Parse has a child parse the statement and passes the result to take. The child computes the
// fingerprint meanwhile; Parse returns it. The fingerprint ignores constants and is "" if there is a
// fault. The error is ErrParserFailed if the child died, or the context's error. After an error the
// result is void; take may be called a second time with a new one.
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
		// The child may have died since its last answer: try again with a new one.
		fingerprint, err = p.ask(ctx, &c, q, take)
	}
	return fingerprint, err
}

// ask sends one statement to the child in *slot. It ends a child that does not answer completely and
// sets *slot to nil.
func (p *Pool) ask(ctx context.Context, slot **child, q Request, take func(Result)) (fingerprint string, err error) {
	c := *slot
	if c == nil {
		if c, err = start(); err != nil {
			return "", fmt.Errorf("start the parser: %w", err)
		}
	}
	*slot = nil
	defer func() { // also if take panics
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
		err = ctx.Err() // AfterFunc may still set a deadline: do not reuse the child
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
	cmd := &exec.Cmd{
		Path:   "/proc/self/exe",
		Args:   []string{childArgv0},
		Env:    []string{},
		Dir:    "/",
		Stdin:  theirIn,
		Stdout: theirOut,
	}
	// A process group of its own: an interrupt from the terminal reaches the service first.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_, _ = theirIn.Close(), theirOut.Close()
	if err != nil {
		_, _ = in.Close(), out.Close()
		return nil, err
	}
	buf, left := bufio.NewWriter(in), &io.LimitedReader{R: out}
	return &child{
		cmd:       cmd,
		in:        in,
		out:       out,
		buf:       buf,
		send:      gob.NewEncoder(buf),
		remaining: left,
		read:      gob.NewDecoder(bufio.NewReader(left)),
	}, nil
}

func (c *child) end() {
	_, _ = c.in.Close(), c.out.Close()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}
