// Package e2b serves clients of E2B's code interpreter: the Python package e2b_code_interpreter, the JavaScript package
// @e2b/code-interpreter, and what is built on them.
//
//	http.Serve(listener, e2b.New(compat.Config{...}))
//
// One listener serves all. A request with the header E2b-Sandbox-Id is for a sandbox, and E2b-Sandbox-Port names the
// part of it: 49999 runs code (package code), 49983 has the files (package files). Any other request is for the control
// API, which creates and ends sandboxes (control.go). A client is configured with E2B_API_URL and E2B_SANDBOX_URL, both
// the address of the listener, and E2B_API_KEY, a key of Glasshouse.
//
// A sandbox of E2B is a sandbox of package live. Only what package live does not have is kept here, while the
// sandbox lives: its metadata, its environment variables and its contexts. Glasshouse runs Python and no shell, so the
// requests for processes answer that they are not implemented.
package e2b

import (
	"fmt"
	"net/http"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
	"glasshouse/service/compat/e2b/code"
	"glasshouse/service/compat/e2b/files"
)

// The ports of a sandbox that clients name.
const (
	codePort  = "49999"
	filesPort = "49983"
)

// api serves the requests.
type api struct {
	compat.Config
	code    *code.Runner
	details *compat.Live[details]
}

// New returns the handler of the API.
func New(c compat.Config) http.Handler {
	a := &api{Config: c, code: code.New(c), details: compat.NewLive[details](c.Live)}
	control := a.control()
	ports := map[string]http.Handler{
		codePort:  a.port(a.code.Routes(), http.Error), // clients show the text as it is
		filesPort: a.port(files.Routes(c), writeFileError),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.Header.Get("E2b-Sandbox-Id") == "" {
			control.ServeHTTP(w, r)
			return
		}
		port := r.Header.Get("E2b-Sandbox-Port")
		if handler, ok := ports[port]; ok {
			handler.ServeHTTP(w, r)
			return
		}
		writeError(w, fmt.Sprintf("the sandbox's port is not open: Glasshouse serves the ports %s (code) and %s "+
			"(files) of a sandbox, got %q", codePort, filesPort, port), http.StatusBadGateway)
	})
}

// port returns the handler of a port, which answers errors by write. A client sends its key to the control API, and the
// tokens that it got there, which are its key, to the ports of its sandboxes. It recognises a sandbox that has ended by
// the status 502 and the words "was not found".
func (a *api) port(
	routes map[string]compat.SandboxHandler, write func(w http.ResponseWriter, text string, status int),
) http.Handler {
	fail := func(w http.ResponseWriter, r *http.Request, err error) {
		status, text := a.answer(w, r, err)
		if sandbox.FaultOf(err) == sandbox.FaultGone {
			status, text = http.StatusBadGateway,
				fmt.Sprintf("the sandbox %s was not found: %s", r.Header.Get("E2b-Sandbox-Id"), text)
		}
		write(w, text, status)
	}
	mux := http.NewServeMux()
	for pattern, next := range routes {
		handle := func(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
			id := r.Header.Get("E2b-Sandbox-Id")
			_, err := a.Live.Sandbox(r.Context(), caller, id)
			switch {
			case err == nil:
				return next(w, r, caller, id)
			case sandbox.FaultOf(err) == sandbox.FaultNotFound:
				return sandbox.Errorf(sandbox.FaultGone, "%s", err)
			}
			return err
		}
		mux.Handle(pattern, a.WithKey(compat.SecretOf, fail, handle))
	}
	return mux
}

// fail answers with an error of the control API.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := a.answer(w, r, err)
	writeError(w, text, status)
}

// answer returns the status and the text for an error. Wrong values are 400, as E2B's.
func (a *api) answer(w http.ResponseWriter, r *http.Request, err error) (status int, text string) {
	status, text = a.Message(w, r, err)
	switch status {
	case http.StatusUnprocessableEntity:
		status = http.StatusBadRequest
	case http.StatusGone:
		status = http.StatusNotFound
	}
	return status, text
}

// writeError answers with an error in the form of E2B.
func writeError(w http.ResponseWriter, text string, status int) {
	_ = compat.WriteJSON(w, status, map[string]any{"code": status, "message": text})
}

// writeFileError answers with an error about files. Clients know a full sandbox by its status.
func writeFileError(w http.ResponseWriter, text string, status int) {
	if status == http.StatusRequestEntityTooLarge {
		status = http.StatusInsufficientStorage
	}
	writeError(w, text, status)
}
