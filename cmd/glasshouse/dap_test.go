package main

import (
	"context"
	"errors"
	"net"
	"testing"

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
