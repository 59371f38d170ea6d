package jupyter

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/compat"
)

// Bounds of one kernel.
const (
	maxQueued      = 1000    // requests that wait
	maxQueuedBytes = 8 << 20 // of them
	maxClients     = 32
)

// server has the kernels of all users. They exist as long as their sandboxes, which end with the process.
type server struct {
	compat.Config
	startedAt time.Time
	unread    *limit.Responses // messages that wait for the clients of a user

	mu      sync.Mutex
	kernels map[string]*kernel
}

func newServer(c compat.Config) *server {
	return &server{
		Config: c, startedAt: c.Service.Clock(), unread: limit.NewResponses(maxUnreadBytes),
		kernels: map[string]*kernel{},
	}
}

// kernel answers the requests of the clients of a sandbox, in their order.
type kernel struct {
	server        *server
	id, sandboxID string
	name          string // of its kernelspec
	owner         sandbox.Key
	session       string          // in the headers of its messages
	ctx           context.Context // of its executions; it ends with the sandbox
	ended         <-chan struct{} // closed when the sandbox has ended
	queue         chan func()     // requests that wait

	mu          sync.Mutex
	clients     []*client
	state       string // execution_state
	lastUsed    time.Time
	executions  int             // execution_count
	queuedBytes int             // of the requests that wait
	received    int             // number of the last request to execute
	aborted     int             // number of the last request that an error, an interrupt or a restart has aborted
	running     *client         // whose request runs; nil: nobody's
	interrupt   func()          // ends what runs; nil: nothing runs
	notebook    *notebookRecord // its name in /api/sessions; nil: none
}

// kernelModel is a kernel as clients see it.
type kernelModel struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	LastUsed    string `json:"last_activity"`
	State       string `json:"execution_state"`
	Connections int    `json:"connections"`
}

func (k *kernel) model() kernelModel {
	k.mu.Lock()
	defer k.mu.Unlock()
	return kernelModel{k.id, k.name, k.lastUsed.UTC().Format(timeFormat), k.state, len(k.clients)}
}

// start starts a kernel of a kernelspec.
func (s *server) start(ctx context.Context, caller sandbox.Key, name string) (*kernel, error) {
	var config []byte
	switch _, known := s.specs()[name]; {
	case name == "" || name == "python" || name == defaultSpec:
		name = defaultSpec
	case !known:
		return nil, sandbox.Errorf(sandbox.FaultInvalid,
			"there is no kernelspec %q; GET /api/kernelspecs lists them", sandbox.Shorten(name, 100))
	default:
		config = encode(map[string]string{"environment": name})
	}
	sb, err := s.Service.CreateCompat(ctx, caller, config)
	if err != nil {
		return nil, err
	}
	k := &kernel{
		server: s, id: uuid(sb.ID), sandboxID: sb.ID, name: name, owner: caller, session: sb.ID,
		ended: s.Service.Ended(sb.ID), queue: make(chan func(), maxQueued), state: "idle", lastUsed: s.Service.Clock(),
	}
	running, cancel := context.WithCancel(limit.WithUser(context.Background(), caller.User))
	k.ctx = running
	s.mu.Lock()
	s.kernels[k.id] = k
	s.mu.Unlock()
	go func() {
		defer cancel()
		k.serve()
	}()
	return k, nil
}

// uuid returns an id of 32 hexadecimal digits in the form of a UUID, which clients expect.
func uuid(id string) string {
	if len(id) != 32 {
		return id
	}
	return strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
}

// serve runs what is queued until the sandbox ends.
func (k *kernel) serve() {
	for {
		select {
		case f := <-k.queue:
			k.runSafely(f)
			continue
		case <-k.ended:
		}
		k.server.mu.Lock()
		delete(k.server.kernels, k.id)
		k.server.mu.Unlock()
		k.tellState("dead", nil)
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, c := range k.clients {
			c.end(kernelEnded)
		}
		return
	}
}

// runSafely calls f. If f panics, the connections of the kernel close, because clients wait for the rest of its
// messages; the kernel goes on with the next request.
func (k *kernel) runSafely(f func()) {
	defer func() {
		if p := recover(); p != nil {
			k.server.Log.WithField("panic", p).WithField("kernel", k.id).WithField("stack", string(debug.Stack())).
				Error("a request to a kernel panicked")
			k.mu.Lock()
			defer k.mu.Unlock()
			const reason = "internal error; the log of the service has the cause"
			for _, c := range k.clients {
				c.cancel(&closeError{websocket.StatusInternalError, reason})
			}
		}
	}()
	f()
}

// enqueue makes serve call f, which holds bytes, after what is queued. It reports false if too much is queued.
func (k *kernel) enqueue(bytes int, f func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.queuedBytes+bytes > maxQueuedBytes {
		return false
	}
	counted := func() {
		k.mu.Lock()
		k.queuedBytes -= bytes
		k.mu.Unlock()
		f()
	}
	select {
	case k.queue <- counted:
		k.queuedBytes += bytes
		return true
	default:
		return false
	}
}

// broadcast sends a message to every client.
func (k *kernel) broadcast(kind string, parent json.RawMessage, content any) {
	r := k.newReply(iopub, kind, parent, content)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.clients {
		c.send(r.frame(c.isV1))
	}
}

// reply sends an answer to the client of a request.
func (k *kernel) reply(c *client, m *message, kind string, content any) {
	c.send(k.newReply(m.Channel, kind, m.Header, content).frame(c.isV1))
}

// setState tells the clients the state of the kernel while it answers a request.
func (k *kernel) setState(state string, parent json.RawMessage) {
	k.mu.Lock()
	k.state, k.lastUsed = state, k.server.Service.Clock()
	k.mu.Unlock()
	k.tellState(state, parent)
}

