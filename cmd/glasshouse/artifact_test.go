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

// got is an answer that is a file.
type got struct {
	code   int
	header http.Header
	body   string
}

// fetch asks with a key, or where it is "" with none; headers come in pairs.
func (r *client) fetch(t *testing.T, method, path, key string, headers ...string) got {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.address+path, nil)
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
	return got{resp.StatusCode, resp.Header, string(body)}
}

// ran is what of an execution the tests here look at.
type ran struct {
	ID          string             `json:"execution_id"`
	Status      string             `json:"status"`
	Artifacts   []sandbox.Artifact `json:"artifacts"`
	ArtifactMap map[string]string  `json:"artifact_map"`
}

func (r *client) execute(t *testing.T, path, code string) (e ran, found map[string]sandbox.Artifact) {
	t.Helper()
	text, _ := json.Marshal(r.must(t, "POST", path, map[string]any{"code": code}))
	if err := json.Unmarshal(text, &e); err != nil || e.Status != "completed" {
		t.Fatalf("%s: %v", text, err)
	}
	found = map[string]sandbox.Artifact{}
	for _, a := range e.Artifacts {
		found[a.Path] = a
	}
	return e, found
}

func (r *client) sign(t *testing.T, a sandbox.Artifact, seconds int) string {
	t.Helper()
	return fmt.Sprint(r.must(t, "POST", a.URL+"/url", map[string]any{"expires_in": seconds})["url"])
}

