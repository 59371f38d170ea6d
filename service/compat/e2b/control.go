package e2b

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
	"glasshouse/service/compat/e2b/code"
)

const (
	defaultTemplate = "code-interpreter-v1"
	defaultTimeout  = 300     // seconds, as E2B's
	maxListed       = 100     // sandboxes on a page
	maxListedBytes  = 1 << 20 // of JSON on a page, which has at least one sandbox
)

// envdVersion is the version of E2B's server of files that this one is compatible with. Clients choose requests by it:
// they upload plain bodies from 0.5.7 on, and metadata of files, which Glasshouse does not keep, from 0.6.2 on.
const envdVersion = "0.5.7"

// control returns the handler of the control API.
func (a *api) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	routes := map[string]compat.Handler{
		"GET /sandboxes/{id}":          a.get,
		"DELETE /sandboxes/{id}":       a.kill,
		"POST /sandboxes/{id}/timeout": a.setTimeout,
		"POST /sandboxes/{id}/fork":    a.fork,
		"GET /sandboxes/{id}/metrics": func(w http.ResponseWriter, _ *http.Request, _ sandbox.Key) error {
			return compat.WriteJSON(w, http.StatusOK, []any{})
		},
		"/": func(_ http.ResponseWriter, r *http.Request, _ sandbox.Key) error {
			return sandbox.Errorf(sandbox.FaultNotFound, "Glasshouse has no %s %s; it serves E2B's sandboxes, code "+
				"and files, and no templates, volumes, secrets or signed URLs", r.Method, r.URL.Path)
		},
	}
	for _, version := range []string{"", "/v2"} {
		routes["POST "+version+"/sandboxes"] = a.create
		routes["GET "+version+"/sandboxes"] = a.list
		routes["POST "+version+"/sandboxes/{id}/connect"] = a.connect
	}
	for _, what := range []string{"pause", "resume", "snapshots", "network"} {
		routes["/sandboxes/{id}/"+what] = func(w http.ResponseWriter, _ *http.Request, _ sandbox.Key) error {
			writeError(w, "Glasshouse has no "+what+" of sandboxes: a sandbox keeps its state until its timeout, "+
				"which set_timeout extends", http.StatusNotImplemented)
			return nil
		}
	}
	for pattern, next := range routes {
		mux.Handle(pattern, a.WithKey(compat.SecretOf, a.fail, next))
	}
	return mux
}

