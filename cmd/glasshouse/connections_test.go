package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// heldRequest is the answer to a request that keeps its connection.
type heldRequest struct {
	status int
	text   string // of an error
	err    error  // the connection was closed
}

// alone sends each request on a connection of its own.
var alone = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// hold sends a request as the client, and sends its status to answers. The connection stays open until ctx ends.
func (c *client) hold(ctx context.Context, path string, answers chan<- heldRequest) {
	req, err := http.NewRequestWithContext(ctx, "GET", c.address+path, nil)
	if err != nil {
		answers <- heldRequest{err: err}
		return
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if strings.HasSuffix(path, "/channels") {
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "websocket")
		req.Header.Set("Sec-WebSocket-Version", "13")
		req.Header.Set("Sec-WebSocket-Key", "MDEyMzQ1Njc4OWFiY2RlZg==")
	}
	res, err := alone.Do(req)
	if err != nil {
		answers <- heldRequest{err: err}
		return
	}
	defer res.Body.Close()
	var text []byte
	if res.StatusCode >= 300 {
		text, _ = io.ReadAll(res.Body)
	}
	answers <- heldRequest{status: res.StatusCode, text: string(text)}
	<-ctx.Done()
}

// openConnections returns the number of TCP connections that the service at an address has not closed.
func openConnections(t *testing.T, address string) (n int) {
	t.Helper()
	_, port, _ := strings.Cut(strings.TrimPrefix(address, "http://"), ":")
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		columns := strings.Fields(line)
		isOpen := len(columns) > 3 && (columns[3] == "01" || columns[3] == "08") // ESTABLISHED, CLOSE_WAIT
		if isOpen && strings.HasSuffix(columns[1], fmt.Sprintf(":%04X", number)) {
			n++
		}
	}
	return n
}

// One user's streams, waiting requests and WebSockets leave connections to other users. More of them get 429 at once.
func TestConnectionsOfAUserLeaveSomeToOthers(t *testing.T) {
	t.Parallel()
	// With 1024 descriptors the service has 104 connections. One user can hold 84 of them, which are not closed.
	const sent, refused = 100, 16
	const maxLeft = 104 - sent - 1 // between two of the cases, for the service never to have too many
	_, admin := start(t, limited(t, "ulimit -n 1024"), dataDir(t), "--compat", "jupyter")
	ada, grace := admin.newUser(t, "ada"), admin.newUser(t, "grace")
	id := ada.begin(t, ada.newSandbox(t, nil), "import time\nwhile True: time.sleep(1)")
	var channels []string
	for range 4 { // one has at most 32 clients
		k := ada.must(t, "POST", "/jupyter/api/kernels", nil)
		channels = append(channels, fmt.Sprintf("/jupyter/api/kernels/%s/channels", k["id"]))
	}
	for name, paths := range map[string][]string{
		"event streams":    {"/executions/events"},
		"waiting requests": {"/executions/" + id + "?wait=300"},
		"WebSockets":       channels,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answers := make(chan heldRequest, sent)
			for n := range sent {
				go ada.hold(ctx, paths[n%len(paths)], answers)
			}
			timeout := time.After(5 * time.Minute) // a busy machine needs a while
			for n, held := 0, 0; n < refused; {
				select {
				case a := <-answers:
					if a.status == http.StatusOK || a.status == http.StatusSwitchingProtocols {
						if held++; held > sent-refused {
							t.Fatalf("%d requests of %d are held, want %d", held, sent, sent-refused)
						}
						continue
					}
					if n++; a.status != http.StatusTooManyRequests ||
						!strings.Contains(a.text, "your requests hold all connections") {
						t.Errorf("refusal %d: got HTTP %d %s, %v; want 429 with the reason", n, a.status, a.text, a.err)
					}
				case <-timeout: // fail instead of hanging
					t.Fatalf("%d requests of %d are refused, want %d", n, sent, refused)
				}
			}
			for range 5 {
				answer := make(chan heldRequest, 1)
				short, end := context.WithCancel(ctx)
				go grace.hold(short, "/me", answer)
				if a := <-answer; a.status != http.StatusOK {
					t.Errorf("another user: got HTTP %d %s, %v; want 200", a.status, a.text, a.err)
				}
				end()
			}
			cancel()
			eventually(t, func() error { // the service has noticed that the connections are closed
				if n := openConnections(t, ada.address); n > maxLeft {
					return fmt.Errorf("the service still has %d connections", n)
				}
				return nil
			})
			eventually(t, func() error {
				answer := make(chan heldRequest, 1)
				ended, end := context.WithCancel(t.Context())
				defer end()
				go ada.hold(ended, "/me", answer)
				if a := <-answer; a.status != http.StatusOK {
					return errors.Join(fmt.Errorf("afterwards: got HTTP %d %s, want 200", a.status, a.text), a.err)
				}
				return nil
			})
		})
	}
}
