package dap

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"glasshouse/debugger"
)

// Attach is what a client's attach or launch asks for: a debug session, the recording
// of an execution, or code to be run in a sandbox.
type Attach struct {
	Token       string `json:"token"`
	Session     string `json:"session"`
	Execution   string `json:"execution"`
	Sandbox     string `json:"sandbox"`
	Code        string `json:"code"`
	Path        string `json:"path"` // where the client has the code, for its breakpoints
	StopOnEntry bool   `json:"stopOnEntry"`
	Drive       bool   `json:"drive"` // take a session over that another editor drives
}

// Target is what was attached to.
type Target struct {
	*debugger.Session
	Fresh bool         // its program stands at its first line, for this client
	Close func() error // ends it
	May   func() error // says why this client may not drive it now; nil: nobody else could
	Leave func()       // the client lets go of it; nil: nobody else waits for that
}

// Opener finds what a client asks for, if its token allows that.
type Opener func(context.Context, Attach) (*Target, error)

// conn is one client.
type conn struct {
	ctx    context.Context // the connection's
	open   Opener
	out    *writer
	turn   sync.Mutex // held from a move until it is answered, so that its events come behind
	target *Target
	attach Attach
	client client
	stop   context.CancelFunc
	told   chan struct{} // the events' goroutine is over

	clock *time.Timer // ends the connection of a client that does not attach
	by    time.Time   // when it does

	mu       sync.Mutex
	pending  map[int]context.CancelFunc // of the requests that have no answer yet
	waits    int                        // how many they are, and of how many bytes
	bytes    int
	attached bool          // once; it has shown a token then
	freed    chan struct{} // has one when there may be room for more
}

// What may wait for its turn; more is not read. Who has not attached has shown no key,
// and gets little, for a short time.
const (
	maxPending = 1000
	maxWaiting = 16 << 20

	maxEarly     = 256 << 10 // a message; attach may have code with it
	earlyPending = 10
	earlyWaiting = 512 << 10
)

// attachTime is how long a client may take from connecting to attaching.
const attachTime = 10 * time.Second

// maxCommand is how much of a command is kept, in characters: answers repeat it.
const maxCommand = 100

// waiting is a request whose turn comes; its ctx ends when it is cancelled.
type waiting struct {
	request
	size   int
	ctx    context.Context
	cancel context.CancelFunc
}

// Serve talks with one client until it disconnects or ctx ends.
func Serve(ctx context.Context, stream io.ReadWriteCloser, open Opener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	defer stream.Close()
	c := &conn{ctx: ctx, open: open, out: &writer{out: stream}, pending: map[int]context.CancelFunc{}, freed: make(chan struct{}, 1), by: time.Now().Add(attachTime)}
	c.clock = time.AfterFunc(attachTime, cancel)
	defer c.clock.Stop()
	queue, answered := make(chan waiting, maxPending), make(chan error, 1)
	go func() {
		err := c.answer(queue)
		cancel() // so that nothing more is read
		answered <- err
	}()
	err := c.read(bufio.NewReaderSize(stream, 16<<10), queue)
	over := ctx.Err() != nil // it has taken its leave, or the service ends: then reading has failed by that
	cancel()
	close(queue)
	failed := <-answered
	c.leave(false)
	if over || errors.Is(err, io.EOF) {
		return failed
	}
	return err
}

// read takes requests until the stream ends. What cancels does not wait for its turn.
func (c *conn) read(in *bufio.Reader, queue chan<- waiting) error {
	for {
		body, err := readFrame(in, c.most)
		if err != nil {
			return err
		}
		var r request
		if err := json.Unmarshal(body, &r); err != nil {
			return err
		}
		if r.Type != "request" {
			continue
		}
		r.Command = fmt.Sprintf("%.*s", maxCommand, r.Command)
		if r.Command == "cancel" {
			if err := c.out.respond(r, nil, c.cancel(r.Arguments)); err != nil {
				return err
			}
			continue
		}
		for !c.room(len(body)) {
			select {
			case <-c.freed:
			case <-c.ctx.Done():
				return c.ctx.Err()
			}
		}
		ctx, cancel := context.WithCancel(c.ctx)
		c.mu.Lock()
		if r.Command == "disconnect" { // it wants no more of what it has asked for
			for _, cancel := range c.pending {
				cancel()
			}
		}
		c.pending[r.Seq] = cancel
		c.mu.Unlock()
		queue <- waiting{r, len(body), ctx, cancel} // it holds all that there is room for
	}
}

// most is how large a message may be now.
func (c *conn) most() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attached {
		return maxMessage
	}
	return maxEarly
}

// room takes the room that a request needs while it waits, if there is some.
func (c *conn) room(size int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	pending, most := maxPending, maxWaiting
	if !c.attached {
		pending, most = earlyPending, earlyWaiting
	}
	if c.waits >= pending || c.bytes+size > most {
		return false
	}
	c.waits++
	c.bytes += size
	return true
}

// cancel ends the wait for a request, by its number or by its progress.
func (c *conn) cancel(arguments json.RawMessage) error {
	var in struct {
		Request  int    `json:"requestId"`
		Progress string `json:"progressId"`
	}
	if len(arguments) > 0 {
		if err := json.Unmarshal(arguments, &in); err != nil {
			return err
		}
	}
	if in.Progress != "" {
		in.Request, _ = strconv.Atoi(in.Progress) // what is no number is no progress of ours
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel := c.pending[in.Request]; cancel != nil {
		cancel() // otherwise it has been answered: it is too late
	}
	return nil
}

// answer answers one request after the other.
func (c *conn) answer(queue <-chan waiting) error {
	for r := range queue {
		over, err := c.handle(r.ctx, r.request)
		r.cancel()
		c.mu.Lock()
		delete(c.pending, r.Seq)
		c.waits--
		c.bytes -= r.size
		c.mu.Unlock()
		select {
		case c.freed <- struct{}{}:
		default:
		}
		if err != nil || over {
			return err
		}
	}
	return nil
}

var errCancelled = errors.New("cancelled") // the protocol's own word

// respond answers a request; what failed because it was cancelled says only that.
func (c *conn) respond(ctx context.Context, r request, body any, err error) error {
	if err != nil && ctx.Err() != nil {
		err = errCancelled
	}
	return c.out.respond(r, body, err)
}
