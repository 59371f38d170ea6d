package limit

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// Connections bounds the connections of one or more HTTP servers together, and shares them among the users:
//
//   - A request of a user holds its connection until the request ends. The requests of all users take slots of a
//     Shared, so that one user's streams and waiting requests leave connections to others.
//   - If there are too many connections, the one that has been idle longest is closed. If none is idle, it is the
//     oldest of those whose clients have not yet said who they are, which may be the new one.
//   - A connection that its handler has hijacked, as for a WebSocket, counts until the request ends.
//
// Requests without a connection of these servers, as in tests, take a slot only. The nil Connections has no bounds.
type Connections struct {
	max      int
	requests *Shared

	mu   sync.Mutex
	open map[net.Conn]*connection
	// The connections that no request of a user holds, in the order in which they came into the list.
	idle, pending list.List // of *connection
}

// connection is one connection of a Connections.
type connection struct {
	net.Conn
	requests int // of users, which hold it
	hijacked bool
	evicted  bool          // it was closed, and the server has not yet noticed
	list     *list.List    // that has it; nil: it is held, or closed
	element  *list.Element // of list
}

// NewConnections returns a bound of max connections. users knows the weights; nil: all are the same.
func NewConnections(max int, users *Users) *Connections {
	return &Connections{max: max, requests: NewShared(max, users), open: map[net.Conn]*connection{}}
}

type connectionKey struct{}

// Watch makes a server count its connections. It is called before the server serves.
func (c *Connections) Watch(server *http.Server) {
	server.ConnState = c.note
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connectionKey{}, conn)
	}
}

// Hold takes a slot for a user's request, whose context is ctx, and keeps its connection open until release is called,
// which must be called once. It returns ErrFull if the user's requests hold all slots that the user may take.
func (c *Connections) Hold(ctx context.Context, user string) (release func(), err error) {
	if c == nil {
		return func() {}, nil
	}
	releaseSlot, err := c.requests.Acquire(ctx, user, 0)
	if err != nil {
		return nil, err
	}
	conn, _ := ctx.Value(connectionKey{}).(net.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.open[conn]
	if held == nil {
		return releaseSlot, nil
	}
	held.requests++
	c.move(held, nil)
	return func() {
		c.endRequest(held)
		releaseSlot()
	}, nil
}

func (c *Connections) endRequest(held *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held.requests--
	if held.requests == 0 && held.hijacked { // its handler has closed it
		delete(c.open, held.Conn)
		return
	}
	c.move(held, &c.pending)
}

// note is the ConnState of the servers.
func (c *Connections) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	noted := c.open[conn]
	switch {
	case state == http.StateNew:
		noted = &connection{Conn: conn}
		c.open[conn] = noted
		c.move(noted, &c.pending)
		if len(c.open) > c.max {
			c.evict()
		}
	case noted == nil: // it is forgotten
	case state == http.StateClosed, state == http.StateHijacked && noted.requests == 0:
		delete(c.open, conn)
		c.move(noted, nil)
	case state == http.StateHijacked:
		noted.hijacked = true
	case state == http.StateIdle:
		c.move(noted, &c.idle)
	default:
		c.move(noted, &c.pending)
	}
}

// move takes a connection out of its list and puts it at the end of another one, unless it is held or closed. The
// caller holds mu.
func (c *Connections) move(conn *connection, to *list.List) {
	if conn.list != nil {
		conn.list.Remove(conn.element)
		conn.list, conn.element = nil, nil
	}
	if to != nil && conn.requests == 0 && !conn.evicted {
		conn.list, conn.element = to, to.PushBack(conn)
	}
}

// evict closes a connection, which counts until the server notices. The caller holds mu and has added a pending one.
func (c *Connections) evict() {
	longest := c.idle.Front()
	if longest == nil {
		longest = c.pending.Front()
	}
	conn := longest.Value.(*connection)
	conn.evicted = true
	c.move(conn, nil)
	raw := conn.Conn
	if encrypted, ok := raw.(*tls.Conn); ok {
		raw = encrypted.NetConn() // Close of the other would wait until the client reads
	}
	_ = raw.Close()
}
