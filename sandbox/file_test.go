package sandbox_test

import (
	"path"
	"path/filepath"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// FuzzCheckPath checks that a valid path names exactly one file below the folder that it starts in.
func FuzzCheckPath(f *testing.F) {
	for _, seed := range []string{"a", "a/b.csv", "..", "a/../b", "/a", "a//b", "a/", ".", "\x00", "\xff", " ", "...", strings.Repeat("x", 300)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if sandbox.CheckPath(p) != "" {
			return
		}
		if !filepath.IsLocal(p) || path.Clean(p) != p || path.Join("/data", p) != "/data/"+p ||
			strings.ContainsRune(p, 0) {
			t.Errorf("CheckPath(%q): got no problem, want the path refused", p)
		}
	})
}

func TestMIMETypeByExtension(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.CSV": "text/csv; charset=utf-8", "x.parquet": "application/vnd.apache.parquet", "x.tar.gz": "application/gzip", ".png": "image/png",
	} {
		if got := sandbox.MIMEType(name, nil); got != want {
			t.Errorf("MIMEType(%q): got %s, want %s", name, got, want)
		}
	}
}

func TestMIMETypeByContent(t *testing.T) {
	t.Parallel()
	const text, binary = "text/plain; charset=utf-8", "application/octet-stream"
	for head, want := range map[string]string{
		"text é": text, "incomplete character \xc3": text, "a\x00b": binary, "\xff\xfe\xfd\xfc\xfb": binary, "": binary,
	} {
		if got := sandbox.MIMEType("noname", []byte(head)); got != want {
			t.Errorf("MIMEType of %q: got %s, want %s", head, got, want)
		}
	}
}
