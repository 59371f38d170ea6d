//go:build clients

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestJupyterClients runs real clients of a Jupyter server, unchanged, against a listener of their own.
func TestJupyterClients(t *testing.T) {
	address := reserveAddress(t)
	_, admin := start(t, binary(t), dataDir(t), withPackages(), "--compat", "jupyter="+address)
	mcpClient{admin, "2025-11-25"}.tool(t, "run_python", map[string]any{"code": "1"}) // waits until Python is warm
	for _, folder := range []string{"jupyter", "open-webui"} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(filepath.Join(installedClient(t, folder), "bin", "python"),
				filepath.Join("testdata", "clients", folder, "check.py"), "http://"+address)
			cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "GLASSHOUSE_KEY="+admin.newUser(t, folder).key)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%.20000s", err, out)
			}
		})
	}
}
