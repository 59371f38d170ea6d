package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/policy/polltest"
	"glasshouse/sandbox"
	"glasshouse/service/httpapi"
	"glasshouse/service/signin"
	"glasshouse/service/signin/signintest"
)

// people have names of the test, so that tests do not see each other's executions.
func people(t *testing.T) map[string]signintest.Claims {
	user := func(name, group string) signintest.Claims {
		return signintest.Claims{"sub": t.Name() + "/" + name, "groups": []string{group}}
	}
	return map[string]signintest.Claims{
		"anna": user("anna", "developers"), "bert": user("bert", "agents"), "root": user("root", "admins"),
		"guest": user("guest", "guests"), "odd": user("o\u202edd", "agents"),
		"taken": {"sub": sandbox.NeMoUser, "groups": []string{"admins"}},
	}
}

// company is a service with an identity provider and a proxy.
type company struct {
	provider *signintest.Provider
	server   string
	*services
}

// companyConfig configures a company.
type companyConfig struct {
	servicesConfig
	api httpapi.Config

	isProviderDown bool
}

// newCompany starts a company over the history and the isolation of all tests.
func newCompany(t *testing.T, change func(*companyConfig)) company {
	t.Helper()
	return newCompanyWithDatabases(t, nil, change)
}

// newCompanyWithDatabases starts a company in which groups may use databases.
func newCompanyWithDatabases(
	t *testing.T, databases map[string][]string, change func(*companyConfig),
) company {
	t.Helper()
	provider := signintest.New(t, people(t))
	log := logrus.New()
	log.SetLevel(logrus.ErrorLevel) // refused sign-ins are warnings
	rights := signin.Rights{Roles: map[string]sandbox.Role{
		"developers": sandbox.RoleDeveloper, "agents": sandbox.RoleAgent, "admins": sandbox.RoleAdmin,
	}, Databases: databases}
	config := companyConfig{servicesConfig: testConfig}
	p, err := signin.NewProvider(signin.Config{
		Clock: func() time.Time {
			if config.clock != nil {
				return config.clock()
			}
			return time.Now()
		},
		Issuer: provider.URL, ClientID: signintest.ClientID, ClientSecret: signintest.Secret,
		Audiences: []string{signintest.Audience}, UserClaim: "sub", RoleClaim: "groups", Rights: rights,
	})
	if err != nil {
		t.Fatal(err)
	}
	config.log = log
	config.access.Provider, config.access.SessionAge = p, time.Hour
	if change != nil {
		change(&config)
	}
	if config.isProviderDown {
		provider.Stop()
	} else { // as at the start of the service: a request with a token waits for the provider's keys for 1 s only
		polltest.Succeeds(t, func() error { return p.Refresh(t.Context()) })
	}
	s := newServices(config.servicesConfig)
	api := s.api(log)
	api.MCP, api.Proxy, api.PublicURL = s.mcp(log), config.api.Proxy, config.api.PublicURL
	if api.Proxy != nil {
		api.Proxy.Rights = rights
	}
	server := httptest.NewServer(httpapi.New(api))
	t.Cleanup(func() {
		s.drain(t.Context()) // which has ended: nothing waits
		s.close()
		server.Close()
	})
	provider.Allow(server.URL + "/login/oidc/callback")
	return company{provider, server.URL, s}
}

// bearer returns a client that sends a token of a person.
func (c company) bearer(user string) client {
	return client{server: c.server, secret: c.provider.Sign("RS256", c.provider.IDToken(user))}
}

// get sends a request of a browser, which does not follow redirects.
func (c company) get(t *testing.T, path string, cookies ...*http.Cookie) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.server+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, cookie := range cookies {
		request.AddCookie(cookie)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response
}

func cookieNamed(t *testing.T, r *http.Response, name string) *http.Cookie {
	t.Helper()
	for _, cookie := range r.Cookies() {
		if cookie.Name == name {
			return cookie
		}
	}
	t.Fatalf("got %s to %s without the cookie %s", r.Status, r.Header.Get("Location"), name)
	return nil
}

