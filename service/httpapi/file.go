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
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/sandbox"
	"glasshouse/service/live"
)

type uploadedFiles struct {
	SandboxID string         `json:"sandbox_id"`
	Message   string         `json:"message"`
	Files     []sandbox.File `json:"files"`
}

// routeFiles routes uploads and downloads with gin alone: huma would hold a whole upload in memory.
func (a *api) routeFiles(r *routes) {
	common := []int{http.StatusForbidden, http.StatusConflict, http.StatusGone}
	route(a, r, r.describe("GET", "/sandbox/{id}/files", "listFiles", tagFiles, "List a sandbox's uploads", common...),
		a.listFiles)

	const folder, file = "/sandbox/{id}/files", "/sandbox/{id}/files/{path}"
	describe := func(method, path, id, summary string, statuses ...int) huma.Operation {
		op := r.describe(method, path, id, tagFiles, summary, append(statuses, common...)...)
		op.Parameters = []*huma.Param{stringParam("path", "id", "The sandbox's id")}
		if path == file {
			op.Parameters = append(op.Parameters, stringParam("path", "path", "Path below /data; it may have folders"))
		}
		return op
	}
	uploaded := &huma.Response{Description: "The files that were stored", Content: jsonContent[uploadedFiles](r)}

	op := describe("POST", folder, "uploadFiles",
		"Upload files to /data: a form with any number of files, or one file as the body", bodyStatuses...)
	op.Parameters = append(op.Parameters, stringParam("query", "path", "The file's path, if the body is not a form"))
	op.RequestBody = &huma.RequestBody{Required: true, Content: binaryContent()}
	op.RequestBody.Content["multipart/form-data"] = &huma.MediaType{Schema: &huma.Schema{
		Type: huma.TypeObject, Required: []string{"files"}, AdditionalProperties: true,
		Properties: map[string]*huma.Schema{
			"files": {Type: huma.TypeArray, MinItems: new(1),
				Items: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		},
	}}
	op.Responses["200"] = uploaded
	r.handle(r.upload, op, a.uploadFiles)

	for method, id := range map[string]string{"PUT": "putFile", "POST": "uploadFile"} {
		op := describe(method, file, id, "Upload one file to /data", bodyStatuses...)
		op.RequestBody = &huma.RequestBody{Required: true, Content: binaryContent()}
		op.Responses["200"] = uploaded
		r.handle(r.upload, op, a.uploadFiles)
	}
	for method, id := range map[string]string{"GET": "getFile", "HEAD": "headFile"} {
		op := describe(method, file, id, "Download an upload")
		r.describeDownload(&op)
		r.handle(r.keyed, op, a.downloadFile)
	}
	op = describe("DELETE", file, "deleteFile", "Delete an upload")
	op.Responses["200"] = &huma.Response{Description: "The file is deleted", Content: jsonContent[message](r)}
	r.handle(r.keyed, op, a.deleteFile)
}

func (a *api) listFiles(ctx context.Context, caller sandbox.Key, in *InSandbox) (*live.Files, error) {
	list, err := a.live.Files(ctx, caller, in.ID)
	return &list, err
}

// filePath returns the path parameter of the route, or "" if the route has none.
func filePath(g *gin.Context) string { return strings.TrimPrefix(g.Param("path"), "/") }

// uploadFiles takes a multipart form with any number of files, or one file as the body.
func (a *api) uploadFiles(g *gin.Context) {
	contentType, params, _ := mime.ParseMediaType(g.GetHeader("Content-Type"))
	inFolder := g.Param("path") == ""
	var files []sandbox.File
	var err error
	if contentType == "multipart/form-data" && inFolder {
		files, err = a.uploadForm(g, params["boundary"])
	} else {
		name := filePath(g)
		if inFolder {
			name = g.Query("path")
		}
		files = make([]sandbox.File, 1)
		files[0], err = a.live.Upload(g.Request.Context(), callerFrom(g.Request.Context()), g.Param("id"), name,
			g.Request.Body)
	}
	if err != nil {
		a.fail(g, uploadError(err))
		return
	}
	g.JSON(http.StatusOK, uploadedFiles{g.Param("id"), fmt.Sprintf("files uploaded to /data: %d", len(files)), files})
}

func (a *api) uploadForm(g *gin.Context, boundary string) ([]sandbox.File, error) {
	files := []sandbox.File{}
	for form := multipart.NewReader(g.Request.Body, boundary); ; {
		part, err := form.NextRawPart()
		if err == io.EOF { //nolint:errorlint // a wrapped EOF is a form that ends too soon
			if len(files) == 0 {
				return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "files",
					Detail: "the form has no file; send each file as a part with a filename"}
			}
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		// part.FileName() would remove the folders.
		_, disposition, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		name, isFile := disposition["filename"]
		if err == nil && !isFile && disposition["name"] == "files" { // otherwise its content would be lost silently
			return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "files",
				Detail: "this part of the form has no filename, which is the file's path in /data"}
		}
		if err == nil && !isFile { // another field of the form
			continue
		}
		f, err := a.live.Upload(g.Request.Context(), callerFrom(g.Request.Context()), g.Param("id"), name, part)
		if err != nil {
			return nil, formFileError(len(files), name, err)
		}
		files = append(files, f)
	}
}

// formFileError says which file of a form failed. The files before it are stored.
func formFileError(index int, name string, err error) error {
	var known *sandbox.Error
	if !errors.As(err, &known) {
		return err
	}
	named := *known
	named.Detail = fmt.Sprintf("file %d of the form, %q: %s", index+1, name, known.Detail)
	return &named
}

// uploadError turns a failure to read the body into an error for the client. Errors of our own files stay as they are.
func uploadError(err error) error {
	var known *sandbox.Error
	var ours *os.PathError
	var header textproto.ProtocolError
	switch {
	case errors.As(err, &known), errors.As(err, &ours):
		return err
	case errors.As(err, &header), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF),
		strings.HasPrefix(err.Error(), "multipart: "), strings.HasPrefix(err.Error(), "mime: "):
		return sandbox.Errorf(sandbox.FaultMalformed, "the body is incomplete or not a multipart form: %s", err)
	}
	return readError(err)
}

// readError returns the error for a body that stalled, and any other error as it is.
func readError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return sandbox.Errorf(sandbox.FaultMalformed, "the body stopped before its end; send it without long pauses")
	}
	return err
}

func bodyTooLarge(maxBytes int64) error {
	return sandbox.Errorf(sandbox.FaultTooLarge, "the body has more than %d bytes", maxBytes)
}

func (a *api) downloadFile(g *gin.Context) {
	ctx := g.Request.Context()
	file, f, err := a.live.OpenFile(ctx, callerFrom(ctx), g.Param("id"), filePath(g))
	if err != nil {
		a.fail(g, err)
		return
	}
	defer file.Close()
	a.serveDownload(g, download{file, f.Path, f.MIME, f.SHA256, f.UploadedAt})
}

func (a *api) deleteFile(g *gin.Context) {
	ctx, name := g.Request.Context(), filePath(g)
	if err := a.live.RemoveFile(ctx, callerFrom(ctx), g.Param("id"), name); err != nil {
		a.fail(g, err)
		return
	}
	g.JSON(http.StatusOK, message{fmt.Sprintf("%q is removed", name)})
}
