package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"glasshouse/sandbox"
)

// RetryInterval is the time between two attempts to reach a provider that cannot be reached. It is also the least time
// between two reads of a provider's keys, however many tokens have unknown keys.
const RetryInterval = 10 * time.Second

const (
	// requestTimeout limits each request to the provider.
	requestTimeout = 10 * time.Second
	// maxTokenWait is how long a request with a bearer token waits for a read of the provider's keys: anybody can
	// send a token that is signed with an unknown key, and the provider may be slow.
	maxTokenWait = time.Second
	// refreshInterval is how long keys are used before they are read again. A key that the provider has withdrawn is
	// refused after that time.
	refreshInterval = 10 * time.Minute
)

// Config configures a Provider.
type Config struct {
	Issuer       string // its URL, exactly as the provider writes it in tokens
	ClientID     string
	ClientSecret string   // "" for a public client
	Scopes       []string // in addition to openid
	Audiences    []string // accepted in bearer tokens, in addition to ClientID
	UserClaim    string
	RoleClaim    string // "": everyone has the default role
	Rights       Rights

	Clock func() time.Time // nil: the machine's clock
	Log   func(error)      // is told when the provider cannot be reached, and, with nil, when it can be again
}

// Provider is an OpenID Connect provider. Its methods are safe for concurrent use.
type Provider struct {
	config Config
	client *http.Client

	found atomic.Pointer[discovery] // nil until the provider was reached

	mu        sync.Mutex
	current   *read     // nil: nothing is being read
	attemptAt time.Time // when the last read began
	lastError error     // of the last read that has ended
}

// NewProvider returns a Provider. It does not connect. It returns an error for an issuer whose keys others could
// replace, because it is neither on loopback nor has TLS.
func NewProvider(c Config) (*Provider, error) {
	u, err := url.Parse(c.Issuer)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the issuer %q must be a URL such as https://login.example.com", c.Issuer)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return nil, fmt.Errorf("the issuer %s must begin with https://: others on the network could name any user",
			c.Issuer)
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Log == nil {
		c.Log = func(error) {}
	}
	client := &http.Client{Timeout: requestTimeout, Transport: boundedAnswers{http.DefaultTransport}}
	return &Provider{config: c, client: client}, nil
}

// maxAnswerBytes bounds an answer of the provider: its configuration, its keys or tokens.
const maxAnswerBytes = 1 << 20

// boundedAnswers is a transport whose answers fail after maxAnswerBytes.
type boundedAnswers struct{ http.RoundTripper }

func (b boundedAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswerBytes)
	}
	return response, err
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Name returns the host of the issuer, which people know their provider by.
func (p *Provider) Name() string {
	u, _ := url.Parse(p.config.Issuer) // NewProvider has parsed it
	return u.Host
}

// IsReachable reports whether the last read of the provider's configuration has succeeded.
func (p *Provider) IsReachable() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.found.Load() != nil && p.lastError == nil
}

