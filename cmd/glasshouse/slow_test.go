package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"glasshouse/service/httpapi"
)

// A client that reads a large answer slowly, for much longer than it may stand still,
// has all of it: the kernel would say too late that it goes on.
func TestServeASlowReader(t *testing.T) {
	sockets := sockets()
	listener, err := sockets.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.Repeat([]byte("0123456789abcdef"), 10<<16)
	ended := make(chan error, 1)
	server := &http.Server{Handler: httpapi.Paced(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
