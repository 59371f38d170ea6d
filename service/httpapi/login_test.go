package httpapi_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/httpapi"
)

// linkFixture is a service whose clock a test sets, and the client of an admin's key of its own.
type linkFixture struct {
	company
	root   client
	rootID string
	offset *atomic.Int64
}

// newCompanyWithClock starts a company, and returns a function that sets the clock of its service forward.
func newCompanyWithClock(t *testing.T) (c company, advance func(time.Duration)) {
	t.Helper()
	var offset atomic.Int64
	c = newCompany(t, func(c *companyConfig) {
		c.clock = func() time.Time { return time.Now().UTC().Add(time.Duration(offset.Load())) }
		c.records.ArtifactAge = 365 * 24 * time.Hour // files of other tests stay
	})
	return c, func(d time.Duration) { offset.Add(int64(d)) }
}

func newLinkFixture(t *testing.T, change func(*httpapi.Config)) linkFixture {
	t.Helper()
	f := linkFixture{offset: &atomic.Int64{}}
	f.company = newCompany(t, func(c *companyConfig) {
		c.clock = func() time.Time { return time.Now().UTC().Add(time.Duration(f.offset.Load())) }
		c.access.SessionAge, c.records.ArtifactAge = time.Hour, 365*24*time.Hour // files of other tests stay
		if change != nil {
			change(&c.api)
		}
	})
	f.root, f.rootID = client{server: f.server, secret: admin.secret}.newKey(t,
		map[string]any{"name": "n", "user_id": t.Name(), "role": "admin"})
	return f
}

// link makes a link and returns its path.
func (f linkFixture) link(t *testing.T, maker client) string {
	t.Helper()
	path, _ := maker.ok(t, "POST", "/login/links", nil).get("url").(string)
	if !strings.HasPrefix(path, "/login?token=") {
		t.Fatalf("got the link %q, want one without a host", path)
	}
	return path
}

// follow opens a link and returns a client with the secret of the cookie.
func (f linkFixture) follow(t *testing.T, path string) client {
	t.Helper()
	r := f.get(t, path)
	cookie := cookieNamed(t, r, "glasshouse_key")
	if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/" || !cookie.HttpOnly ||
		cookie.SameSite != http.SameSiteStrictMode {
		t.Errorf("got %s to %q with the cookie %s, want the pages", r.Status, r.Header.Get("Location"), cookie)
	}
	return f.as(t, cookie)
}

// wantNoSignIn requires that a link does not work, and says what to do.
func (f linkFixture) wantNoSignIn(t *testing.T, name, path string) {
	t.Helper()
	a := client{server: f.server}.do(t, "GET", path, nil)
	if a.header.Get("Set-Cookie") != "" {
		t.Errorf("%s: got the cookie %q", name, a.header.Get("Set-Cookie"))
	}
	wantProblem(t, a, http.StatusForbidden, "forbidden", "`glasshouse login-link`")
}

// timeOf returns a time of an answer.
func timeOf(t *testing.T, a answer, name string) time.Time {
	t.Helper()
	text, _ := a.get(name).(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatalf("%s of %s: %v", name, a.text, err)
	}
	return at
}

// A sign-in link works once, and makes a key that expires and that signing out revokes.
func TestSignInLink(t *testing.T) {
	t.Parallel()
	f := newLinkFixture(t, nil)
	path := f.link(t, f.root)
	f.wantNoSignIn(t, "another token", path+"x")
	f.wantNoSignIn(t, "no token", "/login")
	begun := time.Now()
	session := f.follow(t, path)
	me := session.ok(t, "GET", "/me", nil)
	id, _ := me.get("key_id").(string)
	end := timeOf(t, me, "expires_at")
	if session.secret == f.root.secret || !strings.HasPrefix(id, "session-") || me.get("role") != "admin" ||
		me.get("user_id") != t.Name() || end.Before(begun.Add(59*time.Minute)) || end.After(time.Now().Add(time.Hour)) {
		t.Errorf("got %s, want a key of the admin for an hour", me.text)
	}
	if key := f.root.keyOf(t, id); key["created_with"] != f.rootID || key["name"] != "sign-in to the pages" {
		t.Errorf("got the key %v, want one that %s created", key, f.rootID)
	}
	f.wantNoSignIn(t, "the second time", path)
	a := client{server: f.server}.do(t, "GET", path, nil, "Accept", "text/html,application/xhtml+xml")
	if a.status != http.StatusOK || !strings.Contains(string(a.text), "<html") || a.header.Get("Set-Cookie") != "" {
		t.Errorf("the second time, in a browser: got HTTP %d %.200s, want the sign-in page", a.status, a.text)
	}
	client{server: f.server}.do(t, "POST", "/logout", nil, "Cookie", "glasshouse_key="+session.secret)
	wantProblem(t, session.do(t, "GET", "/me", nil), http.StatusUnauthorized, "unauthorized", "revoked")
	f.root.ok(t, "GET", "/me", nil)
}

