package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"glasshouse/sandbox"
)

// admin is the caller of a service that a command has built for itself.
var admin = sandbox.Key{User: sandbox.AdminUser, Role: sandbox.RoleAdmin}

// client calls the service that runs on a data folder, with the first admin key.
type client struct{ address, key string }

// callsService says in the help of a command with urlFlag which service the command calls.
const callsService = "The command calls a running service: that of --url with the key in the environment variable " +
	"GLASSHOUSE_KEY, or the one that runs on the data folder."

// urlFlag adds --url to a command. serviceClient takes its value.
func urlFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("url", "", "`ADDRESS` of the service; empty: the service of the data folder")
}

// serviceClient returns a client of the service at url with the key in GLASSHOUSE_KEY. An empty url means the service
// that runs on a data folder, whose admin key is used unless GLASSHOUSE_KEY is set.
func serviceClient(dataDir, url string) (*client, error) {
	c := &client{strings.TrimRight(strings.TrimSpace(url), "/"), os.Getenv("GLASSHOUSE_KEY")}
	if c.address == "" {
		local := dial(dataDir)
		if local == nil {
			return nil, noService(dataDir, "name one with --url")
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

// dial returns a client of the service that runs on a data folder, or nil if none answers.
func dial(dataDir string) *client {
	address, err := os.ReadFile(filepath.Join(dataDir, "address"))
	key, err2 := os.ReadFile(filepath.Join(dataDir, "admin.key"))
	if err != nil || err2 != nil {
		return nil
	}
	c := &client{strings.TrimSpace(string(address)), strings.TrimSpace(string(key))}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if c.call(ctx, "GET", "/healthz", nil, &map[string]any{}) != nil {
		return nil // a killed service left the address behind
	}
	return c
}

// noService returns the error for a data folder on which dial has found no service. remedy says how to name another.
func noService(dataDir, remedy string) error {
	if _, err := os.ReadFile(filepath.Join(dataDir, "admin.key")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf(
			"the admin key of the data folder cannot be read: %w; use the account that runs the service, or %s",
			err, remedy)
	}
	return fmt.Errorf("no service runs on %s: start it with `glasshouse serve`, or %s", dataDir, remedy)
}

// call sends in as JSON, unless it is nil, and decodes the answer into out. An HTTP status of 300 or more
// is an error with the answer's detail.
func (c *client) call(ctx context.Context, method, path string, in, out any) error {
	body, err := c.send(ctx, method, path, in, "application/json")
	if err != nil {
		return err
	}
	defer body.Close()
	return json.NewDecoder(body).Decode(out)
}

// send sends in as JSON, unless it is nil, and returns the body of the answer, which the caller closes. An HTTP status
// of 300 or more is an error with the answer's detail.
func (c *client) send(ctx context.Context, method, path string, in any, accept string) (io.ReadCloser, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.address+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= 300 {
		defer res.Body.Close()
		return nil, fmt.Errorf("%s: %s", res.Status, problemDetail(res.Body))
	}
	return res.Body, nil
}

// problemDetail returns the detail of an error's answer; empty if it has none.
func problemDetail(body io.Reader) string {
	var problem struct{ Detail string }
	_ = json.NewDecoder(body).Decode(&problem)
	return problem.Detail
}

// readFile reads the file that a command was given; - is standard input.
func readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(os.Stdin)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("the file cannot be read: %w; name a file that your account can read", err)
	}
	return content, nil
}
