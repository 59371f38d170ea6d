package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service"
)

// uploads are the routes whose body is a file.
var uploads = map[string]bool{"/sandbox/:id/files": true, "/sandbox/:id/files/*path": true}

type uploaded struct {
	SandboxID string         `json:"sandbox_id"`
	Message   string         `json:"message"`
	Files     []sandbox.File `json:"files"`
}

// files are gin's own routes, as huma would hold a whole upload in memory.
func (a *api) files(router *gin.Engine, at place) {
	route(a, at, "GET", "/sandbox/{id}/files", "A sandbox's uploads, which code finds in /data", func(ctx context.Context, caller sandbox.Key, in *InSandbox) (*service.Files, error) {
		list, err := a.service.Files(ctx, caller, in.ID)
		return &list, err
	})
	router.POST(at.prefix+"/sandbox/:id/files", a.upload)
	router.POST(at.prefix+"/sandbox/:id/files/*path", a.upload)
	router.PUT(at.prefix+"/sandbox/:id/files/*path", a.upload)
	router.GET(at.prefix+"/sandbox/:id/files/*path", a.download)
	router.HEAD(at.prefix+"/sandbox/:id/files/*path", a.download)
	router.DELETE(at.prefix+"/sandbox/:id/files/*path", func(g *gin.Context) {
		name := fileName(g)
		if err := a.service.RemoveFile(g.Request.Context(), callerFrom(g.Request.Context()), g.Param("id"), name); err != nil {
			a.problem(g, err)
			return
		}
		g.JSON(http.StatusOK, message{fmt.Sprintf("%q is removed", name)})
	})
	a.describeFiles(at)
}

// fileName is the path in the route, or "" where the route has none.
func fileName(g *gin.Context) string { return strings.TrimPrefix(g.Param("path"), "/") }

// upload takes a multipart form with any number of files, or one file as it is.
func (a *api) upload(g *gin.Context) {
	kind, params, _ := mime.ParseMediaType(g.GetHeader("Content-Type"))
	var files []sandbox.File
	var err error
	if kind == "multipart/form-data" && g.Param("path") == "" {
		files, err = a.uploadForm(g, params["boundary"])
	} else {
		name := fileName(g)
		if g.Param("path") == "" {
			name = g.Query("path")
		}
		files = make([]sandbox.File, 1)
		files[0], err = a.service.Upload(g.Request.Context(), callerFrom(g.Request.Context()), g.Param("id"), name, g.Request.Body)
	}
	if err != nil {
		drain(g)
		a.problem(g, uploadError(err))
		return
	}
	g.JSON(http.StatusOK, uploaded{g.Param("id"), fmt.Sprintf("%d files are in /data", len(files)), files})
}

func (a *api) uploadForm(g *gin.Context, boundary string) ([]sandbox.File, error) {
	files := []sandbox.File{}
	for form := multipart.NewReader(g.Request.Body, boundary); ; {
		part, err := form.NextRawPart()
		if err == io.EOF {
			if len(files) == 0 {
				err = &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "files", Detail: "the form has no file"}
				return nil, err
			}
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		// Not part.FileName(): it leaves the folders out.
		_, disposition, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		name, isFile := disposition["filename"]
		if err == nil && !isFile { // a plain field
			continue
		}
		f, err := a.service.Upload(g.Request.Context(), callerFrom(g.Request.Context()), g.Param("id"), name, part)
		if err != nil {
			return nil, atFile(len(files), name, err)
		}
		files = append(files, f)
	}
}

// atFile says which file of a form was refused, and that those before it are there.
func atFile(n int, name string, err error) error {
	var known *sandbox.Error
	if !errors.As(err, &known) {
		return err
	}
	said := *known
	said.Detail = fmt.Sprintf("file %d of the form, %q: %s", n+1, name, known.Detail)
	return &said
}

// uploadError says in a caller's terms that its body could not be read.
func uploadError(err error) error {
	var known *sandbox.Error
	var large *http.MaxBytesError
	var local *os.PathError
	var header textproto.ProtocolError
	switch {
	case errors.As(err, &known), errors.As(err, &local):
		return err
	case errors.As(err, &large):
		return sandbox.Errorf(sandbox.FaultTooLarge, "the body has more than %d bytes", large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return sandbox.Errorf(sandbox.FaultMalformed, "the body has stopped to come")
	case errors.As(err, &header), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), strings.HasPrefix(err.Error(), "multipart: "), strings.HasPrefix(err.Error(), "mime: "):
		return sandbox.Errorf(sandbox.FaultMalformed, "the body ends too soon, or is no multipart form: %s", err)
	}
	return err
}

