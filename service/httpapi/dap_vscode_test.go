//go:build clients

package httpapi_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"glasshouse/debugger/dap"
	"glasshouse/sandbox"
)

// TestVSCodeTestClient lets VS Code's own test client drive a session. scripts/test has it
// built where node and npm are there.
func TestVSCodeTestClient(t *testing.T) {
	if os.Getenv("GLASSHOUSE_NODE_MODULES") == "" {
		t.Fatal("GLASSHOUSE_NODE_MODULES must name a folder in which testdata/editor's packages are; scripts/test sets it")
	}
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	over := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			err = dap.Serve(t.Context(), conn, testService.AttachDAP)
		}
		over <- err
	}()
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	out, err := exec.CommandContext(ctx, "node", "testdata/editor/steps.js", port, c.secret, id).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "ok" {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
}
