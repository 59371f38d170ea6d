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

// VS Code's test client drives a session. `scripts/test clients` installs the client.
func TestVSCodeTestClient(t *testing.T) {
	t.Parallel()
	runVSCodeTestClient(t, "steps.js")
}

// It steps into a statement, through its stages and out again.
func TestVSCodeTestClientStepsIntoSQL(t *testing.T) {
	t.Parallel()
	runVSCodeTestClient(t, "sql.js")
}

func runVSCodeTestClient(t *testing.T, script string) {
	t.Helper()
	if os.Getenv("GLASSHOUSE_CLIENT_VSCODE") == "" {
		t.Fatal(
			"GLASSHOUSE_CLIENT_VSCODE is not set; set it to a folder with the packages of testdata/clients/vscode, as `scripts/test clients` does",
		)
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
			err = dap.Serve(t.Context(), conn, testServices.debug.Attach)
		}
		over <- err
	}()
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	out, err := exec.CommandContext(ctx, "node", "testdata/clients/vscode/"+script, port, c.secret,
		id).CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "ok" {
		t.Fatalf("got %v\n%s\nwant ok", err, out)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
}
