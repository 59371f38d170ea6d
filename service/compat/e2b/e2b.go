// Package e2b serves clients of E2B's code interpreter: the Python package e2b_code_interpreter, the JavaScript package
// @e2b/code-interpreter, and what is built on them.
//
//	http.Serve(listener, e2b.New(compat.Config{...}))
//
// One listener serves all. A request with the header E2b-Sandbox-Id is for a sandbox, and E2b-Sandbox-Port names the
// part of it: 49999 runs code (execute.go, contexts.go), 49983 has the files (files.go, rpc.go). Any other request is
// for the control API, which creates and ends sandboxes (control.go). A client is configured with E2B_API_URL and
// E2B_SANDBOX_URL, both the address of the listener, and E2B_API_KEY, a key of Glasshouse.
//
// A sandbox of E2B is a sandbox of package service. Only what package service does not have is kept here, while the
// sandbox lives: its metadata, its environment variables and its contexts. Glasshouse runs Python and no shell, so the
// requests for processes answer that they are not implemented.
package e2b

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
)

// The ports of a sandbox that clients name.
const (
	codePort  = "49999"
	filesPort = "49983"
)

// maxBodyBytes is the largest JSON body of a request.
const maxBodyBytes = 4 << 20

// api serves the requests.
type api struct {
	compat.Config

	mu    sync.Mutex
	boxes map[string]*box // by the sandbox's ID
}

// New returns the handler of the API.
func New(c compat.Config) http.Handler {
	a := &api{Config: c, boxes: map[string]*box{}}
	control, code, files := a.control(), a.code(), a.files()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		id, port := r.Header.Get("E2b-Sandbox-Id"), r.Header.Get("E2b-Sandbox-Port")
		switch {
		case id == "":
			control.ServeHTTP(w, r)
		case port == codePort:
			code.ServeHTTP(w, r)
		case port == filesPort:
			files.ServeHTTP(w, r)
		default:
			a.writeError(w, http.StatusBadGateway, fmt.Sprintf("the sandbox's port is not open: Glasshouse serves the "+
				"ports %s (code) and %s (files) of a sandbox, got %q", codePort, filesPort, port))
		}
	})
}

// withKey authenticates a request. A client sends its key to the control API, and the tokens that it got there, which
// are its key, to its sandboxes.
func (a *api) withKey(next compat.Handler) http.Handler { return a.WithKey(secretOf, a.fail, next) }

func secretOf(r *http.Request) string {
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return cmp.Or(r.Header.Get("X-Api-Key"), r.Header.Get("X-Access-Token"), r.Header.Get("E2b-Traffic-Access-Token"),
		bearer)
}

// withSandbox returns a handler for a request to a sandbox, which it finds. Clients recognise a sandbox that has ended
// by the status 502 and the words "was not found".
func (a *api) withSandbox(next func(http.ResponseWriter, *http.Request, sandbox.Key, *box)) http.Handler {
	return a.withKey(func(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
		id := r.Header.Get("E2b-Sandbox-Id")
		if _, err := a.Service.LiveSandbox(r.Context(), caller, id); err != nil {
			a.failSandbox(w, r, err)
			return
		}
		next(w, r, caller, a.box(id))
	})
}

func (a *api) failSandbox(w http.ResponseWriter, r *http.Request, err error) {
	if fault := sandbox.FaultOf(err); fault != sandbox.FaultNotFound && fault != sandbox.FaultGone {
		a.fail(w, r, err)
		return
	}
	a.writeError(w, http.StatusBadGateway,
		fmt.Sprintf("the sandbox %s was not found: %s", r.Header.Get("E2b-Sandbox-Id"), err))
}

// fail answers with an error. If the request's key was revoked meanwhile, that is the error.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := a.Message(w, r, lostKey(r.Context(), err))
	a.writeError(w, status, text)
}

// lostKey returns the reason for which a request's key is not valid any more, or else err.
func lostKey(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); sandbox.FaultOf(cause) == sandbox.FaultUnauthorized && cause != nil {
		return cause
	}
	return err
}

// writeError answers with an error in the form of E2B.
func (a *api) writeError(w http.ResponseWriter, status int, text string) {
	compat.WriteJSON(w, status, map[string]any{"code": status, "message": text})
}

// readJSON decodes a request's body, which may be empty, into v.
func (a *api) readJSON(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := a.ReadBody(w, r, maxBodyBytes)
	if err != nil || len(body) == 0 {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return sandbox.Errorf(sandbox.FaultMalformed, "the body must be JSON of this request: %s", err)
	}
	return nil
}

// box is what E2B's sandboxes have beyond those of package service.
type box struct {
	id string

	mu       sync.Mutex
	template string
	metadata map[string]string
	environ  map[string]string
	contexts []*codeContext
	forget   []string // namespaces that the next run removes
}

// box returns the state of a live sandbox. A sandbox that another API created gets an empty one.
func (a *api) box(id string) *box {
	a.mu.Lock()
	defer a.mu.Unlock()
	for other := range a.boxes {
		select {
		case <-a.Service.Ended(other):
			delete(a.boxes, other)
		default:
		}
	}
	b := a.boxes[id]
	if b == nil {
		b = &box{id: id, template: defaultTemplate, metadata: map[string]string{}}
		b.contexts = []*codeContext{{ID: b.id, Language: language, Folder: home}}
		a.boxes[id] = b
	}
	return b
}
