// Package kernel has kernels: each answers the requests of the clients of one sandbox.
//
//	k := kernel.Start(config, limits, caller, kernel.Spec{Name: "python3", Python: "3.11"}, sandboxID)
//	err := k.Connect(w, r, caller, secret) // serves a client's WebSocket
//
// Each kernel has one goroutine, which answers the requests of all its clients one after the other, and ends with the
// sandbox.
//
//	kernel.go   the queue of requests, the clients, and what interrupts and restarts a kernel
//	execute.go  execute_request
//	request.go  all other requests
package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/compat"
	"glasshouse/service/compat/jupyter/socket"
	"glasshouse/service/compat/jupyter/wire"
)

// Bounds of one kernel.
const (
	maxQueued      = 1000    // requests that wait
	maxQueuedBytes = 8 << 20 // of them
	maxClients     = 32
)

// Spec is what a kernel says about itself.
type Spec struct {
	Name   string // of its kernelspec
	Python string // version
}

// Kernel answers the requests of the clients of a sandbox, in their order.
type Kernel struct {
	ID, SandboxID string
	Owner         sandbox.Key
	spec          Spec
	config        compat.Config
	limits        socket.Limits
	ctx           context.Context // of its executions; it ends with the sandbox
	ended         <-chan struct{} // closed when the sandbox has ended
	queue         chan func()     // requests that wait
	slots         *limit.Slots    // of clients
	headers       headers         // of the last executions; only serve's goroutine uses them

	mu          sync.Mutex
	clients     []*socket.Client
	state       string // execution_state
	lastUsed    time.Time
	executions  int            // execution_count
	queuedBytes int            // of the requests that wait
	received    int            // number of the last request to execute
	aborted     int            // number of the last request that an error, an interrupt or a restart has aborted
	running     *socket.Client // whose request runs; nil: nobody's
	interrupt   func()         // interrupts what runs, each time; nil: nothing runs
}

// Start starts a kernel for a live sandbox.
func Start(c compat.Config, limits socket.Limits, owner sandbox.Key, spec Spec, sandboxID string) *Kernel {
	ctx, cancel := context.WithCancel(limit.WithUser(context.Background(), owner.User))
	k := &Kernel{
		ID: uuid(sandboxID), SandboxID: sandboxID, Owner: owner, spec: spec, config: c, limits: limits, ctx: ctx,
		ended: c.Live.Ended(sandboxID), queue: make(chan func(), maxQueued),
		slots: limit.NewSlots(maxClients), state: "idle", lastUsed: c.Live.Clock(),
	}
	go func() {
		defer cancel()
		k.serve()
	}()
	return k
}

// uuid returns an id of 32 hexadecimal digits in the form of a UUID, which clients expect.
func uuid(id string) string {
	if len(id) != 32 {
		return id
	}
	return strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
}

// Model is a kernel as clients see it.
type Model struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	LastUsed    string `json:"last_activity"`
	State       string `json:"execution_state"`
	Connections int    `json:"connections"`
}

// Model describes the kernel.
func (k *Kernel) Model() Model {
	k.mu.Lock()
	defer k.mu.Unlock()
	return Model{k.ID, k.spec.Name, k.lastUsed.UTC().Format(wire.TimeFormat), k.state, len(k.clients)}
}

// serve runs what is queued until the sandbox ends.
func (k *Kernel) serve() {
	for {
		select {
		case f := <-k.queue:
			k.runSafely(f)
			continue
		case <-k.ended:
		}
		k.tellState("dead", nil)
		k.eachClient(func(c *socket.Client) { c.End(endedReason) })
		return
	}
}

// endedReason is why the connections to a kernel close when it ends.
const endedReason = "the kernel has ended: its sandbox was deleted or expired, or the service stops"

// runSafely calls f. If f panics, the connections of the kernel close, because clients wait for the rest of its
// messages; the kernel goes on with the next request.
func (k *Kernel) runSafely(f func()) {
	defer func() {
		if p := recover(); p != nil {
			k.config.Log.WithField("panic", p).WithField("kernel", k.ID).WithField("stack", string(debug.Stack())).
				Error("a request to a kernel panicked")
			k.eachClient(func(c *socket.Client) { c.Fail("internal error; the log of the service has the cause") })
		}
	}()
	f()
}

