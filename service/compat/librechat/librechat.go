// Package librechat serves LibreChat's code interpreter: the code tool of the package @librechat/agents, and
// LibreChat's own uploads and downloads.
//
//	http.Serve(listener, librechat.New(compat.Config{...}))
//
// LibreChat is configured with LIBRECHAT_CODE_BASEURL, the address of the listener with the path /v1, and
// LIBRECHAT_CODE_API_KEY, a key of Glasshouse.
//
// A session is a sandbox. LibreChat's executions know no variables of earlier ones, but their files: each begins with
// an empty namespace (execute.go), and the files that it leaves in /mnt/data are in its answer (files.go). Uploads are
// kept in a sandbox of their own, which runs nothing, because they come before the session that uses them. LibreChat
// uploads a file again if its session has ended; so the API ends the session that was used longest ago if a caller has
// no sandbox left.
package librechat

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
)

// api serves the requests.
type api struct {
	compat.Config

	mu       sync.Mutex
	sessions map[string]*session // by the sandbox's ID
}

// session is a sandbox that this API has created.
type session struct {
	user     string
	isStore  bool   // it has uploads, and runs nothing
	storeFor string // who may share the store
	lastUsed time.Time
}

// New returns the handler of the API.
func New(c compat.Config) http.Handler {
	a := &api{Config: c, sessions: map[string]*session{}}
	mux := http.NewServeMux()
	for pattern, next := range map[string]compat.Handler{
		"POST /v1/exec":                             a.execute,
		"POST /v1/exec/programmatic":                a.refuseProgrammatic,
		"POST /v1/upload":                           a.upload,
		"POST /v1/upload/batch":                     a.upload,
		"GET /v1/download/{session}/{file...}":      a.download,
		"GET /v1/files/{session}":                   a.list,
		"DELETE /v1/files/{session}/{file}":         a.remove,
		"DELETE /v1/files/{session}":                a.endSession,
		"GET /v1/sessions/{session}/objects/{file}": a.describe,
		"/": func(w http.ResponseWriter, r *http.Request, _ sandbox.Key) {
			a.fail(w, r, sandbox.Errorf(sandbox.FaultNotFound,
				"unknown route %s %s; LIBRECHAT_CODE_BASEURL must end in /v1", r.Method, r.URL.Path))
		},
	} {
		mux.Handle(pattern, a.WithKey(secretOf, a.fail, next))
	}
	mux.HandleFunc("GET /v1/health", func(w http.ResponseWriter, _ *http.Request) {
		compat.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	return mux
}

func secretOf(r *http.Request) string {
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return cmp.Or(r.Header.Get("X-Api-Key"), bearer)
}

// fail answers with an error. Clients read how long to wait from the body.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	if cause := context.Cause(r.Context()); sandbox.FaultOf(cause) == sandbox.FaultUnauthorized && cause != nil {
		err = cause
	}
	status, text := a.Message(w, r, err)
	body := map[string]any{"error": text, "message": text}
	if known, ok := errors.AsType[*sandbox.Error](err); ok && known.Fault == sandbox.FaultLimit {
		body["error"], body["retry_after_seconds"] = "rate_limited", max(known.RetryAfter, 1)
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	compat.WriteJSON(w, status, body)
}

func (a *api) refuseProgrammatic(w http.ResponseWriter, _ *http.Request, _ sandbox.Key) {
	const text = "Glasshouse cannot call the client's tools from code; use /v1/exec"
	compat.WriteJSON(w, http.StatusNotImplemented, map[string]string{"error": text, "message": text})
}

// idLength is the length of the IDs that LibreChat accepts. Their characters are those of base64url.
const idLength = 21

// sessionID returns the ID that clients have for a sandbox, whose ID has 126 bits.
func sessionID(sandboxID string) string {
	bits, err := hex.DecodeString(sandboxID)
	if err != nil {
		return sandboxID
	}
	return base64.RawURLEncoding.EncodeToString(bits)[:idLength]
}

// sandboxID undoes sessionID. It returns an ID that no sandbox has for a text that is none.
func sandboxID(session string) string {
	bits, err := base64.RawURLEncoding.DecodeString(session + "A")
	if err != nil || len(session) != idLength {
		return "none"
	}
	return hex.EncodeToString(bits)
}

// fileID returns the ID of a file by its path below /mnt/data.
func fileID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:idLength]
}

// open creates a session. If the caller has too many sandboxes, it ends the caller's session that was used longest ago.
func (a *api) open(ctx context.Context, caller sandbox.Key, isStore bool, storeFor string) (string, error) {
	for {
		sb, err := a.Service.CreateCompat(ctx, caller, nil)
		if err == nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.sessions[sb.ID] = &session{caller.User, isStore, storeFor, a.Service.Clock()}
			return sb.ID, nil
		}
		oldest := a.oldest(caller)
		if sandbox.FaultOf(err) != sandbox.FaultLimit || oldest == "" {
			return "", err
		}
		if err := a.Service.Delete(ctx, caller, oldest); err != nil && sandbox.FaultOf(err) != sandbox.FaultGone {
			return "", err
		}
	}
}

// oldest returns the caller's session that was used longest ago, or "", and forgets the sessions that have ended.
func (a *api) oldest(caller sandbox.Key) (id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for other, s := range a.sessions {
		select {
		case <-a.Service.Ended(other):
			delete(a.sessions, other)
			continue
		default:
		}
		if s.user == caller.User && (id == "" || s.lastUsed.Before(a.sessions[id].lastUsed)) {
			id = other
		}
	}
	return id
}

// use returns whether a sandbox is a live session in which code may run, and notes its use.
func (a *api) use(ctx context.Context, caller sandbox.Key, id string) bool {
	if _, err := a.Service.LiveSandbox(ctx, caller, id); err != nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[id]
	if s == nil || s.isStore {
		return false
	}
	s.lastUsed = a.Service.Clock()
	return true
}

// store returns the session that has the uploads of one of the caller's users, and creates it if there is none.
func (a *api) store(ctx context.Context, caller sandbox.Key, user string) (string, error) {
	a.mu.Lock()
	found := ""
	for id, s := range a.sessions {
		if s.isStore && s.user == caller.User && s.storeFor == user {
			found = id
		}
	}
	a.mu.Unlock()
	if _, err := a.Service.LiveSandbox(ctx, caller, found); found != "" && err == nil {
		return found, nil
	}
	return a.open(ctx, caller, true, user)
}
