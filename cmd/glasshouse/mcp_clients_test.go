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
	mcpClient{admin, "2025-11-25"}.tool(t, "run_python", map[string]any{"code": "1"}) // waits until Python is warm
	for folder, variable := range map[string]string{
		"mcp": "GLASSHOUSE_CLIENT_MCP", "mcp-before": "GLASSHOUSE_CLIENT_MCP_BEFORE",
	} {
		t.Run(folder, func(t *testing.T) {
			installed := os.Getenv(variable)
			if installed == "" {
				t.Skipf("%s is not set; set it to a folder with the packages of testdata/clients/%s, as "+
					"`scripts/test clients` does", variable, folder)
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
