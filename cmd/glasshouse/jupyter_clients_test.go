//go:build clients

package main

import (
	"net/http"
	"strings"
	"testing"
)

// TestJupyterClients runs real clients of a Jupyter server, unchanged, with the lines of docs/clients.md.
func TestJupyterClients(t *testing.T) {
	page := startClientsPage(t)
	for client, section := range map[string]string{"jupyter": "jupyterlab-and-notebooks", "open-webui": "open-webui"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			page.check(t, section, client, client+"/check.py")
		})
	}
	t.Run("vs-code", func(t *testing.T) {
		t.Parallel()
		printed, err := page.command(t, "vs-code", "").Output()
		if err != nil {
			t.Fatal(err)
		}
		url := strings.Replace(strings.TrimSpace(string(printed)), "/?token=", "/api/kernelspecs?token=", 1)
		response, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: got the status %d, want 200", printed, response.StatusCode)
		}
	})
}