// leave opens the button of the page and signs in at the provider. It returns the cookie and the path with which the
// browser comes back.
func (c company) leave(t *testing.T, user, query string) (cookie *http.Cookie, path string) {
	t.Helper()
	r := c.get(t, "/login/oidc"+query)
	if r.StatusCode != http.StatusSeeOther {
		t.Fatalf("got %s, want a redirection to the provider", r.Status)
	}
	back, err := c.provider.SignIn(t.Context(), r.Header.Get("Location"), user)
	if err != nil {
		t.Fatal(err)
	}
	return cookieNamed(t, r, "glasshouse_sign_in"), strings.TrimPrefix(back, c.server)
}

// signIn signs a person in to the pages and returns the cookie.
func (c company) signIn(t *testing.T, user string) *http.Cookie {
	t.Helper()
	flow, back := c.leave(t, user, "")
	return cookieNamed(t, c.get(t, back, flow), "glasshouse_key")
}

// as returns a client that sends the secret of a cookie, as a script does that has stolen it.
func (c company) as(t *testing.T, cookie *http.Cookie) client {
	t.Helper()
	secret, err := url.QueryUnescape(cookie.Value)
	if err != nil {
		t.Fatal(err)
	}
	return client{server: c.server, secret: secret}
}

func TestPersonsAreAuthenticatedByTheirTokens(t *testing.T) {
	t.Parallel()
	c := newCompany(t, nil)
	anna, bert, root := c.bearer("anna"), c.bearer("bert"), c.bearer("root")
	name := t.Name() + "/anna"
	me := anna.ok(t, "GET", "/api/v1/me", nil)
	if me.get("user_id") != name || me.get("role") != "developer" || me.get("key_id") != "oidc:"+name ||
		me.get("expires_at") == nil {
		t.Errorf("got %s, want the developer %s", me.text, name)
	}
	// History knows whose execution it is: the person sees it, with any token or key, and others do not.
	id := anna.create(t, nil)
	execution, _ := anna.run(t, id, "40 + 2").get("execution_id").(string)
	other := client{server: c.server, secret: c.provider.SignType("at+jwt", "ES256", c.provider.IDToken("anna"))}
	key, _ := admin.newKey(t, map[string]any{"name": "n", "user_id": name})
	for _, owner := range []client{anna, other, key, root, admin} {
		if got := owner.ok(t, "GET", "/executions/"+execution, nil).get("user_id"); got != name {
			t.Errorf("got the user %v, want %s", got, name)
		}
	}
	wantProblem(t, bert.do(t, "GET", "/executions/"+execution, nil), http.StatusNotFound, "not-found")
	wantProblem(t, bert.do(t, "GET", "/sandbox/"+id+"/status", nil), http.StatusNotFound, "not-found")
	// Roles.
	wantProblem(t, bert.do(t, "POST", "/keys", map[string]any{"name": "n"}), http.StatusForbidden, "forbidden")
	wantProblem(t, anna.do(t, "GET", "/audit", nil), http.StatusForbidden, "forbidden")
	wantProblem(t, c.bearer("guest").do(t, "GET", "/me", nil), http.StatusForbidden, "forbidden", "no role")
	wantProblem(t, c.bearer("odd").do(t, "GET", "/me", nil), http.StatusForbidden, "forbidden", "invisible")
	wantProblem(t, c.bearer("taken").do(t, "GET", "/me", nil), http.StatusForbidden, "forbidden", "service itself")
	// The audit log says who has looked.
	user := t.Name() + "/root"
	entry := admin.audited(t, "execution/"+execution, user)
	if entry["key_id"] != "oidc:"+user || entry["owner"] != name {
		t.Errorf("got the audit entry %v, want that of %s", entry, user)
	}
	// A key that a person makes does not outlive the token.
	made := anna.ok(t, "POST", "/keys", map[string]any{"name": "n", "role": "developer"})
	if made.get("expires_at") != me.get("expires_at") || made.get("created_with") != "oidc:"+name {
		t.Errorf("got %s, want a key until %s", made.text, me.get("expires_at"))
	}
	// Tokens that are not valid.
	for _, token := range []string{
		c.provider.Sign("none", c.provider.IDToken("root")), c.provider.Sign("HS256", c.provider.IDToken("root")),
	} {
		a := client{server: c.server, secret: token}.do(t, "GET", "/me", nil)
		wantProblem(t, a, http.StatusUnauthorized, "unauthorized", "this token is not valid")
		if got := a.header.Get("WWW-Authenticate"); !strings.Contains(got, `error="invalid_token"`) {
			t.Errorf("got WWW-Authenticate %q, want invalid_token", got)
		}
	}
	// MCP, and a service without a provider.
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	a := anna.do(t, "POST", "/mcp", list, "Accept", "application/json, text/event-stream")
	if a.status != http.StatusOK || !strings.Contains(string(a.text), "run_python") {
		t.Errorf("MCP: got HTTP %d %.200s, want the tools", a.status, a.text)
	}
	wantProblem(t, client{secret: anna.secret}.do(t, "GET", "/me", nil), http.StatusUnauthorized, "unauthorized",
		"this key is unknown")
}

