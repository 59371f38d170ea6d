package main

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"glasshouse/debugger/dap"
)

// refuseEditors is an opener that refuses every session.
func refuseEditors(context.Context, dap.Attach) (*dap.Target, error) {
	return nil, errors.New("refused")
}

func TestDAPListensOnLoopbackOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "example.org:0", "nonsense"} {
		if _, _, err := serveDAP(t.Context(), address, refuseEditors, t.Logf); err == nil {
			t.Errorf("--dap-listen %s: got no error, want it refused", address)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	if _, _, err := serveDAP(ctx, address, refuseEditors, t.Logf); err == nil {
		t.Error("an address in use: got no error")
	}
	taken.Close()
	_, wait, err := serveDAP(ctx, address, refuseEditors, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cancel()
	wait() // returns although the client is silent
}

// TestDAPConnectionsAreLimited covers that connections over maxEditors are closed, and that closing a connection
// lets another one in.
func TestDAPConnectionsAreLimited(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	address, wait, err := serveDAP(ctx, "127.0.0.1:0", refuseEditors, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer wait()
	defer cancel()
	// connect reports whether a new connection is served.
	connect := func() (net.Conn, bool) {
		conn, err := net.Dial("tcp", address.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = io.WriteString(
			conn,
			"Content-Length: 47\r\n\r\n{\"seq\":1,\"type\":\"request\",\"command\":\"threads\"}\n",
		)
		n, _ := conn.Read(make([]byte, 1000))
		return conn, n > 0
	}
	var first net.Conn
	for n := range maxEditors {
		conn, ok := connect()
		if !ok {
			t.Fatalf("connection %d of %d is not served", n+1, maxEditors)
		}
		if first == nil {
			first = conn
		}
	}
	if _, ok := connect(); ok {
		t.Errorf("connection %d is served, want it closed", maxEditors+1)
	}
	first.Close()
	eventually(t, func() error {
		if _, ok := connect(); !ok {
			return errors.New("no connection is served after one was closed")
		}
		return nil
	})
}