func (k *kernel) tellState(state string, parent json.RawMessage) {
	k.broadcast("status", parent, object{"execution_state": state})
}

// hasRestarted tells the clients that the process of the kernel has died, and that another takes its place.
func (k *kernel) hasRestarted() {
	k.mu.Lock()
	k.executions = 0
	k.mu.Unlock()
	k.setState("restarting", nil)
	k.setState("idle", nil)
}

// add adds a client. It reports false if the kernel has too many.
func (k *kernel) add(c *client) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.clients) >= maxClients {
		return false
	}
	k.clients = append(k.clients, c)
	return true
}

// remove removes a client. What it has sent goes on, unless its key was lost.
func (k *kernel) remove(c *client, lostKey bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clients = slices.DeleteFunc(k.clients, func(other *client) bool { return other == c })
	if lostKey && k.running == c && k.interrupt != nil {
		k.interrupt()
	}
}

// stop interrupts what runs, and aborts the requests to execute that wait.
func (k *kernel) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.aborted = k.received
	if k.interrupt != nil {
		k.interrupt()
	}
}

// restart stops everything and gives the kernel a new process.
func (k *kernel) restart(ctx context.Context, caller sandbox.Key) error {
	k.stop()
	restarted := make(chan error, 1)
	isQueued := k.enqueue(0, func() {
		err := k.server.Service.Restart(ctx, caller, k.sandboxID)
		if err == nil {
			k.mu.Lock()
			k.executions = 0
			k.mu.Unlock()
			k.setState("starting", nil)
			k.setState("idle", nil)
		}
		restarted <- err
	})
	if !isQueued {
		return errQueueFull()
	}
	select {
	case err := <-restarted:
		return err
	case <-k.ended:
		return errNoKernel()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func errQueueFull() error {
	return &sandbox.Error{
		Fault: sandbox.FaultLimit, RetryAfter: 1,
		Detail: "too many requests wait for this kernel; send fewer at a time",
	}
}

func errNoKernel() error {
	return sandbox.Errorf(sandbox.FaultNotFound, "there is no such kernel, or it is not yours, or it has ended: "+
		"its sandbox was deleted or has expired, or the service was restarted; start another")
}

// kernelsOf returns the kernels of the caller, the oldest first.
func (s *server) kernelsOf(caller sandbox.Key) []*kernel {
	s.mu.Lock()
	defer s.mu.Unlock()
	var own []*kernel
	for _, k := range s.kernels {
		if k.owner.User == caller.User && k.isAlive() {
			own = append(own, k)
		}
	}
	slices.SortFunc(own, func(a, b *kernel) int { return strings.Compare(a.id, b.id) })
	return own
}

func (k *kernel) isAlive() bool {
	select {
	case <-k.ended:
		return false
	default:
		return true
	}
}

// kernelHandler answers a request about a kernel of the caller.
type kernelHandler func(w http.ResponseWriter, r *http.Request, caller sandbox.Key, k *kernel)

func (s *server) withKernel(handle kernelHandler) compat.Handler {
	return func(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
		s.mu.Lock()
		k := s.kernels[r.PathValue("id")]
		s.mu.Unlock()
		if k == nil || !k.isAlive() || k.owner.User != caller.User && caller.Role != sandbox.RoleAdmin {
			s.fail(w, r, errNoKernel())
			return
		}
		handle(w, r, caller, k)
	}
}

func (s *server) listKernels(w http.ResponseWriter, _ *http.Request, caller sandbox.Key) {
	models := []kernelModel{}
	for _, k := range s.kernelsOf(caller) {
		models = append(models, k.model())
	}
	compat.WriteJSON(w, http.StatusOK, models)
}

func (s *server) startKernel(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
	var in struct{ Name string }
	err := s.decode(w, r, &in)
	var k *kernel
	if err == nil {
		k, err = s.start(r.Context(), caller, in.Name)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Location", "kernels/"+k.id) // relative: the API may be below a folder
	compat.WriteJSON(w, http.StatusCreated, k.model())
}

func (s *server) showKernel(w http.ResponseWriter, _ *http.Request, _ sandbox.Key, k *kernel) {
	compat.WriteJSON(w, http.StatusOK, k.model())
}

func (s *server) deleteKernel(w http.ResponseWriter, r *http.Request, caller sandbox.Key, k *kernel) {
	if err := s.Service.Delete(r.Context(), caller, k.sandboxID); err != nil && k.isAlive() {
		s.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (s *server) interruptKernel(w http.ResponseWriter, _ *http.Request, _ sandbox.Key, k *kernel) {
	k.stop()
	w.WriteHeader(http.StatusNoContent)
}

func (s *server) restartKernel(w http.ResponseWriter, r *http.Request, caller sandbox.Key, k *kernel) {
	if err := k.restart(r.Context(), caller); err != nil {
		s.fail(w, r, err)
		return
	}
	compat.WriteJSON(w, http.StatusOK, k.model())
}

// status answers what Jupyter's server says about itself, of the caller's kernels.
func (s *server) status(w http.ResponseWriter, _ *http.Request, caller sandbox.Key) {
	connections, last, kernels := 0, s.startedAt, s.kernelsOf(caller)
	for _, k := range kernels {
		k.mu.Lock()
		connections += len(k.clients)
		if k.lastUsed.After(last) {
			last = k.lastUsed
		}
		k.mu.Unlock()
	}
	compat.WriteJSON(w, http.StatusOK, map[string]any{
		"connections": connections, "kernels": len(kernels), "last_activity": last.UTC().Format(timeFormat),
		"started": s.startedAt.UTC().Format(timeFormat),
	})
}
