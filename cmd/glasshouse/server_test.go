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
