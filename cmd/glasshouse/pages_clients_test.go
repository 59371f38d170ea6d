//go:build clients

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestPages opens the pages under /ui/ in Chromium: sign-in, lists, filters, live updates, hostile outputs, revoked
// keys, and what axe-core says of each page in both colour schemes. GLASSHOUSE_SCREENSHOTS names a folder that gets a
// picture of each page.
func TestPages(t *testing.T) {
	t.Parallel()
	if os.Getenv("GLASSHOUSE_CLIENT_PAGES") == "" {
		t.Skip("GLASSHOUSE_CLIENT_PAGES does not name the folder of playwright-core; scripts/test clients installs it")
	}
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium in PATH; install Debian's package chromium")
	}
	_, admin := start(t, binary(t), dataDir(t), withPackages())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "testdata/clients/pages/check.js", admin.address, admin.key, browser,
		os.Getenv("GLASSHOUSE_SCREENSHOTS"))
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	checks := 0
	for lines := bufio.NewScanner(out); lines.Scan(); checks++ {
		var check struct{ Name, Error string }
		if err := json.Unmarshal(lines.Bytes(), &check); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		t.Run(check.Name, func(t *testing.T) {
			if check.Error != "" {
				t.Error(check.Error)
			}
		})
	}
	if err := cmd.Wait(); err != nil || checks == 0 {
		t.Fatalf("got %v after %d checks, want all of them\n%s", err, checks, problems.String())
	}
}
