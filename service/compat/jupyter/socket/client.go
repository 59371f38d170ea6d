// Package socket has the WebSocket of one client of a kernel. It reads requests, queues what the kernel sends without
// making the kernel wait, and finds out that a client has vanished.
//
//	socket.Serve(w, r, socket.Limits{...}, caller, secret, kernel)
package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/compat/jupyter/wire"
)

// Bounds of clients.
const (
	maxFrameBytes = 4 << 20          // of a request
	frameTimeout  = 30 * time.Second // for a request to arrive
)

// Limits bound what the clients of all kernels have in memory, and how long a client may be silent.
type Limits struct {
	access       *access.Service // counts requests that arrive, and messages that wait for clients
	cpu          *limit.CPU      // shares the decoding of large requests
	pingInterval time.Duration
	pongTimeout  time.Duration // some clients answer only while they read
}

// NewLimits returns the limits of the clients of a server. a counts the requests that arrive, and the messages that
// wait for clients; users take turns of cpu for their large requests.
func NewLimits(a *access.Service, cpu *limit.CPU) Limits {
	return Limits{a, cpu, 30 * time.Second, 90 * time.Second}
}

// Kernel is what a client is connected to.
type Kernel interface {
	// Add adds a client.
	Add(c *Client)
	// Receive takes a request that had this many bytes.
	Receive(ctx context.Context, c *Client, m *wire.Message, bytes int)
	// KeepAlive is called while the client answers pings. An error ends the connection.
	KeepAlive(ctx context.Context, c *Client) error
	// Remove removes a client, whose connection has ended for a reason.
	Remove(c *Client, cause error)
}

// Client is one WebSocket to a kernel.
type Client struct {
	Caller sandbox.Key
	Secret string // of the caller's key

	limits Limits
	socket *websocket.Conn
	isV1   bool
	cancel context.CancelCauseFunc // ends the connection

	mu      sync.Mutex
	unread  []unreadFrame
	hasLeft bool   // nothing more is sent
	ended   string // why the connection closes once everything is read; empty: it does not
	wake    chan struct{}
}

// unreadFrame is a frame that waits for a client. done is called when it waits no longer.
type unreadFrame struct {
	text []byte
	done func()
}

// Serve serves the WebSocket of a client until it leaves, its key is lost or the kernel ends. The error is that of the
// handshake, which is answered.
func Serve(
	w http.ResponseWriter, r *http.Request, limits Limits, caller sandbox.Key, secret string, k Kernel,
) error {
	socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: []string{wire.V1Protocol}, InsecureSkipVerify: true, // the origin was checked with the key
	})
	if err != nil {
		return err
	}
	socket.SetReadLimit(maxFrameBytes)
	ctx, cancel := context.WithCancelCause(r.Context())
	c := &Client{
		Caller: caller, Secret: secret, limits: limits, socket: socket,
		isV1: socket.Subprotocol() == wire.V1Protocol, cancel: cancel, wake: make(chan struct{}, 1),
	}
	k.Add(c)
	var work sync.WaitGroup
	work.Go(func() { cancel(c.write(ctx)) })
	work.Go(func() { cancel(c.ping(ctx, k)) })
	work.Go(func() { // it ends read
		<-ctx.Done()
		c.close(context.Cause(ctx))
	})
	cancel(c.read(ctx, k))
	k.Remove(c, context.Cause(ctx))
	work.Wait()
	return nil
}

// closeError is the reason for which this side closes a WebSocket.
type closeError struct {
	code   websocket.StatusCode
	reason string
}

func (e *closeError) Error() string { return e.reason }

// Fail closes the connection now, because of an internal error.
func (c *Client) Fail(reason string) { c.cancel(&closeError{websocket.StatusInternalError, reason}) }

// close closes the WebSocket with the reason in cause.
func (c *Client) close(cause error) {
	reason, ok := errors.AsType[*closeError](cause)
	switch {
	case ok:
	case sandbox.FaultOf(cause) == sandbox.FaultUnauthorized:
		reason = &closeError{websocket.StatusPolicyViolation, cause.Error()}
	default: // the client has left
		_ = c.socket.CloseNow()
		return
	}
	_ = c.socket.Close(reason.code, sandbox.Shorten(reason.reason, maxCloseReason))
}

