package main

import (
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// sockets has the kernel hold little that a client has not asked for. It would take
// megabytes, and say only when a third of them is gone that a slow client goes on.
func sockets() net.ListenConfig {
	const notSentLowat = 25 // TCP_NOTSENT_LOWAT, which syscall lacks
	all := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, notSentLowat, 128<<10) // without it, all goes well but for very slow clients
		})
	}}
	all.SetMultipathTCP(false) // whose connections don't inherit it
	return all
}

// serving is a server that lets go of who sends no request in time, or none any more, and
// of who comes when most connections are there.
func serving(handler http.Handler, most int64) *http.Server {
	var there atomic.Int64
	return &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ConnState: func(conn net.Conn, now http.ConnState) {
		switch now {
		case http.StateNew:
			if there.Add(1) > most {
				_ = conn.Close()
			}
		case http.StateHijacked, http.StateClosed:
			there.Add(-1)
		}
	}}
}

// connections is how many may be there: half of the descriptors that the service may
// have, as it needs some itself for what they ask for.
func connections() int64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 500
	}
	return int64(min(limit.Cur/2, 1<<16))
}