// Run reads the provider's configuration and keys until ctx ends: every refreshInterval, and every RetryInterval while
// the provider cannot be reached. It begins by waiting, after Refresh.
func (p *Provider) Run(ctx context.Context) {
	for {
		wait := refreshInterval
		if !p.IsReachable() {
			wait = RetryInterval
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		_ = p.Refresh(ctx) // Log is told
	}
}

// Refresh reads the provider's configuration and keys, or waits for a read that has begun. If it returns an error,
// those of the last read stay in use. If ctx ends, the read goes on.
func (p *Provider) Refresh(ctx context.Context) error { return p.refresh(ctx, 0) }

// refresh is Refresh, except that it returns the outcome of the last read if that one began less than interval ago.
func (p *Provider) refresh(ctx context.Context, interval time.Duration) error {
	p.mu.Lock()
	current, now := p.current, p.config.Clock()
	if current == nil {
		if age := now.Sub(p.attemptAt); age >= 0 && age < interval {
			defer p.mu.Unlock()
			return p.lastError
		}
		current = &read{done: make(chan struct{})}
		p.current, p.attemptAt = current, now
		go p.run(context.WithoutCancel(ctx), current) // what one request has begun serves the others, too
	}
	p.mu.Unlock()
	select {
	case <-current.done:
		return current.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read is a read of the provider's configuration and keys.
type read struct {
	done chan struct{} // is closed at its end
	err  error         // set before
}

// run discovers the provider.
func (p *Provider) run(ctx context.Context, r *read) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	found, err := discover(oidc.ClientContext(ctx, p.client), p.config.Issuer)
	if err == nil {
		p.found.Store(found)
	}
	p.mu.Lock()
	changed := (p.lastError == nil) != (err == nil)
	p.lastError, p.current = err, nil
	p.mu.Unlock()
	if err != nil || changed {
		p.config.Log(err)
	}
	r.err = err
	close(r.done)
}

// discovered returns the provider's configuration and keys, or FaultUnavailable if it was never reached.
func (p *Provider) discovered(ctx context.Context) (*discovery, error) {
	if found := p.found.Load(); found != nil {
		return found, nil
	}
	if err := p.refresh(ctx, RetryInterval); err != nil {
		return nil, p.unavailable(err)
	}
	return p.found.Load(), nil
}

func (p *Provider) unavailable(err error) error {
	return &sandbox.Error{
		Fault: sandbox.FaultUnavailable, RetryAfter: int(RetryInterval.Seconds()), Cause: err,
		Detail: fmt.Sprintf("the identity provider %s cannot be reached; keys work, and the service tries again "+
			"every %s", p.Name(), RetryInterval),
	}
}

// IsToken reports whether a secret has the form of a signed JSON Web Token. No other secret begins with the JSON of
// such a header.
func IsToken(secret string) bool {
	header, rest, _ := strings.Cut(secret, ".")
	if strings.Count(rest, ".") != 1 {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(header)
	var fields struct {
		Algorithm *string `json:"alg"`
	}
	return err == nil && json.Unmarshal(raw, &fields) == nil && fields.Algorithm != nil
}

// Person returns the person of a bearer token: an ID token, or an access token that is a JSON Web Token. It returns
// FaultUnauthorized for a token that is not valid, FaultForbidden for a person without a role, and FaultUnavailable if
// the provider's keys are not known.
func (p *Provider) Person(ctx context.Context, token string) (Person, error) {
	if err := checkTokenType(token); err != nil {
		return Person{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxTokenWait)
	defer cancel()
	verified, err := p.verify(ctx, token)
	if err != nil {
		return Person{}, err
	}
	isFor := func(audience string) bool { return slices.Contains(verified.Audience, audience) }
	switch {
	case slices.ContainsFunc(p.config.Audiences, isFor): // of an API: any client may have asked for the token
	case isFor(p.config.ClientID):
		err = p.checkAuthorizedParty(verified)
	default:
		err = invalidToken("it is for %q, and not for %q: ask the provider for a token with this audience, or set "+
			"--oidc-audiences", verified.Audience, append([]string{p.config.ClientID}, p.config.Audiences...))
	}
	if err != nil {
		return Person{}, err
	}
	return p.personOf(verified)
}

// checkAuthorizedParty returns an error for a token whose audience is this client if the provider has made it for
// another client: the claim azp names that one, and must be present if there are several audiences (OpenID Connect
// Core, 3.1.3.7).
func (p *Provider) checkAuthorizedParty(token *oidc.IDToken) error {
	var claims struct {
		Party *string `json:"azp"`
	}
	if err := token.Claims(&claims); err != nil {
		return invalidToken("%s", err)
	}
	switch {
	case claims.Party == nil && len(token.Audience) > 1:
		return invalidToken("it is for %q and has no claim azp, which must be %q: ask the provider for a token with "+
			"one audience, or set --oidc-audiences", token.Audience, p.config.ClientID)
	case claims.Party != nil && *claims.Party != p.config.ClientID:
		return invalidToken("the provider has made it for the client %q (azp), and not for %q: ask for a token with "+
			"this client, or set --oidc-audiences", *claims.Party, p.config.ClientID)
	}
	return nil
}

// readClaims are the claims that go-oidc and this package read into fields. encoding/json takes a name in another case
// for them.
var readClaims = []string{"iss", "sub", "aud", "exp", "iat", "nbf", "nonce", "at_hash", "azp", "_claim_names",
	"_claim_sources"}

// checkClaims returns an error for a token with a claim twice, or with one whose name differs from that of a known
// claim only in case. Other programs read such a token in another way.
func checkClaims(token *oidc.IDToken) error {
	var raw json.RawMessage
	err := token.Claims(&raw)
	if err == nil {
		err = sandbox.CheckJSON(raw)
	}
	var claims map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(raw, &claims)
	}
	if err != nil {
		return invalidToken("its claims: %s", err)
	}
	for name := range claims {
		for _, known := range readClaims {
			if name != known && strings.EqualFold(name, known) {
				return invalidToken("it has the claim %q, whose name is %q", name, known)
			}
		}
	}
	return nil
}

// tokenTypes are the values of the header typ of ID tokens and access tokens (RFC 9068). A provider signs other things
// with the same key, such as logout tokens.
var tokenTypes = []string{"", "jwt", "at+jwt", "application/at+jwt"}

func checkTokenType(token string) error {
	header, _, _ := strings.Cut(token, ".")
	raw, _ := base64.RawURLEncoding.DecodeString(header) // verify refuses what is not JSON
	var fields map[string]any
	_ = json.Unmarshal(raw, &fields)
	given := fields["typ"]
	if kind, isText := given.(string); given != nil && !isText || !slices.Contains(tokenTypes, strings.ToLower(kind)) {
		return invalidToken("its type is %q; send an ID token or an access token", fmt.Sprint(given))
	}
	return nil
}

func invalidToken(format string, args ...any) error {
	return sandbox.Errorf(sandbox.FaultUnauthorized, "this token is not valid: "+format, args...)
}

// verify checks the signature, the issuer, the times and the names of the claims of a token. For a token that is signed
// with an unknown key it reads the provider's keys again. If that takes longer than ctx, the known keys count.
func (p *Provider) verify(ctx context.Context, token string) (*oidc.IDToken, error) {
	found, err := p.discovered(ctx)
	if err != nil {
		return nil, err
	}
	verified, err := found.verify(ctx, p.config, token)
	if errors.Is(err, errUnknownKey) && p.refresh(ctx, RetryInterval) == nil {
		verified, err = p.found.Load().verify(ctx, p.config, token)
	}
	var expired *oidc.TokenExpiredError
	switch {
	case errors.As(err, &expired):
		return nil, sandbox.Errorf(sandbox.FaultUnauthorized, "this token has expired (%s): get another one from the "+
			"identity provider", expired.Expiry.UTC().Format(time.RFC3339))
	case err != nil:
		return nil, invalidToken("%s", strings.TrimPrefix(err.Error(), "oidc: "))
	}
	return verified, checkClaims(verified)
}

// personOf maps the claims of a token that was verified.
func (p *Provider) personOf(token *oidc.IDToken) (Person, error) {
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return Person{}, invalidToken("%s", err)
	}
	user, _ := claimOf(claims, p.config.UserClaim).(string)
	if user == "" {
		return Person{}, sandbox.Errorf(sandbox.FaultForbidden, "the token has no text in the claim %q, which names "+
			"the user (--oidc-user-claim): let the provider add it, or name another claim", p.config.UserClaim)
	}
	verified := claims["email_verified"]
	if p.config.UserClaim == "email" && verified != true && verified != "true" { // some providers write a string
		return Person{}, sandbox.Errorf(sandbox.FaultForbidden, "the identity provider does not say that it has "+
			"verified the address %s (email_verified): let it add this claim, or name another one with "+
			"--oidc-user-claim", user)
	}
	var values []string
	if p.config.RoleClaim != "" {
		switch given := claimOf(claims, p.config.RoleClaim).(type) {
		case string:
			values = []string{given}
		case []any:
			for _, value := range given {
				if text, ok := value.(string); ok {
					values = append(values, text)
				}
			}
		}
	}
	person, err := p.config.Rights.person(SourceOIDC, user, fmt.Sprintf("the claim %q", p.config.RoleClaim), values)
	expiry := token.Expiry.UTC()
	if latest := time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC); expiry.After(latest) {
		expiry = latest // JSON has no later time
	}
	person.ExpiresAt = &expiry
	return person, err
}

// claimOf returns the claim with a name, such as groups, or with a path, such as realm_access.roles.
func claimOf(claims map[string]any, name string) any {
	if value, ok := claims[name]; ok { // also a name with dots, such as https://example.com/roles
		return value
	}
	first, rest, isPath := strings.Cut(name, ".")
	inner, ok := claims[first].(map[string]any)
	if !isPath || !ok {
		return nil
	}
	return claimOf(inner, rest)
}

// Flow has the secrets of one sign-in in a browser. The browser keeps them while the person is at the provider.
type Flow struct {
	State    string `json:"state"`    // shows that the browser which returns is the one that left
	Nonce    string `json:"nonce"`    // is in the ID token, so that no other sign-in's token is accepted
	Verifier string `json:"verifier"` // PKCE: shows the provider that the code is used by whom it was made for
}

// NewFlow returns the secrets of a new sign-in.
func NewFlow() Flow { return Flow{rand.Text(), rand.Text(), oauth2.GenerateVerifier()} }

// AuthCodeURL returns the address at the provider where a person signs in. The provider then redirects to callback. It
// returns FaultUnavailable if the provider cannot be reached.
func (p *Provider) AuthCodeURL(ctx context.Context, f Flow, callback string) (string, error) {
	found, err := p.discovered(ctx)
	if err != nil {
		return "", err
	}
	challenge := oauth2.S256ChallengeOption(f.Verifier)
	return p.oauth(found, callback).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), challenge), nil
}