// The key of the service's start does not become a cookie, which would not expire.
func TestSignInWithTheAdminKey(t *testing.T) {
	t.Parallel()
	f := newLinkFixture(t, nil)
	a := client{server: f.server}.ok(t, "POST", "/login", map[string]any{"key": admin.secret})
	id, _ := a.get("key_id").(string)
	session := f.as(t, (&http.Response{Header: a.header}).Cookies()[0])
	me := session.ok(t, "GET", "/me", nil)
	if session.secret == admin.secret || !strings.HasPrefix(id, "session-") || me.get("key_id") != id ||
		me.get("expires_at") == nil || me.get("user_id") != "root" || me.get("role") != "admin" {
		t.Errorf("got %s and %s, want the key of an admin's session", a.text, me.text)
	}
	client{server: f.server}.do(t, "POST", "/logout", nil, "Cookie", "glasshouse_key="+session.secret)
	wantProblem(t, session.do(t, "GET", "/me", nil), http.StatusUnauthorized, "unauthorized", "revoked")
}

// Of many who open a link at once, one is signed in.
func TestSignInLinkWorksOnceAtATime(t *testing.T) {
	t.Parallel()
	f := newLinkFixture(t, nil)
	path := f.link(t, f.root)
	var signedIn atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if a := (client{server: f.server}).do(t, "GET", path, nil); a.status == http.StatusOK { // of the pages
				signedIn.Add(1)
			}
		})
	}
	all.Wait()
	if signedIn.Load() != 1 {
		t.Errorf("got %d sign-ins with a link, want 1", signedIn.Load())
	}
}

// A link works for ten minutes, and its key for the age of a session. Keys that expired long ago are deleted.
func TestSignInLinkExpires(t *testing.T) {
	t.Parallel()
	f := newLinkFixture(t, nil)
	a := f.root.ok(t, "POST", "/login/links", nil)
	path, _ := a.get("url").(string)
	if left := time.Until(timeOf(t, a, "expires_at")); left < 9*time.Minute || left > 10*time.Minute {
		t.Errorf("got a link for %s, want ten minutes", left)
	}
	second := f.link(t, f.root)
	f.offset.Store(int64(9 * time.Minute))
	session := f.follow(t, path)
	id, _ := session.ok(t, "GET", "/me", nil).get("key_id").(string)
	f.offset.Store(int64(10*time.Minute + time.Second))
	f.wantNoSignIn(t, "after ten minutes", second)
	session.ok(t, "GET", "/me", nil)
	// A session cannot go on for ever by way of links.
	next := f.follow(t, f.link(t, session)).ok(t, "GET", "/me", nil)
	if got, want := next.get("expires_at"), session.ok(t, "GET", "/me", nil).get("expires_at"); got != want {
		t.Errorf("a session of a session: got the end %v, want %v", got, want)
	}
	f.offset.Store(int64(70 * time.Minute))
	wantProblem(t, session.do(t, "GET", "/me", nil), http.StatusUnauthorized, "unauthorized", "expired")
	if f.root.keyOf(t, id) == nil {
		t.Errorf("got no key %s in the list, want it for a month", id)
	}
	f.offset.Store(int64(32 * 24 * time.Hour))
	f.follow(t, f.link(t, f.root)).ok(t, "GET", "/me", nil)
	if key := f.root.keyOf(t, id); key != nil {
		t.Errorf("got %v, want no key that expired a month ago", key)
	}
}

// A link and its session have no more rights than the key that made the link.
func TestSignInLinkEndsWithItsMaker(t *testing.T) {
	t.Parallel()
	f := newLinkFixture(t, nil)
	for _, role := range []sandbox.Role{sandbox.RoleAgent, sandbox.RoleDeveloper} {
		c := client{server: f.server, secret: newUser(t, role).secret}
		wantProblem(t, c.do(t, "POST", "/login/links", nil), http.StatusForbidden, "forbidden", "only an admin")
	}
	wantProblem(t, client{server: f.server}.do(t, "POST", "/login/links", nil), http.StatusUnauthorized, "unauthorized")
	session, unused := f.follow(t, f.link(t, f.root)), f.link(t, f.root)
	client{server: f.server, secret: admin.secret}.ok(t, "DELETE", "/keys/"+f.rootID, nil)
	wantProblem(t, session.do(t, "GET", "/me", nil), http.StatusUnauthorized, "unauthorized", "revoked")
	f.wantNoSignIn(t, "after the key was revoked", unused)
}

// The oldest link ends when there are too many. --public-url is the host of links.
func TestSignInLinksAreBounded(t *testing.T) {
	t.Parallel()
	f := newLinkFixture(t, nil)
	first, second := f.link(t, f.root), f.link(t, f.root)
	for range 99 {
		f.link(t, f.root)
	}
	f.wantNoSignIn(t, "the oldest of 101", first)
	f.follow(t, second)
	f = newLinkFixture(t, func(api *httpapi.Config) { api.PublicURL = "https://glasshouse.example" })
	f.wantNoSignIn(t, "a link of another process", second)
	url, _ := f.root.ok(t, "POST", "/login/links", nil).get("url").(string)
	path, hasHost := strings.CutPrefix(url, "https://glasshouse.example")
	if cookie := cookieNamed(t, f.get(t, path), "glasshouse_key"); !hasHost || !cookie.Secure {
		t.Errorf("got the link %s and the cookie %s, want those of the public address", url, cookie)
	}
}
