package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// A name appears in lists, logs and audits, so it is one line of plain text.
func TestNamesOfKeysArePlainText(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", " ada", "ada ", "\u00a0ada", "a\nb", "a\x00b", "a\x1b[31m", "a\x7f", "a\u0085b", "a\u202eb", "a\u200bb",
		"a\u2028b", "a\ufffdb", strings.Repeat("ä", 201), "\t",
	} {
		for _, field := range []string{"name", "user_id"} {
			if field == "user_id" && name == "" {
				continue // the default: the caller's own
			}
			body := map[string]any{"name": "n", "user_id": "u-" + t.Name()}
			body[field] = name
			a := admin.do(t, "POST", "/keys", body)
			wantProblem(t, a, http.StatusUnprocessableEntity, "invalid-input", field)
		}
	}
	for _, text := range []string{`"a\ud800b"`, "\"a\xffb\"", `"\udc00"`} {
		for _, body := range []string{`{"name":` + text + `}`, `{"name":"n","user_id":` + text + `}`} {
			if a := admin.do(t, "POST", "/keys", body); a.status != 422 && a.status != 400 {
				t.Errorf("%q: got HTTP %d, want it refused: %s", body, a.status, a.text)
			}
		}
	}
	for _, name := range []string{"Ada Lovelace", "ада@пример.рф", "名前", strings.Repeat("ä", 200), "a+b/c:d"} {
		a := admin.ok(t, "POST", "/keys", map[string]any{"name": name, "user_id": name})
		if a.get("name") != name || a.get("user_id") != name {
			t.Errorf("got %s, want the name %q", a.text, name)
		}
	}
}

// TestUsersOfTheServiceAreReserved shows that nobody gets a key under the name of a user of the service itself, except
// that user, and that a key of an earlier version works.
func TestUsersOfTheServiceAreReserved(t *testing.T) {
	t.Parallel()
	for _, user := range []string{sandbox.AdminUser, sandbox.NeMoUser} {
		for _, role := range []sandbox.Role{sandbox.RoleAgent, sandbox.RoleAdmin} {
			a := admin.do(t, "POST", "/keys", map[string]any{"name": "n", "user_id": user, "role": role})
			wantProblem(t, a, http.StatusUnprocessableEntity, "invalid-input", "user_id", "service itself")
		}
		secret := access.NewSecret()
		hash := access.HashKey(secret)
		earlier := sandbox.Key{ID: fmt.Sprintf("%x", hash[:8]), Name: "n", User: user, Role: sandbox.RoleDeveloper,
			CreatedAt: time.Now()}
		if err := testConfig.access.History.CreateKey(t.Context(), earlier, hash[:], 0); err != nil {
			t.Fatal(err)
		}
		c := client{server: admin.server, secret: secret}
		for _, body := range []map[string]any{{"name": "n"}, {"name": "n", "user_id": user}} {
			if a := c.ok(t, "POST", "/keys", body); a.get("user_id") != user {
				t.Errorf("a key of %s makes a key: got %s, want one of the same user", user, a.text)
			}
		}
	}
}

// newKey makes a key with the client's key.
func (c client) newKey(t testing.TB, body map[string]any) (made client, id string) {
	t.Helper()
	a := c.ok(t, "POST", "/keys", body)
	secret, _ := a.get("key").(string)
	id, _ = a.get("id").(string)
	return client{secret: secret, server: c.server}, id
}

// keyOf returns a key as GET /keys lists it, or nil.
func (c client) keyOf(t testing.TB, id string) map[string]any {
	t.Helper()
	list, _ := c.ok(t, "GET", "/keys", nil).get("keys").([]any)
	for _, k := range list {
		if k := k.(map[string]any); k["id"] == id {
			return k
		}
	}
	return nil
}

