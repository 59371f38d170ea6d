package main

import (
	"log"
	"net"
	"net/http"
	"sync/atomic"
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

// newServer returns a server with header and idle timeouts that rejects connections over the limit. It logs its errors
// as warnings.
func newServer(handler http.Handler, maxConnections int64, errors *logrus.Logger) *http.Server {
	var open atomic.Int64
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: log.New(serverErrors{errors}, "", 0),
		ConnState: func(conn net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				if open.Add(1) > maxConnections {
					_ = conn.Close()
				}
			case http.StateHijacked, http.StateClosed:
				open.Add(-1)
			}
		},
	}
}

// connectionLimit returns how many connections a server may have: half of the process's file
// descriptors, since the service needs some to answer them.
func connectionLimit() int64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 500
	}
	return int64(min(limit.Cur/2, 1<<16))
}