func (p *Provider) oauth(found *discovery, callback string) *oauth2.Config {
	endpoint := found.provider.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if p.config.ClientSecret == "" || found.wantsSecretInBody {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: p.config.ClientID, ClientSecret: p.config.ClientSecret, Endpoint: endpoint, RedirectURL: callback,
		Scopes: append([]string{oidc.ScopeOpenID}, p.config.Scopes...),
	}
}

// CheckRedirect checks the parameters error and iss with which the provider has redirected a browser. It returns
// FaultForbidden if the provider refuses the person.
func (p *Provider) CheckRedirect(problem, issuer string) error {
	switch {
	case issuer != "" && issuer != p.config.Issuer: // RFC 9207
		return invalidToken("another issuer, %q, sends the person", issuer)
	case problem == "access_denied":
		return sandbox.Errorf(sandbox.FaultForbidden, "the identity provider or the person refuses the sign-in")
	case problem != "":
		return sandbox.Errorf(sandbox.FaultUnauthorized, "the identity provider answers %q", problem)
	}
	return nil
}

// Exchange returns the person who has signed in, for the code with which the provider redirected the browser. It
// returns FaultUnavailable if the provider cannot be reached, FaultUnauthorized if it does not accept the code or its
// token is not valid, and FaultForbidden for a person without a role.
func (p *Provider) Exchange(ctx context.Context, f Flow, code, callback string) (Person, error) {
	found, err := p.discovered(ctx)
	if err != nil {
		return Person{}, err
	}
	answer, err := p.oauth(found, callback).Exchange(oidc.ClientContext(ctx, p.client), code,
		oauth2.VerifierOption(f.Verifier))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response.StatusCode < http.StatusInternalServerError:
		return Person{}, sandbox.Errorf(sandbox.FaultUnauthorized, "the identity provider does not accept the code: %s",
			cmp.Or(refused.ErrorDescription, refused.ErrorCode, refused.Response.Status))
	case err != nil:
		return Person{}, p.unavailable(err)
	}
	token, _ := answer.Extra("id_token").(string)
	if token == "" {
		return Person{}, invalidToken("the identity provider has sent no id_token")
	}
	verified, err := p.verify(ctx, token)
	switch {
	case err != nil:
		return Person{}, err
	case !slices.Contains(verified.Audience, p.config.ClientID):
		return Person{}, invalidToken("it is for %q, and not for %q", verified.Audience, p.config.ClientID)
	case verified.Nonce != f.Nonce:
		return Person{}, invalidToken("its nonce is that of another sign-in")
	}
	if err := p.checkAuthorizedParty(verified); err != nil {
		return Person{}, err
	}
	return p.personOf(verified)
}
