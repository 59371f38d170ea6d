package main

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// blockingConn is a connection whose reads block their thread without the knowledge of Go's scheduler. Otherwise
// the scheduler would wake other threads on the cores that the server needs, which costs an eighth of the time
// of a short run. A process can use only few of these connections at a time, since each occupies a processor of
// the scheduler (GOMAXPROCS).
type blockingConn struct {
	net.Conn // for everything but reads, writes and the deadline
	file     *os.File
	fd       int
}

func newBlockingConn(conn *net.TCPConn) (net.Conn, error) {
	file, err := conn.File()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	b := &blockingConn{conn, file, int(file.Fd())} // Fd sets the blocking mode
	limit := syscall.NsecToTimeval(int64(exchangeTimeout))
	if err := syscall.SetsockoptTimeval(b.fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &limit); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *blockingConn) Read(p []byte) (int, error) {
	n, err := b.call(syscall.SYS_READ, p)
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return n, err
}

func (b *blockingConn) Write(p []byte) (sent int, err error) {
	for sent < len(p) && err == nil {
		var n int
		n, err = b.call(syscall.SYS_WRITE, p[sent:])
		sent += n
	}
	return sent, err
}

func (b *blockingConn) call(number uintptr, p []byte) (int, error) {
	for {
		n, _, err := syscall.RawSyscall(number, uintptr(b.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch err {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, os.ErrDeadlineExceeded
		default:
			return 0, err
		}
	}
}

// SetDeadline shuts the connection down if t has passed. Otherwise reads time out after exchangeTimeout.
func (b *blockingConn) SetDeadline(t time.Time) error {
	if time.Until(t) > 0 {
		return nil
	}
	return syscall.Shutdown(b.fd, syscall.SHUT_RDWR)
}

func (b *blockingConn) Close() error { return errors.Join(b.file.Close(), b.Conn.Close()) }