// audited returns the newest entry of the audit log about what a user did to an object, or nil.
func (c client) audited(t *testing.T, object, user string) map[string]any {
	t.Helper()
	list, _ := c.ok(t, "GET", "/audit?limit=100", nil).get("entries").([]any)
	for _, entry := range list {
		if entry := entry.(map[string]any); entry["object"] == object && entry["user_id"] == user {
			return entry
		}
	}
	return nil
}

func TestStreamEndsWhenItsTokenExpires(t *testing.T) {
	t.Parallel()
	c, advance := newCompanyWithClock(t)
	long := c.bearer("anna")
	c.provider.SetLifetime(5 * time.Minute)
	short := c.bearer("anna")
	location := long.asyncRun(t)
	stays, ends := long.stream(t, "GET", location, nil), short.stream(t, "GET", location, nil)
	advance(5 * time.Minute)
	wantLostStream(t, ends, "expired")
	a := short.do(t, "GET", "/me", nil)
	wantProblem(t, a, http.StatusUnauthorized, "unauthorized", "this token has expired")
	long.ok(t, "POST", location+"/cancel", nil)
	if list := stays.all(); len(list) == 0 || list[len(list)-1].name != "done" {
		t.Errorf("the other token: got the events %v, want done at the end", list)
	}
}

// All tokens, sign-ins and keys of a person share the limits of one.
func TestPersonsShareTheirLimits(t *testing.T) {
	t.Parallel()
	c := newCompany(t, func(c *companyConfig) { c.access.KeyLimits.Requests = 6 })
	anna, session := c.bearer("anna"), c.as(t, c.signIn(t, "anna"))
	made, _ := anna.newKey(t, map[string]any{"name": "n", "role": "developer"})
	for range 2 {
		c.bearer("anna").ok(t, "GET", "/me", nil)
		session.ok(t, "GET", "/me", nil)
	}
	made.ok(t, "GET", "/me", nil)
	for _, owner := range []client{anna, session, made, c.as(t, c.signIn(t, "anna"))} {
		wantProblem(t, owner.do(t, "GET", "/me", nil), http.StatusTooManyRequests, "limit-reached",
			"6 requests per minute")
	}
	c.bearer("bert").ok(t, "GET", "/me", nil)
}

