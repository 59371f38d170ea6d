// Package files serves the port of E2B's sandboxes that has their files: uploads and downloads (files.go), and requests
// of the Connect protocol (rpc.go).
package files

import (
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strings"

	"glasshouse/sandbox"
	"glasshouse/service/compat"
)

// Home is the name that clients have for /session.
const Home = "/home/user"

// homes are all names of /session.
var homes = []string{Home, "/session", "/mnt/data", "/work"}

// WorkspacePath returns the path below /session of a client's path, which is absolute or relative to Home.
func WorkspacePath(name string) (string, error) {
	if strings.HasPrefix(name, "~") {
		name = Home + strings.TrimPrefix(name, "~")
	}
	if !path.IsAbs(name) {
		name = path.Join(Home, name)
	}
	clean := path.Clean(name)
	for _, folder := range homes {
		if clean == folder {
			return ".", nil
		}
		if inner, ok := strings.CutPrefix(clean, folder+"/"); ok {
			return inner, nil
		}
	}
	return "", &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "path",
		Detail: fmt.Sprintf("%.200q is outside of %s, the only folder that clients can reach", name, Home)}
}

// ClientPath returns the client's path of a path below /session.
func ClientPath(name string) string { return path.Join(Home, sandbox.EscapePath(name)) }

// api serves the requests.
type api struct{ compat.Config }

// Routes returns the handlers of the port. Its FaultTooLarge says that the sandbox has no space.
func Routes(c compat.Config) map[string]compat.SandboxHandler {
	a := api{c}
	return map[string]compat.SandboxHandler{
		"GET /health": func(w http.ResponseWriter, _ *http.Request, _ sandbox.Key, _ string) error {
			w.WriteHeader(http.StatusNoContent)
			return nil
		},
		"GET /files":               a.read,
		"POST /files":              a.write,
		"POST /{service}/{method}": a.call,
		"/": func(_ http.ResponseWriter, r *http.Request, _ sandbox.Key, _ string) error {
			return sandbox.Errorf(sandbox.FaultNotFound, "Glasshouse has no %s %s for a sandbox", r.Method, r.URL.Path)
		},
	}
}

func (a api) read(w http.ResponseWriter, r *http.Request, caller sandbox.Key, id string) error {
	name, err := WorkspacePath(r.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	workspace, err := a.Live.Workspace(r.Context(), caller, id)
	if err != nil {
		return err
	}
	f, e, err := workspace.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	compat.WriteFile(w, f, e.Size, name, "application/octet-stream")
	return nil
}

// written describes a file that was written.
type written struct {
	Path string `json:"path"`
	Name string `json:"name"`
	Type string `json:"type"`
}

// write writes the body to a file, or each part of a form to its file: that of the query, or else that of its name.
func (a api) write(w http.ResponseWriter, r *http.Request, caller sandbox.Key, id string) error {
	workspace, err := a.Live.Workspace(r.Context(), caller, id)
	if err != nil {
		return err
	}
	body, err := decodedBody(r)
	if err != nil {
		return err
	}
	body = workspace.LimitBody(body)
	list := []written{}
	given := r.URL.Query().Get("path")
	put := func(name string, body io.Reader) error {
		name, err := WorkspacePath(cmp.Or(given, name))
		if err == nil {
			_, err = workspace.Write(name, body)
		}
		list = append(list, written{ClientPath(name), path.Base(name), "file"})
		return err
	}
	kind, parameters, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "multipart/form-data" {
		err = compat.EachFile(multipart.NewReader(body, parameters["boundary"]), put)
	} else {
		err = put("", body)
	}
	if err != nil {
		return err
	}
	return compat.WriteJSON(w, http.StatusOK, list)
}

// decodedBody returns a request's body without its compression.
func decodedBody(r *http.Request) (io.Reader, error) {
	switch encoding := strings.ToLower(r.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		return r.Body, nil
	case "gzip":
		body, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, sandbox.Errorf(sandbox.FaultMalformed, "the body is not gzip: %s", err)
		}
		return body, nil
	default:
		return nil, sandbox.Errorf(sandbox.FaultMalformed, "Content-Encoding %.50q is not supported; use gzip or none",
			encoding)
	}
}
