package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/coder/websocket"
	"github.com/spf13/cobra"

	"glasshouse/debugger/dap"
)

func newDAPCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dap [flags]", Short: "Serve the Debug Adapter Protocol on stdin and stdout", Args: arguments(0, 0),
		Long: "Serve the Debug Adapter Protocol (DAP) on stdin and stdout, for an editor that starts its debug " +
			"adapters.\n\nlaunch takes program, a Python file, and runs it in a fresh sandbox, or in the one that " +
			"sandbox names. attach takes session or execution. " + callsService,
		Example: "  glasshouse dap\n  GLASSHOUSE_URL=https://glasshouse.example GLASSHOUSE_KEY=gh_... glasshouse dap",
	}
	url := urlFlag(cmd)
	return withSettings(cmd, func(ctx context.Context, s settings, _ []string) error {
		a := &dap.Adapter{OpenProgram: func(path string) (io.ReadCloser, error) { return openRegular(path) }}
		c, err := serviceClient(s.server.dataDir, *url)
		if err != nil { // the editor shows the error of a launch, and not what is written to stderr
			a.CreateSandbox = func(context.Context, json.RawMessage) (string, error) { return "", err }
			a.Dial = func(context.Context) (io.ReadWriteCloser, error) { return nil, err }
		} else {
			a.Key, a.Dial, a.CreateSandbox, a.DeleteSandbox = c.key, c.dialDAP, c.createSandbox, c.deleteSandbox
		}
		return a.Serve(ctx, os.Stdin, os.Stdout)
	})
}

// dialDAP connects to the service's DAP endpoint.
func (c *client) dialDAP(ctx context.Context) (io.ReadWriteCloser, error) {
	socket, res, err := websocket.Dial(ctx, c.address+"/debug/dap", &websocket.DialOptions{
		HTTPClient: httpClient,
		HTTPHeader: http.Header{"Authorization": {"Bearer " + c.key}},
	})
	if err != nil {
		if res != nil && res.StatusCode >= 300 {
			return nil, fmt.Errorf("connect to %s: %s: %s", c.address, res.Status, problemDetail(res.Body))
		}
		return nil, fmt.Errorf("connect to %s: %w", c.address, err)
	}
	socket.SetReadLimit(-1)
	return websocket.NetConn(context.WithoutCancel(ctx), socket, websocket.MessageBinary), nil
}

func (c *client) createSandbox(ctx context.Context, policy json.RawMessage) (id string, err error) {
	var created struct {
		ID string `json:"sandbox_id"`
	}
	var in any // no body: the default policy
	if policy != nil {
		in = policy
	}
	err = c.call(ctx, "POST", "/sandbox/create", in, &created)
	return created.ID, err
}

func (c *client) deleteSandbox(ctx context.Context, id string) error {
	return c.call(ctx, "DELETE", "/sandbox/"+id, nil, &map[string]any{})
}
