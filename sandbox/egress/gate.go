package egress

import (
	"net"
	"sync"
)

// gate is a listener that holds so many accepted connections at a time; those
// beyond wait in the kernel's queue.
type gate struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	close  sync.Once
}

func newGate(l net.Listener, places int) *gate {
	return &gate{Listener: l, places: make(chan struct{}, places), closed: make(chan struct{})}
}

func (g *gate) Accept() (net.Conn, error) {
	select {
	case g.places <- struct{}{}:
	case <-g.closed:
		return nil, net.ErrClosed
	}
	c, err := g.Listener.Accept()
	if err != nil {
		<-g.places
		return nil, err
	}
	return &admitted{Conn: c, leave: sync.OnceFunc(func() { <-g.places })}, nil
}

func (g *gate) Close() error {
	g.close.Do(func() { close(g.closed) })
	return g.Listener.Close()
}

// admitted is an accepted connection, which gives its place back when it closes.
type admitted struct {
	net.Conn
	leave func()
}

func (a *admitted) Close() error {
	defer a.leave()
	return a.Conn.Close()
}

func (a *admitted) CloseWrite() error { return closeWrite(a.Conn) }

// closeWrite ends what a connection sends, where it can end that alone, so that the
// other end reads to its end and may still answer.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
