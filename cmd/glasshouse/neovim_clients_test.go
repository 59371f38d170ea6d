//go:build clients

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Neovim debugs a file with nvim-dap and the configuration of the documentation. No package registry has nvim-dap, so
// the test is not run unless GLASSHOUSE_CLIENT_NEOVIM names a checkout of it.
func TestNeovim(t *testing.T) {
	t.Parallel()
	editor, err := exec.LookPath("nvim")
	if err != nil {
		t.Skip("there is no nvim in PATH; install Neovim")
	}
	plugin := os.Getenv("GLASSHOUSE_CLIENT_NEOVIM")
	if plugin == "" {
		t.Skip("GLASSHOUSE_CLIENT_NEOVIM is not set; set it to a checkout of nvim-dap that fits this Neovim")
	}
	page, err := os.ReadFile("../../docs/debugging.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```lua\n(.*?)```").FindSubmatch(page)
	if found == nil {
		t.Fatal("docs/debugging.md has no configuration for Neovim")
	}
	dir, folder := dataDir(t), t.TempDir()
	start(t, binary(t), dir, withPackages())
	files := map[string]string{
		"snippet.lua": string(found[1]),
		"orders.py":   "total = 0\nfor n in [3, 4]:\n    total += n\nprint('total is', total)\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(binary(t), filepath.Join(folder, "glasshouse")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, editor, "--headless", "-u", "testdata/clients/neovim/check.lua",
		filepath.Join(folder, "orders.py"))
	cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "GLASSHOUSE_DATA_DIR="+dir, "HOME="+folder,
		"NVIM_DAP="+plugin, "SNIPPET="+filepath.Join(folder, "snippet.lua"))
	if out, err := cmd.Output(); err != nil || strings.TrimSpace(string(out)) != "ok" {
		t.Fatalf("got %v\n%s\nwant ok", err, out)
	}
}