// What of a refused body is still read, so that its sender comes to reading the answer.
const (
	drainBytes = 64 << 20
	drainTime  = 5 * time.Second
)

func drain(g *gin.Context) {
	if t := limit.TransferOf(g.Request.Context()); t != nil {
		t.ReadBodyUntil(time.Now().Add(drainTime))
	}
	_, _ = io.CopyN(io.Discard, g.Request.Body, drainBytes)
}

func (a *api) download(g *gin.Context) {
	file, f, err := a.service.OpenFile(g.Request.Context(), callerFrom(g.Request.Context()), g.Param("id"), fileName(g))
	if err != nil {
		a.problem(g, err)
		return
	}
	defer file.Close()
	send(g, content{file, f.Path, f.MIME, f.SHA256, f.UploadedAt})
}

// content is a file that a client asked for.
type content struct {
	io.ReadSeeker
	path, mime, sha256 string
	modified           time.Time
}

// send answers with a file: ranges, validators and all. What it is was said by a user
// or by user code, so no browser may run it, or take it for anything else.
func send(g *gin.Context, c content) {
	disposition := "attachment"
	switch c.mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		disposition = "inline"
	}
	for name, value := range map[string]string{
		"Content-Type": c.mime, "ETag": `"` + c.sha256 + `"`, "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox",
		"Content-Disposition": mime.FormatMediaType(disposition, map[string]string{"filename": path.Base(c.path)}), "Cache-Control": "private, no-cache",
	} {
		g.Header(name, value)
	}
	var w http.ResponseWriter = g.Writer
	if inner, ok := g.Writer.(interface{ Unwrap() http.ResponseWriter }); ok {
		if to, ok := inner.Unwrap().(io.ReaderFrom); ok {
			w = passing{g.Writer, to}
		}
	}
	http.ServeContent(w, g.Request, "", c.modified, c.ReadSeeker)
}

// passing lets a file go from the kernel to the kernel, which gin's writer hides.
type passing struct {
	gin.ResponseWriter
	to io.ReaderFrom
}

// ReadFrom is what io.Copy looks for.
func (p passing) ReadFrom(from io.Reader) (int64, error) {
	p.WriteHeaderNow()
	return p.to.ReadFrom(from)
}

// describeFiles tells of gin's own routes in the documentation.
func (a *api) describeFiles(at place) {
	schemas := at.api.OpenAPI().Components.Schemas
	text, binary := &huma.Schema{Type: "string"}, &huma.Schema{Type: "string", Format: "binary"}
	id := &huma.Param{Name: "id", In: "path", Required: true, Schema: text}
	name := &huma.Param{Name: "path", In: "path", Required: true, Schema: text, Description: "Below /data; it may have folders"}
	taken := map[string]*huma.Response{"200": {Description: "What was taken", Content: map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(reflect.TypeFor[uploaded](), true, "")}}}}
	anything := &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/octet-stream": {Schema: binary}}}
	form := &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"multipart/form-data":      {Schema: &huma.Schema{Type: "object", Properties: map[string]*huma.Schema{"files": {Type: "array", Items: binary}}}},
		"application/octet-stream": {Schema: binary},
	}}
	said := map[string]*huma.Response{"200": {Description: "It is gone", Content: map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(reflect.TypeFor[message](), true, "")}}}}
	bytes := map[string]*huma.Response{"200": {Description: "The file; Range and If-None-Match are understood", Content: map[string]*huma.MediaType{"application/octet-stream": {Schema: binary}}}}
	for _, o := range []huma.Operation{
		{Method: "POST", Path: "/sandbox/{id}/files", Summary: "Upload files to /data: a form with any number of them, or one as it is, named by path", RequestBody: form, Responses: taken,
			Parameters: []*huma.Param{id, {Name: "path", In: "query", Schema: text, Description: "The name, where the body is no form"}}},
		{Method: "PUT", Path: "/sandbox/{id}/files/{path}", Summary: "Upload one file to /data", RequestBody: anything, Responses: taken, Parameters: []*huma.Param{id, name}},
		{Method: "GET", Path: "/sandbox/{id}/files/{path}", Summary: "Download an upload", Responses: bytes, Parameters: []*huma.Param{id, name}},
		{Method: "DELETE", Path: "/sandbox/{id}/files/{path}", Summary: "Remove an upload", Responses: said, Parameters: []*huma.Param{id, name}},
	} {
		o.Path = at.prefix + o.Path
		o.OperationID = o.Method + o.Path
		at.api.OpenAPI().AddOperation(&o)
	}
}
