package e2b

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
)

const (
	defaultTemplate = "code-interpreter-v1"
	defaultTimeout  = 300 // seconds, as E2B's
	maxListed       = 100 // sandboxes on a page
)

// envdVersion is the version of E2B's server of files that this one is compatible with. Clients choose requests by it:
// they upload plain bodies from 0.5.7 on, and metadata of files, which Glasshouse does not keep, from 0.6.2 on.
const envdVersion = "0.5.7"

// control returns the handler of the control API.
func (a *api) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	for _, version := range []string{"", "/v2"} {
		mux.Handle("POST "+version+"/sandboxes", a.withKey(a.create))
		mux.Handle("GET "+version+"/sandboxes", a.withKey(a.list))
		mux.Handle("POST "+version+"/sandboxes/{id}/connect", a.withKey(a.connect))
	}
	mux.Handle("GET /sandboxes/{id}", a.withKey(a.get))
	mux.Handle("DELETE /sandboxes/{id}", a.withKey(a.kill))
	mux.Handle("POST /sandboxes/{id}/timeout", a.withKey(a.setTimeout))
	mux.Handle("POST /sandboxes/{id}/refreshes", a.withKey(a.setTimeout))
	mux.Handle("GET /sandboxes/{id}/metrics", a.withKey(
		func(w http.ResponseWriter, _ *http.Request, _ sandbox.Key) {
			compat.WriteJSON(w, http.StatusOK, []any{})
		}))
	for _, what := range []string{"pause", "resume", "fork", "snapshots", "network"} {
		mux.Handle("/sandboxes/{id}/"+what, a.withKey(func(w http.ResponseWriter, _ *http.Request, _ sandbox.Key) {
			a.writeError(w, http.StatusNotImplemented, "Glasshouse has no "+what+" of sandboxes: a sandbox keeps its "+
				"state until its timeout, which set_timeout extends")
		}))
	}
	mux.Handle("/", a.withKey(func(w http.ResponseWriter, r *http.Request, _ sandbox.Key) {
		a.writeError(
			w,
			http.StatusNotFound,
			fmt.Sprintf("Glasshouse has no %s %s; it serves E2B's sandboxes, code and "+
				"files, and no templates, volumes, secrets or signed URLs", r.Method, r.URL.Path),
		)
	}))
	return mux
}

// sandboxInfo describes a sandbox to clients.
type sandboxInfo struct {
	ID           string            `json:"sandboxID"`
	Template     string            `json:"templateID"`
	Client       string            `json:"clientID"`
	EnvdVersion  string            `json:"envdVersion"`
	AccessToken  string            `json:"envdAccessToken,omitempty"`
	TrafficToken string            `json:"trafficAccessToken,omitempty"`
	StartedAt    time.Time         `json:"startedAt"`
	EndAt        time.Time         `json:"endAt"`
	CPUCount     int               `json:"cpuCount"`
	MemoryMB     int               `json:"memoryMB"`
	DiskSizeMB   int64             `json:"diskSizeMB"`
	State        string            `json:"state"`
	Metadata     map[string]string `json:"metadata"`
}

// position returns the sandbox's position in the list of all, in a form whose order is that of the list.
func (i sandboxInfo) position() string { return fmt.Sprintf("%020d-%s", i.StartedAt.UnixNano(), i.ID) }

// info describes a sandbox. secret is the caller's key, with which the client will use the sandbox; "" leaves it out.
func (a *api) info(sb sandbox.Sandbox, secret string) sandboxInfo {
	b := a.box(sb.ID)
	b.mu.Lock()
	defer b.mu.Unlock()
	return sandboxInfo{
		ID: sb.ID, Template: b.template, Client: "glasshouse", EnvdVersion: envdVersion,
		AccessToken: secret, TrafficToken: secret, StartedAt: sb.CreatedAt, EndAt: sb.ExpiresAt(),
		CPUCount: max((sb.Policy.CPUPercent+99)/100, 1), MemoryMB: sb.Policy.MaxMemoryMB,
		DiskSizeMB: sb.Policy.WorkspaceMaxBytes >> 20, State: "running", Metadata: b.metadata,
	}
}

