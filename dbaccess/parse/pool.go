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
	closing      context.Context
	close        context.CancelFunc
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
func Open() *Pool { return open(2) }

// open returns a Pool with a number of children for small statements.
func open(small int) *Pool {
	p := &Pool{small: make(chan *child, small), large: make(chan *child, 1)}
	p.closing, p.close = context.WithCancel(context.Background())
	for range small {
		p.small <- nil
	}
	p.large <- nil
	return p
}

// Close ends the children, also those that parse a statement. Parse returns context.Canceled from then on.
func (p *Pool) Close() {
	if p.closing.Err() != nil {
		return // closed before
	}
	p.close()
	for _, slots := range []chan *child{p.small, p.large} {
		for range cap(slots) {
			if c := <-slots; c != nil {
				c.end()
			}
		}
	}
}

// Parse has a child parse the statement. The child is free for the next statement when Parse returns, so a
// caller that computes with the result keeps nobody waiting. The error is ErrParserFailed if the child died or took too
// long, or the context's error.
func (p *Pool) Parse(ctx context.Context, q Request) (Result, error) {
	if bad := CheckText(q.SQL); bad != nil {
		return Result{Fault: bad}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.closing, cancel)()
	slots := p.small
	if len(q.SQL) > maxSmallStatement {
		slots = p.large
	}
	var c *child
	select {
	case c = <-slots:
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	defer func() { slots <- c }()
	fresh := c == nil
	result, err := ask(ctx, &c, q)
	if errors.Is(err, ErrParserFailed) && !fresh {
		// The child may have died since its last answer: try again with a new one.
		result, err = ask(ctx, &c, q)
	}
	return result, err
}

// ask sends one statement to the child in *slot. It ends a child that does not answer completely and
// sets *slot to nil.
func ask(ctx context.Context, slot **child, q Request) (result Result, err error) {
	c := *slot
	if c == nil {
		if c, err = start(); err != nil {
			return Result{}, fmt.Errorf("start the parser: %w", err)
		}
	}
	deadline := time.Now().Add(wallClockFactor*cpuLimit(q) + time.Second)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	_ = c.in.SetDeadline(deadline)
	_ = c.out.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() {
		_ = c.in.SetWriteDeadline(time.Unix(1, 0))
		_ = c.out.SetReadDeadline(time.Unix(1, 0))
	})
	result, err = c.ask(q)
	if !stop() && err == nil {
		err = ctx.Err() // AfterFunc may still set a deadline: do not reuse the child
	}
	if *slot = c; err == nil {
		return result, nil
	}
	*slot = nil
	c.end()
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	return Result{}, fmt.Errorf("%w: %w", ErrParserFailed, err)
}

func (c *child) ask(q Request) (result Result, err error) {
	if err := c.send.Encode(q); err != nil {
		return Result{}, err
	}
	if err := c.buf.Flush(); err != nil {
		return Result{}, err
	}
	c.remaining.N = maxAnswerBytes
	err = c.read.Decode(&result)
	return result, err
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