func TestPersonsSignInToThePages(t *testing.T) {
	t.Parallel()
	c := newCompany(t, nil)
	if got := (client{server: c.server}).ok(t, "GET", "/login/methods", nil).get("provider.name"); got !=
		strings.TrimPrefix(c.provider.URL, "http://") {
		t.Errorf("got the provider %v, want its host", got)
	}
	flow, back := c.leave(t, "anna", "?return="+url.QueryEscape("/ui/play?panel=schema"))
	if flow.SameSite != http.SameSiteLaxMode || !flow.HttpOnly || flow.Path != "/login/oidc" || flow.MaxAge != 600 {
		t.Errorf("got the cookie %s", flow)
	}
	r := c.get(t, back, flow)
	cookie := cookieNamed(t, r, "glasshouse_key")
	if cookie.SameSite != http.SameSiteStrictMode || !cookie.HttpOnly || cookie.Path != "/" || cookie.MaxAge != 0 ||
		r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/ui/play?panel=schema" ||
		cookieNamed(t, r, "glasshouse_sign_in").MaxAge >= 0 {
		t.Errorf("got %s with %v, want the key in a cookie, and the page", r.Status, r.Header)
	}
	header := []string{"Cookie", cookie.Name + "=" + cookie.Value}
	me := client{server: c.server}.do(t, "GET", "/me", nil, header...)
	if me.get("user_id") != t.Name()+"/anna" || me.get("role") != "developer" || me.get("expires_at") == nil {
		t.Errorf("got HTTP %d %s, want anna", me.status, me.text)
	}
	id, _ := me.get("key_id").(string)
	if entry := admin.audited(t, "key/"+id, t.Name()+"/anna"); entry["action"] != "created" {
		t.Errorf("got the audit entry %v, want that of the sign-in", entry)
	}
	// A page of another origin cannot use the cookie; a script has no cookie but could have its secret.
	a := client{server: c.server}.do(t, "POST", "/sandbox/create", map[string]any{}, append(header, "Origin",
		"http://evil.test")...)
	wantProblem(t, a, http.StatusForbidden, "forbidden", "another origin")
	// Signing out revokes the key.
	secret := c.as(t, cookie)
	location := secret.asyncRun(t)
	stream := secret.stream(t, "GET", location, nil)
	a = client{server: c.server}.do(t, "POST", "/logout", nil, header...)
	if a.status != http.StatusOK || !strings.Contains(a.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("sign out: got HTTP %d, %v", a.status, a.header)
	}
	wantProblem(t, secret.do(t, "GET", "/me", nil), http.StatusUnauthorized, "unauthorized", "revoked")
	wantLostStream(t, stream, "revoked")
	// Signing out with an ordinary key keeps it.
	key, _ := admin.newKey(t, map[string]any{"name": "n"})
	client{server: c.server}.do(t, "POST", "/logout", nil, "Cookie", "glasshouse_key="+key.secret)
	key.ok(t, "GET", "/me", nil)
}

// An admin ends all sign-ins of a person by revoking their keys.
func TestSignInIsRevoked(t *testing.T) {
	t.Parallel()
	c := newCompany(t, nil)
	session := c.as(t, c.signIn(t, "anna"))
	id, _ := session.ok(t, "GET", "/me", nil).get("key_id").(string)
	made, _ := session.newKey(t, map[string]any{"name": "n", "role": "developer"})
	location := session.asyncRun(t)
	stream := session.stream(t, "GET", location, nil)
	client{server: c.server, secret: admin.secret}.ok(t, "DELETE", "/keys/"+id, nil)
	wantLostStream(t, stream, "revoked")
	wantProblem(t, made.do(t, "GET", "/me", nil), http.StatusUnauthorized, "unauthorized", "revoked")
	c.as(t, c.signIn(t, "anna")).ok(t, "GET", "/me", nil) // the provider still knows the person
}

func TestSignInEndsAfterItsAge(t *testing.T) {
	t.Parallel()
	c, advance := newCompanyWithClock(t)
	session := c.as(t, c.signIn(t, "bert"))
	stream := session.stream(t, "GET", session.asyncRun(t), nil)
	if e, ok := stream.next(); !ok || e.name == "error" {
		t.Fatalf("got %v, want a first event before the sign-in ends", e)
	}
	advance(time.Hour)
	wantLostStream(t, stream, "expired")
	wantProblem(t, session.do(t, "GET", "/me", nil), http.StatusUnauthorized, "unauthorized", "expired")
}

