package signin_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/signin"
	"glasshouse/service/signin/signintest"
)

type claims = signintest.Claims

var people = map[string]claims{
	"anna": {"sub": "u-1", "email": "anna@example.com", "email_verified": true, "groups": []string{"staff", "data"}},
	"bert": {"sub": "u-2", "email": "bert@example.com", "email_verified": false, "groups": []string{"staff"}},
}

var rights = signin.Rights{Roles: map[string]sandbox.Role{
	"data": sandbox.RoleDeveloper, "staff": sandbox.RoleAgent, "root": sandbox.RoleAdmin,
}}

// clock is a clock that tests move.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// connect returns a provider and the service's side of it.
func connect(t *testing.T, change func(*signin.Config)) (*signintest.Provider, *signin.Provider, *clock) {
	t.Helper()
	provider := signintest.New(t, people)
	time := &clock{}
	config := signin.Config{
		Issuer: provider.URL, ClientID: signintest.ClientID, ClientSecret: signintest.Secret,
		Audiences: []string{signintest.Audience}, UserClaim: "sub", RoleClaim: "groups", Rights: rights,
		Clock: time.now,
	}
	if change != nil {
		change(&config)
	}
	p, err := signin.NewProvider(config)
	if err != nil {
		t.Fatal(err)
	}
	return provider, p, time
}

func wantPerson(t *testing.T, p *signin.Provider, token, user string, role sandbox.Role) {
	t.Helper()
	person, err := p.Person(t.Context(), token)
	if err != nil || person.User != user || person.Role != role || person.Source != signin.SourceOIDC {
		t.Errorf("got %+v, %v, want %s as %s", person, err, user, role)
	}
}

func wantFault(t *testing.T, err error, fault sandbox.Fault, says string) {
	t.Helper()
	if sandbox.FaultOf(err) != fault || !strings.Contains(fmt.Sprint(err), says) {
		t.Errorf("got %v (%s), want %s that says %q", err, sandbox.FaultOf(err), fault, says)
	}
}

