// Package webui serves the pages under /ui/: one HTML document that shows every page, and its assets. The pages get
// their data from the API with the cookie of POST /login; the files themselves need no key.
package webui

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"glasshouse/web"
)

// Policy is the Content-Security-Policy of every response under /ui/. Nothing is loaded from other hosts, and text can
// become code in no way: records contain what hostile programs wrote.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"connect-src 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; " +
	"require-trusted-types-for 'script', " + // a second policy, which must hold too
	"frame-src *:*/ui/plot.html" // so that frames hold nothing else of this host; its name is not known here

// docsPolicy is the Content-Security-Policy of the page at /docs. Its viewer of OpenAPI documents needs inline styles
// and pictures, and makes HTML of Markdown. The document is the service's own: no record is shown there.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// plotPolicy is the Content-Security-Policy of the frame that draws figures of Plotly. It loads the script with the
// nonce and nothing else, from no host. Plotly writes style elements.
const plotPolicy = "default-src 'none'; script-src 'nonce-%s'; style-src 'unsafe-inline'; img-src data: blob:; " +
	"connect-src 'none'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'; sandbox allow-scripts"

// Prefix is the path under which the pages are served.
const Prefix = "/ui/"

const (
	docs   = "docs.html"
	index  = "index.html"
	plot   = "plot.html" // a frame; its script has the attribute nonce="NONCE"
	assets = "assets/"   // files whose names contain the hash of their content
)

// Pages is a handler for the files of web/dist.
type Pages struct {
	files map[string]*file
}

// file is a file in the form in which it is sent.
type file struct {
	contentType string
	plain       []byte
	etag        string // without quotes
	compressed  func() []byte
}

// Embedded returns the handler of the pages that are part of the program.
var Embedded = sync.OnceValue(func() *Pages {
	pages, err := New(web.Pages())
	if err != nil {
		panic(err) // a test serves the same files
	}
	return pages
})

// New returns a handler for the files, which must include index.html, docs.html and plot.html.
func New(dist fs.FS) (*Pages, error) {
	p := &Pages{files: map[string]*file{}}
	err := fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(dist, name)
		if err != nil {
			return err
		}
		p.files[name], err = newFile(name, content)
		return err
	})
	if err == nil && (p.files[index] == nil || p.files[docs] == nil || p.files[plot] == nil) {
		err = errors.New("no index.html, docs.html or plot.html; run `go -C scripts/tools run ./buildweb ../..`")
	}
	if err != nil {
		return nil, fmt.Errorf("the files of the pages: %w", err)
	}
	return p, nil
}

func newFile(name string, content []byte) (*file, error) {
	contentType := contentTypes[path.Ext(name)]
	if contentType == "" {
		return nil, fmt.Errorf("%s: unknown type of file", name)
	}
	sum := sha256.Sum256(content)
	return &file{contentType: contentType, plain: content, etag: hex.EncodeToString(sum[:12]),
		compressed: sync.OnceValue(func() []byte { return compress(content) })}, nil
}

// contentTypes does not use package mime's table: that one depends on the machine.
var contentTypes = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".png":  "image/png",
	".txt":  "text/plain; charset=utf-8",
}

func compress(content []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // a valid level
	_, _ = w.Write(content)                                 // a bytes.Buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

// ServeHTTP answers with a file, or with index.html for the path of a page, so that a deep link survives a reload.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	setPolicy(header, Policy)
	name := strings.TrimPrefix(r.URL.Path, Prefix)
	if name == plot {
		p.servePlot(w)
		return
	}
	f := p.files[name]
	if f == nil {
		if strings.HasPrefix(name, assets) || path.Ext(name) != "" {
			http.Error(w, "there is no such file; a newer version of the pages may be served: reload the page",
				http.StatusNotFound)
			return
		}
		name, f = index, p.files[index]
	}
	if strings.HasPrefix(name, assets) {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		header.Set("Cache-Control", "no-cache")
	}
	f.serve(w, r)
}

// ServeDocs answers with the page that shows the description of the API.
func (p *Pages) ServeDocs(w http.ResponseWriter, r *http.Request) {
	setPolicy(w.Header(), docsPolicy)
	w.Header().Set("Cache-Control", "no-cache")
	p.files[docs].serve(w, r)
}

// servePlot answers with the frame for figures, whose script has a nonce that is used once.
func (p *Pages) servePlot(w http.ResponseWriter) {
	nonce := rand.Text()
	header := w.Header()
	setPolicy(header, fmt.Sprintf(plotPolicy, nonce))
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", p.files[plot].contentType)
	body := bytes.Replace(p.files[plot].plain, []byte(`nonce="NONCE"`), []byte(`nonce="`+nonce+`"`), 1)
	_, _ = w.Write(body) // fails if the client has left
}

func setPolicy(header http.Header, policy string) {
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	header, body, etag := w.Header(), f.plain, `"`+f.etag+`"`
	header.Set("Content-Type", f.contentType)
	header.Set("Vary", "Accept-Encoding")
	if AcceptsGzip(strings.Join(r.Header.Values("Accept-Encoding"), ",")) {
		body, etag = f.compressed(), `"`+f.etag+`-gzip"`
		header.Set("Content-Encoding", "gzip")
	}
	header.Set("ETag", etag)
	for given := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if given = strings.TrimPrefix(strings.TrimSpace(given), "W/"); given == etag || given == "*" {
			header.Del("Content-Encoding")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // fails if the client has left
}

// AcceptsGzip reports whether a header Accept-Encoding names gzip, or any encoding, and does not rule it out.
func AcceptsGzip(header string) bool {
	accepts := false
	for coding := range strings.SplitSeq(header, ",") {
		name, parameters, err := mime.ParseMediaType("x/" + strings.TrimSpace(coding)) // the same syntax below a type
		quality, qualityErr := strconv.ParseFloat(parameters["q"], 64)
		if err != nil || name != "x/gzip" && name != "x/*" {
			continue
		}
		accepts = qualityErr != nil || quality > 0
		if name == "x/gzip" {
			return accepts
		}
	}
	return accepts
}