// newSandbox is the body of a request for a sandbox. Parts that only E2B's cloud has are refused if they are given:
// code would rely on them.
type newSandbox struct {
	Template  string            `json:"templateID"`
	Timeout   *int              `json:"timeout"`
	Metadata  map[string]string `json:"metadata"`
	Environ   map[string]string `json:"envVars"`
	AutoPause bool              `json:"autoPause"`
	Internet  *bool             `json:"allow_internet_access"`
	Network   json.RawMessage   `json:"network"`
	Volumes   []any             `json:"volumeMounts"`
	MCP       json.RawMessage   `json:"mcp"`
	IAM       json.RawMessage   `json:"iam"`
}

// unsupported returns the name of a part of the request that Glasshouse does not have, or "".
func (n *newSandbox) unsupported() string {
	isGiven := func(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" && string(raw) != "{}" }
	switch {
	case n.AutoPause:
		return "lifecycle on_timeout pause"
	case n.Internet != nil && *n.Internet:
		return "allow_internet_access"
	case isGiven(n.Network):
		return "network"
	case len(n.Volumes) > 0:
		return "volume_mounts"
	case isGiven(n.MCP):
		return "mcp"
	case isGiven(n.IAM):
		return "iam"
	}
	return ""
}

func (a *api) create(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
	var in newSandbox
	err := a.readJSON(w, r, &in)
	if err == nil {
		if part := in.unsupported(); part != "" {
			err = sandbox.Errorf(sandbox.FaultMalformed, "Glasshouse has no %s; leave it out", part)
		}
	}
	if err == nil {
		err = checkEnviron(in.Environ)
	}
	timeout := defaultTimeout
	if in.Timeout != nil {
		timeout = *in.Timeout
	}
	config := map[string]any{"lifetime": timeout, "idle_timeout": timeout}
	if in.Template != "" && in.Template != defaultTemplate && in.Template != "base" {
		config["environment"] = in.Template // a template is an environment of the operator
	}
	text, _ := json.Marshal(config) // numbers and strings have a form in JSON
	var sb sandbox.Sandbox
	if err == nil {
		sb, err = a.Service.CreateCompat(r.Context(), caller, text)
	}
	if err != nil {
		if known, ok := errors.AsType[*sandbox.Error](err); ok && config[known.Field] == timeout {
			known.Field = "timeout" // as the client calls it
		}
		if sandbox.FaultOf(err) == sandbox.FaultLimit {
			w.Header().Set("Should-Retry", "false") // waiting frees no sandbox of the caller's
		}
		a.failInput(w, r, err)
		return
	}
	b := a.box(sb.ID)
	b.mu.Lock()
	b.environ = in.Environ
	if in.Template != "" {
		b.template = in.Template
	}
	if in.Metadata != nil {
		b.metadata = in.Metadata
	}
	b.mu.Unlock()
	compat.WriteJSON(w, http.StatusCreated, a.info(sb, secretOf(r)))
}

// checkEnviron returns FaultMalformed for names and values that no process can have.
func checkEnviron(variables map[string]string) error {
	for name, value := range variables {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return sandbox.Errorf(sandbox.FaultMalformed, "%.100q cannot be an environment variable: a name is not "+
				"empty and has no =, and neither name nor value has a null character", name)
		}
	}
	return nil
}

// failInput answers with an error, and with 400 for wrong values, as E2B's API does.
func (a *api) failInput(w http.ResponseWriter, r *http.Request, err error) {
	status, text := a.Message(w, r, lostKey(r.Context(), err))
	switch status {
	case http.StatusUnprocessableEntity:
		status = http.StatusBadRequest
	case http.StatusGone:
		status = http.StatusNotFound
	}
	a.writeError(w, status, text)
}