func TestTokensAreVerified(t *testing.T) {
	t.Parallel()
	provider, p, _ := connect(t, nil)
	other := signintest.New(t, people)
	valid := provider.IDToken("anna")
	with := func(changes claims) claims {
		out := provider.IDToken("anna")
		for name, value := range changes {
			if out[name] = value; value == nil {
				delete(out, name)
			}
		}
		return out
	}
	now := time.Now()
	wantPerson(t, p, provider.Sign("RS256", valid), "u-1", sandbox.RoleDeveloper)
	wantPerson(t, p, provider.Sign("ES256", valid), "u-1", sandbox.RoleDeveloper)
	for _, c := range []claims{
		{"aud": signintest.Audience}, {"aud": signintest.Audience, "azp": "other"},
		{"aud": []string{"other", signintest.Audience}}, {"azp": signintest.ClientID},
		{"aud": []string{"other", signintest.ClientID}, "azp": signintest.ClientID},
	} {
		token := provider.SignType("at+jwt", "ES256", with(c))
		wantPerson(t, p, token, "u-1", sandbox.RoleDeveloper)
	}
	text, err := json.Marshal(valid)
	if err != nil {
		t.Fatal(err)
	}
	// also returns the valid claims with another one, which a map cannot have.
	also := func(claim string) string {
		return provider.Sign("RS256", json.RawMessage(string(text[:len(text)-1])+","+claim+"}"))
	}
	// A provider whose clock is ahead by some minutes.
	wantPerson(t, p, provider.Sign("RS256", with(claims{"nbf": now.Add(4 * time.Minute).Unix()})), "u-1",
		sandbox.RoleDeveloper)

	both, signed := []string{"other", signintest.ClientID}, provider.Sign("RS256", valid)
	header, rest, _ := strings.Cut(signed, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	otherPayload := strings.Split(provider.Sign("RS256", with(claims{"groups": []string{"root"}})), ".")[1]
	for name, c := range map[string]struct{ token, says string }{
		"wrong audience":        {provider.Sign("RS256", with(claims{"aud": "another"})), `it is for ["another"]`},
		"no audience":           {provider.Sign("RS256", with(claims{"aud": nil})), "it is for"},
		"expired":               {provider.Sign("RS256", with(claims{"exp": now.Add(-time.Second).Unix()})), "expired"},
		"no expiry":             {provider.Sign("RS256", with(claims{"exp": nil})), "expired"},
		"not yet valid":         {provider.Sign("RS256", with(claims{"nbf": now.Add(time.Hour).Unix()})), "not before"},
		"another issuer":        {other.Sign("RS256", other.IDToken("anna")), "no key of the identity provider"},
		"another's issuer name": {provider.Sign("RS256", with(claims{"iss": other.URL})), "different provider"},
		"another's signature":   {other.Sign("RS256", valid), "no key of the identity provider"},
		"algorithm none":        {provider.Sign("none", valid), "unexpected signature algorithm"},
		"HS256 with the key":    {provider.Sign("HS256", valid), "unexpected signature algorithm"},
		"changed claims":        {header + "." + otherPayload + "." + signature, "no key of the identity provider"},
		"a cut signature":       {header + "." + payload + "." + signature[:20], "no key of the identity provider"},
		"no signature":          {header + "." + payload + ".", "no key of the identity provider"},
		"a logout token":        {provider.SignType("logout+jwt", "RS256", valid), `its type is "logout+jwt"`},
		"no claims":             {provider.Sign("RS256", nil), "different provider"},
		"a type that is none":   {provider.SignType(7, "RS256", valid), `its type is "7"`},
		"two audiences":         {provider.Sign("RS256", with(claims{"aud": both})), "no claim azp"},
		"another client":        {provider.Sign("RS256", with(claims{"azp": "another"})), `for the client "another"`},
		"a client of no name":   {provider.Sign("RS256", with(claims{"azp": ""})), `for the client ""`},
		"a client that is none": {provider.Sign("RS256", with(claims{"azp": 7})), "azp"},
		"a claim twice":         {also(`"sub": "admin"`), "twice"},
		"SUB":                   {also(`"SUB": "admin"`), `the claim "SUB", whose name is "sub"`},
		"long s":                {also(`"\u017fub": "admin"`), `whose name is "sub"`},
		"Exp alone":             {provider.Sign("RS256", with(claims{"exp": nil, "Exp": now.Unix() + 9})), `is "exp"`},
		"AZP":                   {also(`"AZP": "glasshouse"`), `whose name is "azp"`},
	} {
		if !signin.IsToken(c.token) {
			t.Errorf("%s: it is not seen as a token", name)
		}
		_, err := p.Person(t.Context(), c.token)
		if sandbox.FaultOf(err) != sandbox.FaultUnauthorized || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want it refused with %q", name, err, c.says)
		}
	}
	for _, secret := range []string{"gh_abc", "", "a.b.c", "eyJ.x.y", "..", "bnVsbA.b.c"} {
		if signin.IsToken(secret) {
			t.Errorf("%q is seen as a token", secret)
		}
	}
}

