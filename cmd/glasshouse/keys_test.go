package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAdminKeyIsReplaced replaces the key that the service was started with. Until then it cannot be revoked;
// afterwards the service does not start with it.
func TestAdminKeyIsReplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	path, dir := binary(t), dataDir(t)
	cmd, c := start(t, path, dir)
	secret, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	first := strings.TrimSpace(string(secret))
	list := c.must(t, "GET", "/keys", nil)["keys"].([]any)
	id := fmt.Sprint(list[0].(map[string]any)["id"])
	second := fmt.Sprint(c.must(t, "POST", "/keys", map[string]any{"name": "second", "role": "admin"})["key"])
	agent := fmt.Sprint(c.must(t, "POST", "/keys", map[string]any{"name": "agent", "user_id": "ada"})["key"])
	revoke := func(query string) (map[string]any, error) {
		out := map[string]any{}
		return out, c.call(context.Background(), "DELETE", "/keys/"+id+query, nil, &out)
	}
	create := exec.Command(path, "keys", "create", "--data-dir", dir, "--name", "past", "--expires", "-1h")
	if out, err := create.CombinedOutput(); err == nil || !strings.Contains(string(out), "--expires is -1h0m0s") {
		t.Errorf("create a key that has expired: got %v and %s, want a refusal", err, out)
	}
	if _, err := revoke(""); err == nil || !strings.Contains(err.Error(), "--admin-key") {
		t.Errorf("revoke the key of the start: got %v, want a refusal that names --admin-key", err)
	}
	stop(t, cmd)

	cmd, c = start(t, path, dir, "--admin-key", second)
	if _, err := revoke(""); err == nil || !strings.Contains(err.Error(), "--admin-key") {
		t.Errorf("revoke the key that made the new one: got %v, want a refusal that names --admin-key", err)
	}
	if out, err := revoke("?keep_made=true"); err != nil || fmt.Sprint(out["revoked"]) != fmt.Sprint([]any{id}) {
		t.Errorf("got %v, %v, want %s revoked", out, err, id)
	}
	c.must(t, "GET", "/keys", nil)
	stop(t, cmd)

	for given, want := range map[string]string{first: "was revoked on", agent: `is the key of the agent "ada"`} {
		serve := exec.Command(path, "serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--admin-key", given)
		out, err := serve.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "another --admin-key") {
			t.Errorf("start: got %v and %s, want an error with %q", err, out, want)
		}
	}
	cmd, c = start(t, path, dir) // the file still has the second
	c.must(t, "GET", "/keys", nil)
	stop(t, cmd)
}

// TestErrorsOfADataFolderSayWhatToDo uses a folder whose files cannot be read or written. The test may run as root, so
// they are folders.
func TestErrorsOfADataFolderSayWhatToDo(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), t.TempDir()
	for _, name := range []string{"admin.key", "lock"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for arguments, want := range map[string]string{
		"keys list":                  "use the account that runs the service, or name one with --url",
		"mcp":                        "use the account that runs the service, or name one with --url",
		"serve --listen 127.0.0.1:0": "choose another --data-dir, or use its owner's account",
	} {
		cmd := exec.Command(path, append(strings.Fields(arguments), "--data-dir", dir)...)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("glasshouse %s: got %v and %s, want an error with %q", arguments, err, out, want)
		}
	}
}