// A revoked key takes the keys with it that it made, and those that they made: whoever has stolen a key may have made
// others. The list says who made which key.
func TestRevokedKeyTakesTheKeysThatItMade(t *testing.T) {
	t.Parallel()
	user := func(role sandbox.Role) map[string]any {
		return map[string]any{"name": "n", "user_id": t.Name(), "role": role}
	}
	own := map[string]any{"name": "made", "role": "developer"}
	root, rootID := admin.newKey(t, user(sandbox.RoleDeveloper))
	other, otherID := admin.newKey(t, user(sandbox.RoleDeveloper))
	child, childID := root.newKey(t, own)
	grandchild, grandchildID := child.newKey(t, own)
	sibling, siblingID := root.newKey(t, own)

	for id, maker := range map[string]string{
		rootID: "admin", childID: rootID, grandchildID: childID, siblingID: rootID,
	} {
		k := admin.keyOf(t, id)
		wantUser := t.Name()
		if maker == "admin" {
			wantUser = "root"
		}
		if k["created_with"] != maker || k["created_by"] != wantUser {
			t.Errorf("key %s: got made by %v with %v, want by %s with %s", id, k["created_by"], k["created_with"],
				wantUser, maker)
		}
	}
	a := other.ok(t, "DELETE", "/keys/"+childID, nil)
	if got, want := compactJSON(a.get("revoked")), compactJSON([]string{childID, grandchildID}); got != want {
		t.Errorf("got the revoked keys %s, want %s: %s", got, want, a.text)
	}
	wantProblem(t, child.do(t, "GET", "/executions", nil), http.StatusUnauthorized, "unauthorized", "revoked")
	wantProblem(t, grandchild.do(t, "GET", "/executions", nil), http.StatusUnauthorized, "unauthorized", "revoked")
	if admin.keyOf(t, grandchildID)["revoked_at"] == nil {
		t.Error("the list does not show that the grandchild is revoked")
	}
	for _, c := range []client{root, sibling, other} {
		c.ok(t, "GET", "/executions", nil)
	}
	// A key of another admin's chain is not touched, and a developer cannot keep what the key made.
	wantProblem(t, other.do(t, "DELETE", "/keys/"+rootID+"?keep_made=true", nil), http.StatusForbidden, "forbidden",
		"admin")
	a = admin.ok(t, "DELETE", "/keys/"+rootID+"?keep_made=true", nil)
	if got := compactJSON(a.get("revoked")); got != compactJSON([]string{rootID}) {
		t.Errorf("got the revoked keys %s, want %s only", got, rootID)
	}
	if got := compactJSON(a.get("kept")); got != compactJSON([]string{siblingID}) {
		t.Errorf("got the kept keys %s, want %s: the other child is revoked already", got, siblingID)
	}
	wantProblem(t, root.do(t, "GET", "/executions", nil), http.StatusUnauthorized, "unauthorized")
	sibling.ok(t, "GET", "/executions", nil)
	// A second revocation still takes what was kept.
	a = admin.ok(t, "DELETE", "/keys/"+rootID, nil)
	if got := compactJSON(a.get("revoked")); got != compactJSON([]string{siblingID}) {
		t.Errorf("got the revoked keys %s, want %s", got, siblingID)
	}
	wantProblem(t, admin.do(t, "DELETE", "/keys/none", nil), http.StatusNotFound, "not-found")
	// A user's key cannot revoke another user's.
	stranger := newUser(t, sandbox.RoleDeveloper)
	wantProblem(t, stranger.do(t, "DELETE", "/keys/"+otherID, nil), http.StatusNotFound, "not-found")
}

// An agent's key revokes no keys, and a developer's key none of an admin, even of its own user.
func TestKeysRevokeNoOthersBeyondTheirRole(t *testing.T) {
	t.Parallel()
	body := func(role string) map[string]any {
		return map[string]any{"name": "n", "user_id": t.Name(), "role": role}
	}
	developer, developerID := admin.newKey(t, body("developer"))
	agent, _ := admin.newKey(t, body("agent"))
	boss, bossID := admin.newKey(t, body("admin"))
	wantProblem(t, agent.do(t, "DELETE", "/keys/"+developerID, nil), http.StatusForbidden, "forbidden", "agent")
	wantProblem(t, developer.do(t, "DELETE", "/keys/"+bossID, nil), http.StatusForbidden, "forbidden", "admin's key")
	for _, c := range []client{developer, boss} {
		c.ok(t, "GET", "/me", nil)
	}
}

// A user can have 1000 valid keys. An admin can create more for the user.
func TestValidKeysOfAUserAreLimited(t *testing.T) {
	t.Parallel()
	own := map[string]any{"name": "made", "role": "developer"}
	root, rootID := admin.newKey(t, map[string]any{"name": "n", "user_id": t.Name(), "role": "developer"})
	for n := 1; n < 1000; n++ {
		key := sandbox.Key{ID: fmt.Sprintf("%s-%d", t.Name(), n), Name: "n", User: t.Name(),
			Role: sandbox.RoleDeveloper, CreatedAt: time.Now(), CreatedWith: rootID}
		if err := testConfig.access.History.CreateKey(t.Context(), key, []byte(key.ID), 0); err != nil {
			t.Fatal(err)
		}
	}
	wantProblem(t, root.do(t, "POST", "/keys", own), http.StatusTooManyRequests, "limit-reached", "1000 valid keys")
	other, _ := admin.newKey(t, map[string]any{"name": "n", "user_id": t.Name(), "role": "developer"})
	a := admin.ok(t, "DELETE", "/keys/"+rootID, nil)
	if revoked, _ := a.get("revoked").([]any); len(revoked) != 1000 {
		t.Errorf("got %d revoked keys, want 1000", len(revoked))
	}
	other.newKey(t, own)
}

