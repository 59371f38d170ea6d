package blob_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/blob"
)

func open(t *testing.T) (*blob.Store, string) {
	t.Helper()
	dir := t.TempDir()
	v, err := blob.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v, dir
}

func keep(t *testing.T, v *blob.Store, name, body string) sandbox.Artifact {
	t.Helper()
	a, err := v.Put(name, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// tree are all files below a folder.
func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, name)
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func read(t *testing.T, v *blob.Store, sum string) string {
	t.Helper()
	f, err := v.Open(sum)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	body, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// of says that those of a list are used, and no others.
func of(used ...string) func([]string) ([]string, error) {
	return func(asked []string) (some []string, err error) {
		for _, name := range asked {
			if slices.Contains(used, name) {
				some = append(some, name)
			}
		}
		return some, nil
	}
}

func TestBytesAreKeptOnce(t *testing.T) {
	v, dir := open(t)
	a, b := keep(t, v, "a.csv", "x,y\n"), keep(t, v, "b.bin", "x,y\n")
	sum := sha256.Sum256([]byte("x,y\n"))
	if a.SHA256 != hex.EncodeToString(sum[:]) || a.Size != 4 || a.MIME != "text/csv; charset=utf-8" || b.SHA256 != a.SHA256 || b.MIME != "text/plain; charset=utf-8" {
		t.Errorf("%+v, %+v", a, b)
	}
	if got, want := tree(t, dir), []string{filepath.Join("artifacts", a.SHA256[:2], a.SHA256)}; !slices.Equal(got, want) {
		t.Errorf("on disk: %q", got)
	}
	c := keep(t, v, "c", "another")
	if err := v.Sync([]string{a.SHA256, b.SHA256, c.SHA256}); err != nil {
		t.Error(err)
	}
	if err := v.Sync([]string{a.SHA256, strings.Repeat("0", 64)}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("settled what is not there: %v", err)
	}
	v.Unpin([]string{c.SHA256})
	if n, err := v.Sweep(of(), of()); n != 1 || err != nil {
		t.Errorf("%d went, %v", n, err)
	}
	if read(t, v, a.SHA256) != "x,y\n" {
		t.Error("it does not come back")
	}
	for _, sum := range []string{"", "..", "../../etc/passwd", strings.Repeat("0", 64), strings.Repeat("/", 64), strings.Repeat("../", 21) + "x"} {
		if f, err := v.Open(sum); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v, %v", sum, f, err)
		}
	}
	if _, err := v.Put("c", iotest.ErrReader(errors.New("torn"))); err == nil || !strings.Contains(err.Error(), "torn") {
		t.Errorf("a body that fails: %v", err)
	}
	if got := tree(t, dir); len(got) != 1 {
		t.Errorf("it left %q", got)
	}
}

func TestNames(t *testing.T) {
	v, dir := open(t)
	one, two := keep(t, v, "1", "one"), keep(t, v, "2", "two")
	link := func(a sandbox.Artifact, path string) error {
		a.Folder, a.Path = "sessions/s/artifacts", path
		host, err := v.Link(a)
		if err != nil {
			return err
		}
		named, err := os.Stat(host)
		if err != nil {
			return err
		}
		if bytes, err := os.Stat(filepath.Join(dir, "artifacts", a.SHA256[:2], a.SHA256)); err != nil || !os.SameFile(named, bytes) {
			t.Errorf("%s is no link to its bytes: %v", path, err)
		}
		return nil
	}
	for _, path := range []string{"a", "a/b/c", "a", "a/b", "a", "x/y", "x/z"} { // a file, a folder, a file again
		for _, a := range []sandbox.Artifact{one, two, two} {
			if err := link(a, path); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
	}
	if got, want := tree(t, filepath.Join(dir, "sessions")), []string{"s/artifacts/a", "s/artifacts/x/y", "s/artifacts/x/z"}; !slices.Equal(got, want) {
		t.Errorf("the names are %q", got)
	}
	for _, path := range []string{"", ".", "..", "../x", "/etc/x", "a/../../x", "a//b", "a\x00b", strings.Repeat("n", 256)} {
		if err := link(one, path); err == nil {
			t.Errorf("%q became a name", path)
		}
	}
	outside := one
	outside.Folder, outside.Path = "../outside", "x"
	if _, err := v.Link(outside); err == nil {
		t.Error("a place outside was taken")
	}
	for _, path := range []string{"x/y", "x/y", "a"} { // one of them twice
		if err := v.Unlink(sandbox.Artifact{Folder: "sessions/s/artifacts", Path: path}); err != nil {
			t.Error(err)
		}
	}
	if got := tree(t, filepath.Join(dir, "sessions")); !slices.Equal(got, []string{"s/artifacts/x/z"}) {
		t.Errorf("left are %q", got)
	}
	if err := v.Unlink(sandbox.Artifact{Folder: "sessions/s/artifacts", Path: "x/z"}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "sessions", "s")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty folders stay: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "sessions")); err != nil {
		t.Error(err)
	}
}

