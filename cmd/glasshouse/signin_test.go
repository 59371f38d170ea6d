package main

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"glasshouse/service/signin/signintest"
)

// people sign in at the provider of a test.
var people = map[string]signintest.Claims{
	"anna":  {"sub": "u-1", "email": "anna@example.com", "email_verified": true, "groups": []string{"data", "staff"}},
	"guest": {"sub": "u-2", "email": "guest@example.com", "email_verified": true, "groups": []string{"guests"}},
}

// withProvider returns the flags of a service whose people sign in at a provider.
func withProvider(t *testing.T, provider *signintest.Provider) []string {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "oidc.secret")
	if err := os.WriteFile(secret, []byte(signintest.Secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--oidc-issuer=" + provider.URL, "--oidc-client-id=" + signintest.ClientID,
		"--oidc-client-secret-file=" + secret, "--oidc-user-claim=email", "--oidc-role-claim=groups",
		"--sign-in-roles=data=developer,staff=agent"}
}

// me asks the service who a secret belongs to.
func me(t *testing.T, address, secret string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/me", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body.String()
}

// A provider that cannot be reached does not keep the service from starting, nor keys from working. The service finds
// it when it is back.
func TestServiceStartsWithoutItsProvider(t *testing.T) {
	t.Parallel()
	provider := signintest.New(t, people)
	token := provider.Sign("RS256", provider.IDToken("anna"))
	provider.Stop()
	dir := dataDir(t)
	log := filepath.Join(t.TempDir(), "log")
	_, admin := start(t, withLog(t, log), dir, withProvider(t, provider)...)
	if status, text := me(t, admin.address, admin.key); status != http.StatusOK {
		t.Errorf("a key: got HTTP %d %s, want it to work", status, text)
	}
	if status, text := me(t, admin.address, token); status != http.StatusServiceUnavailable ||
		!strings.Contains(text, "cannot be reached") {
		t.Errorf("a token: got HTTP %d %s, want 503", status, text)
	}
	if text := read(t, log); !strings.Contains(text, "level=error") || !strings.Contains(text, provider.URL+
		" cannot be reached") || !strings.Contains(text, "keys work") {
		t.Errorf("got the log %s, want an error about the provider", text)
	}
	provider.Start()
	for tick := time.Tick(100 * time.Millisecond); ; <-tick {
		status, text := me(t, admin.address, token)
		if status == http.StatusOK && strings.Contains(text, `"user_id":"anna@example.com","role":"developer"`) {
			break
		}
		if status != http.StatusServiceUnavailable {
			t.Fatalf("got HTTP %d %s, want anna", status, text)
		}
	}
	if text := read(t, log); !strings.Contains(text, "can be reached") {
		t.Errorf("got the log %s, want it to say that the provider is back", text)
	}
}

// withLog returns a program that runs glasshouse and copies its log to a file.
func withLog(t *testing.T, log string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "glasshouse")
	script := "#!/bin/sh\nexec " + binary(t) + " \"$@\" 2>" + log + "\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The service refuses settings with which nobody, or everybody, could sign in, before it starts anything.
func TestSignInSettingsAreChecked(t *testing.T) {
	t.Parallel()
	provider := []string{"--oidc-issuer=https://login.example.com", "--oidc-client-id=glasshouse"}
	proxy := []string{"--proxy-user-header=X-User", "--sign-in-default-role=agent"}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		base  []string
		flags string
		says  string
	}{
		{provider[:1], "", "--oidc-client-id"},
		{provider[1:], "", "need --oidc-issuer"},
		{provider, "", "nobody could sign in"},
		{provider, "--oidc-role-claim=groups", "needs --sign-in-roles"},
		{provider, "--oidc-role-claim=groups --sign-in-roles=data=owner", "agent, developer or admin"},
		{provider, "--oidc-role-claim=groups --sign-in-roles==agent", "VALUE=ROLE"},
		{provider, "--sign-in-default-role=agent --sign-in-databases=data=knowledge", "needs --oidc-role-claim"},
		{provider, "--oidc-role-claim=g --sign-in-roles=data=agent --sign-in-databases=data", "VALUE=DATABASE"},
		{provider, "--oidc-role-claim=g --sign-in-roles=data=agent --sign-in-databases=data=hr", `no database "hr"`},
		{provider, "--sign-in-default-role=owner", "agent, developer or admin"},
		{provider, "--sign-in-default-role=agent --oidc-session-age=0s", "--oidc-session-age"},
		{provider, "--sign-in-default-role=agent --oidc-user-claim=", "--oidc-user-claim"},
		{provider, "--sign-in-default-role=agent --oidc-client-secret-file=/none/x", "--oidc-client-secret-file"},
		{provider, "--sign-in-default-role=agent --oidc-client-secret-file=" + empty, "is empty"},
		{provider, "--sign-in-default-role=agent --oidc-issuer=http://login.example.com", "https://"},
		{provider, "--sign-in-default-role=agent --public-url=glasshouse.example.com", "--public-url"},
		{provider, "--sign-in-default-role=agent --public-url=https://example.com/glasshouse", "without a path"},
		{proxy[1:], "--proxy-addresses=127.0.0.1", "need --proxy-user-header"},
		{proxy, "", "needs --proxy-addresses"},
		{proxy, "--proxy-addresses=proxy", "must be an address"},
		{proxy, "--proxy-addresses=0.0.0.0/0", "does not have all addresses"},
		{proxy[:1], "--proxy-addresses=10.0.0.7", "nobody could sign in"},
	} {
		arguments := append([]string{"serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0"}, c.base...)
		out, err := exec.CommandContext(t.Context(), binary(t), append(arguments, strings.Fields(c.flags)...)...).
			CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.says) || strings.Contains(string(out), "starting") {
			t.Errorf("%v %s: got %v, %s, want a refusal that says %q", c.base, c.flags, err, out, c.says)
		}
	}
}
