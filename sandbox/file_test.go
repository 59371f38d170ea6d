package sandbox_test

import (
	"path"
	"path/filepath"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// FuzzCheckPath: a path that is let through is the one name of one place below where
// it starts.
func FuzzCheckPath(f *testing.F) {
	for _, seed := range []string{"a", "a/b.csv", "..", "a/../b", "/a", "a//b", "a/", ".", "\x00", "\xff", " ", "...", strings.Repeat("x", 300)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if sandbox.CheckPath(p) != "" {
			return
		}
		if !filepath.IsLocal(p) || path.Clean(p) != p || path.Join("/data", p) != "/data/"+p || strings.ContainsRune(p, 0) {
			t.Errorf("%q was let through", p)
		}
	})
}

func TestMIMETypes(t *testing.T) {
	for name, want := range map[string]string{"a.CSV": "text/csv; charset=utf-8", "x.parquet": "application/vnd.apache.parquet", "x.tar.gz": "application/gzip", ".png": "image/png"} {
		if got := sandbox.MIMEType(name, nil); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	for head, want := range map[string]string{"text é": "text/plain; charset=utf-8", "cut off \xc3": "text/plain; charset=utf-8", "a\x00b": "application/octet-stream", "\xff\xfe\xfd\xfc\xfb": "application/octet-stream", "": "application/octet-stream"} {
		if got := sandbox.MIMEType("noname", []byte(head)); got != want {
			t.Errorf("%q: %s", head, got)
		}
	}
}
