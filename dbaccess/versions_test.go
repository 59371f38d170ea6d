//go:build clients || nightly

package dbaccess_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess/embedded"
)

// newerVersions returns the folders with the programs of each version of PostgreSQL that is newer than Debian's.
func newerVersions(t *testing.T) map[string]string {
	t.Helper()
	folder := os.Getenv("GLASSHOUSE_CLIENT_POSTGRESQL")
	if folder == "" {
		t.Skip("GLASSHOUSE_CLIENT_POSTGRESQL is not set; set it to a folder with the packages of " +
			"testdata/clients/postgresql, as `scripts/test clients` does")
	}
	versions := map[string]string{}
	for _, version := range []string{"16", "17", "18"} {
		versions[version] = filepath.Join(folder, "node_modules", "postgresql-"+version, "native")
	}
	return versions
}

// startVersion starts a server of the programs in a folder of a package, and loads the demo.
func startVersion(t *testing.T, native string) *embedded.Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh") // a short path for the socket, which the server's account can enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-r", native, filepath.Join(dir, "native")).CombinedOutput(); err != nil {
		t.Fatalf("copy the programs: %v: %s", err, out)
	}
	// A package has no links; a script of it makes them, which is not run.
	var links []struct{ Source, Target string }
	text, err := os.ReadFile(filepath.Join(native, "pg-symlinks.json"))
	if err == nil {
		err = json.Unmarshal(text, &links)
	}
	for _, l := range links {
		if err == nil {
			err = os.Symlink(filepath.Join(dir, l.Source), filepath.Join(dir, l.Target))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	server, err := embedded.Start(t.Context(), embedded.Config{
		Dir: filepath.Join(dir, "data"), Log: log, Settings: []string{"fsync=off", "full_page_writes=off"},
		Programs: filepath.Join(dir, "native", "bin"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	if err := server.LoadDemo(t.Context()); err != nil {
		t.Fatal(err)
	}
	return server
}