func (r *client) list(t *testing.T, id string) map[string]sandbox.Artifact {
	t.Helper()
	text, _ := json.Marshal(r.must(t, "GET", "/sandbox/"+id+"/artifacts", nil))
	var all struct {
		Artifacts []sandbox.Artifact `json:"artifacts"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]sandbox.Artifact{}
	for _, a := range all.Artifacts {
		found[a.Path] = a
	}
	return found
}

// What executions left outlives its sandbox and the service, asked to stop or killed:
// in lists, under its address and under addresses that were signed before.
func TestArtifactsOutliveTheService(t *testing.T) {
	path, dir := binary(t), dataDir(t)
	cmd, r := start(t, path, dir)
	id := fmt.Sprint(r.must(t, "POST", "/sandbox/create", map[string]any{})["sandbox_id"])
	e, first := r.execute(t, "/sandbox/"+id+"/execute", `
import pathlib
import numpy as np
from PIL import Image
out = pathlib.Path("/session/artifacts")
(out / "a.csv").write_text("n\n1\n")
(out / "deep").mkdir()
(out / "deep" / "größe.txt").write_text("0123456789")
display(Image.fromarray(np.random.default_rng(1).integers(0, 255, (400, 400, 3), np.uint8)))
None`)
	_, second := r.execute(t, "/sandbox/"+id+"/execute", `(out / "a.csv").write_text("n\n2\n"); None`)
	quick, own := r.execute(t, "/sandbox/agent/quick-execute", `open("/work/artifacts/x.txt", "w").write("quick"); None`)
	other := fmt.Sprint(r.must(t, "POST", "/keys", map[string]any{"name": "other", "user_id": "other", "role": "agent"})["key"])
	bodies := map[string]string{} // by id
	for _, a := range []sandbox.Artifact{first["a.csv"], first["deep/größe.txt"], first["output-1.png"], second["a.csv"], own["x.txt"]} {
		bodies[a.ID] = r.fetch(t, "GET", a.URL, r.key).body
		if sum := sha256.Sum256([]byte(bodies[a.ID])); a.Size == 0 || hex.EncodeToString(sum[:]) != a.SHA256 {
			t.Fatalf("%s is not what its sum says", a.Path)
		}
	}
	text := first["deep/größe.txt"]
	signed, brief := r.sign(t, text, 3600), r.sign(t, own["x.txt"], 1)
	r.must(t, "DELETE", "/sandbox/"+id, nil)

	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // a killed one did not leave well
		cmd, r = start(t, path, dir)
		list := r.list(t, id)
		if len(list) != 3 || list["a.csv"].ID != second["a.csv"].ID || list["deep/größe.txt"].ID != text.ID || list["output-1.png"].MIME != "image/png" {
			t.Errorf("after %s the list is %+v", signal, list)
		}
		for _, a := range []sandbox.Artifact{first["a.csv"], text, first["output-1.png"], second["a.csv"], own["x.txt"]} {
			if g := r.fetch(t, "GET", a.URL, r.key); g.code != 200 || g.body != bodies[a.ID] || g.header.Get("ETag") != `"`+a.SHA256+`"` || g.header.Get("Content-Type") != a.MIME {
				t.Errorf("after %s, %s: HTTP %d, %d bytes, %v", signal, a.Path, g.code, len(g.body), g.header)
			}
			if g := r.fetch(t, "GET", a.URL, other); g.code != 404 {
				t.Errorf("another user has %s: HTTP %d", a.Path, g.code)
			}
		}
		for _, c := range []struct {
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
			if g := r.fetch(t, c.method, signed, "", c.headers...); g.code != c.code || c.code < 300 && g.body != c.body {
				t.Errorf("after %s, %s %v by the signed URL: HTTP %d %q", signal, c.method, c.headers, g.code, g.body)
			}
		}
		for name, url := range map[string]string{
			"another artifact": strings.Replace(signed, text.ID, own["x.txt"].ID, 1), "a longer time": strings.Replace(signed, "expires=1", "expires=2", 1),
			"no time": strings.Replace(signed, "expires=", "expired=", 1), "half a signature": signed[:len(signed)-32], "no signature": signed[:strings.Index(signed, "&signature")],
			"its own URL": signed + "/url", "upper case": signed[:len(signed)-64] + strings.ToUpper(signed[len(signed)-64:]),
		} {
			if g := r.fetch(t, "GET", url, ""); g.code != 403 && g.code != 401 {
				t.Errorf("after %s, %s: HTTP %d", signal, name, g.code)
			}
		}
		eventually(t, func() error {
			if g := r.fetch(t, "GET", brief, ""); g.code != 403 || !strings.Contains(g.body, "expired") {
				return fmt.Errorf("an old URL: HTTP %d", g.code)
			}
			return nil
		})
		for file, want := range map[string]string{e.ArtifactMap["/session/artifacts/a.csv"]: "n\n2\n", quick.ArtifactMap["/work/artifacts/x.txt"]: "quick"} {
			if body, err := os.ReadFile(file); string(body) != want {
				t.Errorf("after %s, on the host: %q, %v", signal, body, err)
			}
		}
		for _, old := range []ran{e, quick} { // which has no sandbox to be listed by
			text, _ := json.Marshal(r.must(t, "GET", "/executions/"+old.ID, nil))
			var kept ran
			if err := json.Unmarshal(text, &kept); err != nil || !reflect.DeepEqual(kept, old) {
				t.Errorf("after %s, history has %s (%v)", signal, text, err)
			}
		}
	}

	// Without the key that they were signed with, URLs end; artifacts do not.
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err := os.Remove(filepath.Join(dir, "signing.key")); err != nil {
		t.Fatal(err)
	}
	_, r = start(t, path, dir)
	if g := r.fetch(t, "GET", signed, ""); g.code != 403 {
		t.Errorf("signed with a key that is gone: HTTP %d", g.code)
	}
	if g := r.fetch(t, "GET", r.sign(t, text, 60), ""); g.body != "0123456789" {
		t.Errorf("signed anew: HTTP %d %q", g.code, g.body)
	}
}

// stored is what the vault has on disk: sums, and the names of files.
func stored(t *testing.T, dir string) (sums, names []string) {
	t.Helper()
	for _, folder := range []string{"artifacts", "sessions", "outputs"} {
		err := filepath.WalkDir(filepath.Join(dir, folder), func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // the service takes it away while this looks
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

// What is too old, or too much of one user's, goes at once and wholly, bytes and names;
// what somebody still has stays, be it under another name or of another user.
func TestWhatIsTooOldOrTooMuchGoes(t *testing.T) {
	path, dir := binary(t), dataDir(t)
	cmd, r := start(t, path, dir)
	id := fmt.Sprint(r.must(t, "POST", "/sandbox/create", map[string]any{})["sandbox_id"])
	_, old := r.execute(t, "/sandbox/"+id+"/execute", `
out = "/session/artifacts/"
open(out + "shared", "w").write("s" * 200_000)
open(out + "mine", "w").write("m" * 200_000)
open(out + "again", "w").write("a" * 200_000)
None`)
	hers := &client{r.address, fmt.Sprint(r.must(t, "POST", "/keys", map[string]any{"name": "her", "user_id": "her", "role": "agent"})["key"])}
	_, kept := hers.execute(t, "/sandbox/agent/quick-execute", `open("/work/artifacts/other name", "w").write("s" * 200_000); None`)
	signed := r.sign(t, old["mine"], 3600)
	// What a service that was killed in between has left on the disk alone.
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, name := range []string{"outputs/nobody/x", "sessions/nobody/artifacts/deep/x", "artifacts/00/" + strings.Repeat("0", 64)} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x"), 0o400); err != nil {
			t.Fatal(err)
		}
	}

	cmd, r = start(t, path, dir, "--artifact-mb", "1")
	hers.address = r.address
	id = fmt.Sprint(r.must(t, "POST", "/sandbox/create", map[string]any{})["sandbox_id"])
	_, first := r.execute(t, "/sandbox/"+id+"/execute", `
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
			if sums, linked := stored(t, dir); !slices.Equal(sums, want) || len(linked) != names {
				return fmt.Errorf("on disk are %q and %q, not %q", sums, linked, want)
			}
			return nil
		})
	}
	expect(4, first["again"], first["one"], first["two"], kept["other name"])
	for name, a := range old {
		if g := r.fetch(t, "GET", a.URL, r.key); g.code != 404 {
			t.Errorf("%s: HTTP %d", name, g.code)
		}
	}
	if g := r.fetch(t, "GET", signed, ""); g.code != 404 {
		t.Errorf("by a signed URL: HTTP %d", g.code)
	}
	for _, a := range first {
		if g := r.fetch(t, "GET", a.URL, r.key); g.code != 200 || int64(len(g.body)) != a.Size {
			t.Errorf("%s: HTTP %d", a.Path, g.code)
		}
	}
	if g := hers.fetch(t, "GET", kept["other name"].URL, hers.key); g.body != strings.Repeat("s", 200_000) {
		t.Errorf("hers: HTTP %d, %d bytes", g.code, len(g.body))
	}
	// A newer version takes the room of the oldest; of the file's own it takes the name.
	_, second := r.execute(t, "/sandbox/"+id+"/execute", `open(out + "one", "w").write("I" * 400_000); None`)
	expect(3, first["two"], second["one"], kept["other name"])
	if list := r.list(t, id); len(list) != 2 || list["one"].ID != second["one"].ID {
		t.Errorf("the list is %+v", list)
	}

	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	_, r = start(t, path, dir, "--artifact-mb", "1", "--artifact-age", "2s")
	eventually(t, func() error { // each run has the sweeper look
		_, last := r.execute(t, "/sandbox/agent/quick-execute", `open("/work/artifacts/last", "w").write("l" * 200_000); None`)
		sums, names := stored(t, dir)
		if !slices.Equal(sums, []string{last["last"].SHA256}) || slices.ContainsFunc(names, func(name string) bool { return filepath.Base(name) != "last" }) {
			return fmt.Errorf("beside what is new there are %q and %q", sums, names)
		}
		return nil
	})
}
