package dap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	godap "github.com/google/go-dap"

	"glasshouse/sandbox"
)

// Limits of the requests that wait for execution. When one is reached, Serve stops reading until a request is done. The
// limits are lower for a client that has not attached, because its token is not checked yet.
const (
	maxWaiting      = 1000
	maxWaitingBytes = 4 << 20

	maxBodyBytesBeforeAttach    = 256 << 10 // an attach request may contain code
	maxWaitingBeforeAttach      = 10
	maxWaitingBytesBeforeAttach = 512 << 10
)

// attachTimeout is how long a client may take from connecting to attaching.
const attachTimeout = 10 * time.Second

// maxCommandChars is how many characters of a command are kept, because responses repeat the command.
const maxCommandChars = 100

// readBufferBytes is the size of the buffer that messages are read through.
const readBufferBytes = 16 << 10

// waitingRequest is a request that waits for execution. Its ctx ends when the client cancels the request.
type waitingRequest struct {
	message
	bytes  int
	ctx    context.Context
	cancel context.CancelFunc
}

// Serve speaks with one client until it disconnects or ctx ends, and closes the stream.
func Serve(ctx context.Context, stream io.ReadWriteCloser, open Opener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	defer stream.Close()
	c := &connection{
		ctx: ctx, end: cancel, open: open, out: &writer{out: stream}, cancels: map[int]context.CancelFunc{},
		freed:          make(chan struct{}, 1),
		attachDeadline: time.Now().Add(attachTimeout),
		client:         godap.InitializeRequestArguments{LinesStartAt1: true, ColumnsStartAt1: true},
	}
	c.attachTimer = time.AfterFunc(attachTimeout, cancel)
	defer c.attachTimer.Stop()
	queue, executed := make(chan waitingRequest, maxWaiting), make(chan error, 1)
	go func() {
		err := c.executeAll(queue)
		cancel() // so that the reader ends
		executed <- err
	}()
	err := c.readAll(bufio.NewReaderSize(stream, readBufferBytes), queue)
	ended := ctx.Err() != nil // the client disconnected or the service ends, which makes the read fail
	cancel()
	close(queue)
	executeErr := <-executed
	c.detach(false)
	if ended || errors.Is(err, io.EOF) {
		return executeErr
	}
	return err
}

// readAll reads requests until the stream ends.
func (c *connection) readAll(in *bufio.Reader, queue chan<- waitingRequest) error {
	for {
		body, err := readFrame(in, c.maxBody)
		if err != nil {
			return err
		}
		if !utf8.Valid(body) {
			return errors.New("decode a message: it is not UTF-8")
		}
		var r message
		if err := sandbox.UnmarshalIntegers(body, &r); err != nil {
			return fmt.Errorf("decode a message: %w", err)
		}
		if r.Type != "request" {
			continue
		}
		r.Command = fmt.Sprintf("%.*s", maxCommandChars, r.Command)
		if known := find(r.Command); known != nil && known.immediate {
			if err := known.beforeAttach(c, c.ctx, r); err != nil {
				return err
			}
			continue
		}
		for !c.reserve(len(body)) {
			select {
			case <-c.freed:
			case <-c.ctx.Done():
				return c.ctx.Err()
			}
		}
		ctx, cancel := context.WithCancel(c.ctx)
		c.mu.Lock()
		if r.Command == "disconnect" { // the client does not need the outstanding responses
			for _, cancel := range c.cancels {
				cancel()
			}
		}
		c.cancels[r.Seq] = cancel
		c.mu.Unlock()
		queue <- waitingRequest{r, len(body), ctx, cancel} // its capacity is maxWaiting, so this does not block
	}
}

// maxBody returns how large the body of the next message may be.
func (c *connection) maxBody() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isAttached {
		return maxBodyBytes
	}
	return maxBodyBytesBeforeAttach
}

// reserve reserves space for a request while it waits. It returns false if the limits are reached.
func (c *connection) reserve(bytes int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	maxRequests, maxBytes := maxWaiting, maxWaitingBytes
	if !c.isAttached {
		maxRequests, maxBytes = maxWaitingBeforeAttach, maxWaitingBytesBeforeAttach
	}
	if c.waiting >= maxRequests || c.waitingBytes+bytes > maxBytes {
		return false
	}
	c.waiting++
	c.waitingBytes += bytes
	return true
}

// executeAll executes one request after the other, until the client disconnects.
func (c *connection) executeAll(queue <-chan waitingRequest) error {
	for r := range queue {
		err := c.execute(r.ctx, r.message)
		r.cancel()
		c.mu.Lock()
		delete(c.cancels, r.Seq)
		c.waiting--
		c.waitingBytes -= r.bytes
		c.mu.Unlock()
		select {
		case c.freed <- struct{}{}:
		default:
		}
		if err != nil || c.disconnected {
			return err
		}
	}
	return nil
}
