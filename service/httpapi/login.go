package httpapi

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/signin"
	"glasshouse/service/webui"
)

// keyCookie is the cookie with the key of a person who uses the pages. Scripts cannot read it, and browsers send it
// only with requests from pages of this host. It ends with the browser's session.
const keyCookie = "glasshouse_key"

// crossOrigin refuses requests with the cookie that a page of another origin causes.
var crossOrigin = http.NewCrossOriginProtection()

// secretOf returns the secret of a request: from the header Authorization, or else from the cookie. It returns
// FaultUnauthorized if there is none, and FaultForbidden for a request with the cookie from another origin.
func secretOf(r *http.Request) (string, error) {
	if given := r.Header.Get("Authorization"); given != "" {
		scheme, secret, _ := strings.Cut(given, " ")
		if secret = strings.TrimSpace(secret); strings.EqualFold(scheme, "Bearer") && secret != "" {
			return secret, nil
		}
	} else if cookie, err := r.Cookie(keyCookie); err == nil {
		if secret, err := url.QueryUnescape(cookie.Value); err == nil && secret != "" {
			return secret, checkOrigin(r)
		}
	}
	return "", sandbox.Errorf(sandbox.FaultUnauthorized,
		"no API key; send the header Authorization: Bearer KEY (`glasshouse keys create` makes a key, which "+
			"clients take from GLASSHOUSE_KEY)")
}

// checkOrigin returns FaultForbidden if a page of another origin caused the request. A WebSocket begins with a GET,
// and its messages act as any other method does.
func checkOrigin(r *http.Request) error {
	checked := *r
	if r.Header.Get("Upgrade") != "" {
		checked.Method = http.MethodPost
	}
	if err := crossOrigin.Check(&checked); err != nil {
		return sandbox.Errorf(sandbox.FaultForbidden, "a page of another origin sent this request with the cookie of "+
			"the Glasshouse pages: use a key in the header Authorization")
	}
	return nil
}

// LinkURL returns the address of a sign-in link for a browser that reaches the service at an address, such as
// http://127.0.0.1:8080.
func LinkURL(address string, link access.SignInLink) string {
	return address + "/login?token=" + link.Token
}

// signInLink is a new sign-in link.
type signInLink struct {
	URL       string    `json:"url" doc:"The link; without --public-url only its path and query"`
	ExpiresAt time.Time `json:"expires_at"`
}

// loginBody is the body of POST /login.
type loginBody struct {
	Key string `json:"key" minLength:"1" doc:"The secret of a key"`
}

// identity says whose key a request has.
type identity struct {
	KeyID     string       `json:"key_id"`
	Name      string       `json:"name" doc:"The key's name"`
	User      string       `json:"user_id"`
	Role      sandbox.Role `json:"role"`
	ExpiresAt *time.Time   `json:"expires_at"`
}

func identityOf(k sandbox.Key) identity { return identity{k.ID, k.Name, k.User, k.Role, k.ExpiresAt} }

