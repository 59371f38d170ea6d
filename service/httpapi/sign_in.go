package httpapi

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/sandbox"
	"glasshouse/service/signin"
	"glasshouse/service/webui"
)

const (
	signInPath   = "/login/oidc"
	callbackPath = signInPath + "/callback"
	// flowCookie has the secrets of a sign-in while the person is at the provider, for flowSeconds. Unlike keyCookie it
	// is sent when the provider, another site, redirects to callbackPath, and only there.
	flowCookie  = "glasshouse_sign_in"
	flowSeconds = 600
)

// signInFlow is the value of flowCookie.
type signInFlow struct {
	signin.Flow
	Return string `json:"return"` // the page to show
}

// signInMethods says how a person can sign in, in addition to keys.
type signInMethods struct {
	Provider *providerLink `json:"provider,omitempty" doc:"Absent: no identity provider is configured"`
}

type providerLink struct {
	Name string `json:"name" doc:"The host of the identity provider"`
	Path string `json:"path" doc:"Where a browser begins to sign in; the parameter return is the page to show then"`
}

func (a *api) routeSignIn(r *routes) {
	methods := r.describe("GET", "/login/methods", "getSignInMethods", tagKeys,
		"Get how a person can sign in, in addition to keys")
	methods.Responses["200"] = &huma.Response{Description: "OK", Content: jsonContent[signInMethods](r)}
	methods.Security = []map[string][]string{} // none
	r.handle(r.login, methods, func(g *gin.Context) {
		out := signInMethods{}
		if provider := a.access.Provider; provider != nil {
			out.Provider = &providerLink{provider.Name(), signInPath}
		}
		g.JSON(http.StatusOK, out)
	})

	begin := r.describe("GET", signInPath, "beginSignIn", tagKeys,
		"Sign in for the pages with the identity provider: redirect to it", http.StatusNotFound)
	begin.Parameters = []*huma.Param{stringParam("query", "return", "The page to show afterwards, such as /ui/play")}
	begin.Responses["303"] = &huma.Response{
		Description: "See the identity provider, or the pages if it cannot be reached"}
	begin.Security = []map[string][]string{} // none
	r.handle(r.login, begin, a.beginSignIn)

	end := r.describe("GET", callbackPath, "endSignIn", tagKeys,
		"Where the identity provider redirects: the person gets a key in a cookie", http.StatusNotFound)
	for _, name := range []string{"code", "state", "error", "iss"} {
		end.Parameters = append(end.Parameters, stringParam("query", name, "From the identity provider"))
	}
	end.Responses["303"] = &huma.Response{Description: "See the pages"}
	r.handle(r.pages, end, a.endSignIn) // a provider adds parameters
}

// flowCookieOf returns the cookie of a sign-in. A negative maxAge removes it.
func (a *api) flowCookieOf(r *http.Request, value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: flowCookie, Value: value, Path: signInPath, MaxAge: maxAge, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: signin.IsHTTPS(r, a.publicURL),
	}
}

// callbackURL returns the address to which the provider redirects. The provider knows it, and refuses any other.
func (a *api) callbackURL(r *http.Request) string {
	if a.publicURL != "" {
		return a.publicURL + callbackPath
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return scheme + r.Host + callbackPath
}

// errNoProvider is the error of the routes of a sign-in without a provider.
var errNoProvider = &sandbox.Error{Fault: sandbox.FaultNotFound,
	Detail: "no identity provider is configured: sign in with a key, or start the service with --oidc-issuer"}

func (a *api) beginSignIn(g *gin.Context) {
	if a.access.Provider == nil {
		a.fail(g, errNoProvider)
		return
	}
	flow := signInFlow{signin.NewFlow(), pageOf(g.Query("return"))}
	address, err := a.access.Provider.AuthCodeURL(g.Request.Context(), flow.Flow, a.callbackURL(g.Request))
	if err != nil {
		a.failSignIn(g, err)
		return
	}
	value, _ := json.Marshal(flow) // texts
	http.SetCookie(g.Writer, a.flowCookieOf(g.Request, url.QueryEscape(string(value)), flowSeconds))
	g.Redirect(http.StatusSeeOther, address)
}

func (a *api) endSignIn(g *gin.Context) {
	provider := a.access.Provider
	if provider == nil {
		a.fail(g, errNoProvider)
		return
	}
	flow, err := flowOf(g.Request)
	http.SetCookie(g.Writer, a.flowCookieOf(g.Request, "", -1)) // it works once
	if err == nil {
		err = provider.CheckRedirect(g.Query("error"), g.Query("iss"))
	}
	if err != nil {
		a.failSignIn(g, err)
		return
	}
	ctx := g.Request.Context()
	person, err := provider.Exchange(ctx, flow.Flow, g.Query("code"), a.callbackURL(g.Request))
	if err != nil {
		a.failSignIn(g, err)
		return
	}
	_, secret, err := a.access.SignIn(ctx, person)
	if err != nil {
		a.failSignIn(g, err)
		return
	}
	http.SetCookie(g.Writer, a.cookieOf(g.Request, secret, 0))
	g.Redirect(http.StatusSeeOther, flow.Return)
}

// errOtherFlow is the error for a browser that returns from a sign-in which it did not begin, or began long ago.
var errOtherFlow = errors.New("this browser has not begun this sign-in, or more than 10 minutes ago")

// flowOf returns the sign-in that the browser began, if it is that of the state in the query.
func flowOf(r *http.Request) (signInFlow, error) {
	var flow signInFlow
	cookie, err := r.Cookie(flowCookie)
	if err != nil {
		return flow, errOtherFlow
	}
	value, err := url.QueryUnescape(cookie.Value)
	if err != nil || json.Unmarshal([]byte(value), &flow) != nil || flow.State == "" ||
		subtle.ConstantTimeCompare([]byte(flow.State), []byte(r.URL.Query().Get("state"))) != 1 {
		return flow, errOtherFlow
	}
	flow.Return = pageOf(flow.Return)
	return flow, nil
}

// failSignIn shows the page of the sign-in, which has a text for each of the reasons. The log has the error.
func (a *api) failSignIn(g *gin.Context, err error) {
	reason := "failed"
	switch fault := sandbox.FaultOf(err); {
	case errors.Is(err, errOtherFlow):
		reason = "expired"
	case fault == sandbox.FaultForbidden:
		reason = "refused"
	case fault == sandbox.FaultUnavailable:
		reason = "unreachable"
	}
	a.log.WithError(err).WithField("request_id", infoFrom(g.Request.Context()).id).Warn("a sign-in with the identity " +
		"provider failed")
	g.Redirect(http.StatusSeeOther, webui.Prefix+"?sign_in="+reason)
}

// pageOf returns the address of a page of this service, with its query. It is that of the first page if address is
// anything else, so that a link cannot lead to another host by way of a sign-in.
func pageOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || strings.Contains(address, `\`) {
		return webui.Prefix
	}
	clean := path.Clean(u.Path)
	if strings.TrimSuffix(u.Path, "/") != clean || !strings.HasPrefix(clean+"/", webui.Prefix) {
		return webui.Prefix // a path such as //host/../ui/ begins with a host
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
}
