package socket

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/compat/jupyter/wire"
)

// fakeKernel tells what happens to its client.
type fakeKernel struct {
	added   chan *Client
	alive   chan bool
	removed chan error
}

func (k fakeKernel) Add(c *Client) { k.added <- c }

func (fakeKernel) Receive(context.Context, *Client, *wire.Message, int) {}

func (k fakeKernel) KeepAlive(context.Context, *Client) error {
	select {
	case k.alive <- true:
	default:
	}
	return nil
}

func (k fakeKernel) Remove(_ *Client, cause error) { k.removed <- cause }

// connect connects a client, whose socket does not read, to a kernel.
func connect(t *testing.T, limits Limits) (*websocket.Conn, *Client, fakeKernel) {
	t.Helper()
	k := fakeKernel{make(chan *Client, 1), make(chan bool), make(chan error, 1)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := Serve(w, r, limits, sandbox.Key{User: "ada"}, "secret", k); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	conn, _, err := websocket.Dial(t.Context(), server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	return conn, <-k.added, k
}

// A client that answers pings keeps its kernel alive. One that has vanished without closing its connection is removed.
func TestClientThatVanishesIsRemoved(t *testing.T) {
	t.Parallel()
	keys := access.New(access.Config{})
	t.Cleanup(keys.Close)
	limits := NewLimits(keys, nil)
	limits.pingInterval = time.Millisecond
	conn, _, present := connect(t, limits)
	conn.CloseRead(t.Context()) // it reads, and so answers pings
	for range 3 {
		<-present.alive
	}
	limits.pongTimeout = 50 * time.Millisecond
	_, _, vanished := connect(t, limits)
	if cause := <-vanished.removed; !errors.Is(cause, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the connection because no pong came", cause)
	}
	select {
	case cause := <-present.removed:
		t.Errorf("the client that answers pings was removed: %v", cause)
	default:
	}
}

// A client that does not read loses its connection when too much waits for it. Nobody waits for it.
func TestClientThatDoesNotReadIsRemoved(t *testing.T) {
	t.Parallel()
	keys := access.New(access.Config{Unread: limit.NewResponses(1 << 20)})
	t.Cleanup(keys.Close)
	limits := NewLimits(keys, nil)
	_, c, k := connect(t, limits)
	m := wire.NewReply("session", wire.IOPub, "stream", nil, wire.Object{"text": strings.Repeat("x", 1<<20)})
	for {
		select {
		case cause := <-k.removed:
			closed, ok := errors.AsType[*closeError](cause)
			if !ok || closed.code != websocket.StatusPolicyViolation {
				t.Errorf("got %v, want the close code %d", cause, websocket.StatusPolicyViolation)
			}
			return
		default:
			c.Send(m)
		}
	}
}
