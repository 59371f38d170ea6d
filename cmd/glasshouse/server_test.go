package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"glasshouse/policy/limit"
)

// TestSlowReaderReceivesTheWholeAnswer reads a large answer for much longer than the stall timeout. With the
// kernel's own buffers, the server would see no progress for too long.
func TestSlowReaderReceivesTheWholeAnswer(t *testing.T) {
	t.Parallel()
	sockets := listenConfig()
	listener, err := sockets.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	body := bytes.Repeat([]byte("0123456789abcdef"), 10<<16)
	written := make(chan error, 1)
	server := &http.Server{Handler: limit.StallTimeout(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(body)
		written <- err
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
	for tick, received := time.Tick(50*time.Millisecond), int64(0); received < int64(len(body)); <-tick {
		n, err := io.CopyN(io.Discard, in, 50<<10)
		if received += n; err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("got %v after %d bytes, want %d bytes", err, received, len(body))
		}
	}
	if err := <-written; err != nil {
		t.Errorf("the handler: got %v, want the whole answer written", err)
	}
}

// TestConnectionsOverTheLimitAreClosed also covers that closing a connection lets another one in.
func TestConnectionsOverTheLimitAreClosed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), 2, newLog(settings{}))
	defer server.Close()
	go func() { _ = server.Serve(listener) }()
	connect := func() (conn net.Conn, answered bool) {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: here\r\n\r\n")
		_, err = http.ReadResponse(bufio.NewReader(conn), nil)
		return conn, err == nil
	}
	first, _ := connect()
	for n, want := range []bool{true, false} {
		if _, got := connect(); got != want {
			t.Errorf("connection %d: got answered %v, want %v", n+2, got, want)
		}
	}
	first.Close()
	eventually(t, func() error {
		if _, answered := connect(); !answered {
			return errors.New("no connection is answered after one was closed")
		}
		return nil
	})
}
