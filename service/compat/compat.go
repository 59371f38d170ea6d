// Package compat has what the compatibility APIs below it share.
//
//	func New(c compat.Config) http.Handler {
//		mux := http.NewServeMux()
//		mux.Handle("GET /things", c.WithKey(compat.SecretOf, fail, things))
//		return mux
//	}
//
//	compat.go  the configuration, the authentication of requests, and the status of an error
//	body.go    the bodies of requests and answers: JSON and files
//	run.go     the output of an execution while it runs, and the reason why it failed
//	live.go    what an API keeps of a sandbox while it lives
//
// An API translates the requests of existing clients into calls of the services, and holds no rules of its own.
// cmd/glasshouse lists the APIs, and serves each on a listener of its own or below a folder of the main listener.
package compat

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/sirupsen/logrus"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/live"
	"glasshouse/service/records"
	"glasshouse/service/run"
)

// Config configures an API.
type Config struct {
	Live    *live.Service
	Runs    *run.Service
	Records *records.Service
	Access  *access.Service // admits requests
	Log     logrus.FieldLogger
	Version string // of the program
	// PublicURL is the address at which browsers reach the API through a proxy; "" if there is none.
	PublicURL string
	CPU       *limit.CPU // shares the decoding of large bodies; nil: users do not take turns
}

// Handler answers a request of a caller who is authenticated. It returns an error if it has written nothing. The
// context of the request ends when the caller's key is revoked or expires; its cause is then FaultUnauthorized.
type Handler func(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error

// SandboxHandler answers such a request for the sandbox with an ID.
type SandboxHandler func(w http.ResponseWriter, r *http.Request, caller sandbox.Key, id string) error

// FailFunc answers a request with an error in the form of an API.
type FailFunc func(w http.ResponseWriter, r *http.Request, err error)

// SecretOf returns the secret of a request from one of the headers in which clients send it, or "".
func SecretOf(r *http.Request) string {
	bearer := ""
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "token") {
		bearer = strings.TrimSpace(secret)
	}
	return cmp.Or(r.Header.Get("X-Api-Key"), r.Header.Get("X-Access-Token"), r.Header.Get("E2b-Traffic-Access-Token"),
		bearer)
}

// IsSameOrigin reports whether a request comes from a page of this server, or from no page.
func IsSameOrigin(r *http.Request) bool {
	checked := *r
	checked.Method = http.MethodPost // the check lets every GET pass, but some act here
	return http.NewCrossOriginProtection().Check(&checked) == nil
}

// IsLocalHost reports whether the header Host of a request names this machine. A browser in which a page of another
// site reaches a loopback address, because that site's name now leads there, sends the name of the site.
func IsLocalHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// WithKey returns a handler that admits a request with the secret that secretOf returns, and calls next. It answers any
// error, and a panic of next, by fail. An empty secret is FaultUnauthorized.
func (c Config) WithKey(secretOf func(*http.Request) string, fail FailFunc, next Handler) http.Handler {
	return c.Recover(fail, func(w http.ResponseWriter, r *http.Request) error {
		secret := secretOf(r)
		if secret == "" {
			return sandbox.Errorf(sandbox.FaultUnauthorized,
				"no API key; `glasshouse keys create` makes a key, and docs/clients.md says how to configure it")
		}
		ctx, caller, end, err := c.Access.Admit(r.Context(), secret)
		if err != nil {
			return err
		}
		defer end()
		if err := next(w, r.WithContext(ctx), caller.Key); err != nil {
			return LostKey(ctx, err)
		}
		return nil
	})
}

// LostKey returns the reason for which the key of a request is not valid any more, or else err.
func LostKey(ctx context.Context, err error) error {
	return cmp.Or(access.LostKey(ctx), err)
}

// Recover returns a handler that calls next, and answers its error or its panic by fail.
func (c Config) Recover(fail FailFunc, next func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				c.Log.WithField("panic", p).WithField("path", r.URL.Path).Error("a compatibility API panicked")
				fail(w, r, errors.New("panic"))
			}
		}()
		if err := next(w, r); err != nil {
			fail(w, r, err)
		}
	})
}

// Message returns the status and the text with which an API answers err, and sets the header Retry-After. The text of
// an internal error stays in the log.
func (c Config) Message(w http.ResponseWriter, r *http.Request, err error) (status int, text string) {
	known, ok := errors.AsType[*sandbox.Error](err)
	if !ok {
		if r.Context().Err() == nil {
			c.Log.WithError(err).WithField("path", r.URL.Path).Error("a request to a compatibility API failed")
		}
		return http.StatusInternalServerError, "the service failed; its log has the error"
	}
	if known.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(known.RetryAfter))
	}
	return sandbox.FaultStatus[known.Fault], known.Error()
}
