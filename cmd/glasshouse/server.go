package main

import (
	"container/list"
	"log"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
)

// listenConfig returns a configuration whose sockets hold at most 128 KiB that the client has not yet
// received. Otherwise the kernel buffers megabytes and reports only after a third of them that a slow
// client still reads, which would exceed the stall timeout.
func listenConfig() net.ListenConfig {
	const notSentLowat = 25 // TCP_NOTSENT_LOWAT, which package syscall lacks
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			// An error is ignored: only very slow clients need the option.
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, notSentLowat, 128<<10)
		})
	}}
	config.SetMultipathTCP(false) // its connections do not inherit the option
	return config
}

// newServer returns a server with header and idle timeouts and at most maxConnections connections. It logs its errors
// as warnings.
func newServer(handler http.Handler, maxConnections int, errors *logrus.Logger) *http.Server {
	connections := &connections{max: maxConnections, idle: map[net.Conn]*list.Element{}}
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: log.New(serverErrors{errors}, "", 0), ConnState: connections.note,
	}
}

// connections bounds the connections of a server. If there are too many, it closes the one that has been idle longest,
// so that clients which keep connections open do not keep others out. If none is idle, it closes the new one.
type connections struct {
	max int

	mu      sync.Mutex
	open    int
	idle    map[net.Conn]*list.Element // of waiting
	waiting list.List                  // idle connections, the one that has been idle longest first
}

// note is the server's ConnState.
func (c *connections) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.idle[conn]; e != nil {
		c.waiting.Remove(e)
		delete(c.idle, conn)
	}
	switch state {
	case http.StateNew:
		if c.open++; c.open <= c.max {
			return
		}
		if longest := c.waiting.Front(); longest != nil {
			conn = c.waiting.Remove(longest).(net.Conn)
			delete(c.idle, conn)
		}
		_ = conn.Close()
	case http.StateIdle:
		c.idle[conn] = c.waiting.PushBack(conn)
	case http.StateHijacked, http.StateClosed:
		c.open--
	}
}
