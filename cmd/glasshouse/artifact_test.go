package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"glasshouse/sandbox"
)

// file is an answer that is a file.
type file struct {
	code   int
	header http.Header
	body   string
}

// fetch sends a request with a key, or without one if it is "". headers are pairs of name and value.
func (c *client) fetch(t *testing.T, method, path, key string, headers ...string) file {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, c.address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return file{resp.StatusCode, resp.Header, string(body)}
}

// artifactRun has the fields of an execution that the tests of artifacts compare.
type artifactRun struct {
	ID          string             `json:"execution_id"`
	Status      string             `json:"status"`
	Artifacts   []sandbox.Artifact `json:"artifacts"`
	ArtifactMap map[string]string  `json:"artifact_map"`
}

// execute runs code at a path and returns the execution and its artifacts by path.
func (c *client) execute(t *testing.T, path, code string) (e artifactRun, artifacts map[string]sandbox.Artifact) {
	t.Helper()
	text, _ := json.Marshal(c.must(t, "POST", path, map[string]any{"code": code}))
	if err := json.Unmarshal(text, &e); err != nil || e.Status != "completed" {
		t.Fatalf("got %s, %v, want completed", text, err)
	}
	return e, byPath(e.Artifacts)
}

func byPath(list []sandbox.Artifact) map[string]sandbox.Artifact {
	found := map[string]sandbox.Artifact{}
	for _, a := range list {
		found[a.Path] = a
	}
	return found
}

// sign returns a URL of an artifact that is valid without a key for some seconds.
func (c *client) sign(t *testing.T, a sandbox.Artifact, seconds int) string {
	t.Helper()
	return fmt.Sprint(c.must(t, "POST", a.URL+"/url", map[string]any{"expires_in": seconds})["url"])
}

