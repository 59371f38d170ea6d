package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"glasshouse/service/httpapi"
)

// httpClient follows no redirect: net/http would send the key, and the code, to every port of a host, also without TLS.
var httpClient = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// client calls a service with a key.
type client struct{ address, key string }

// keyVariable is the environment variable of the key. There is no flag for it: every account of a machine can read the
// arguments of a process.
const keyVariable = "GLASSHOUSE_KEY"

// callsService says in the help of a command with urlFlag which service the command calls.
const callsService = "The command calls a running service: that of --url with the key in the environment variable " +
	keyVariable + ", or the one that runs on the data folder."

// callsServiceOrStarts says the same of a command that starts a service if none runs.
const callsServiceOrStarts = callsService +
	" If neither is there, it starts a service on the data folder, which ends " +
	"with the command. It says on stderr which of them it uses."

// urlFlag adds --url to a command. serviceClient takes its value.
func urlFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("url", "", "`ADDRESS` of the service; empty: the service of the data folder")
}

// serviceClient returns a client of the service at address with the key in GLASSHOUSE_KEY. An empty address means the
// service that runs on a data folder, whose admin key is used unless GLASSHOUSE_KEY is set.
func serviceClient(dataDir, address string) (*client, error) {
	c := &client{strings.TrimRight(strings.TrimSpace(address), "/"), strings.TrimSpace(os.Getenv(keyVariable))}
	if c.address == "" {
		local := dialWith(dataDir, c.key)
		if local == nil {
			return nil, noService(dataDir, "name one with --url")
		}
		return local, nil
	}
	if u, err := url.Parse(c.address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("--url (GLASSHOUSE_URL) is not the address of a service, " +
			"such as http://127.0.0.1:8080 or https://glasshouse.example")
	}
	if c.key == "" {
		return nil, fmt.Errorf("no key for %s: set %s; `glasshouse keys create --name NAME` makes one",
			c.address, keyVariable)
	}
	return c, nil
}

// withService makes a command with --url call do with the client of serviceClient.
func withService(cmd *cobra.Command, do func(context.Context, *client, []string) error) *cobra.Command {
	address := urlFlag(cmd)
	return withSettings(cmd, func(ctx context.Context, s settings, args []string) error {
		c, err := serviceClient(s.server.dataDir, *address)
		if err != nil {
			return err
		}
		return do(ctx, c, args)
	})
}

// withServiceForCode calls do with the client of serviceClient. If address is empty and no service runs on the data
// folder, it starts one for this code, and ends it afterwards. It prints to stderr which service it uses.
func withServiceForCode(
	ctx context.Context, s settings, address, code string, do func(*client) error,
) error {
	c, err := serviceClient(s.server.dataDir, address)
	if err == nil {
		fmt.Fprintf(os.Stderr, "glasshouse: using the service at %s\n", c.address)
		return do(c)
	}
	// A key without its address is a forgotten variable: a new service would not have the key's sandboxes and history.
	if address != "" || os.Getenv(keyVariable) != "" {
		return err
	}
	fmt.Fprintf(os.Stderr, "glasshouse: no service runs on %s: starting one there for this command; "+
		"GLASSHOUSE_URL and %s name another\n", s.server.dataDir, keyVariable)
	a, err := buildForCode(ctx, s, code)
	if err != nil {
		return err
	}
	defer a.close(context.WithoutCancel(ctx), s)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := newServer(httpapi.New(a.apiConfig()), a.clients, a.log)
	go func() { _ = server.Serve(listener) }() // until server.Close
	defer server.Close()
	return do(&client{"http://" + listener.Addr().String(), a.adminKey})
}

// dial returns a client of the service that runs on a data folder, with the first admin's key, or nil if none answers.
func dial(dataDir string) *client { return dialWith(dataDir, "") }

// dialWith returns a client of the service that runs on a data folder, or nil if none answers. An empty key means that
// of the first admin, which only the service's account can read.
func dialWith(dataDir, key string) *client {
	address, err := os.ReadFile(filepath.Join(dataDir, "address"))
	if err != nil {
		return nil
	}
	if key == "" {
		text, err := os.ReadFile(filepath.Join(dataDir, "admin.key"))
		if err != nil {
			return nil
		}
		key = strings.TrimSpace(string(text))
	}
	c := &client{strings.TrimSpace(string(address)), key}
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
	res, err := httpClient.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the method and the path
		}
		return nil, fmt.Errorf("no service answers at %s: %w", c.address, err)
	}
	if res.StatusCode < 300 {
		return res.Body, nil
	}
	defer res.Body.Close()
	detail := problemDetail(res.Body)
	location, _ := res.Location() // an error: there is none
	switch {
	case location != nil && res.StatusCode < 400:
		return nil, fmt.Errorf("%s: %s redirects to %s, to which the key is not sent: give the address of the "+
			"service itself", res.Status, c.address, location.Redacted())
	case detail == "":
		return nil, fmt.Errorf("%s: %s answers like another program: is this Glasshouse's address?",
			res.Status, c.address)
	case res.StatusCode == http.StatusUnauthorized && os.Getenv(keyVariable) != "":
		return nil, fmt.Errorf("%s: %s; %s refuses the key in %s", res.Status, detail, c.address, keyVariable)
	}
	return nil, fmt.Errorf("%s: %s", res.Status, detail)
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