func TestClaimsBecomeUserAndRole(t *testing.T) {
	t.Parallel()
	byAddress := func(c *signin.Config) { c.UserClaim = "email" }
	for name, c := range map[string]struct {
		change func(*signin.Config)
		claims claims
		user   string
		role   sandbox.Role
		says   string // of the refusal
	}{
		"most rights": {nil, claims{"groups": []string{"staff", "root", "data"}}, "u-1", sandbox.RoleAdmin, ""},
		"one value":   {nil, claims{"groups": "staff"}, "u-1", sandbox.RoleAgent, ""},
		"no role":     {nil, claims{"groups": []string{"guests"}}, "", "", `none of the values of the claim "groups"`},
		"odd values": {nil, claims{"groups": []any{1, nil, map[string]any{}, "data"}}, "u-1",
			sandbox.RoleDeveloper, ""},
		"no claim": {func(c *signin.Config) { c.Rights.Default = sandbox.RoleAgent }, claims{"groups": nil}, "u-1",
			sandbox.RoleAgent, ""},
		"default": {func(c *signin.Config) {
			c.RoleClaim, c.Rights = "", signin.Rights{Default: sandbox.RoleDeveloper}
		}, nil, "u-1", sandbox.RoleDeveloper, ""},
		"path": {func(c *signin.Config) { c.RoleClaim = "realm_access.roles" },
			claims{"realm_access": claims{"roles": []string{"data"}}}, "u-1", sandbox.RoleDeveloper, ""},
		"name with dots": {func(c *signin.Config) { c.RoleClaim = "https://example.com/roles" },
			claims{"https://example.com/roles": []string{"root"}}, "u-1", sandbox.RoleAdmin, ""},
		"address":         {byAddress, nil, "anna@example.com", sandbox.RoleDeveloper, ""},
		"unknown address": {byAddress, claims{"email_verified": false}, "", "", "does not say that it has verified"},
		"perhaps unknown": {byAddress, claims{"email_verified": nil}, "", "", "does not say that it has verified"},
		"no user":         {func(c *signin.Config) { c.UserClaim = "upn" }, nil, "", "", `no text in the claim "upn"`},
		"a number":        {nil, claims{"sub": 7}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider, p, _ := connect(t, c.change)
			token := provider.IDToken("anna")
			for name, value := range c.claims {
				token[name] = value
			}
			person, err := p.Person(t.Context(), provider.Sign("RS256", token))
			if c.user == "" {
				fault := sandbox.FaultOf(err)
				if fault != sandbox.FaultForbidden && fault != sandbox.FaultUnauthorized {
					t.Fatalf("got %+v, %v, want it refused", person, err)
				}
				if !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v, want it to say %q", err, c.says)
				}
				return
			}
			if err != nil || person.User != c.user || person.Role != c.role {
				t.Errorf("got %+v, %v, want %s as %s", person, err, c.user, c.role)
			}
		})
	}
}

func TestKeysAreRotated(t *testing.T) {
	t.Parallel()
	provider, p, clock := connect(t, nil)
	before := provider.Sign("RS256", provider.IDToken("anna"))
	wantPerson(t, p, before, "u-1", sandbox.RoleDeveloper)
	provider.Rotate()
	after := provider.Sign("RS256", provider.IDToken("anna"))
	// Tokens with unknown keys make the service ask at most once in RetryInterval.
	asked := provider.Requests("/keys")
	for range 20 {
		_, err := p.Person(t.Context(), after)
		wantFault(t, err, sandbox.FaultUnauthorized, "no key")
	}
	if got := provider.Requests("/keys"); got != asked {
		t.Errorf("the keys were read %d times within %s, want 0", got-asked, signin.RetryInterval)
	}
	wantPerson(t, p, before, "u-1", sandbox.RoleDeveloper) // nothing has told the service yet
	clock.move(signin.RetryInterval)
	wantPerson(t, p, after, "u-1", sandbox.RoleDeveloper)
	_, err := p.Person(t.Context(), before) // the key was withdrawn
	wantFault(t, err, sandbox.FaultUnauthorized, "no key")
}

