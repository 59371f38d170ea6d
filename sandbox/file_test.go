package sandbox_test

import (
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

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

var pathEscape = regexp.MustCompile(`%(25|[89A-F][0-9A-F])`)

// unescapePath reverses EscapePath, as the documentation of artifacts says.
func unescapePath(p string) string {
	return pathEscape.ReplaceAllStringFunc(p, func(escape string) string {
		code, _ := strconv.ParseUint(escape[1:], 16, 8) // two digits
		return string([]byte{byte(code)})
	})
}

func TestEscapePath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"a b/ü😀.csv": "a b/ü😀.csv", "a%20b": "a%20b", "100%": "100%", "%": "%", "%2": "%2", "%7F%ff%c3": "%7F%ff%c3",
		"a\xff": "a%FF", "a%FF": "a%25FF", "a%25FF": "a%2525FF", "%25": "%2525", "%\xff": "%%FF", "%8\xff": "%8%FF",
		"\xc3(": "%C3(", "\xed\xa0\x80": "%ED%A0%80", "d\xfe/f%80": "d%FE/f%2580", "\uFFFD": "\uFFFD",
	} {
		if got := sandbox.EscapePath(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

// FuzzEscapePath checks that the escape is UTF-8 and reversible, so no two paths have the same escape.
func FuzzEscapePath(f *testing.F) {
	for _, seed := range []string{"a", "a\xff", "a%FF", "%25\x80%", "%%8F\xf0\x9f"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p string) {
		escaped := sandbox.EscapePath(p)
		if !utf8.ValidString(escaped) || unescapePath(escaped) != p {
			t.Errorf("%q: got %q, which is %q", p, escaped, unescapePath(escaped))
		}
	})
}
