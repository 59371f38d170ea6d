package jupyter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// Bounds of one client.
const (
	maxFrameBytes  = 16 << 20 // of a request
	maxUnreadBytes = 64 << 20 // of messages that wait for a client
	pingInterval   = 30 * time.Second
	pongTimeout    = 90 * time.Second // some clients answer only while they read
)

// client is one WebSocket to a kernel.
type client struct {
	socket *websocket.Conn
	caller sandbox.Key
	secret string // of the caller's key
	isV1   bool
	cancel context.CancelCauseFunc // ends the connection

	mu     sync.Mutex
	unread [][]byte
	bytes  int    // of unread
	ended  string // why the connection closes once everything is read; empty: it does not
	wake   chan struct{}
}

// openChannels serves the WebSocket of a client until it leaves, its key is lost or the kernel ends. The answers to
// pings keep the kernel alive.
func (s *server) openChannels(w http.ResponseWriter, r *http.Request, caller sandbox.Key, k *kernel) {
	socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: []string{v1Protocol}, InsecureSkipVerify: true, // secretOf checks the origin
	})
	if err != nil {
		s.Log.WithError(err).Debug("a WebSocket handshake with a kernel failed")
		return
	}
	socket.SetReadLimit(maxFrameBytes)
	ctx, cancel := context.WithCancelCause(r.Context())
	c := &client{
		socket: socket, caller: caller, secret: secretOf(r), isV1: socket.Subprotocol() == v1Protocol, cancel: cancel,
		wake: make(chan struct{}, 1),
	}
	if !k.add(c) {
		_ = socket.Close(websocket.StatusTryAgainLater, fmt.Sprintf("a kernel has at most %d clients", maxClients))
		return
	}
	if !k.isAlive() { // it has ended meanwhile, and told the clients of then
		c.end(kernelEnded)
	}
	var work sync.WaitGroup
	work.Go(func() { cancel(c.write(ctx)) })
	work.Go(func() { cancel(c.ping(ctx, k)) })
	work.Go(func() { // it ends read
		<-ctx.Done()
		c.close(context.Cause(ctx))
	})
	cancel(c.read(ctx, k))
	k.remove(c, sandbox.FaultOf(context.Cause(ctx)) == sandbox.FaultUnauthorized)
	work.Wait()
}

// kernelEnded is why the connections to a kernel close when it ends.
const kernelEnded = "the kernel has ended: its sandbox was deleted or expired, or the service stops"

// closeError is the reason for which this side closes a WebSocket.
type closeError struct {
	code   websocket.StatusCode
	reason string
}

func (e *closeError) Error() string { return e.reason }

// close closes the WebSocket with the reason in cause.
func (c *client) close(cause error) {
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
func (c *client) read(ctx context.Context, k *kernel) error {
	for {
		// The end of the context of Read would close the connection without a close frame.
		kind, frame, err := c.socket.Read(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		m, err := parseFrame(frame, kind == websocket.MessageBinary, c.isV1)
		if err != nil {
			return &closeError{websocket.StatusInvalidFramePayloadData, err.Error()}
		}
		k.receive(ctx, c, m, len(frame))
	}
}

// send sends a frame without waiting. A client that does not read loses its connection.
func (c *client) send(frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes += len(frame); c.bytes > maxUnreadBytes {
		c.cancel(&closeError{websocket.StatusPolicyViolation, "this client does not read its messages"})
		return
	}
	c.unread = append(c.unread, frame)
	c.wakeWriter()
}

// end closes the connection once the client has read everything.
func (c *client) end(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = reason
	c.wakeWriter()
}

func (c *client) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write writes what is sent until ctx ends.
func (c *client) write(ctx context.Context) error {
	for {
		c.mu.Lock()
		frames, ended := c.unread, c.ended
		c.unread = nil
		c.mu.Unlock()
		for _, frame := range frames {
			if err := c.writeFrame(context.WithoutCancel(ctx), frame); err != nil {
				return err
			}
		}
		if len(frames) > 0 {
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

func (c *client) writeFrame(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithTimeout(ctx, limit.DefaultStallTimeout)
	defer cancel()
	kind := websocket.MessageText
	if c.isV1 {
		kind = websocket.MessageBinary
	}
	err := c.socket.Write(ctx, kind, frame)
	c.mu.Lock()
	c.bytes -= len(frame)
	c.mu.Unlock()
	return err
}

// ping finds out that a client has vanished.
func (c *client) ping(ctx context.Context, k *kernel) error {
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), pongTimeout)
		err := c.socket.Ping(waiting)
		cancel()
		if err == nil {
			err = k.server.Service.Touch(ctx, c.caller, k.sandboxID)
		}
		if err != nil {
			return err
		}
	}
}
