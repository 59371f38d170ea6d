// Package signintest has an OpenID Connect provider for tests, which behaves as a real one: discovery, keys, a page
// where a person signs in, and tokens for a code, with PKCE and client authentication.
package signintest

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"html/template"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The client that the provider knows.
const (
	ClientID = "glasshouse"
	Secret   = "secret of the/client+"
	Audience = "https://glasshouse.example/api" // of access tokens
)

// Claims are the claims of a token.
type Claims map[string]any

// Provider is a provider that listens on loopback. Its methods are safe for concurrent use.
type Provider struct {
	URL string // the issuer

	t      testing.TB
	server *http.Server

	mu        sync.Mutex
	users     map[string]Claims
	callbacks []string
	codes     map[string]grant
	keys      map[string]crypto.Signer // by algorithm
	keyNumber int
	lifetime  time.Duration
	clock     func() time.Time
	spoil     func(Claims)
	requests  map[string]int
	held      chan struct{} // nil: requests are answered at once
}

// grant is what a code stands for.
type grant struct {
	user, callback, nonce, challenge string
	until                            time.Time
}

// New starts a Provider with these users, by the name under which they sign in. It ends with the test.
func New(t testing.TB, users map[string]Claims) *Provider {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{URL: "http://" + listener.Addr().String(), t: t, users: users, codes: map[string]grant{},
		lifetime: time.Hour, clock: time.Now, requests: map[string]int{}}
	p.Rotate()
	p.serve(listener)
	t.Cleanup(p.Stop)
	return p
}

// Stop makes the provider unreachable.
func (p *Provider) Stop() { _ = p.server.Close() }

// Start makes it reachable again, after Stop.
func (p *Provider) Start() {
	p.t.Helper()
	listener, err := net.Listen("tcp", strings.TrimPrefix(p.URL, "http://"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.serve(listener)
}

func (p *Provider) serve(listener net.Listener) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keySet)
	mux.HandleFunc("GET /authorize", p.showSignIn)
	mux.HandleFunc("POST /authorize", p.signIn)
	mux.HandleFunc("POST /token", p.token)
	p.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.requests[r.URL.Path]++
		held := p.held
		p.mu.Unlock()
		if held != nil {
			<-held
		}
		mux.ServeHTTP(w, r)
	})}
	go func() { _ = p.server.Serve(listener) }()
}

// Hold lets the answers to all requests wait until release is called.
func (p *Provider) Hold() (release func()) {
	held := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.held == held {
			p.held = nil
			close(held)
		}
	}
}

// Requests returns how often a path was requested.
func (p *Provider) Requests(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[path]
}

// Allow registers the address of a client to which the provider may redirect.
func (p *Provider) Allow(callback string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.callbacks = append(p.callbacks, callback)
}

// SetLifetime sets how long tokens are valid.
func (p *Provider) SetLifetime(lifetime time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lifetime = lifetime
}

// SetClock sets the clock of the provider, which is the machine's at first.
func (p *Provider) SetClock(clock func() time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clock = clock
}

// Spoil changes the claims of the ID tokens that follow, before they are signed; nil changes nothing.
func (p *Provider) Spoil(spoil func(Claims)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spoil = spoil
}

// Rotate replaces the keys.
func (p *Provider) Rotate() {
	p.t.Helper()
	one, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		p.t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = map[string]crypto.Signer{"RS256": one, "ES256": other}
	p.keyNumber++
}

// IDToken returns the claims of an ID token of a user.
func (p *Provider) IDToken(user string) Claims {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	claims := Claims{"iss": p.URL, "aud": ClientID, "iat": now.Unix(), "exp": now.Add(p.lifetime).Unix()}
	maps.Copy(claims, p.users[user])
	return claims
}

// Sign returns a token with the claims, which may be any value of JSON: RS256 or ES256; none without a signature; HS256
// with the public RSA key as the secret, as an attacker makes it.
func (p *Provider) Sign(algorithm string, claims any) string {
	return p.SignType("JWT", algorithm, claims)
}

