// Package environmenttest makes packages for tests of environments, so that they need no
// network: pip takes them from a folder.
package environmenttest

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Pip has pip, as a child of the test, take packages from an empty folder alone, which it
// returns.
func Pip(t testing.TB) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for key, value := range map[string]string{"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": folder, "PIP_CONFIG_FILE": os.DevNull, "PIP_CACHE_DIR": filepath.Join(folder, "cache")} {
		t.Setenv(key, value)
	}
	return folder
}

// Wheel puts a package with files into folder. Requires are its dependencies.
func Wheel(t testing.TB, folder, name, version string, files map[string]string, requires ...string) {
	t.Helper()
	stem := strings.ReplaceAll(name, "-", "_") + "-" + version
	info := stem + ".dist-info/"
	metadata := fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: %s, for a test\n", name, version, name)
	for _, r := range requires {
		metadata += "Requires-Dist: " + r + "\n"
	}
	all := map[string]string{info + "METADATA": metadata, info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
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
