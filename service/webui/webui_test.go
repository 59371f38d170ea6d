package webui

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"glasshouse/web"
)

func newPages(t *testing.T) *Pages {
	t.Helper()
	pages, err := New(fstest.MapFS{
		"index.html":       {Data: []byte("<!doctype html>the page")},
		"docs.html":        {Data: []byte("<!doctype html>the API")},
		"plot.html":        {Data: []byte(`<!doctype html><script nonce="NONCE" src="/ui/assets/plot-X.js"></script>`)},
		"assets/main-X.js": {Data: []byte(strings.Repeat("let a = 1;", 100))},
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

func get(t *testing.T, pages *Pages, path string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPathsOfPagesServeTheDocument(t *testing.T) {
	pages := newPages(t)
	for _, path := range []string{"/ui/", "/ui/executions/1234", "/ui/unknown/page", "/ui/index.html"} {
		r := get(t, pages, path)
		if got := text(t, r.Body); r.StatusCode != 200 || !strings.Contains(got, "the page") {
			t.Errorf("%s: got %d %q, want the document", path, r.StatusCode, got)
		}
		if got := r.Header.Get("Cache-Control"); got != "no-cache" {
			t.Errorf("%s: got Cache-Control %q, want no-cache", path, got)
		}
	}
}

func TestUnknownAssetsAreNotFound(t *testing.T) {
	pages := newPages(t)
	for _, path := range []string{"/ui/assets/other.js", "/ui/assets/", "/ui/main.js", "/ui/a/b.css"} {
		r := get(t, pages, path)
		if r.StatusCode != 404 || r.Header.Get("Content-Security-Policy") != Policy {
			t.Errorf("%s: got %d with policy %q, want 404 with the policy", path, r.StatusCode,
				r.Header.Get("Content-Security-Policy"))
		}
	}
}

func TestAssetsAreCachedAndCompressed(t *testing.T) {
	pages := newPages(t)
	for _, c := range []struct {
		accept     string
		compressed bool
	}{
		{"gzip, deflate, br", true}, {"*", true}, {"gzip;q=0.5", true}, {"identity", false}, {"gzip;q=0", false},
		{"", false}, {"*, gzip;q=0", false},
	} {
		r := get(t, pages, "/ui/assets/main-X.js", "Accept-Encoding", c.accept)
		if got := r.Header.Get("Content-Encoding") == "gzip"; got != c.compressed {
			t.Errorf("Accept-Encoding %q: got compressed %v, want %v", c.accept, got, c.compressed)
		}
		body := io.Reader(r.Body)
		if c.compressed {
			var err error
			if body, err = gzip.NewReader(r.Body); err != nil {
				t.Fatal(err)
			}
		}
		if got := text(t, body); got != strings.Repeat("let a = 1;", 100) {
			t.Errorf("Accept-Encoding %q: got %q", c.accept, got)
		}
		if got := r.Header.Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("got Cache-Control %q, want immutable", got)
		}
		again := get(t, pages, "/ui/assets/main-X.js", "Accept-Encoding", c.accept,
			"If-None-Match", r.Header.Get("ETag"))
		if again.StatusCode != http.StatusNotModified || text(t, again.Body) != "" {
			t.Errorf("with the ETag: got %d, want 304 without a body", again.StatusCode)
		}
	}
}

// The frame for figures has its own policy. Each response has a new nonce, in the policy and in the script element.
func TestFrameForFiguresHasItsOwnPolicy(t *testing.T) {
	pages := newPages(t)
	policies := map[string]bool{}
	for range 2 {
		r := get(t, pages, "/ui/plot.html")
		body, policy := text(t, r.Body), r.Header.Get("Content-Security-Policy")
		policies[policy] = true
		_, rest, _ := strings.Cut(policy, "script-src 'nonce-")
		nonce, _, _ := strings.Cut(rest, "'")
		if len(nonce) < 20 || !strings.Contains(body, `<script nonce="`+nonce+`" src=`) {
			t.Errorf("got the policy %q for %q, want the nonce of its script", policy, body)
		}
		for _, part := range []string{"default-src 'none'", "connect-src 'none'", "frame-ancestors 'self'",
			"sandbox allow-scripts"} {
			if !strings.Contains(policy, part) {
				t.Errorf("got the policy %q, want %s", policy, part)
			}
		}
		if strings.Contains(policy, "allow-same-origin") || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("got the headers %v", r.Header)
		}
	}
	if len(policies) != 2 {
		t.Errorf("got the same nonce twice: %v", policies)
	}
}

// TestBuiltPages checks the files that are committed: their types are known, and the document names assets that exist.
func TestBuiltPages(t *testing.T) {
	pages, err := New(web.Pages())
	if err != nil {
		t.Fatal(err)
	}
	document := string(pages.files[index].plain)
	names := strings.Split(document, `"/ui/assets/`)[1:]
	if len(names) < 3 {
		t.Fatalf("the document names %d assets, want at least a script, styles and an icon:\n%s", len(names), document)
	}
	for _, rest := range names {
		name, _, _ := strings.Cut(rest, `"`)
		if pages.files[assets+name] == nil {
			t.Errorf("the document names %s, which does not exist", name)
		}
	}
	for _, forbidden := range []string{"<style", "style=", "<script>"} {
		if strings.Contains(document, forbidden) {
			t.Errorf("the document contains %s, which the policy forbids", forbidden)
		}
	}
}

// TestSizes checks the budgets: 80 KB compressed until the list of executions is shown, and 320 KB for all pages. The
// viewer at /docs and Plotly do not count: they are loaded on demand.
func TestSizes(t *testing.T) {
	pages, err := New(web.Pages())
	if err != nil {
		t.Fatal(err)
	}
	document := string(pages.files[index].plain)
	first, all := len(pages.files[index].compressed()), 0
	for name, file := range pages.files {
		if strings.HasPrefix(name, assets+"docs-") || strings.HasPrefix(name, assets+"plot-") {
			continue
		}
		size := len(file.compressed())
		all += size
		if strings.Contains(document, `"`+Prefix+name+`"`) {
			first += size
		}
	}
	t.Logf("the first load has %d bytes, all files %d", first, all)
	if first > 80_000 || all > 320_000 {
		t.Errorf("got %d bytes for the first load and %d in all, want at most 80000 and 320000", first, all)
	}
}