// details are what E2B's sandboxes have beyond those of package live.
type details struct {
	template string
	metadata map[string]string
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
	// A sandbox that another API created has none.
	d := a.details.GetOrPut(sb.ID, details{template: defaultTemplate, metadata: map[string]string{}})
	return sandboxInfo{
		ID: sb.ID, Template: d.template, Client: "glasshouse", EnvdVersion: envdVersion,
		AccessToken: secret, TrafficToken: secret, StartedAt: sb.CreatedAt, EndAt: sb.ExpiresAt(),
		CPUCount: max((sb.Policy.CPUPercent+99)/100, 1), MemoryMB: sb.Policy.MaxMemoryMB,
		DiskSizeMB: sb.Policy.WorkspaceMaxBytes >> 20, State: "running", Metadata: d.metadata,
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

// check returns FaultMalformed for parts that Glasshouse does not have, and for wrong variables, and FaultInvalid for
// texts that are too long.
func (n *newSandbox) check() error {
	isGiven := func(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" && string(raw) != "{}" }
	for part, given := range map[string]bool{
		"lifecycle on_timeout pause": n.AutoPause,
		"allow_internet_access":      n.Internet != nil && *n.Internet,
		"network":                    isGiven(n.Network),
		"volume_mounts":              len(n.Volumes) > 0,
		"mcp":                        isGiven(n.MCP),
		"iam":                        isGiven(n.IAM),
	} {
		if given {
			return sandbox.Errorf(sandbox.FaultMalformed, "Glasshouse has no %s; leave it out", part)
		}
	}
	if err := sandbox.CheckNames(map[string]string{"templateID": n.Template}); err != nil {
		return err
	}
	if err := sandbox.CheckMapSize("metadata", sandbox.MaxMetadataBytes, n.Metadata); err != nil {
		return err
	}
	return code.CheckEnviron("envVars", n.Environ)
}

func (a *api) create(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
	var in newSandbox
	err := a.ReadJSON(w, r, &in)
	if err == nil {
		err = in.check()
	}
	if err != nil {
		return err
	}
	timeout := defaultTimeout
	if in.Timeout != nil {
		timeout = *in.Timeout
	}
	config := map[string]any{"lifetime": timeout, "idle_timeout": timeout}
	template := cmp.Or(in.Template, defaultTemplate)
	if template != defaultTemplate && template != "base" {
		config["environment"] = template // a template is an environment of the operator
	}
	text, _ := json.Marshal(config) // numbers and strings have a form in JSON
	sb, err := a.Live.CreateCompat(r.Context(), caller, text)
	if known, ok := errors.AsType[*sandbox.Error](err); ok {
		if config[known.Field] == timeout {
			known.Field = "timeout" // as the client calls it
		}
		if known.Fault == sandbox.FaultLimit {
			w.Header().Set("Should-Retry", "false") // waiting frees no sandbox of the caller's
		}
	}
	if err != nil {
		return err
	}
	if in.Metadata == nil {
		in.Metadata = map[string]string{}
	}
	a.details.Put(sb.ID, details{template, in.Metadata})
	a.code.SetEnviron(sb.ID, in.Environ)
	return compat.WriteJSON(w, http.StatusCreated, a.info(sb, compat.SecretOf(r)))
}

func (a *api) get(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
	sb, err := a.Live.Sandbox(r.Context(), caller, r.PathValue("id"))
	if err != nil {
		return err
	}
	return compat.WriteJSON(w, http.StatusOK, a.info(sb, compat.SecretOf(r)))
}

// list answers with a page of the caller's sandboxes, oldest first or as order says. The header X-Next-Token of a page
// begins the next.
func (a *api) list(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
	query := r.URL.Query()
	wanted, err := url.ParseQuery(query.Get("metadata"))
	limit := maxListed
	if text := query.Get("limit"); err == nil && text != "" {
		limit, err = strconv.Atoi(text)
	}
	if err != nil || limit < 1 || limit > maxListed {
		return sandbox.Errorf(sandbox.FaultMalformed, "metadata must be a query string, limit from 1 to %d", maxListed)
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
	page := firstPage(list, limit)
	if len(page) < len(list) {
		w.Header().Set("X-Next-Token", list[len(page)-1].position())
	}
	return compat.WriteJSON(w, http.StatusOK, page)
}

// firstPage returns the JSON of the first sandboxes of a list: at most limit of them, of about maxListedBytes.
func firstPage(list []sandboxInfo, limit int) []json.RawMessage {
	page := []json.RawMessage{}
	for bytes := 0; len(page) < min(limit, len(list)) && bytes < maxListedBytes; {
		text, _ := json.Marshal(list[len(page)]) // texts and numbers have a form in JSON
		page = append(page, text)
		bytes += len(text)
	}
	return page
}

// own returns the live sandboxes of a caller with all of the metadata, oldest first.
func (a *api) own(r *http.Request, caller sandbox.Key, metadata url.Values) []sandboxInfo {
	list := []sandboxInfo{}
	for id, d := range a.details.All() {
		matches := true
		for key := range metadata {
			matches = matches && d.metadata[key] == metadata.Get(key)
		}
		sb, err := a.Live.Sandbox(r.Context(), sandbox.Key{ID: caller.ID, User: caller.User}, id)
		if matches && err == nil { // otherwise it is another user's, or has ended
			list = append(list, a.info(sb, ""))
		}
	}
	slices.SortFunc(list, func(x, y sandboxInfo) int { return strings.Compare(x.position(), y.position()) })
	return list
}

// connect answers with a sandbox, and prolongs its life to the timeout.
func (a *api) connect(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
	var in struct {
		Timeout int `json:"timeout"`
	}
	if err := a.ReadJSON(w, r, &in); err != nil {
		return err
	}
	sb, err := a.Live.Sandbox(r.Context(), caller, r.PathValue("id"))
	timeout := time.Duration(in.Timeout) * time.Second
	if err == nil && in.Timeout > 0 && sb.ExpiresAt().Sub(a.Live.Clock()) < timeout {
		sb, err = a.Live.SetEnd(r.Context(), caller, sb.ID, timeout)
	}
	if err != nil {
		return err
	}
	return compat.WriteJSON(w, http.StatusOK, a.info(sb, compat.SecretOf(r)))
}

func (a *api) setTimeout(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
	in := struct {
		Timeout int `json:"timeout"`
	}{defaultTimeout}
	err := a.ReadJSON(w, r, &in)
	if err == nil {
		_, err = a.Live.SetEnd(r.Context(), caller, r.PathValue("id"), time.Duration(in.Timeout)*time.Second)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// defaultForkTimeout is E2B's, in seconds.
const defaultForkTimeout = 15

// forkResult is one entry of the answer to a fork: all of them succeed or none does.
type forkResult struct {
	Sandbox sandboxInfo `json:"sandbox"`
}

// fork makes sandboxes with the variables and files of one.
func (a *api) fork(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
	in := struct {
		Count   int `json:"count"`
		Timeout int `json:"timeout"`
	}{1, defaultForkTimeout}
	if err := a.ReadJSON(w, r, &in); err != nil {
		return err
	}
	id := r.PathValue("id")
	forks, err := a.Runs.Fork(r.Context(), caller, id, in.Count)
	if err != nil {
		return err
	}
	of := a.details.GetOrPut(id, details{template: defaultTemplate, metadata: map[string]string{}})
	results := []forkResult{}
	for _, f := range forks {
		sb, err := a.Live.SetEnd(r.Context(), caller, f.Sandbox.ID, time.Duration(in.Timeout)*time.Second)
		if err != nil {
			return err
		}
		a.details.Put(sb.ID, of)
		a.code.Fork(id, sb.ID)
		results = append(results, forkResult{a.info(sb, compat.SecretOf(r))})
	}
	return compat.WriteJSON(w, http.StatusCreated, results)
}

func (a *api) kill(w http.ResponseWriter, r *http.Request, caller sandbox.Key) error {
	err := a.Live.Delete(r.Context(), caller, r.PathValue("id"))
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