// enqueue makes serve call f, which holds bytes, after what is queued. It returns FaultLimit if too much is queued.
func (k *Kernel) enqueue(bytes int, f func()) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	counted := func() {
		k.mu.Lock()
		k.queuedBytes -= bytes
		k.mu.Unlock()
		f()
	}
	if k.queuedBytes+bytes <= maxQueuedBytes {
		select {
		case k.queue <- counted:
			k.queuedBytes += bytes
			return nil
		default:
		}
	}
	return &sandbox.Error{
		Fault: sandbox.FaultLimit, RetryAfter: 1,
		Detail: "too many requests wait for this kernel; send fewer at a time",
	}
}

func (k *Kernel) eachClient(f func(*socket.Client)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.clients {
		f(c)
	}
}

// broadcast sends a message to every client.
func (k *Kernel) broadcast(kind string, parent json.RawMessage, content any) {
	m := wire.NewReply(k.SandboxID, wire.IOPub, kind, parent, content)
	k.eachClient(func(c *socket.Client) { c.Send(m) })
}

// reply answers a request of a client.
func (k *Kernel) reply(c *socket.Client, m *wire.Message, content wire.Object) {
	c.Send(wire.NewReply(k.SandboxID, m.Channel, m.ReplyKind(), m.Header, content))
}

// setState tells the clients the state of the kernel while it answers a request.
func (k *Kernel) setState(state string, parent json.RawMessage) {
	k.mu.Lock()
	k.state, k.lastUsed = state, k.config.Live.Clock()
	k.mu.Unlock()
	k.tellState(state, parent)
}

func (k *Kernel) tellState(state string, parent json.RawMessage) {
	k.broadcast("status", parent, wire.Object{"execution_state": state})
}

// hasRestarted tells the clients that another process has taken the place of the kernel's; state says how.
func (k *Kernel) hasRestarted(state string) {
	k.mu.Lock()
	k.executions = 0
	k.mu.Unlock()
	k.setState(state, nil)
	k.setState("idle", nil)
}

// Connect serves a client's WebSocket until the connection ends. It returns FaultLimit, before the handshake, if the
// kernel has the maximum of clients.
func (k *Kernel) Connect(w http.ResponseWriter, r *http.Request, caller sandbox.Key, secret string) error {
	release, err := k.slots.Acquire(r.Context(), 0)
	if errors.Is(err, limit.ErrFull) {
		return &sandbox.Error{Fault: sandbox.FaultLimit, RetryAfter: 5, Detail: fmt.Sprintf(
			"this kernel has %d clients, the maximum; close one", maxClients)}
	}
	if err != nil {
		return err
	}
	defer release()
	if err := socket.Serve(w, r, k.limits, caller, secret, k); err != nil {
		k.config.Log.WithError(err).Debug("a WebSocket handshake with a kernel failed")
	}
	return nil
}

// Add implements socket.Kernel.
func (k *Kernel) Add(c *socket.Client) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clients = append(k.clients, c)
	select {
	case <-k.ended: // meanwhile, and has told the clients of then
		c.End(endedReason)
	default:
	}
}

// KeepAlive implements socket.Kernel: clients that answer pings keep the sandbox alive.
func (k *Kernel) KeepAlive(ctx context.Context, c *socket.Client) error {
	return k.config.Live.Touch(ctx, c.Caller, k.SandboxID)
}

// Remove implements socket.Kernel. Requests of the client that run or wait continue. If the cause is a revoked key,
// the request that runs is interrupted.
func (k *Kernel) Remove(c *socket.Client, cause error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clients = slices.DeleteFunc(k.clients, func(other *socket.Client) bool { return other == c })
	if sandbox.FaultOf(cause) == sandbox.FaultUnauthorized && k.running == c && k.interrupt != nil {
		k.interrupt()
	}
}

// Interrupt ends what runs, and aborts the requests to execute that wait.
func (k *Kernel) Interrupt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.aborted = k.received
	if k.interrupt != nil {
		k.interrupt()
	}
}

// Restart stops everything and gives the kernel a new process. Its errors are those of enqueue and of the service;
// FaultNotFound says that the kernel has ended.
func (k *Kernel) Restart(ctx context.Context, caller sandbox.Key) error {
	k.Interrupt()
	restarted := make(chan error, 1)
	err := k.enqueue(0, func() {
		err := k.config.Live.Restart(ctx, caller, k.SandboxID)
		if err == nil {
			k.hasRestarted("starting")
		}
		restarted <- err
	})
	if err != nil {
		return err
	}
	select {
	case err := <-restarted:
		return err
	case <-k.ended:
		return ErrNone
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ErrNone is the error for a kernel that a caller does not have.
var ErrNone = sandbox.Errorf(sandbox.FaultNotFound, "there is no such kernel, or it is not yours, or it has ended: "+
	"its sandbox was deleted or has expired, or the service was restarted; start another")
