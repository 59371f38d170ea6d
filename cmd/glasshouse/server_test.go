package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"glasshouse/policy/limit"
)

// A client that reads a large answer slowly, for much longer than it may stand still,
// has all of it: the kernel would say too late that it goes on.
func TestServeASlowReader(t *testing.T) {
	sockets := listenConfig()
	listener, err := sockets.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.Repeat([]byte("0123456789abcdef"), 10<<16)
	ended := make(chan error, 1)
	server := &http.Server{Handler: limit.StallTimeout(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(text)
		ended <- err
	}), time.Second)}
	defer server.Close()
	go func() { _ = server.Serve(listener) }()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	for tick, had := time.Tick(50*time.Millisecond), int64(0); had < int64(len(text)); <-tick {
		n, err := io.CopyN(io.Discard, in, 50<<10)
		if had += n; err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("after %d bytes: %v", had, err)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Who comes when as many are there as may be is let go, and has room again when one has gone.
func TestConnectionsAreBounded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), 2)
	defer server.Close()
	go func() { _ = server.Serve(listener) }()
	answered := func(conn net.Conn) bool {
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: here\r\n\r\n")
		_, err := http.ReadResponse(bufio.NewReader(conn), nil)
		return err == nil
	}
	var conns []net.Conn
	for n := range 3 {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
		if got := answered(conn); got != (n < 2) {
			t.Errorf("connection %d is answered: %v", n+1, got)
		}
	}
	conns[0].Close()
	for {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if answered(conn) {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("there is no room again")
		}
	}
}
