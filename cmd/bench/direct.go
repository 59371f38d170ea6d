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

// direct is a connection whose reads hold their thread, and of which Go's scheduler is told
// nothing: it would look after the others meanwhile, on the cores that the server answers with,
// which is an eighth of the time of a short run. So one process can have but few of them in use.
type direct struct {
	net.Conn // for all but reads, writes and the deadline
	file     *os.File
	fd       int
}

// straight makes a connection a direct one.
func straight(conn *net.TCPConn) (net.Conn, error) {
	file, err := conn.File()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	d := &direct{conn, file, int(file.Fd())} // which lets reads wait
	limit := syscall.NsecToTimeval(int64(patience))
	if err := syscall.SetsockoptTimeval(d.fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &limit); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *direct) Read(p []byte) (int, error) {
	n, err := d.call(syscall.SYS_READ, p)
	if n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return n, err
}

func (d *direct) Write(p []byte) (sent int, err error) {
	for sent < len(p) && err == nil {
		var n int
		n, err = d.call(syscall.SYS_WRITE, p[sent:])
		sent += n
	}
	return sent, err
}

func (d *direct) call(number uintptr, p []byte) (int, error) {
	for {
		switch n, _, err := syscall.RawSyscall(number, uintptr(d.fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p))); err {
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

// SetDeadline ends the connection where the deadline is over; a read waits for no longer than patience.
func (d *direct) SetDeadline(t time.Time) error {
	if time.Until(t) > 0 {
		return nil
	}
	return syscall.Shutdown(d.fd, syscall.SHUT_RDWR)
}

func (d *direct) Close() error { return errors.Join(d.file.Close(), d.Conn.Close()) }
