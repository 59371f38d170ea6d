//go:build clients

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestMCPClients runs real clients of MCP, unchanged, against the service.
func TestMCPClients(t *testing.T) {
	_, admin := start(t, binary(t), dataDir(t))
	for folder, variable := range map[string]string{
		"mcp": "GLASSHOUSE_CLIENT_MCP", "mcp-before": "GLASSHOUSE_CLIENT_MCP_BEFORE",
	} {
		t.Run(folder, func(t *testing.T) {
			installed := os.Getenv(variable)
			if installed == "" {
				t.Fatalf("%s must name the folder of the client; scripts/test clients installs it", variable)
			}
			cmd := exec.Command(filepath.Join(installed, "bin", "python"),
				filepath.Join("testdata", "clients", folder, "check.py"), admin.address, binary(t))
			cmd.Env = append(os.Environ(), "GLASSHOUSE_KEY="+admin.newUser(t, folder).key)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}