func (a *api) routeLogin(r *routes) {
	login := r.describe("POST", "/login", "signIn", tagKeys,
		"Sign in for the pages: the key, or for the service's own admin key that of a sign-in, becomes a cookie",
		http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge)
	login.RequestBody = &huma.RequestBody{Required: true, Content: jsonContent[loginBody](r)}
	login.Responses["200"] = &huma.Response{Description: "OK", Content: jsonContent[identity](r)}
	login.Security = []map[string][]string{} // none
	r.handle(r.login, login, a.login)

	link := r.describe("GET", "/login", "openSignInLink", tagKeys,
		"Sign in for the pages with a sign-in link, which works once: the key of the sign-in becomes a cookie",
		http.StatusForbidden)
	link.Parameters = []*huma.Param{stringParam("query", "token", "From the link")}
	link.Responses["303"] = &huma.Response{
		Description: "See the pages, which ask a browser for a key if the link is not valid"}
	link.Security = []map[string][]string{} // none
	r.handle(r.login, link, a.openSignInLink)
	route(a, r, r.describe("POST", "/login/links", "createSignInLink", tagKeys,
		"Make a link that signs an admin in to the pages once, within ten minutes"), a.createSignInLink)

	logout := r.describe("POST", "/logout", "signOut", tagKeys,
		"Sign out of the pages: remove the cookie, and revoke its key if a sign-in made it",
		http.StatusForbidden)
	logout.Responses["200"] = &huma.Response{Description: "OK", Content: jsonContent[message](r)}
	logout.Security = []map[string][]string{} // none
	r.handle(r.login, logout, func(g *gin.Context) {
		if err := checkOrigin(g.Request); err != nil {
			a.fail(g, err)
			return
		}
		http.SetCookie(g.Writer, a.cookieOf(g.Request, "", -1))
		if cookie, err := g.Request.Cookie(keyCookie); err == nil {
			if secret, err := url.QueryUnescape(cookie.Value); err == nil {
				if err := a.access.SignOut(g.Request.Context(), secret); err != nil {
					a.fail(g, err)
					return
				}
			}
		}
		g.JSON(http.StatusOK, message{"signed out"})
	})
	a.routeSignIn(r)
	me := r.describe("GET", "/me", "getMe", tagKeys, "Get the caller's key: its user and its role")
	me.Responses["200"] = &huma.Response{Description: "OK", Content: jsonContent[identity](r)}
	r.handle(r.keyed, me, func(g *gin.Context) {
		g.JSON(http.StatusOK, identityOf(callerFrom(g.Request.Context())))
	})
}

func (a *api) login(g *gin.Context) {
	if err := checkOrigin(g.Request); err != nil { // another page must not sign a person in as somebody else
		a.fail(g, err)
		return
	}
	raw, err := io.ReadAll(g.Request.Body)
	if err != nil {
		a.fail(g, readError(err))
		return
	}
	var body loginBody
	if err := decodeStrict(raw, &body); err != nil {
		a.fail(g, err)
		return
	}
	if err := sandbox.CheckSize("key", sandbox.MaxNameBytes, len(body.Key)); err != nil {
		a.fail(g, err)
		return
	}
	if body.Key == "" {
		a.fail(g, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "key", Detail: "it is missing: give an API key"})
		return
	}
	caller, secret, err := a.access.SignInWithKey(g.Request.Context(), strings.TrimSpace(body.Key)) // as it was pasted
	if err != nil {
		a.fail(g, err)
		return
	}
	http.SetCookie(g.Writer, a.cookieOf(g.Request, secret, 0))
	g.JSON(http.StatusOK, identityOf(caller))
}

func (a *api) createSignInLink(_ context.Context, caller sandbox.Key, _ *struct{}) (*signInLink, error) {
	link, err := a.access.NewSignInLink(caller)
	return &signInLink{LinkURL(a.publicURL, link), link.ExpiresAt}, err
}

func (a *api) openSignInLink(g *gin.Context) {
	_, secret, err := a.access.SignInWithLink(g.Request.Context(), g.Query("token"))
	isPerson := strings.Contains(g.GetHeader("Accept"), "text/html")
	if isPerson && sandbox.FaultOf(err) == sandbox.FaultForbidden { // the page says what to do
		g.Redirect(http.StatusSeeOther, webui.Prefix+"?sign_in=used")
		return
	}
	if err != nil {
		a.fail(g, err)
		return
	}
	http.SetCookie(g.Writer, a.cookieOf(g.Request, secret, 0))
	g.Redirect(http.StatusSeeOther, "/")
}

// cookieOf returns the cookie with a secret, escaped: an operator may choose a key with any characters. A negative
// maxAge removes the cookie.
func (a *api) cookieOf(r *http.Request, secret string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: keyCookie, Value: url.QueryEscape(secret), Path: "/", MaxAge: maxAge, HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: signin.IsHTTPS(r, a.publicURL),
	}
}
