// Package environmenttest makes packages for tests of environments, so that the tests need no network: uv
// takes the packages from a folder. It also finds uv.
package environmenttest

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Environ returns the environment variables for an Installer that takes packages only from folder. The folder
// is empty at first.
func Environ(t testing.TB) (folder string, environ []string) {
	t.Helper()
	folder = t.TempDir()
	for _, variable := range os.Environ() {
		if !isIndexVariable(variable) {
			environ = append(environ, variable)
		}
	}
	for key, value := range variables(t, folder) {
		environ = append(environ, key+"="+value)
	}
	return folder, environ
}

// isIndexVariable reports whether a variable of the environment tells uv where packages are. These
// variables win over pip's, and scripts/setup exports some.
func isIndexVariable(variable string) bool {
	return strings.HasPrefix(variable, "UV_FIND_LINKS=") || strings.HasPrefix(variable, "UV_DEFAULT_INDEX=") ||
		strings.HasPrefix(variable, "UV_INDEX") || strings.HasPrefix(variable, "UV_EXTRA_INDEX_URL=")
}

func variables(t testing.TB, folder string) map[string]string {
	t.Helper()
	return map[string]string{
		"PIP_NO_INDEX":    "1",
		"PIP_FIND_LINKS":  folder,
		"PIP_CONFIG_FILE": os.DevNull,
		"UV_CACHE_DIR":    filepath.Join(folder, "cache"),
		"PATH":            Path(t),
	}
}

// Path returns a value of the variable PATH that has uv.
func Path(t testing.TB) string {
	t.Helper()
	return filepath.Dir(findUV(t)) + ":" + os.Getenv("PATH")
}

// findUV returns the uv in PATH, which scripts/test sets, or the one of the usual data folders.
func findUV(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("uv"); err == nil {
		return path
	}
	home, _ := os.UserHomeDir()
	for _, folder := range []string{"/var/lib/glasshouse", filepath.Join(home, ".local/share/glasshouse")} {
		path := filepath.Join(folder, "tools", "uv")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatal("uv is neither in PATH nor in the data folder: run scripts/setup")
	return ""
}

// Wheel writes a package with files into folder. requires are its dependencies.
func Wheel(t testing.TB, folder, name, version string, files map[string]string, requires ...string) {
	t.Helper()
	stem := strings.ReplaceAll(name, "-", "_") + "-" + version
	info := stem + ".dist-info/"
	metadata := fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: %s, for a test\n", name, version,
		name)
	for _, r := range requires {
		metadata += "Requires-Dist: " + r + "\n"
	}
	all := map[string]string{
		info + "METADATA": metadata,
		info + "WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
	}
	for path, body := range files {
		all[path] = body
	}
	record := info + "RECORD,,\n"
	for path, body := range all {
		sum := sha256.Sum256([]byte(body))
		record += fmt.Sprintf("%s,sha256=%s,%d\n", path, base64.RawURLEncoding.EncodeToString(sum[:]), len(body))
	}
	all[info+"RECORD"] = record
	out, err := os.Create(filepath.Join(folder, stem+"-py3-none-any.whl"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	archive := zip.NewWriter(out)
	for path, body := range all {
		w, err := archive.Create(path)
		if err == nil {
			_, err = w.Write([]byte(body))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
}
