// Package jupyter serves clients of a Jupyter server, such as Open WebUI, smolagents, jupyter-kernel-client, VS Code,
// and JupyterLab through a gateway: kernels over REST, and their messages over a WebSocket.
//
//	handler := jupyter.New(compat.Config{Service: s, Log: log})
//
// A kernel is a sandbox, and its id is the sandbox's in the form of a UUID. A cell is an execution of the kind
// "jupyter". Each kernel has one goroutine, which answers the requests of all its clients one after the other, and
// ends with the sandbox. Each client has four, for its WebSocket, which end with the connection.
//
//	jupyter.go   the routes, and their authentication
//	kernel.go    kernels, and what interrupts, restarts and ends them
//	session.go   /api/sessions: a name for a kernel
//	client.go    the WebSocket of one client
//	message.go   messages, and their forms on the WebSocket
//	execute.go   execute_request
//	request.go   all other requests
package jupyter

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
)

// apiVersion is the version of Jupyter Server whose API this one follows.
const apiVersion = "2.14.0"

// The largest bodies of requests, and of the form with a key.
const (
	maxBodyBytes = 1 << 20
	maxFormBytes = 16 << 10
)

// Names of the cookies of a client that signs in with a form.
const (
	keyCookie  = "glasshouse_jupyter_key"
	xsrfCookie = "_xsrf"
)

// New returns the handler of the API.
func New(c compat.Config) http.Handler {
	s := newServer(c)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, _ *http.Request) {
		compat.WriteJSON(w, http.StatusOK, map[string]string{"version": apiVersion})
	})
	mux.HandleFunc("GET /login", s.showLogin)
	mux.HandleFunc("POST /login", s.login)
	for pattern, handler := range map[string]compat.Handler{
		"GET /api/status":                  s.status,
		"GET /api/me":                      s.me,
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
		"GET /api/sessions/{session}":      s.withSession(s.showSession),
		"PATCH /api/sessions/{session}":    s.withSession(s.changeSession),
		"DELETE /api/sessions/{session}":   s.withSession(s.deleteKernel),
		"/":                                s.notFound,
	} {
		mux.Handle(pattern, c.WithKey(secretOf, s.fail, handler))
	}
	return mux
}

// secretOf returns the secret of a request: from the query, the header Authorization, or the cookie of the form. A page
// of another origin cannot use the cookie.
func secretOf(r *http.Request) string {
	if token := r.URL.Query().Get("token"); token != "" {
		return token
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "token") || strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(secret)
	}
	cookie, err := r.Cookie(keyCookie)
	if err != nil {
		return ""
	}
	checked := *r
	checked.Method = http.MethodPost // the messages of a WebSocket act, although it begins with a GET
	if http.NewCrossOriginProtection().Check(&checked) != nil {
		return ""
	}
	secret, _ = url.QueryUnescape(cookie.Value)
	return secret
}

// showLogin answers with the form of a password, and with the cookie that the form must repeat.
func (s *server) showLogin(w http.ResponseWriter, _ *http.Request) {
	token := rand.Text()
	http.SetCookie(w, &http.Cookie{Name: xsrfCookie, Value: token, Path: "/", SameSite: http.SameSiteStrictMode})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, `<!doctype html><title>Sign in</title><form method="post">`+
		`<input type="hidden" name="_xsrf" value="`+token+`"><label>API key <input type="password" name="password">`+
		"</label><button>Sign in</button></form>\n")
}

// login makes the password, which is a key, a cookie.
func (s *server) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
	given := r.PostFormValue("_xsrf")
	if cookie, err := r.Cookie(xsrfCookie); err != nil || given == "" || cookie.Value != given {
		s.fail(w, r, sandbox.Errorf(sandbox.FaultForbidden,
			"the field _xsrf must repeat the cookie _xsrf, which GET login sets"))
		return
	}
	secret := r.PostFormValue("password")
	if _, err := s.Service.Authenticate(r.Context(), secret); err != nil {
		s.fail(w, r, err)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: keyCookie, Value: url.QueryEscape(secret), Path: "/", HttpOnly: true, Secure: r.TLS != nil,
		SameSite: http.SameSiteStrictMode,
	})
	compat.WriteJSON(w, http.StatusOK, map[string]string{"message": "signed in"})
}

// fail answers with an error as Jupyter does.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := s.Message(w, r, err)
	compat.WriteJSON(w, status, map[string]any{"message": text, "reason": nil})
}

func (s *server) notFound(w http.ResponseWriter, r *http.Request, _ sandbox.Key) {
	s.fail(w, r, sandbox.Errorf(sandbox.FaultNotFound, "there is no route %s %s: this server has kernels and "+
		"sessions, and no files, terminals or settings", r.Method, r.URL.Path))
}

// decode reads a JSON body, which may be empty.
func (s *server) decode(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := s.ReadBody(w, r, maxBodyBytes)
	if err != nil || len(body) == 0 {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return sandbox.Errorf(sandbox.FaultMalformed, "the body cannot be read: %s", err)
	}
	return nil
}

// me answers who the caller is.
func (s *server) me(w http.ResponseWriter, _ *http.Request, caller sandbox.Key) {
	compat.WriteJSON(w, http.StatusOK, map[string]any{
		"identity": map[string]any{
			"username": caller.User, "name": caller.Name, "display_name": caller.Name, "initials": nil,
			"avatar_url": nil, "color": nil,
		},
		"permissions": map[string]any{},
	})
}

// spec is a kernelspec.
type spec struct {
	Name      string            `json:"name"`
	Spec      map[string]any    `json:"spec"`
	Resources map[string]string `json:"resources"`
}

// defaultSpec is the name of the kernelspec of the default environment: many clients assume it.
const defaultSpec = "python3"

// specs returns a kernelspec for each environment.
func (s *server) specs() map[string]spec {
	all := map[string]spec{}
	for _, e := range s.Service.Environments.Environments() {
		name, title := e.Name, "Python "+e.Python+" (Glasshouse, "+e.Name+")"
		if e.Name == s.Service.Default.Environment {
			name, title = defaultSpec, "Python 3 (Glasshouse)"
		}
		all[name] = spec{name, map[string]any{
			"argv": []string{"glasshouse"}, "env": map[string]string{}, "display_name": title, "language": "python",
			"interrupt_mode": "message", "metadata": map[string]string{},
		}, map[string]string{}}
	}
	return all
}

func (s *server) listSpecs(w http.ResponseWriter, _ *http.Request, _ sandbox.Key) {
	compat.WriteJSON(w, http.StatusOK, map[string]any{"default": defaultSpec, "kernelspecs": s.specs()})
}

func (s *server) showSpec(w http.ResponseWriter, r *http.Request, _ sandbox.Key) {
	found, ok := s.specs()[r.PathValue("name")]
	if !ok {
		s.fail(w, r, sandbox.Errorf(sandbox.FaultNotFound, "there is no kernelspec %q; GET /api/kernelspecs lists them",
			r.PathValue("name")))
		return
	}
	compat.WriteJSON(w, http.StatusOK, found)
}