func TestSignInsThatFail(t *testing.T) {
	t.Parallel()
	c := newCompany(t, nil)
	wantReason := func(what string, r *http.Response, reason string) {
		t.Helper()
		if got := r.Header.Get("Location"); r.StatusCode != http.StatusSeeOther || got != "/ui/?sign_in="+reason {
			t.Errorf("%s: got %s to %q, want the reason %s", what, r.Status, got, reason)
		}
		for _, cookie := range r.Cookies() {
			if cookie.Name == "glasshouse_key" {
				t.Errorf("%s: the browser got a key", what)
			}
		}
	}
	flow, back := c.leave(t, "anna", "")
	otherFlow, _ := c.leave(t, "anna", "")
	wantReason("without the cookie", c.get(t, back), "expired")
	wantReason("another sign-in's cookie", c.get(t, back, otherFlow), "expired")
	for _, value := range []string{"", "x", "%7B%7D", "%zz", "null"} {
		wantReason("the cookie "+value, c.get(t, "/login/oidc/callback?code=1&state=",
			&http.Cookie{Name: flow.Name, Value: value}), "expired")
	}
	mixedUp := strings.Replace(back, url.QueryEscape(c.provider.URL), url.QueryEscape("https://other.example"), 1)
	wantReason("another issuer", c.get(t, mixedUp, flow), "failed")
	wantReason("no code", c.get(t, "/login/oidc/callback?state="+stateOf(t, back), flow), "failed")
	wantReason("the person refuses", c.get(t, "/login/oidc/callback?error=access_denied&state="+stateOf(t, back), flow),
		"refused")
	cookieNamed(t, c.get(t, back, flow), "glasshouse_key")
	wantReason("a code again", c.get(t, back, flow), "failed")
	for _, user := range []string{"guest", "odd", "taken"} {
		flow, back = c.leave(t, user, "")
		wantReason(user, c.get(t, back, flow), "refused")
	}
	c.provider.Spoil(func(claims signintest.Claims) { claims["nonce"] = "another" })
	flow, back = c.leave(t, "anna", "")
	wantReason("nonce", c.get(t, back, flow), "failed")
	c.provider.Spoil(nil)
	// No link of a sign-in leads to another host.
	for _, address := range []string{"https://evil.test/ui/", "//evil.test/ui/", "/ui/../login", `/ui\..\..`, "/",
		"javascript:alert(1)", `/\evil.test`, "/uix/", "ui/", "%0a", "/ui/%2e%2e/", "/%2Fevil.test/../ui/x",
		"%2F%2Fevil.test/%2e%2e/ui/", "////evil.test/../ui/"} {
		flow, back = c.leave(t, "anna", "?return="+url.QueryEscape(address))
		if got := c.get(t, back, flow).Header.Get("Location"); got != "/ui/" {
			t.Errorf("%q: got the page %q, want /ui/", address, got)
		}
		// A page of another port of this host can write the cookie.
		flow, back = c.leave(t, "anna", "")
		flow.Value = strings.Replace(flow.Value, url.QueryEscape(`"/ui/"`), url.QueryEscape(strconv.Quote(address)), 1)
		if got := c.get(t, back, flow).Header.Get("Location"); got != "/ui/" {
			t.Errorf("%q in the cookie: got the page %q, want /ui/", address, got)
		}
	}
	flow, back = c.leave(t, "anna", "")
	c.provider.Stop()
	wantReason("provider down", c.get(t, back, flow), "unreachable")
	// Without a provider there is nothing to begin.
	for _, path := range []string{"/login/oidc", "/login/oidc/callback?code=1"} {
		wantProblem(t, (client{}).do(t, "GET", path, nil), http.StatusNotFound, "not-found", "--oidc-issuer")
	}
	if a := (client{}).ok(t, "GET", "/login/methods", nil); a.get("provider") != nil {
		t.Errorf("got %s, want no provider", a.text)
	}
}

func stateOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("state")
}

func TestKeysWorkWithoutTheProvider(t *testing.T) {
	t.Parallel()
	c := newCompany(t, func(c *companyConfig) { c.isProviderDown = true })
	token := c.bearer("anna")
	a := token.do(t, "GET", "/me", nil)
	wantProblem(t, a, http.StatusServiceUnavailable, "unavailable", "cannot be reached", "keys work")
	if a.header.Get("Retry-After") == "" {
		t.Error("there is no Retry-After")
	}
	if r := c.get(t, "/login/oidc"); r.Header.Get("Location") != "/ui/?sign_in=unreachable" {
		t.Errorf("got %s to %s, want the page to say it", r.Status, r.Header.Get("Location"))
	}
	client{server: c.server, secret: admin.secret}.ok(t, "GET", "/me", nil)
}