func (a *api) get(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
	sb, err := a.Service.LiveSandbox(r.Context(), caller, r.PathValue("id"))
	if err != nil {
		a.failInput(w, r, err)
		return
	}
	compat.WriteJSON(w, http.StatusOK, a.info(sb, secretOf(r)))
}

// list answers with a page of the caller's sandboxes, oldest first or as order says. The header X-Next-Token of a page
// begins the next.
func (a *api) list(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
	query := r.URL.Query()
	wanted, err := url.ParseQuery(query.Get("metadata"))
	limit := maxListed
	if text := query.Get("limit"); err == nil && text != "" {
		limit, err = strconv.Atoi(text)
	}
	if err != nil || limit < 1 || limit > maxListed {
		a.writeError(
			w,
			http.StatusBadRequest,
			fmt.Sprintf("metadata must be a query string, limit from 1 to %d", maxListed),
		)
		return
	}
	list := []sandboxInfo{}
	if states := query.Get("state"); states == "" || slices.Contains(strings.Split(states, ","), "running") {
		list = a.own(r, caller, wanted)
	}
	isDescending := query.Get("order") == "desc"
	if isDescending {
		slices.Reverse(list)
	}
	if token := query.Get("nextToken"); token != "" {
		list = slices.DeleteFunc(list, func(i sandboxInfo) bool {
			return i.position() == token || (i.position() < token) != isDescending
		})
	}
	if len(list) > limit {
		list = list[:limit]
		w.Header().Set("X-Next-Token", list[limit-1].position())
	}
	compat.WriteJSON(w, http.StatusOK, list)
}

// own returns the live sandboxes of a caller with all of the metadata, oldest first.
func (a *api) own(r *http.Request, caller sandbox.Key, metadata url.Values) []sandboxInfo {
	a.mu.Lock()
	ids := slices.Collect(maps.Keys(a.boxes))
	a.mu.Unlock()
	list := []sandboxInfo{}
	for _, id := range ids {
		sb, err := a.Service.LiveSandbox(r.Context(), sandbox.Key{ID: caller.ID, User: caller.User}, id)
		if err != nil {
			continue // another user's, or it has ended
		}
		info := a.info(sb, "")
		matches := true
		for key := range metadata {
			matches = matches && info.Metadata[key] == metadata.Get(key)
		}
		if matches {
			list = append(list, info)
		}
	}
	slices.SortFunc(list, func(x, y sandboxInfo) int { return strings.Compare(x.position(), y.position()) })
	return list
}

// connect answers with a sandbox, and prolongs its life to the timeout.
func (a *api) connect(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
	var in struct {
		Timeout int `json:"timeout"`
	}
	err := a.readJSON(w, r, &in)
	var sb sandbox.Sandbox
	if err == nil {
		sb, err = a.Service.LiveSandbox(r.Context(), caller, r.PathValue("id"))
	}
	timeout := time.Duration(in.Timeout) * time.Second
	if err == nil && in.Timeout > 0 && sb.ExpiresAt().Sub(a.Service.Clock()) < timeout {
		sb, err = a.Service.SetEnd(r.Context(), caller, sb.ID, timeout)
	}
	if err != nil {
		a.failInput(w, r, err)
		return
	}
	compat.WriteJSON(w, http.StatusOK, a.info(sb, secretOf(r)))
}

func (a *api) setTimeout(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
	var in struct {
		Timeout  *int `json:"timeout"`
		Duration *int `json:"duration"` // of the older request
	}
	err := a.readJSON(w, r, &in)
	seconds := defaultTimeout
	for _, given := range []*int{in.Duration, in.Timeout} {
		if given != nil {
			seconds = *given
		}
	}
	if err == nil {
		_, err = a.Service.SetEnd(r.Context(), caller, r.PathValue("id"), time.Duration(seconds)*time.Second)
	}
	if err != nil {
		a.failInput(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (a *api) kill(w http.ResponseWriter, r *http.Request, caller sandbox.Key) {
	if err := a.Service.Delete(r.Context(), caller, r.PathValue("id")); err != nil {
		a.failInput(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
