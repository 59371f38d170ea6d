package httpapi

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// download is a file that a client asked for.
type download struct {
	io.ReadSeeker
	path, mime, sha256 string
	modified           time.Time
}

// serveDownload answers with a file, a range of it, or 304. The MIME type comes from a user or from user code, so
// browsers are told not to run the file.
func (a *api) serveDownload(g *gin.Context, d download) {
	disposition := "attachment"
	switch d.mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		disposition = "inline"
	}
	g.Header("Content-Type", d.mime)
	g.Header("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": path.Base(d.path)}))
	g.Header("Content-Security-Policy", "default-src 'none'; sandbox")
	g.Header("ETag", `"`+d.sha256+`"`)
	g.Header("Cache-Control", "private, no-cache")
	plain := &plainErrors{ResponseWriter: g.Writer}
	var w http.ResponseWriter = plain
	if inner, ok := g.Writer.(interface{ Unwrap() http.ResponseWriter }); ok {
		if to, ok := inner.Unwrap().(io.ReaderFrom); ok {
			w = readerFromWriter{plain, to}
		}
	}
	if transfer := limit.TransferOf(g.Request.Context()); transfer != nil {
		transfer.OnChunk = func() error { return access.LostKey(g.Request.Context()) }
	}
	http.ServeContent(w, g.Request, "", d.modified, d.ReadSeeker)
	if plain.status == 0 {
		return
	}
	for _, name := range []string{"Content-Disposition", "Content-Security-Policy", "ETag", "Last-Modified"} {
		g.Writer.Header().Del(name) // they describe the file
	}
	switch plain.status {
	case http.StatusPreconditionFailed:
		a.fail(g, sandbox.Errorf(sandbox.FaultPrecondition,
			"the file is not the one that If-Match or If-Unmodified-Since names; get it without these headers"))
	case http.StatusRequestedRangeNotSatisfiable:
		size, err := d.Seek(0, io.SeekEnd)
		if err != nil {
			a.fail(g, err)
			return
		}
		g.Header("Content-Range", fmt.Sprintf("bytes */%d", size))
		a.fail(g, sandbox.Errorf(sandbox.FaultRange,
			"Range is malformed or outside of the file, which has %d bytes", size))
	default:
		a.fail(g, fmt.Errorf("send the file %s: %s", d.path, plain.text.String()))
	}
}

// readerFromWriter adds ReadFrom, which gin's writer hides, so that files are sent with sendfile(2).
type readerFromWriter struct {
	*plainErrors
	to io.ReaderFrom
}

func (w readerFromWriter) ReadFrom(from io.Reader) (int64, error) {
	w.WriteHeaderNow()
	return w.to.ReadFrom(from)
}

// describeDownload adds the responses of serveDownload.
func (r *routes) describeDownload(op *huma.Operation) {
	anyType := map[string]*huma.MediaType{"*/*": binaryContent()["application/octet-stream"]}
	op.Responses["200"] = &huma.Response{Description: "The file", Content: anyType}
	op.Responses["206"] = &huma.Response{Description: "The part of the file that Range asks for", Content: anyType}
	op.Responses["304"] = &huma.Response{Description: "If-None-Match or If-Modified-Since holds"}
	r.describeErrors(op, http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable)
}
