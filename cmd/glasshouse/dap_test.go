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

func TestEditorsComeOnlyFromHere(t *testing.T) {
	refuse := func(context.Context, dap.Attach) (*dap.Target, error) { return nil, errors.New("no") }
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:0", "example.org:0", "nonsense"} {
		if _, _, err := serveDAP(t.Context(), address, refuse, t.Logf); err == nil {
			t.Errorf("%s was taken", address)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	if _, _, err := serveDAP(ctx, address, refuse, t.Logf); err == nil {
		t.Error("an address that is taken was taken")
	}
	taken.Close()
	_, wait, err := serveDAP(ctx, address, refuse, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cancel()
	wait() // nothing is left, the client that says nothing included
}

// Editors come without a key, so there is an end to how many; who leaves makes room.
func TestEditorsAreBounded(t *testing.T) {
	refuse := func(context.Context, dap.Attach) (*dap.Target, error) { return nil, errors.New("no") }
	ctx, cancel := context.WithCancel(t.Context())
	at, wait, err := serveDAP(ctx, "127.0.0.1:0", refuse, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer wait()
	defer cancel()
	// answered says whether a connection is served.
	answered := func() (net.Conn, bool) {
		conn, err := net.Dial("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		_, _ = io.WriteString(conn, "Content-Length: 47\r\n\r\n{\"seq\":1,\"type\":\"request\",\"command\":\"threads\"}\n")
		n, _ := conn.Read(make([]byte, 1000))
		return conn, n > 0
	}
	var first net.Conn
	for n := range maxEditors {
		conn, ok := answered()
		if !ok {
			t.Fatalf("editor %d was not served", n)
		}
		if first == nil {
			first = conn
		}
	}
	if _, ok := answered(); ok {
		t.Error("one more was served")
	}
	first.Close()
	for began := time.Now(); ; {
		if _, ok := answered(); ok {
			break
		}
		if time.Since(began) > 5*time.Second {
			t.Fatal("there is no room for one that comes when another has left")
		}
	}
}