// TestUnknownKeysDoNotWaitForASlowProvider shows that a token which is signed with an unknown key is refused before a
// provider that does not answer has answered. The provider gets one request however many tokens come, and everything
// that needs none goes on.
func TestUnknownKeysDoNotWaitForASlowProvider(t *testing.T) {
	t.Parallel()
	provider, p, clock := connect(t, nil)
	other := signintest.New(t, people)
	known := provider.Sign("RS256", provider.IDToken("anna"))
	wantPerson(t, p, known, "u-1", sandbox.RoleDeveloper)
	provider.Rotate()
	rotated, forged := provider.Sign("RS256", provider.IDToken("anna")), other.Sign("RS256", provider.IDToken("anna"))
	const path = "/.well-known/openid-configuration"
	asked := provider.Requests(path)
	clock.move(signin.RetryInterval)
	release := provider.Hold()
	defer release()
	var tokens sync.WaitGroup
	for range 50 {
		tokens.Go(func() {
			_, err := p.Person(t.Context(), forged)
			wantFault(t, err, sandbox.FaultUnauthorized, "no key of the identity provider")
		})
	}
	wantPerson(t, p, known, "u-1", sandbox.RoleDeveloper)
	if _, err := p.AuthCodeURL(t.Context(), signin.NewFlow(), "http://here"); err != nil {
		t.Errorf("the begin of a sign-in: got %v, want the address at the provider", err)
	}
	tokens.Wait()
	if !p.IsReachable() {
		t.Error("the tokens waited until the provider's time was over, want them refused before")
	}
	if got := provider.Requests(path); got > asked+1 {
		t.Errorf("the provider got %d requests, want one", got-asked)
	}
	release()
	if err := p.Refresh(t.Context()); err != nil { // joins the read that waited
		t.Fatal(err)
	}
	wantPerson(t, p, rotated, "u-1", sandbox.RoleDeveloper)

	provider, p, _ = connect(t, nil)
	defer provider.Hold()()
	_, err := p.Person(t.Context(), provider.Sign("RS256", provider.IDToken("anna"))) // no key was read before
	wantFault(t, err, sandbox.FaultUnavailable, "cannot be reached")
}

func TestProviderIsDown(t *testing.T) {
	t.Parallel()
	provider, p, clock := connect(t, nil)
	token := provider.Sign("ES256", provider.IDToken("anna"))
	provider.Stop()
	for range 2 {
		_, err := p.Person(t.Context(), token)
		wantFault(t, err, sandbox.FaultUnavailable, "cannot be reached")
		_, err = p.AuthCodeURL(t.Context(), signin.NewFlow(), "http://here")
		wantFault(t, err, sandbox.FaultUnavailable, "cannot be reached")
	}
	if p.IsReachable() {
		t.Error("it is reported as reachable")
	}
	provider.Start()
	clock.move(signin.RetryInterval)
	wantPerson(t, p, token, "u-1", sandbox.RoleDeveloper)
	provider.Stop()
	clock.move(signin.RetryInterval)
	wantPerson(t, p, token, "u-1", sandbox.RoleDeveloper)                   // its keys are known
	_, err := p.Person(t.Context(), provider.Sign("RS256", claims{"a": 1})) // also signed with a known key
	wantFault(t, err, sandbox.FaultUnauthorized, "")
	if err := p.Refresh(t.Context()); err == nil || p.IsReachable() {
		t.Error("a provider that has stopped is reported as reachable")
	}
	clock.move(2 * time.Hour)
	_, err = p.Person(t.Context(), token)
	wantFault(t, err, sandbox.FaultUnauthorized, "expired")
}

// An answer without end is an error of the provider, and takes no memory.
func TestAnswersOfTheProviderAreBounded(t *testing.T) {
	t.Parallel()
	sent, endless := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != endless {
			_, _ = fmt.Fprintf(w, `{"issuer": "http://%[1]s", "jwks_uri": "http://%[1]s/keys"}`, r.Host)
			return
		}
		_, err := io.WriteString(w, `{"issuer": "`)
		for sent = 0; err == nil && sent < 1<<30; sent += 1 << 16 {
			_, err = w.Write(make([]byte, 1<<16))
		}
	}))
	defer server.Close()
	for _, endless = range []string{"/.well-known/openid-configuration", "/keys"} {
		p, err := signin.NewProvider(signin.Config{Issuer: server.URL, ClientID: "x", UserClaim: "sub"})
		if err != nil {
			t.Fatal(err)
		}
		if err = p.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "too large") {
			t.Errorf("%s: got %v, want that the answer is too large", endless, err)
		}
	}
	server.Close() // waits for the handlers
	if sent > 64<<20 {
		t.Errorf("the service has read %d MB of an answer", sent>>20)
	}
}

// JSON has no time after the year 9999. Some providers count milliseconds.
func TestTokenThatNeverExpires(t *testing.T) {
	t.Parallel()
	provider, p, clock := connect(t, nil)
	token := provider.IDToken("anna")
	token["exp"] = clock.now().UnixMilli()
	person, err := p.Person(t.Context(), provider.Sign("RS256", token))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(person.ExpiresAt); err != nil || string(text) != `"9999-12-31T23:59:59Z"` {
		t.Errorf("got the end %s, %v; want the last second that JSON has", text, err)
	}
}

