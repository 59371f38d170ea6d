package environment

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox/environment/environmenttest"
)

// newIndexes returns the address of a server with the indexes company, which has corp-tools 1.0, and public, which has
// corp-tools 9.0, and the folder of the server.
func newIndexes(t *testing.T) (url, folder string) {
	t.Helper()
	folder = t.TempDir()
	for index, version := range map[string]string{"company": "1.0", "public": "9.0"} {
		path := filepath.Join(folder, index, "corp-tools")
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		environmenttest.Wheel(t, path, "corp-tools", version, map[string]string{"corp_tools.py": ""})
	}
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	t.Cleanup(server.Close)
	return server.URL, folder
}

// useIndexes makes an installer read only the indexes that variables name.
func (in *Installer) useIndexes(variables ...string) {
	in.Environ = slices.Concat(in.Environ, []string{"PIP_NO_INDEX=", "PIP_FIND_LINKS=", "PIP_INDEX_URL=",
		"PIP_EXTRA_INDEX_URL="}, variables)
}

// Whoever registers a company's name in a public index must not get a package there.
func TestFirstIndexWithThePackageWins(t *testing.T) {
	t.Parallel()
	url, _ := newIndexes(t)
	company, public := url+"/company/", url+"/public/"
	for name, test := range map[string]struct {
		variables []string
		version   string
	}{
		"index and extra index":     {[]string{"PIP_INDEX_URL=" + company, "PIP_EXTRA_INDEX_URL=" + public}, "1.0"},
		"extra indexes in order":    {[]string{"PIP_EXTRA_INDEX_URL=" + company + " " + public}, "1.0"},
		"a mirror named first wins": {[]string{"PIP_INDEX_URL=" + public, "PIP_EXTRA_INDEX_URL=" + company}, "9.0"},
		"uv's variables": {[]string{"PIP_INDEX_URL=" + public, "UV_INDEX=" + company, "UV_DEFAULT_INDEX=" + public},
			"1.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, _ := newInstaller(t)
			in.useIndexes(test.variables...)
			must[any](t)(in.Add(t.Context(), Default, []string{"corp-tools"}))
			if got := packagesOf(pin(t, in.Store, Default)); got != "corp-tools "+test.version {
				t.Errorf("got %s, want version %s", got, test.version)
			}
		})
	}
}

// The names of PyPI's packages are free for everybody, so PyPI comes after a company's index, however they are named.
func TestPyPIIsTheLastIndex(t *testing.T) {
	t.Parallel()
	const pypi, company = "https://pypi.org/simple/", "https://packages.example.com/simple"
	for _, test := range []struct{ index, extra, first, last string }{
		{"", company, company, "https://pypi.org/simple"},
		{pypi, company + "\nhttps://b.example", company + " https://b.example", pypi},
		{company, pypi + " https://b.example", company + " https://b.example", pypi},
		{company, "", "", company},
		{"", "", "", ""},
	} {
		cmd := exec.Command(os.Getenv("GLASSHOUSE_PYTHON"), "-I", "-S", "-c", uvConfig)
		cmd.Env = []string{"PIP_CONFIG_FILE=" + os.DevNull, "PIP_INDEX_URL=" + test.index,
			"PIP_EXTRA_INDEX_URL=" + test.extra}
		out, err := cmd.Output()
		want := "UV_SYSTEM_CERTS=1\n"
		if test.last != "" {
			want += "UV_DEFAULT_INDEX=" + test.last + "\n"
		}
		if test.first != "" {
			want += "UV_INDEX=" + test.first + "\n"
		}
		if err != nil || string(out) != want {
			t.Errorf("%+v: got %q, %v, want %q", test, out, err, want)
		}
	}
}

// TestChangedFilesAreRefused installs from an index whose file has not the hash that the index names.
func TestChangedFilesAreRefused(t *testing.T) {
	t.Parallel()
	url, folder := newIndexes(t)
	page := `<a href="corp_tools-1.0-py3-none-any.whl#sha256=` + strings.Repeat("0a", 32) + `">corp_tools-1.0</a>`
	if err := os.WriteFile(filepath.Join(folder, "company/corp-tools/index.html"), []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	in, _ := newInstaller(t)
	in.useIndexes("PIP_INDEX_URL=" + url + "/company/")
	_, err := in.Add(t.Context(), Default, []string{"corp-tools"})
	if err == nil || !strings.Contains(err.Error(), "Hash mismatch for `corp-tools==1.0`") {
		t.Errorf("got error %v, want that the hash of the package's file is wrong", err)
	}
	if got := packagesOf(pin(t, in.Store, Default)); got != "" {
		t.Errorf("after the refusal: got %s, want no packages", got)
	}
}