// artifacts returns the artifacts of a sandbox by path.
func (c *client) artifacts(t *testing.T, id string) map[string]sandbox.Artifact {
	t.Helper()
	text, _ := json.Marshal(c.must(t, "GET", "/sandbox/"+id+"/artifacts", nil))
	var all struct {
		Artifacts []sandbox.Artifact `json:"artifacts"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return byPath(all.Artifacts)
}

// TestArtifactsSurviveARestart deletes the sandbox, then stops and kills the service. The artifacts stay in
// the list, at their URL and at URLs that were signed before.
func TestArtifactsSurviveARestart(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	path, dir := binary(t), dataDir(t)
	cmd, c := start(t, path, dir, withPackages())
	id := c.newSandbox(t, nil)
	e, first := c.execute(t, "/sandbox/"+id+"/execute", `
import pathlib
import numpy as np
from PIL import Image
out = pathlib.Path("/session/artifacts")
(out / "a.csv").write_text("n\n1\n")
(out / "deep").mkdir()
(out / "deep" / "größe.txt").write_text("0123456789")
display(Image.fromarray(np.random.default_rng(1).integers(0, 255, (400, 400, 3), np.uint8)))
None`)
	_, second := c.execute(t, "/sandbox/"+id+"/execute", `(out / "a.csv").write_text("n\n2\n"); None`)
	quick, own := c.execute(
		t,
		"/sandbox/agent/quick-execute",
		`open("/work/artifacts/x.txt", "w").write("quick"); None`,
	)
	other := c.newUser(t, "other")
	bodies := map[string]string{} // by id
	for _, a := range []sandbox.Artifact{first["a.csv"], first["deep/größe.txt"], first["output-1.png"], second["a.csv"], own["x.txt"]} {
		bodies[a.ID] = c.fetch(t, "GET", a.URL, c.key).body
		if sum := sha256.Sum256([]byte(bodies[a.ID])); a.Size == 0 || hex.EncodeToString(sum[:]) != a.SHA256 {
			t.Fatalf("%s: got size %d and SHA-256 %x, want %s", a.Path, a.Size, sum, a.SHA256)
		}
	}
	text := first["deep/größe.txt"]
	signed, brief := c.sign(t, text, 3600), c.sign(t, own["x.txt"], 1)
	c.must(t, "DELETE", "/sandbox/"+id, nil)

	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // a killed service ends with an error
		cmd, c = start(t, path, dir)
		list := c.artifacts(t, id)
		if len(list) != 3 || list["a.csv"].ID != second["a.csv"].ID || list["deep/größe.txt"].ID != text.ID ||
			list["output-1.png"].MIME != "image/png" {
			t.Errorf("after %s: got the list %+v, want the newest a.csv, größe.txt and output-1.png", signal, list)
		}
		for _, a := range []sandbox.Artifact{first["a.csv"], text, first["output-1.png"], second["a.csv"], own["x.txt"]} {
			if g := c.fetch(t, "GET", a.URL, c.key); g.code != 200 || g.body != bodies[a.ID] ||
				g.header.Get("ETag") != `"`+a.SHA256+`"` ||
				g.header.Get("Content-Type") != a.MIME {
				t.Errorf(
					"after %s, %s: got HTTP %d, %d bytes, %v, want the artifact",
					signal,
					a.Path,
					g.code,
					len(g.body),
					g.header,
				)
			}
			if g := c.fetch(t, "GET", a.URL, other.key); g.code != 404 {
				t.Errorf("%s, requested by another user: got HTTP %d, want 404", a.Path, g.code)
			}
		}
		for _, test := range []struct {
			method  string
			headers []string
			code    int
			body    string
		}{
			{"GET", nil, 200, "0123456789"},
			{"HEAD", nil, 200, ""},
			{"GET", []string{"Range", "bytes=2-4"}, 206, "234"},
			{"GET", []string{"Range", "bytes=-3"}, 206, "789"},
			{"GET", []string{"Range", "bytes=10-"}, 416, ""},
			{"GET", []string{"Range", "bytes=2-4", "If-Range", `"` + text.SHA256 + `"`}, 206, "234"},
			{"GET", []string{"Range", "bytes=2-4", "If-Range", `"another"`}, 200, "0123456789"},
			{"GET", []string{"If-None-Match", `"` + text.SHA256 + `"`}, 304, ""},
		} {
			g := c.fetch(t, test.method, signed, "", test.headers...)
			if g.code != test.code || test.code < 300 && g.body != test.body {
				t.Errorf("after %s, %s %v of the signed URL: got HTTP %d %q, want %d %q",
					signal, test.method, test.headers, g.code, g.body, test.code, test.body)
			}
		}
		for name, url := range map[string]string{
			"another artifact":          strings.Replace(signed, text.ID, own["x.txt"].ID, 1),
			"a longer time":             strings.Replace(signed, "expires=1", "expires=2", 1),
			"no time":                   strings.Replace(signed, "expires=", "expired=", 1),
			"half a signature":          signed[:len(signed)-32],
			"no signature":              signed[:strings.Index(signed, "&signature")],
			"the path of signing":       signed + "/url",
			"a signature in upper case": signed[:len(signed)-64] + strings.ToUpper(signed[len(signed)-64:]),
		} {
			if g := c.fetch(t, "GET", url, ""); g.code != 403 && g.code != 401 && g.code != 422 {
				t.Errorf("after %s, a signed URL with %s: got HTTP %d, want 401, 403 or 422", signal, name, g.code)
			}
		}
		eventually(t, func() error {
			if g := c.fetch(t, "GET", brief, ""); g.code != 403 || !strings.Contains(g.body, "expired") {
				return fmt.Errorf("an expired URL: got HTTP %d, want 403 and expired", g.code)
			}
			return nil
		})
		for file, want := range map[string]string{e.ArtifactMap["/session/artifacts/a.csv"]: "n\n2\n", quick.ArtifactMap["/work/artifacts/x.txt"]: "quick"} {
			if body, err := os.ReadFile(file); string(body) != want {
				t.Errorf("after %s, %s: got %q, %v, want %q", signal, file, body, err, want)
			}
		}
		for _, old := range []artifactRun{e, quick} { // the sandbox of a quick run cannot be listed
			text, _ := json.Marshal(c.must(t, "GET", "/executions/"+old.ID, nil))
			var kept artifactRun
			if err := json.Unmarshal(text, &kept); err != nil || !reflect.DeepEqual(kept, old) {
				t.Errorf("after %s, in history: got %s, %v, want %+v", signal, text, err, old)
			}
		}
	}

	// A new signing key invalidates the signed URLs, and not the artifacts.
	kill(cmd)
	if err := os.Remove(filepath.Join(dir, "signing.key")); err != nil {
		t.Fatal(err)
	}
	_, c = start(t, path, dir)
	if g := c.fetch(t, "GET", signed, ""); g.code != 403 {
		t.Errorf("a URL that was signed with a lost key: got HTTP %d, want 403", g.code)
	}
	if g := c.fetch(t, "GET", c.sign(t, text, 60), ""); g.body != "0123456789" {
		t.Errorf("a URL that was signed with the new key: got HTTP %d %q, want the artifact", g.code, g.body)
	}
}

// storedFiles returns the files of the blob store: the hashes of the blobs, and the linked files.
func storedFiles(t *testing.T, dir string) (sums, names []string) {
	t.Helper()
	for _, folder := range []string{"artifacts", "sessions", "outputs"} {
		err := filepath.WalkDir(filepath.Join(dir, folder), func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // the service deletes it during the walk
			}
			if err != nil || d.IsDir() {
				return err
			}
			if rel, _ := filepath.Rel(dir, name); folder == "artifacts" {
				sums = append(sums, d.Name())
			} else {
				names = append(names, rel)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(sums)
	return sums, names
}

// TestOldAndExcessArtifactsAreDeleted covers the limits of age and of the size for each user. The blob and
// the links of a deleted artifact are deleted, unless another artifact has the same content.
func TestOldAndExcessArtifactsAreDeleted(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	path, dir := binary(t), dataDir(t)
	cmd, c := start(t, path, dir)
	id := c.newSandbox(t, nil)
	_, old := c.execute(t, "/sandbox/"+id+"/execute", `
out = "/session/artifacts/"
open(out + "shared", "w").write("s" * 200_000)
open(out + "mine", "w").write("m" * 200_000)
open(out + "again", "w").write("a" * 200_000)
None`)
	other := c.newUser(t, "other")
	_, kept := other.execute(
		t,
		"/sandbox/agent/quick-execute",
		`open("/work/artifacts/other name", "w").write("s" * 200_000); None`,
	)
	signed := c.sign(t, old["mine"], 3600)
	// Files that are on disk and not in history, as a kill between the two leaves them.
	kill(cmd)
	for _, name := range []string{"outputs/nobody/x", "sessions/nobody/artifacts/deep/x", "artifacts/00/" + strings.Repeat("0", 64)} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x"), 0o400); err != nil {
			t.Fatal(err)
		}
	}

	cmd, c = start(t, path, dir, "--artifact-mb", "1")
	other.address = c.address
	id = c.newSandbox(t, nil)
	_, first := c.execute(t, "/sandbox/"+id+"/execute", `
out = "/session/artifacts/"
open(out + "again", "w").write("a" * 200_000)
open(out + "one", "w").write("1" * 400_000)
open(out + "two", "w").write("2" * 400_000)
None`)
	expect := func(names int, all ...sandbox.Artifact) {
		t.Helper()
		var want []string
		for _, a := range all {
			want = append(want, a.SHA256)
		}
		slices.Sort(want)
		want = slices.Compact(want)
		eventually(t, func() error {
			if sums, linked := storedFiles(t, dir); !slices.Equal(sums, want) || len(linked) != names {
				return fmt.Errorf(
					"got blobs %q and links %q on disk, want blobs %q and %d links",
					sums,
					linked,
					want,
					names,
				)
			}
			return nil
		})
	}
	expect(4, first["again"], first["one"], first["two"], kept["other name"])
	for name, a := range old {
		if g := c.fetch(t, "GET", a.URL, c.key); g.code != 404 {
			t.Errorf("the deleted %s: got HTTP %d, want 404", name, g.code)
		}
	}
	if g := c.fetch(t, "GET", signed, ""); g.code != 404 {
		t.Errorf("a signed URL of a deleted artifact: got HTTP %d, want 404", g.code)
	}
	for _, a := range first {
		if g := c.fetch(t, "GET", a.URL, c.key); g.code != 200 || int64(len(g.body)) != a.Size {
			t.Errorf("%s: got HTTP %d and %d bytes, want the artifact", a.Path, g.code, len(g.body))
		}
	}
	if g := other.fetch(t, "GET", kept["other name"].URL, other.key); g.body != strings.Repeat("s", 200_000) {
		t.Errorf("the artifact of another user: got HTTP %d and %d bytes, want it kept", g.code, len(g.body))
	}
	// A new version replaces the file's old version in the list, and the oldest artifact is deleted for it.
	_, second := c.execute(t, "/sandbox/"+id+"/execute", `open(out + "one", "w").write("I" * 400_000); None`)
	expect(3, first["two"], second["one"], kept["other name"])
	if list := c.artifacts(t, id); len(list) != 2 || list["one"].ID != second["one"].ID {
		t.Errorf("got the list %+v, want two and the new one", list)
	}

	kill(cmd)
	_, c = start(t, path, dir, "--artifact-mb", "1", "--artifact-age", "2s")
	eventually(t, func() error { // old artifacts are deleted after a run
		_, last := c.execute(
			t,
			"/sandbox/agent/quick-execute",
			`open("/work/artifacts/last", "w").write("l" * 200_000); None`,
		)
		sums, names := storedFiles(t, dir)
		isOld := func(name string) bool { return filepath.Base(name) != "last" }
		if !slices.Equal(sums, []string{last["last"].SHA256}) || slices.ContainsFunc(names, isOld) {
			return fmt.Errorf("got blobs %q and links %q, want only those of the newest artifact", sums, names)
		}
		return nil
	})
}
