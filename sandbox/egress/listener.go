package egress

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"

	"glasshouse/policy/limit"
)

// limitedListener bounds the number of accepted connections; the others wait in the kernel's queue. It differs from
// netutil.LimitListener in that its connections can close one direction.
type limitedListener struct {
	net.Listener
	slots       *limit.Slots
	descriptors *limit.Descriptors
	ctx         context.Context // ends with Close
	end         context.CancelFunc
}

func newLimitedListener(l net.Listener, maxConns int, descriptors *limit.Descriptors) *limitedListener {
	ctx, end := context.WithCancel(context.Background())
	return &limitedListener{
		Listener: l, slots: limit.NewSlots(maxConns), descriptors: descriptors, ctx: ctx, end: end,
	}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	release, err := l.slots.Acquire(l.ctx, limit.Forever)
	if err != nil {
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	for err == nil && checkDescriptor(l.descriptors, c) != nil {
		_ = c.Close()
		c, err = l.Listener.Accept()
	}
	if err != nil {
		release()
		return nil, err
	}
	return &limitedConn{Conn: c, release: sync.OnceFunc(release)}, nil
}

// checkDescriptor returns limit.ErrNoDescriptors if a connection has a descriptor of the reserve.
func checkDescriptor(descriptors *limit.Descriptors, c net.Conn) error {
	system, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := system.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := raw.Control(func(fd uintptr) { err = descriptors.Check(int(fd)) })
	return errors.Join(err, controlErr)
}

func (l *limitedListener) Close() error {
	l.end()
	return l.Listener.Close()
}

// limitedConn is an accepted connection, which releases its slot when it closes.
type limitedConn struct {
	net.Conn
	release func()
}

func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

func (c *limitedConn) CloseWrite() error { return closeWrite(c.Conn) }

// closeWrite closes the sending direction of a connection, if its type supports that. The other side then reads EOF,
// and can still answer.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