// A discovery document that names another issuer is that of another provider.
func TestIssuerMustBeItsOwn(t *testing.T) {
	t.Parallel()
	provider := signintest.New(t, people)
	p, err := signin.NewProvider(signin.Config{Issuer: strings.Replace(provider.URL, "127.0.0.1", "localhost", 1),
		ClientID: signintest.ClientID, UserClaim: "sub", Rights: rights})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "did not match the issuer") {
		t.Errorf("got %v, want another issuer refused", err)
	}
	for _, issuer := range []string{"", "login", "http://login.example.com", "ftp://127.0.0.1", "https://a/?b=c"} {
		if _, err := signin.NewProvider(signin.Config{Issuer: issuer}); err == nil {
			t.Errorf("%q is accepted as an issuer", issuer)
		}
	}
}

func TestCodeIsExchanged(t *testing.T) {
	t.Parallel()
	const callback = "http://127.0.0.1:1/login/oidc/callback"
	provider, p, _ := connect(t, nil)
	provider.Allow(callback)
	begin := func(t *testing.T, user string) (flow signin.Flow, code string) {
		t.Helper()
		flow = signin.NewFlow()
		address, err := p.AuthCodeURL(t.Context(), flow, callback)
		if err != nil {
			t.Fatal(err)
		}
		back, err := provider.SignIn(t.Context(), address, user)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(back)
		if err != nil || u.Query().Get("state") != flow.State {
			t.Fatalf("got the redirection %s, want the state %s", back, flow.State)
		}
		return flow, u.Query().Get("code")
	}
	flow, code := begin(t, "anna")
	person, err := p.Exchange(t.Context(), flow, code, callback)
	if err != nil || person.User != "u-1" || person.Role != sandbox.RoleDeveloper {
		t.Errorf("got %+v, %v, want u-1 as a developer", person, err)
	}
	_, err = p.Exchange(t.Context(), flow, code, callback)
	wantFault(t, err, sandbox.FaultUnauthorized, "the code is not valid") // it was used

	flow, code = begin(t, "anna")
	stolen := flow
	stolen.Verifier = signin.NewFlow().Verifier
	_, err = p.Exchange(t.Context(), stolen, code, callback)
	wantFault(t, err, sandbox.FaultUnauthorized, "wrong code_verifier")

	flow, code = begin(t, "anna")
	_, err = p.Exchange(t.Context(), flow, code, callback+"/other")
	wantFault(t, err, sandbox.FaultUnauthorized, "another redirect_uri")

	for name, c := range map[string]struct {
		spoil func(claims)
		says  string
	}{
		"nonce":    {func(c claims) { c["nonce"] = signin.NewFlow().Nonce }, "nonce"},
		"no nonce": {func(c claims) { delete(c, "nonce") }, "nonce"},
		"client":   {func(c claims) { c["azp"] = "another" }, `for the client "another"`},
		"clients":  {func(c claims) { c["aud"] = []string{"another", signintest.ClientID} }, "no claim azp"},
		"audience": {func(c claims) { c["aud"] = signintest.Audience }, "it is for"}, // for the API only
		"expired":  {func(c claims) { c["exp"] = time.Now().Add(-time.Minute).Unix() }, "expired"},
		"issuer":   {func(c claims) { c["iss"] = "https://accounts.example" }, "different provider"},
	} {
		provider.Spoil(c.spoil)
		flow, code = begin(t, "anna")
		_, err = p.Exchange(t.Context(), flow, code, callback)
		if sandbox.FaultOf(err) != sandbox.FaultUnauthorized || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want it refused with %q", name, err, c.says)
		}
	}
	provider.Spoil(nil)
	flow, code = begin(t, "anna")
	provider.Stop()
	_, err = p.Exchange(t.Context(), flow, code, callback)
	wantFault(t, err, sandbox.FaultUnavailable, "cannot be reached")
}
