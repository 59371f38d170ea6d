//go:build clients

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The VS Code extension is packed by vsce, and VS Code's own test client debugs a file with the adapter that it names.
func TestVSCodeExtension(t *testing.T) {
	t.Parallel()
	if os.Getenv("GLASSHOUSE_CLIENT_VSCODE_EXTENSION") == "" {
		t.Fatal(
			"GLASSHOUSE_CLIENT_VSCODE_EXTENSION must name the folder of the client; scripts/test clients installs it",
		)
	}
	dir := dataDir(t)
	start(t, binary(t), dir, withPackages())
	source, err := filepath.Abs("../../clients/vscode")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "testdata/clients/vscode-extension/check.js", binary(t), dir, source)
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "ok" {
		t.Fatalf("got %v\n%s\nwant ok", err, out)
	}
}
