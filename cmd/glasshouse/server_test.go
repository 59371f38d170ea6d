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

// TestConnectionsOverTheLimitAreClosed has a limit of two: a busy connection stays, an idle one makes room for a new
// one, and if all are busy, the new one is closed.
func TestConnectionsOverTheLimitAreClosed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			_ = http.NewResponseController(w).Flush() // the client knows that the connection is busy
			<-release
		}
	}), 2, newLog(settings{}))
	defer server.Close()
	go func() { _ = server.Serve(listener) }()
	connect := func(path string) (conn net.Conn, isAnswered bool) {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: here\r\n\r\n")
		_, err = http.ReadResponse(bufio.NewReader(conn), nil)
		return conn, err == nil
	}
	mustAnswer := func(path string) net.Conn {
		t.Helper()
		var conn net.Conn
		eventually(t, func() (err error) { // the server may not have noticed that the last connection is closed or idle
			var isAnswered bool
			if conn, isAnswered = connect(path); !isAnswered {
				err = errors.New("a connection is closed although another one is idle")
			}
			return err
		})
		return conn
	}
	mustAnswer("/slow")
	idle := mustAnswer("/")
	mustAnswer("/")
	if n, err := idle.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("the idle connection: got %d bytes, %v; want it closed", n, err)
	}
	mustAnswer("/slow")
	if _, isAnswered := connect("/"); isAnswered {
		t.Error("a connection over the limit is answered although all others are busy")
	}
	close(release)
	mustAnswer("/")
}