// With TLS in front of the service, browsers send the cookie over TLS only, and the provider redirects to the proxy.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	c := newCompany(t, func(c *companyConfig) { c.api.PublicURL = "https://glasshouse.example" })
	c.provider.Allow("https://glasshouse.example/login/oidc/callback")
	r := c.get(t, "/login/oidc")
	if !cookieNamed(t, r, "glasshouse_sign_in").Secure {
		t.Error("the cookie of the sign-in crosses the network in clear text")
	}
	back, err := c.provider.SignIn(t.Context(), r.Header.Get("Location"), "anna")
	if err != nil || !strings.HasPrefix(back, "https://glasshouse.example/login/oidc/callback?") {
		t.Fatalf("got %q, %v, want the public address", back, err)
	}
	flow := cookieNamed(t, r, "glasshouse_sign_in")
	key := cookieNamed(t, c.get(t, strings.TrimPrefix(back, "https://glasshouse.example"), flow), "glasshouse_key")
	if !key.Secure {
		t.Error("the key crosses the network in clear text")
	}
}

func TestProxyNamesPersons(t *testing.T) {
	t.Parallel()
	behind := func(address string) company {
		return newCompany(t, func(c *companyConfig) {
			c.api.Proxy = &signin.Proxy{UserHeader: "X-Forwarded-User", RoleHeader: "X-Forwarded-Groups",
				Addresses: []netip.Prefix{netip.MustParsePrefix(address)}}
		})
	}
	c := behind("127.0.0.0/8")
	name := t.Name() + "/anna"
	header := []string{"X-Forwarded-User", name, "X-Forwarded-Groups", "staff, developers"}
	proxy := client{server: c.server}
	if me := proxy.do(t, "GET", "/me", nil, header...); me.get("user_id") != name || me.get("role") != "developer" ||
		me.get("key_id") != "proxy:"+name {
		t.Errorf("got HTTP %d %s, want the developer %s", me.status, me.text, name)
	}
	a := proxy.do(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "1"}, header...)
	execution := fmt.Sprint(a.get("execution_id"))
	if got := admin.ok(t, "GET", "/executions/"+execution, nil).get("user_id"); got != name {
		t.Errorf("got the user %v, want %s", got, name)
	}
	other := []string{"X-Forwarded-User", t.Name() + "/bert", "X-Forwarded-Groups", "developers"}
	wantProblem(t, proxy.do(t, "GET", "/executions/"+execution, nil, other...), http.StatusNotFound, "not-found")
	// A key is more than the header; a page of another origin cannot act as the person.
	key, _ := admin.newKey(t, map[string]any{"name": "n", "user_id": t.Name()})
	if me := (client{server: c.server, secret: key.secret}).do(t, "GET", "/me", nil, header...); me.get("user_id") !=
		t.Name() {
		t.Errorf("got %s, want the user of the key", me.text)
	}
	evil := append(header, "Origin", "http://evil.test")
	wantProblem(t, proxy.do(t, "POST", "/sandbox/create", map[string]any{}, evil...),
		http.StatusForbidden, "forbidden", "another origin")
	wantProblem(t, proxy.do(t, "GET", "/me", nil, "X-Forwarded-User", name), http.StatusForbidden, "forbidden",
		"no role")
	taken := []string{"X-Forwarded-User", sandbox.AdminUser, "X-Forwarded-Groups", "admins"}
	wantProblem(t, proxy.do(t, "GET", "/me", nil, taken...),
		http.StatusForbidden, "forbidden", "service itself")
	wantProblem(t, proxy.do(t, "GET", "/me", nil, "X-Forwarded-User", "a\u202eb", "X-Forwarded-Groups", "admins"),
		http.StatusForbidden, "forbidden", "invisible")
	wantProblem(t, proxy.do(t, "GET", "/me", nil, "X-Forwarded-Groups", "admins"), http.StatusUnauthorized,
		"unauthorized")
	// Others send the headers in vain.
	stranger := client{server: behind("10.0.0.7/32").server}
	wantProblem(t, stranger.do(t, "GET", "/me", nil, header...), http.StatusUnauthorized, "unauthorized", "no API key")
}