// SignType is Sign for a token of another type.
func (p *Provider) SignType(tokenType any, algorithm string, claims any) string {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	header := Claims{"typ": tokenType, "alg": algorithm, "kid": p.keyID(algorithm)}
	text := encode(header) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	var signature []byte
	var err error
	switch algorithm {
	case "RS256":
		signature, err = p.keys[algorithm].Sign(rand.Reader, sum[:], crypto.SHA256)
	case "ES256":
		var r, s *big.Int
		if r, s, err = ecdsa.Sign(rand.Reader, p.keys[algorithm].(*ecdsa.PrivateKey), sum[:]); err == nil {
			signature = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
		}
	case "HS256":
		public, _ := x509.MarshalPKIXPublicKey(p.keys["RS256"].Public())
		mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
		mac.Write([]byte(text))
		signature = mac.Sum(nil)
	case "none":
	default:
		p.t.Fatalf("there is no algorithm %s", algorithm)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func (p *Provider) keyID(algorithm string) string {
	return fmt.Sprintf("%s-%d", algorithm, p.keyNumber)
}

func encode(value any) string {
	raw, _ := json.Marshal(value) // claims of tests can be encoded
	return base64.RawURLEncoding.EncodeToString(raw)
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, Claims{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
		"jwks_uri": p.URL + "/keys", "response_types_supported": []string{"code"},
		"subject_types_supported": []string{"public"}, "code_challenge_methods_supported": []string{"S256"},
		"id_token_signing_alg_values_supported": []string{"RS256", "ES256"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post"},
	})
}

func (p *Provider) keySet(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := base64.RawURLEncoding.EncodeToString
	one, other := p.keys["RS256"].Public().(*rsa.PublicKey), p.keys["ES256"].Public().(*ecdsa.PublicKey)
	point, err := other.Bytes() // 4, X, Y
	if err != nil {
		p.t.Error(err)
		return
	}
	answer(w, http.StatusOK, Claims{"keys": []Claims{
		{"kty": "OKP", "crv": "Ed448", "kid": "of a kind that few know", "x": text(make([]byte, 57))},
		{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": p.keyID("RS256"), "n": text(one.N.Bytes()),
			"e": text(big.NewInt(int64(one.E)).Bytes())},
		{"kty": "EC", "use": "sig", "alg": "ES256", "crv": "P-256", "kid": p.keyID("ES256"),
			"x": text(point[1:33]), "y": text(point[33:])},
	}})
}

var signInPage = template.Must(template.New("").Parse(`<!doctype html><html lang="en"><title>Test provider</title>
<h1>Sign in</h1><form method="post" action="/authorize?{{.Query}}">
<label>User <input name="user"></label> <button>Continue</button> <button name="refuse" value="1">Refuse</button></form>
`))

// checkAuthorization returns what is wrong with a request for a code. A provider must not redirect to an address that
// it does not know.
func (p *Provider) checkAuthorization(r *http.Request) string {
	q := r.URL.Query()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case q.Get("client_id") != ClientID:
		return "unknown client_id"
	case !slices.Contains(p.callbacks, q.Get("redirect_uri")):
		return "the redirect_uri " + q.Get("redirect_uri") + " is not registered"
	case q.Get("response_type") != "code" || !slices.Contains(strings.Fields(q.Get("scope")), "openid"):
		return "want response_type=code and the scope openid"
	case q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43:
		return "want PKCE with S256"
	case q.Get("state") == "" || q.Get("nonce") == "":
		return "want a state and a nonce"
	}
	return ""
}

func (p *Provider) showSignIn(w http.ResponseWriter, r *http.Request) {
	if wrong := p.checkAuthorization(r); wrong != "" {
		http.Error(w, wrong, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = signInPage.Execute(w, map[string]any{"Query": template.URL(r.URL.RawQuery)})
}

func (p *Provider) signIn(w http.ResponseWriter, r *http.Request) {
	if wrong := p.checkAuthorization(r); wrong != "" {
		http.Error(w, wrong, http.StatusBadRequest)
		return
	}
	q := r.URL.Query()
	back := "?state=" + url.QueryEscape(q.Get("state")) + "&iss=" + url.QueryEscape(p.URL)
	user := r.PostFormValue("user")
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r.PostFormValue("refuse") != "":
		back += "&error=access_denied&error_description=the+person+refused"
	case p.users[user] == nil:
		http.Error(w, "there is no such user", http.StatusForbidden)
		return
	default:
		code := rand.Text()
		p.codes[code] = grant{user, q.Get("redirect_uri"), q.Get("nonce"), q.Get("code_challenge"),
			time.Now().Add(time.Minute)}
		back += "&session_state=" + rand.Text() + "&code=" + code
	}
	http.Redirect(w, r, q.Get("redirect_uri")+back, http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, ok := r.BasicAuth()
	if ok { // RFC 6749: both are form-encoded first
		id, secret = unescape(id), unescape(secret)
	} else {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if id != ClientID || secret != Secret {
		answer(w, http.StatusUnauthorized, Claims{"error": "invalid_client"})
		return
	}
	code := r.PostFormValue("code")
	p.mu.Lock()
	g, known := p.codes[code]
	delete(p.codes, code) // it works once
	spoil := p.spoil
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case r.PostFormValue("grant_type") != "authorization_code" || !known || time.Now().After(g.until):
		answer(w, http.StatusBadRequest, Claims{"error": "invalid_grant", "error_description": "the code is not valid"})
		return
	case r.PostFormValue("redirect_uri") != g.callback:
		answer(w, http.StatusBadRequest, Claims{"error": "invalid_grant", "error_description": "another redirect_uri"})
		return
	case base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge:
		answer(w, http.StatusBadRequest, Claims{"error": "invalid_grant", "error_description": "wrong code_verifier"})
		return
	}
	claims := p.IDToken(g.user)
	claims["nonce"] = g.nonce
	if spoil != nil {
		spoil(claims)
	}
	access := p.IDToken(g.user)
	access["aud"], access["client_id"] = []string{Audience}, ClientID
	answer(w, http.StatusOK, Claims{"token_type": "Bearer", "expires_in": 3600, "id_token": p.Sign("RS256", claims),
		"access_token": p.SignType("at+jwt", "ES256", access)})
}

func unescape(text string) string {
	plain, err := url.QueryUnescape(text)
	if err != nil {
		return ""
	}
	return plain
}

// SignIn does what a person does in a browser: it opens an address of the provider, signs in as a user, and returns the
// address to which the provider redirects.
func (p *Provider) SignIn(ctx context.Context, address, user string) (string, error) {
	form := strings.NewReader("user=" + url.QueryEscape(user))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, form)
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusFound {
		return "", fmt.Errorf("the provider answered %s", response.Status)
	}
	return response.Header.Get("Location"), nil
}
