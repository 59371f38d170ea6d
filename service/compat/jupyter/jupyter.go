// Package jupyter serves clients of a Jupyter server, such as Open WebUI, smolagents, jupyter-kernel-client, VS Code,
// and JupyterLab through a gateway: kernels over REST, and their messages over a WebSocket.
//
//	handler := jupyter.New(compat.Config{Live: sandboxes, Runs: runs, Log: log})
//
// A kernel is a sandbox, and its id is the sandbox's in the form of a UUID. A cell is an execution of the kind
// "jupyter".
//
//	jupyter.go     the routes, and their authentication
//	kernel.go      /api/kernels
//	session.go     /api/sessions: a name for a kernel
//	kernel         what answers the messages of clients
//	introspection  the answers to requests that run no code
//	socket         the WebSocket of one client
//	wire           messages, and their forms on the WebSocket
package jupyter

import (
	"crypto/rand"
	"io"
	"net/http"
	"net/url"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
	"glasshouse/service/compat/jupyter/kernel"
	"glasshouse/service/compat/jupyter/socket"
	"glasshouse/service/signin"
)

// apiVersion is the version of Jupyter Server whose API this one follows.
const apiVersion = "2.14.0"

// maxFormBytes is the size of the largest form with a key.
const maxFormBytes = 16 << 10

// Names of the cookies of a client that signs in with a form. keyCookie has what the cookie of the pages has, and is
// another one: both may be kept for the same host.
const (
	keyCookie  = "glasshouse_jupyter_key"
	xsrfCookie = "_xsrf"
)

// formPolicy is the Content-Security-Policy of the form: no page of another origin shows it in a frame.
const formPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

// server has the kernels of all users.
type server struct {
	compat.Config
	startedAt time.Time
	limits    socket.Limits
	kernels   *compat.Live[*kernel.Kernel]
	notebooks *compat.Live[notebook] // those of /api/sessions
}

// New returns the handler of the API.
func New(c compat.Config) http.Handler {
	s := &server{
		Config: c, startedAt: c.Live.Clock(), limits: socket.NewLimits(c.Access, c.CPU),
		kernels: compat.NewLive[*kernel.Kernel](c.Live), notebooks: compat.NewLive[notebook](c.Live),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, _ *http.Request) {
		_ = compat.WriteJSON(w, http.StatusOK, map[string]string{"version": apiVersion})
	})
	mux.HandleFunc("GET /login", s.showLogin)
	mux.Handle("POST /login", c.Recover(s.fail, s.login))
	for pattern, handler := range map[string]compat.Handler{
		"GET /api/status":                  s.status,
		"GET /api/kernelspecs":             s.listSpecs,
		"GET /api/kernelspecs/{name}":      s.showSpec,
		"GET /api/kernels":                 s.listKernels,
		"POST /api/kernels":                s.startKernel,
		"GET /api/kernels/{id}":            s.withKernel(s.showKernel),
		"DELETE /api/kernels/{id}":         s.withKernel(s.deleteKernel),
		"POST /api/kernels/{id}/interrupt": s.withKernel(s.interruptKernel),
		"POST /api/kernels/{id}/restart":   s.withKernel(s.restartKernel),
		"GET /api/kernels/{id}/channels":   s.withKernel(s.openChannels),
		"GET /api/sessions":                s.listSessions,
		"POST /api/sessions":               s.startSession,
		"GET /api/sessions/{id}":           s.withKernel(s.showSession),
		"PATCH /api/sessions/{id}":         s.withKernel(s.changeSession),
		"DELETE /api/sessions/{id}":        s.withKernel(s.deleteKernel),
		"/": func(_ http.ResponseWriter, r *http.Request, _ sandbox.Key) error {
			return sandbox.Errorf(sandbox.FaultNotFound, "there is no route %s %s: this server has kernels and "+
				"sessions, and no files, terminals or settings", r.Method, r.URL.Path)
		},
	} {
		mux.Handle(pattern, c.WithKey(secretOf, s.fail, handler))
	}
	return mux
}

// secretOf returns the secret of a request: from the query, a header, or the cookie of the form. A page
// of another origin cannot use the cookie.
func secretOf(r *http.Request) string {
	if token := r.URL.Query().Get("token"); token != "" {
		return token
	}
	if secret := compat.SecretOf(r); secret != "" {
		return secret
	}
	cookie, err := r.Cookie(keyCookie)
	if err != nil || !compat.IsSameOrigin(r) {
		return ""
	}
	secret, _ := url.QueryUnescape(cookie.Value)
	return secret
}

// showLogin answers with the form of a password, and with the cookie that the form must repeat.
func (s *server) showLogin(w http.ResponseWriter, r *http.Request) {
	token := rand.Text()
	http.SetCookie(w, s.newCookie(r, xsrfCookie, token))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", formPolicy)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, `<!doctype html><title>Sign in</title><form method="post">`+
		`<input type="hidden" name="_xsrf" value="`+token+`"><label>API key <input type="password" name="password">`+
		"</label><button>Sign in</button></form>\n")
}

// newCookie returns a cookie for this host, without the HttpOnly that hides it from scripts: they repeat xsrfCookie.
func (s *server) newCookie(r *http.Request, name, value string) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", SameSite: http.SameSiteStrictMode,
		Secure: signin.IsHTTPS(r, s.PublicURL)}
}

// login signs in with the password, which is a key, and sets the cookie as the sign-in of the pages does: for the key
// that the service was started with, it has the key of a new sign-in.
func (s *server) login(w http.ResponseWriter, r *http.Request) error {
	if !compat.IsSameOrigin(r) { // it could know the cookie, and sign a person in as somebody else
		return sandbox.Errorf(sandbox.FaultForbidden, "a page of another origin sent this form: open GET login itself")
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
	given := r.PostFormValue("_xsrf")
	if cookie, err := r.Cookie(xsrfCookie); err != nil || given == "" || cookie.Value != given {
		return sandbox.Errorf(sandbox.FaultForbidden,
			"the field _xsrf must repeat the cookie _xsrf, which GET login sets")
	}
	_, secret, err := s.Access.SignInWithKey(r.Context(), r.PostFormValue("password"))
	if err != nil {
		return err
	}
	cookie := s.newCookie(r, keyCookie, url.QueryEscape(secret))
	cookie.HttpOnly = true
	http.SetCookie(w, cookie)
	return compat.WriteJSON(w, http.StatusOK, map[string]string{"message": "signed in"})
}

// fail answers with an error as Jupyter does.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := s.Message(w, r, err)
	_ = compat.WriteJSON(w, status, map[string]any{"message": text, "reason": nil})
}