// An editor attaches with a token, and loses its session when it expires.
func TestEditorAttachesWithAToken(t *testing.T) {
	t.Parallel()
	c, advance := newCompanyWithClock(t)
	anna := c.bearer("anna")
	id := anna.create(t, nil)
	c.provider.SetLifetime(5 * time.Minute)
	short := c.bearer("anna")
	e := dapConnectWebSocket(t, anna, c.server)
	e.mustRequest("initialize", map[string]any{"adapterID": "test"})
	e.mustRequest("attach", map[string]any{"token": short.secret, "sandbox": id, "code": "x = 1\ny = 2",
		"stopOnEntry": true})
	e.mustRequest("configurationDone", nil)
	advance(5 * time.Minute)
	if said := e.readToEnd(); !strings.Contains(said, "this token has expired") {
		t.Errorf("got %s, want output that says why it ends", said)
	}
}

// The values of the role claim, or those of the proxy's header, give a person databases, in every face and for the keys
// that the person makes.
func TestPersonsUseTheDatabasesOfTheirGroups(t *testing.T) {
	t.Parallel()
	sales, staff, _ := salesAndStaff(t)
	groups := map[string][]string{"developers": {"staff", "sales"}, "agents": {"sales"},
		"admins": {signin.AllDatabases}}
	c := newCompanyWithDatabases(t, groups, func(c *companyConfig) {
		c.databases = withDatabases(t, sales, staff)
		c.api.Proxy = &signin.Proxy{UserHeader: "X-User", RoleHeader: "X-Groups",
			Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	})
	anna, bert, root := c.bearer("anna"), c.bearer("bert"), c.bearer("root")
	session := c.as(t, c.signIn(t, "anna"))
	made, _ := anna.newKey(t, map[string]any{"name": "n"})
	for want, people := range map[string][]client{
		"knowledge sales staff": {root}, "sales staff": {anna, session, made}, "sales": {bert},
	} {
		for _, person := range people {
			var names []string
			for _, d := range person.ok(t, "GET", "/databases", nil).get("databases").([]any) {
				names = append(names, d.(map[string]any)["name"].(string))
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("got the databases %s, want %s", got, want)
			}
		}
	}
	a := bert.run(t, bert.create(t, nil), `said = [db_query("SELECT DISTINCT seller FROM orders")[0]["seller"]]
for name in ["knowledge", "staff"]:
    try:
        said.append(db_query("SELECT 1", database=name))
    except DatabaseError as e:
        said.append(e.reason)
said`)
	if got := compactJSON(a.get("result")); got != `["sales","unknown-database","unknown-database"]` {
		t.Errorf("got %s %v, want the database of the group only", got, a.get("exception"))
	}
	wantProblem(t, anna.do(t, "POST", "/keys", map[string]any{"name": "n", "databases": []string{"knowledge"}}),
		http.StatusUnprocessableEntity, "invalid-input", "sales, staff")
	proxied := func(group string) answer {
		return client{server: c.server}.do(t, "GET", "/databases", nil, "X-User", t.Name()+"/p", "X-Groups", group)
	}
	if a := proxied("guests, agents"); a.status != http.StatusOK || strings.Contains(string(a.text), "staff") {
		t.Errorf("got %s, want the database of the agents", a.text)
	}
	wantProblem(t, proxied("guests"), http.StatusForbidden, "forbidden", "no role")
}

// A person whose groups have a role and no database is refused: no list of databases would mean all.
func TestPersonWithoutDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	c := newCompanyWithDatabases(t, map[string][]string{"developers": {"knowledge"}}, nil)
	c.bearer("anna").ok(t, "GET", "/databases", nil)
	for _, method := range []string{"/databases", "/me"} {
		wantProblem(t, c.bearer("root").do(t, "GET", method, nil), http.StatusForbidden, "forbidden", "no database")
	}
	flow, back := c.leave(t, "bert", "")
	if r := c.get(t, back, flow); r.StatusCode < 400 && strings.Contains(fmt.Sprint(r.Cookies()), "glasshouse_key") {
		t.Errorf("got %s with the cookies %v, want no sign-in", r.Status, r.Cookies())
	}
}