// maxCloseReason is how many characters the reason of a close frame may have; all of them are ASCII.
const maxCloseReason = 80

// read reads requests until the WebSocket is closed.
func (c *Client) read(ctx context.Context, k Kernel) error {
	for {
		// The end of the context of Read would close the connection without a close frame.
		kind, r, err := c.socket.Reader(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		if err := c.receive(ctx, k, r, kind == websocket.MessageBinary); err != nil {
			return err
		}
	}
}

// receive hands one request, whose first bytes have arrived, to the kernel.
func (c *Client) receive(ctx context.Context, k Kernel, r io.Reader, isBinary bool) error {
	request, end := c.limits.access.BeginBody(ctx, c.Caller.User)
	defer end()
	frame, err := c.readFrame(request, r)
	if err != nil {
		return err
	}
	var m *wire.Message
	c.limits.cpu.Compute(c.Caller.User, len(frame), func() { m, err = wire.Parse(frame, isBinary, c.isV1) })
	if err != nil {
		return &closeError{websocket.StatusInvalidFramePayloadData, err.Error()}
	}
	k.Receive(ctx, c, m, len(frame))
	return nil
}

// readFrame reads one request, whose first bytes have arrived.
func (c *Client) readFrame(ctx context.Context, r io.Reader) ([]byte, error) {
	timer := time.AfterFunc(frameTimeout, func() {
		reason := fmt.Sprintf("a message took longer than %s", frameTimeout)
		c.cancel(&closeError{websocket.StatusPolicyViolation, reason})
	})
	defer timer.Stop()
	frame, err := io.ReadAll(access.BodyReader(ctx, r))
	if sandbox.FaultOf(err) == sandbox.FaultLimit {
		err = &closeError{websocket.StatusTryAgainLater, err.Error()}
	}
	return frame, err
}

// Send sends a message without waiting. If much waits for the clients of the user, a client that does not read loses
// its connection.
func (c *Client) Send(m *wire.Reply) {
	frame := m.Frame(c.isV1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasLeft {
		return
	}
	if len(c.unread) > 0 && c.limits.access.Unread.Full(c.Caller.User) {
		c.cancel(&closeError{websocket.StatusPolicyViolation, "this client does not read its messages"})
		return
	}
	c.unread = append(c.unread, unreadFrame{frame, c.limits.access.Unread.Add(c.Caller.User, len(frame))})
	c.wakeWriter()
}

// next returns the frame that waits longest; ok is false if none waits.
func (c *Client) next() (f unreadFrame, ok bool, ended string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.unread) == 0 {
		c.unread = nil
		return f, false, c.ended
	}
	f = c.unread[0]
	c.unread = c.unread[1:]
	return f, true, ""
}

// discard drops what waits for a client that has left.
func (c *Client) discard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hasLeft = true
	for _, f := range c.unread {
		f.done()
	}
	c.unread = nil
}

// End closes the connection once the client has read everything.
func (c *Client) End(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = reason
	c.wakeWriter()
}

func (c *Client) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write writes what is sent until ctx ends.
func (c *Client) write(ctx context.Context) error {
	defer c.discard()
	for {
		f, ok, ended := c.next()
		if ok {
			err := c.writeFrame(context.WithoutCancel(ctx), f.text)
			if f.done(); err != nil {
				return err
			}
			continue
		}
		if ended != "" {
			return &closeError{websocket.StatusGoingAway, ended}
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *Client) writeFrame(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithTimeout(ctx, limit.DefaultStallTimeout)
	defer cancel()
	kind := websocket.MessageText
	if c.isV1 {
		kind = websocket.MessageBinary
	}
	return c.socket.Write(ctx, kind, frame)
}

// ping finds out that a client has vanished.
func (c *Client) ping(ctx context.Context, k Kernel) error {
	ticker := time.NewTicker(c.limits.pingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.limits.pongTimeout)
		err := c.socket.Ping(waiting)
		cancel()
		if err == nil {
			err = k.KeepAlive(ctx, c)
		}
		if err != nil {
			return err
		}
	}
}
