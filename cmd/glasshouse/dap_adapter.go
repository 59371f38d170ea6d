package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/coder/websocket"
	"github.com/spf13/cobra"

	"glasshouse/debugger/dap"
)

func newDAPCommand() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use: "dap [flags]", Short: "Serve the Debug Adapter Protocol on stdin and stdout", Args: arguments(0, 0),
		Long: "Serve the Debug Adapter Protocol (DAP) on stdin and stdout, for an editor that starts its debug " +
			"adapters.\n\nlaunch takes program, a Python file, and runs it in a fresh sandbox, or in the one that " +
			"sandbox names. attach takes session or execution. The command calls a running service: that of --url " +
			"with the key in the environment variable GLASSHOUSE_KEY, or the one that runs on the data folder.",
		Example: "  glasshouse dap\n  GLASSHOUSE_URL=https://glasshouse.example GLASSHOUSE_KEY=gh_... glasshouse dap",
	}
	cmd.Flags().StringVar(&url, "url", "", "`ADDRESS` of the service; empty: the service of the data folder")
	return withSettings(cmd, func(ctx context.Context, s settings, _ []string) error {
		a := &dap.Adapter{}
		c, err := serviceClient(s.server.dataDir, url)
		if err != nil { // the editor shows the error of a launch, and not what is written to stderr
			a.CreateSandbox = func(context.Context, json.RawMessage) (string, error) { return "", err }
			a.Dial = func(context.Context) (io.ReadWriteCloser, error) { return nil, err }
		} else {
			a.Key, a.Dial, a.CreateSandbox, a.DeleteSandbox = c.key, c.dialDAP, c.createSandbox, c.deleteSandbox
		}
		return a.Serve(ctx, os.Stdin, os.Stdout)
	})
}

// serviceClient returns a client of the service at url with the key in GLASSHOUSE_KEY. An empty url means the service
// that runs on a data folder, whose admin key is used unless GLASSHOUSE_KEY is set.
func serviceClient(dataDir, url string) (*client, error) {
	c := &client{strings.TrimRight(strings.TrimSpace(url), "/"), os.Getenv("GLASSHOUSE_KEY")}
	if c.address == "" {
		local := dial(dataDir)
		if local == nil {
			return nil, errors.New("no service runs on " + dataDir +
				": start it with `glasshouse serve`, or name one with --url")
		}
		c.address = local.address
		if c.key == "" {
			c.key = local.key
		}
	}
	if c.key == "" {
		return nil, fmt.Errorf(
			"no key for %s: set GLASSHOUSE_KEY; `glasshouse keys create --name NAME` makes one", c.address)
	}
	return c, nil
}

// dialDAP connects to the service's DAP endpoint.
func (c *client) dialDAP(ctx context.Context) (io.ReadWriteCloser, error) {
	socket, res, err := websocket.Dial(ctx, c.address+"/debug/dap", &websocket.DialOptions{
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
