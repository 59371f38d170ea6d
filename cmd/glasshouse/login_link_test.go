package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// loginLink runs `glasshouse login-link` and returns the link and what the command says of it.
func loginLink(t *testing.T, arguments ...string) (link, note string) {
	t.Helper()
	cmd := exec.Command(binary(t), append([]string{"login-link"}, arguments...)...)
	var printed bytes.Buffer
	cmd.Stderr = &printed
	out, err := cmd.Output()
	if link = strings.TrimSuffix(string(out), "\n"); err != nil || !strings.Contains(link, "/login?token=") ||
		strings.ContainsAny(link, " \n") {
		t.Fatalf("login-link: got %v, %q and %s, want a link", err, out, printed.String())
	}
	return link, printed.String()
}

// get opens a link as a program does that does not follow redirects.
func get(t *testing.T, link string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

// follow opens a link and returns the answer.
func follow(t *testing.T, link string) (status int, text string) {
	t.Helper()
	response := get(t, link)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// openLink signs in with a link and returns the secret of the cookie.
func openLink(t *testing.T, link string) string {
	t.Helper()
	response := get(t, link)
	defer response.Body.Close()
	for _, cookie := range response.Cookies() {
		secret, err := url.QueryUnescape(cookie.Value)
		if err == nil && cookie.Name == "glasshouse_key" && secret != "" {
			return secret
		}
	}
	t.Fatalf("%s: got %s without a cookie, want a sign-in", link, response.Status)
	return ""
}

// wantSession requires that a secret is that of an admin's session of this age, and not the admin key of a data folder.
func wantSession(t *testing.T, dir, link, secret string, age time.Duration) {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	address, _, _ := strings.Cut(link, "/login")
	status, text := me(t, address, secret)
	var got struct {
		KeyID     string    `json:"key_id"`
		Role      string    `json:"role"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	_ = json.Unmarshal([]byte(text), &got)
	if left := time.Until(got.ExpiresAt); status != http.StatusOK || !strings.HasPrefix(got.KeyID, "session-") ||
		got.Role != "admin" || left > age || left < age-10*time.Minute || secret == strings.TrimSpace(string(key)) {
		t.Errorf("got HTTP %d %s, want the key of an admin's session that expires in %s", status, text, age)
	}
}

// TestLoginLink signs in with links of the command, before and after a restart.
func TestLoginLink(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), dataDir(t)
	cmd, c := start(t, path, dir, "--oidc-session-age=2h")
	link, note := loginLink(t, "--data-dir", dir)
	if !strings.HasPrefix(link, c.address+"/login?token=") {
		t.Errorf("got %s, want a link to %s", link, c.address)
	}
	_, until, _ := strings.Cut(note, "until ")
	until, _, _ = strings.Cut(until, ";")
	if at, err := time.Parse(time.RFC3339, until); err != nil || time.Until(at) > 10*time.Minute ||
		time.Until(at) < 5*time.Minute {
		t.Errorf("got %q, want when the link expires: in ten minutes", note)
	}
	secret := openLink(t, link)
	wantSession(t, dir, link, secret, 2*time.Hour)
	status, text := follow(t, link)
	if status != http.StatusForbidden || !strings.Contains(text, "glasshouse login-link") {
		t.Errorf("the second time: got HTTP %d %s, want 403 with the command to run", status, text)
	}
	list, err := exec.Command(path, "keys", "list", "--data-dir", dir).CombinedOutput()
	if err != nil || !strings.Contains(string(list), "session-") {
		t.Errorf("keys list: got %v and %s, want the session", err, list)
	}
	unused, _ := loginLink(t, "--data-dir", dir)
	_, token, _ := strings.Cut(unused, "/login")
	stop(t, cmd)

	// A service on all addresses is reached on this machine. The session outlives the restart, the link does not.
	_, c = start(t, path, dir, "--oidc-session-age=2h", "--listen=0.0.0.0:0", "--allow-remote-plaintext")
	link, _ = loginLink(t, "--data-dir", dir)
	wantSession(t, dir, link, secret, 2*time.Hour)
	if !strings.HasPrefix(link, "http://127.0.0.1:") {
		t.Errorf("got %s, want a link that a browser on this machine can open", link)
	}
	address, _, _ := strings.Cut(link, "/login")
	if status, text := follow(t, address+"/login"+token); status != http.StatusForbidden {
		t.Errorf("a link of before: got HTTP %d %s, want 403", status, text)
	}
	wantSession(t, dir, link, openLink(t, link), 2*time.Hour)

	// Another machine has the address and a key.
	run := func(key string, arguments ...string) (string, error) {
		cmd := exec.Command(path, append([]string{"login-link"}, arguments...)...)
		cmd.Env = append(os.Environ(), "GLASSHOUSE_KEY="+key)
		out, err := cmd.Output()
		if exit, isExit := err.(*exec.ExitError); isExit {
			return string(exit.Stderr), err
		}
		return strings.TrimSpace(string(out)), err
	}
	link, err = run(c.key, "--url", address+"/")
	if err != nil || !strings.HasPrefix(link, address+"/login?token=") {
		t.Fatalf("with --url: got %v and %s, want a link to %s", err, link, address)
	}
	wantSession(t, dir, link, openLink(t, link), 2*time.Hour)
	text, err = run(c.newUser(t, "ada").key, "--data-dir", dir)
	if err == nil || !strings.Contains(text, "only an admin") {
		t.Errorf("with an agent's key: got %v and %s, want a refusal", err, text)
	}
	if text, err := run("", "--data-dir", t.TempDir()); err == nil || !strings.Contains(text, "no service runs on") {
		t.Errorf("on another folder: got %v and %s, want an error that says so", err, text)
	}
}