// A key that is being revoked leaves no key behind that it makes at the same moment.
func TestKeysMadeDuringARevocationAreRevoked(t *testing.T) {
	t.Parallel()
	for range 5 {
		root, rootID := admin.newKey(t, map[string]any{"name": "n", "user_id": t.Name(), "role": "developer"})
		secrets := make(chan string, 10_000)
		go func() {
			defer close(secrets)
			for {
				a := root.do(t, "POST", "/keys", map[string]any{"name": "made", "role": "developer"})
				if a.status != http.StatusOK {
					return
				}
				select {
				case secrets <- a.get("key").(string):
				default:
					t.Error("the key is still valid after 10000 requests")
					return
				}
			}
		}()
		first := <-secrets
		admin.ok(t, "DELETE", "/keys/"+rootID, nil)
		for secret := first; secret != ""; secret = <-secrets {
			wantProblem(t, client{secret: secret}.do(t, "GET", "/executions", nil), http.StatusUnauthorized,
				"unauthorized", "revoked")
		}
	}
}

// The key that the service was started with is needed to administer it; revoking it would only lock the operator out.
func TestConfiguredAdminKeyCannotBeRevoked(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"", "?keep_made=true"} {
		a := admin.do(t, "DELETE", "/keys/admin"+query, nil)
		wantProblem(t, a, http.StatusConflict, "busy", "--admin-key", "admin.key")
	}
	admin.ok(t, "GET", "/keys", nil)
}

// A year that JSON cannot hold in UTC would make every list of keys fail.
func TestExpiryOutOfRangeIsRefused(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	for _, at := range []string{"9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z",
		"2000-01-01T00:00:00Z"} {
		wantProblem(t, c.do(t, "POST", "/keys", map[string]any{"name": "x", "expires_at": at}), 422, "invalid-input",
			"expires_at")
	}
	c.ok(t, "POST", "/keys", map[string]any{"name": "x", "expires_at": "9999-12-31T23:59:59Z"})
	soon := time.Now().Add(time.Hour).In(time.FixedZone("", 3600))
	a := c.ok(t, "POST", "/keys", map[string]any{"name": "x", "expires_at": soon})
	if got := fmt.Sprint(a.get("expires_at")); !strings.HasSuffix(got, "Z") {
		t.Errorf("got expires_at %s, want it in UTC", got)
	}
	c.ok(t, "GET", "/keys", nil)
}

// The modules of a key restrict every sandbox that is created with it, and with the keys that it creates. A config may
// restrict them further.
func TestKeyRestrictsModules(t *testing.T) {
	t.Parallel()
	made := admin.ok(t, "POST", "/keys", map[string]any{
		"name": "restricted", "user_id": t.Name(), "role": "developer",
		"allowed_modules": []string{"json", "math", "csv"}, "blocked_modules": []string{"csv"},
	})
	if got := fmt.Sprint(made.get("allowed_modules"), made.get("blocked_modules")); got != "[json math csv] [csv]" {
		t.Errorf("got the lists %s in the answer", got)
	}
	restricted := client{secret: fmt.Sprint(made.get("key"))}
	derived := client{secret: fmt.Sprint(restricted.ok(t, "POST", "/keys", map[string]any{"name": "made"}).get("key"))}
	for name, c := range map[string]client{"the key": restricted, "a key that it created": derived} {
		id := c.create(t, nil)
		for code, want := range map[string]string{
			"import json, math\nmath.gcd(4, 6)": "completed", "import csv": "failed", "import random": "failed",
		} {
			for _, a := range []answer{
				c.run(t, id, code), c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": code}),
			} {
				if a.get("status") != want {
					t.Errorf("%s, %q: got %s, want it %s", name, code, a.text, want)
				}
			}
		}
		wantProblem(t, c.do(t, "POST", "/sandbox/create", `{"allowed_modules":["random"]}`), 403, "forbidden",
			"allowed_modules")
		id = c.create(t, map[string]any{"allowed_modules": []string{"json"}})
		if a := c.run(t, id, "import math"); a.get("status") != "failed" {
			t.Errorf("%s: a config that allows json only: got %s, want math refused", name, a.text)
		}
	}
	const modules = `"allowed_modules":["json","math","csv"]`
	if a := restricted.ok(t, "GET", "/keys", nil); strings.Count(string(a.text), modules) != 2 {
		t.Errorf("the list of keys: got %s, want the modules of both", a.text)
	}
	wantProblem(t, restricted.do(t, "POST", "/keys", `{"name":"x","blocked_modules":["json"]}`), 403, "forbidden",
		"allowed_modules")
	wantProblem(t, admin.do(t, "POST", "/keys", `{"name":"x","allowed_modules":["os"]}`), 403, "forbidden",
		"allowed_modules")
	wantProblem(t, admin.do(t, "POST", "/keys", `{"name":"x","blocked_modules":["a b"]}`), 422, "invalid-input",
		"blocked_modules")
}
