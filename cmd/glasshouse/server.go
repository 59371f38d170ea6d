package main

import (
	"log"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/policy/limit"
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

// newServer returns a server with header and idle timeouts, whose connections are counted by connections. It logs its
// errors as warnings.
func newServer(handler http.Handler, connections *limit.Connections, errors *logrus.Logger) *http.Server {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: log.New(serverErrors{errors}, "", 0),
	}
	connections.Watch(server)
	return server
}
