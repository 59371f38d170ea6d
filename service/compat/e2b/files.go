package e2b

import (
	"compress/gzip"
	"errors"
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

// home is the name that clients have for /session.
const home = "/home/user"

// homes are all names of /session.
var homes = []string{home, "/session", "/mnt/data", "/work"}

// workspacePath returns the path below /session of a client's path, which is absolute or relative to home.
func workspacePath(name string) (string, error) {
	if strings.HasPrefix(name, "~") {
		name = home + strings.TrimPrefix(name, "~")
	}
	if !path.IsAbs(name) {
		name = path.Join(home, name)
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
		Detail: fmt.Sprintf("%.200q is outside of %s, the only folder that clients can reach", name, home)}
}

// clientPath returns the client's path of a path below /session.
func clientPath(name string) string { return path.Join(home, sandbox.EscapePath(name)) }

// files returns the handler of the port of files.
func (a *api) files() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /health", a.withSandbox(func(w http.ResponseWriter, _ *http.Request, _ sandbox.Key, _ *box) {
		w.WriteHeader(http.StatusNoContent)
	}))
	mux.Handle("GET /files", a.withSandbox(a.readFile))
	mux.Handle("POST /files", a.withSandbox(a.writeFiles))
	mux.Handle("POST /{service}/{method}", a.withSandbox(a.call))
	mux.Handle("/", a.withSandbox(func(w http.ResponseWriter, r *http.Request, _ sandbox.Key, _ *box) {
		a.writeError(w, http.StatusNotFound, fmt.Sprintf("Glasshouse has no %s %s for a sandbox", r.Method, r.URL.Path))
	}))
	return mux
}

func (a *api) readFile(w http.ResponseWriter, r *http.Request, caller sandbox.Key, b *box) {
	name, err := workspacePath(r.URL.Query().Get("path"))
	if err != nil {
		a.failInput(w, r, err)
		return
	}
	files, err := a.Service.Workspace(r.Context(), caller, b.id)
	if err != nil {
		a.failSandbox(w, r, err)
		return
	}
	f, e, err := files.Open(name)
	if err != nil {
		a.failInput(w, r, err)
		return
	}
	defer f.Close()
	compat.WriteFile(w, f, e.Size, name, "application/octet-stream")
}

// written describes a file that was written.
type written struct {
	Path string `json:"path"`
	Name string `json:"name"`
	Type string `json:"type"`
}

// writeFiles writes the body to a file, or each part of a form to its file.
func (a *api) writeFiles(w http.ResponseWriter, r *http.Request, caller sandbox.Key, b *box) {
	files, err := a.Service.Workspace(r.Context(), caller, b.id)
	if err != nil {
		a.failSandbox(w, r, err)
		return
	}
	list := []written{}
	put := func(given string, body io.Reader) error {
		name, err := workspacePath(given)
		if err == nil {
			_, err = files.Write(name, body)
		}
		list = append(list, written{clientPath(name), path.Base(name), "file"})
		return err
	}
	body, err := decodedBody(r)
	given := r.URL.Query().Get("path")
	if kind, parameters, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil {
		if kind == "multipart/form-data" {
			err = eachPart(multipart.NewReader(body, parameters["boundary"]), given, put)
		} else {
			err = put(given, body)
		}
	}
	switch fault := sandbox.FaultOf(err); {
	case err == nil:
		compat.WriteJSON(w, http.StatusOK, list)
	case fault == sandbox.FaultTooLarge:
		a.writeError(w, http.StatusInsufficientStorage, err.Error()) // clients report that there is no space
	default:
		a.failInput(w, r, err)
	}
}

// decodedBody returns a request's body without its compression. Workspace bounds its size.
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
		return nil, sandbox.Errorf(
			sandbox.FaultMalformed,
			"Content-Encoding %.50q is not supported; use gzip or none",
			encoding,
		)
	}
}

// eachPart calls put with each file of a form. The file's name is given, or else the part's whole file name, which is a
// path.
func eachPart(form *multipart.Reader, given string, put func(string, io.Reader) error) error {
	for n := 0; ; n++ {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) && n > 0 {
			return nil
		}
		if err != nil {
			return sandbox.Errorf(sandbox.FaultMalformed, "the body must be a form with files: %s", err)
		}
		name := given
		if name == "" {
			_, parameters, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
			name = parameters["filename"]
		}
		if err := put(name, part); err != nil {
			return err
		}
	}
}