// A sweep takes what nobody has, and nothing else: not what is on record, what is held
// until it is, or what was just kept again.
func TestSweep(t *testing.T) {
	v, dir := open(t)
	sweep := func(sums, places func([]string) ([]string, error)) int {
		t.Helper()
		n, err := v.Sweep(sums, places)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	used, free, twice := keep(t, v, "used", "used"), keep(t, v, "free", "free"), keep(t, v, "twice", "twice")
	keep(t, v, "twice", "twice")
	if n := sweep(of(used.SHA256), of()); n != 0 {
		t.Errorf("%d went that were held", n)
	}
	v.Unpin([]string{used.SHA256, free.SHA256, twice.SHA256})
	again := func(asked []string) ([]string, error) { // kept and let go of once more, after the question and before its answer
		if slices.Contains(asked, free.SHA256) {
			v.Unpin([]string{keep(t, v, "free", "free").SHA256})
		}
		return of(used.SHA256)(asked)
	}
	if sweep(again, of()); read(t, v, free.SHA256) != "free" {
		t.Error("what was kept meanwhile went")
	}
	if n := sweep(of(used.SHA256), of()); n != 1 || read(t, v, free.SHA256) == "free" {
		t.Errorf("%d went", n)
	}
	if read(t, v, used.SHA256) != "used" || read(t, v, twice.SHA256) != "twice" {
		t.Error("what is used, or held once more, went")
	}
	v.Unpin([]string{twice.SHA256})
	if n := sweep(of(used.SHA256), of()); n != 1 {
		t.Errorf("%d went", n)
	}

	for _, place := range []string{"sessions/live/artifacts", "sessions/gone/artifacts", "outputs/live", "outputs/gone"} {
		a := used
		a.Folder, a.Path = place, "deep/er"
		if _, err := v.Link(a); err != nil {
			t.Fatal(err)
		}
	}
	named := func(asked []string) ([]string, error) {
		if slices.Contains(asked, "outputs/gone") {
			if _, err := v.Link(sandbox.Artifact{SHA256: used.SHA256, Folder: "outputs/gone", Path: "new"}); err != nil {
				t.Error(err)
			}
		}
		return of("sessions/live/artifacts", "sessions/gone/artifacts", "outputs/live")(asked)
	}
	if n := sweep(of(used.SHA256), named); n != 0 {
		t.Errorf("%d places went, one of which was named meanwhile", n)
	}
	if n := sweep(of(used.SHA256), of("sessions/live/artifacts", "outputs/live")); n != 2 {
		t.Errorf("%d places went", n)
	}
	want := []string{"artifacts/" + used.SHA256[:2] + "/" + used.SHA256, "outputs/live/deep/er", "sessions/live/artifacts/deep/er"}
	if got := tree(t, dir); !slices.Equal(got, want) {
		t.Errorf("left are %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "sessions", "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of the place stays: %v", err)
	}

	broken := errors.New("history is away")
	if _, err := v.Sweep(func([]string) ([]string, error) { return nil, broken }, of()); !errors.Is(err, broken) || read(t, v, used.SHA256) != "used" {
		t.Errorf("without an answer: %v", err)
	}

	// What a Keep was writing when the service was killed goes when that is long ago.
	for name, age := range map[string]time.Duration{"old": 2 * time.Hour, "new": time.Second} {
		at := time.Now().Add(-age)
		file := filepath.Join(dir, "artifacts", ".new-"+name)
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	sweep(of(used.SHA256), of("sessions/live/artifacts", "outputs/live"))
	if got := tree(t, filepath.Join(dir, "artifacts")); !slices.Contains(got, ".new-new") || slices.Contains(got, ".new-old") {
		t.Errorf("left are %q", got)
	}
}

// Runs that keep the same few bytes, and let go of them, beside a sweep that never
// rests: whoever has them on record can read them.
func TestSweepBesideKeep(t *testing.T) {
	v, dir := open(t)
	var mu sync.Mutex
	rows := map[string]int{} // what stands for history
	note := func(a sandbox.Artifact, n int) {
		mu.Lock()
		defer mu.Unlock()
		if rows[a.SHA256] += n; rows[a.SHA256] == 0 {
			delete(rows, a.SHA256)
		}
	}
	inUse := func(sums []string) (used []string, err error) {
		mu.Lock()
		defer mu.Unlock()
		for _, sum := range sums {
			if rows[sum] > 0 {
				used = append(used, sum)
			}
		}
		return used, nil
	}
	stop := make(chan struct{})
	var sweeping, running sync.WaitGroup
	swept := 0
	sweeping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			n, err := v.Sweep(inUse, of())
			if swept += n; err != nil {
				t.Error(err)
			}
		}
	})
	for worker := range 4 {
		running.Go(func() {
			for n := range 300 {
				body := fmt.Sprint("body ", (n*7+worker)%5)
				a, err := v.Put("x", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				note(a, 1)
				v.Unpin([]string{a.SHA256})
				if got := read(t, v, a.SHA256); got != body {
					t.Errorf("%q is %q", body, got)
				}
				note(a, -1)
			}
		})
	}
	running.Wait()
	close(stop)
	sweeping.Wait()
	if n, err := v.Sweep(inUse, of()); err != nil || swept+n == 0 || len(tree(t, dir)) != 0 {
		t.Errorf("%d went, then %d (%v), and %q stay", swept, n, err, tree(t, dir))
	}
}
