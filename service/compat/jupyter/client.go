package jupyter

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
	"glasshouse/service"
)

// Bounds of clients.
const (
	maxFrameBytes  = 4 << 20          // of a request
	frameTimeout   = 30 * time.Second // for a request to arrive
	maxUnreadBytes = 64 << 20         // of messages that wait for the clients of one user
	pingInterval   = 30 * time.Second
	pongTimeout    = 90 * time.Second // some clients answer only while they read
)

// client is one WebSocket to a kernel.
type client struct {
	server *server
	socket *websocket.Conn
	caller sandbox.Key
	secret string // of the caller's key
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
		server: s, socket: socket, caller: caller, secret: secretOf(r),
		isV1: socket.Subprotocol() == v1Protocol, cancel: cancel, wake: make(chan struct{}, 1),
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
		kind, r, err := c.socket.Reader(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		frame, err := c.readFrame(ctx, r)
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

// readFrame reads one request, whose first bytes have arrived.
func (c *client) readFrame(ctx context.Context, r io.Reader) ([]byte, error) {
	timer := time.AfterFunc(frameTimeout, func() {
		reason := fmt.Sprintf("a message took longer than %s", frameTimeout)
		c.cancel(&closeError{websocket.StatusPolicyViolation, reason})
	})
	defer timer.Stop()
	frame, err := io.ReadAll(c.server.Bodies.Reader(ctx, c.caller.User, r, service.ErrLargeBodies))
	if sandbox.FaultOf(err) == sandbox.FaultLimit {
		err = &closeError{websocket.StatusTryAgainLater, err.Error()}
	}
	return frame, err
}

// send sends a frame without waiting. If much waits for the clients of the user, a client that does not read loses its
// connection.
func (c *client) send(frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasLeft {
		return
	}
	if len(c.unread) > 0 && c.server.unread.Full(c.caller.User) {
		c.cancel(&closeError{websocket.StatusPolicyViolation, "this client does not read its messages"})
		return
	}
	c.unread = append(c.unread, unreadFrame{frame, c.server.unread.Add(c.caller.User, len(frame))})
	c.wakeWriter()
}

// next returns the frame that waits longest; ok is false if none waits.
func (c *client) next() (f unreadFrame, ok bool, ended string) {
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
func (c *client) discard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hasLeft = true
	for _, f := range c.unread {
		f.done()
	}
	c.unread = nil
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

func (c *client) writeFrame(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithTimeout(ctx, limit.DefaultStallTimeout)
	defer cancel()
	kind := websocket.MessageText
	if c.isV1 {
		kind = websocket.MessageBinary
	}
	return c.socket.Write(ctx, kind, frame)
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
