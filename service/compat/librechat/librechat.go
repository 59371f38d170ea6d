// Package librechat serves LibreChat's code interpreter: the code tool of the package @librechat/agents, and
// LibreChat's own uploads and downloads.
//
//	http.Serve(listener, librechat.New(compat.Config{...}))
//
// LibreChat is configured with LIBRECHAT_CODE_BASEURL, the address of the listener with the path /v1, and
// LIBRECHAT_CODE_API_KEY, a key of Glasshouse.
//
// A session is a sandbox (package session). LibreChat's executions know no variables of earlier ones, but their files:
// each begins with an empty namespace (execute.go), and the files that it leaves in /mnt/data are in its answer
// (files.go).
package librechat

import (
	"errors"
	"net/http"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
	"glasshouse/service/compat/librechat/session"
)

// api serves the requests.
type api struct {
	compat.Config
	sessions *session.Sessions
}

// New returns the handler of the API.
func New(c compat.Config) http.Handler {
	a := &api{Config: c, sessions: session.New(c.Live)}
	mux := http.NewServeMux()
	for pattern, next := range map[string]compat.Handler{
		"POST /v1/exec":                             a.execute,
		"POST /v1/exec/programmatic":                a.refuseProgrammatic,
		"POST /v1/upload":                           a.upload,
		"POST /v1/upload/batch":                     a.upload,
		"GET /v1/download/{session}/{file...}":      a.download,
		"GET /v1/files/{session}":                   a.list,
		"DELETE /v1/files/{session}/{file}":         a.remove,
		"GET /v1/sessions/{session}/objects/{file}": a.describe,
		"/": func(_ http.ResponseWriter, r *http.Request, _ sandbox.Key) error {
			return sandbox.Errorf(sandbox.FaultNotFound, "unknown route %s %s; LIBRECHAT_CODE_BASEURL must end in /v1",
				r.Method, r.URL.Path)
		},
	} {
		mux.Handle(pattern, a.WithKey(compat.SecretOf, a.fail, next))
	}
	mux.HandleFunc("GET /v1/health", func(w http.ResponseWriter, _ *http.Request) {
		_ = compat.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	return mux
}

// fail answers with an error. Clients read how long to wait from the body.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := a.Message(w, r, err)
	body := map[string]any{"error": text, "message": text}
	if known, ok := errors.AsType[*sandbox.Error](err); ok && known.Fault == sandbox.FaultLimit {
		body["error"], body["retry_after_seconds"] = "rate_limited", max(known.RetryAfter, 1)
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = compat.WriteJSON(w, status, body)
}

func (a *api) refuseProgrammatic(w http.ResponseWriter, _ *http.Request, _ sandbox.Key) error {
	const text = "Glasshouse cannot call the client's tools from code; use /v1/exec"
	return compat.WriteJSON(w, http.StatusNotImplemented, map[string]string{"error": text, "message": text})
}
