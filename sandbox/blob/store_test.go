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

func openStore(t *testing.T) (*blob.Store, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := blob.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, dir
}

func put(t *testing.T, s *blob.Store, name, content string) sandbox.Artifact {
	t.Helper()
	a, err := s.Put(name, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// filesBelow returns the paths of all files below a folder.
func filesBelow(t *testing.T, dir string) (names []string) {
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

// contentOf returns the bytes with a sum, or the text of the error.
func contentOf(t *testing.T, s *blob.Store, sum string) string {
	t.Helper()
	f, err := s.Open(sum)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// only returns a blob.InUse for which exactly these keys are in use.
func only(used ...string) blob.InUse {
	return func(keys []string) (found []string, err error) {
		for _, key := range keys {
			if slices.Contains(used, key) {
				found = append(found, key)
			}
		}
		return found, nil
	}
}

func sweep(t *testing.T, s *blob.Store, sums, folders blob.InUse, want int) {
	t.Helper()
	if n, err := s.Sweep(sums, folders); err != nil || n != want {
		t.Errorf("Sweep: got %d removed, %v; want %d", n, err, want)
	}
}

func TestContentIsStoredOnce(t *testing.T) {
	t.Parallel()
	s, dir := openStore(t)
	a, b := put(t, s, "a.csv", "x,y\n"), put(t, s, "b.bin", "x,y\n")
	sum := sha256.Sum256([]byte("x,y\n"))
	if a.SHA256 != hex.EncodeToString(sum[:]) || a.Size != 4 || a.MIME != "text/csv; charset=utf-8" ||
		b.SHA256 != a.SHA256 || b.MIME != "text/plain; charset=utf-8" {
		t.Errorf("artifacts: got %+v and %+v", a, b)
	}
	want := []string{filepath.Join("artifacts", a.SHA256[:2], a.SHA256)}
	if got := filesBelow(t, dir); !slices.Equal(got, want) {
		t.Errorf("files: got %q, want %q", got, want)
	}
	c := put(t, s, "c", "another")
	if err := s.Sync([]string{a.SHA256, b.SHA256, c.SHA256}); err != nil {
		t.Errorf("Sync: %v", err)
	}
	if err := s.Sync([]string{a.SHA256, strings.Repeat("0", 64)}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Sync of an unknown sum: got %v, want %v", err, fs.ErrNotExist)
	}
	s.Unpin([]string{c.SHA256})
	sweep(t, s, only(), only(), 1)
	if got := contentOf(t, s, a.SHA256); got != "x,y\n" {
		t.Errorf("content: got %q, want %q", got, "x,y\n")
	}
	for _, sum := range []string{
		"", "..", "../../etc/passwd", strings.Repeat("0", 64), strings.Repeat("/", 64), strings.Repeat("../", 21) + "x",
	} {
		if _, err := s.Open(sum); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Open(%q): got %v, want %v", sum, err, fs.ErrNotExist)
		}
	}
	errBody := errors.New("torn")
	if _, err := s.Put("c", iotest.ErrReader(errBody)); !errors.Is(err, errBody) {
		t.Errorf("Put of a body that fails: got %v, want %v", err, errBody)
	}
	if got := filesBelow(t, dir); !slices.Equal(got, want) {
		t.Errorf("files after a failed Put: got %q, want %q", got, want)
	}
}

func TestLinksNameContents(t *testing.T) {
	t.Parallel()
	s, dir := openStore(t)
	one, two := put(t, s, "1", "one"), put(t, s, "2", "two")
	link := func(a sandbox.Artifact, path string) error {
		a.Folder, a.Path = "sessions/s/artifacts", path
		file, err := s.Link(a)
		if err != nil {
			return err
		}
		linked, err := os.Stat(file)
		if err != nil {
			return err
		}
		content, err := os.Stat(filepath.Join(dir, "artifacts", a.SHA256[:2], a.SHA256))
		if err != nil || !os.SameFile(linked, content) {
			t.Errorf("%s is not a link to its content: %v", path, err)
		}
		return nil
	}
	// A file replaces a folder, and a folder a file.
	for _, path := range []string{"a", "a/b/c", "a", "a/b", "a", "x/y", "x/z"} {
		for _, a := range []sandbox.Artifact{one, two, two} {
			if err := link(a, path); err != nil {
				t.Fatalf("link %s: %v", path, err)
			}
		}
	}
	want := []string{"s/artifacts/a", "s/artifacts/x/y", "s/artifacts/x/z"}
	if got := filesBelow(t, filepath.Join(dir, "sessions")); !slices.Equal(got, want) {
		t.Errorf("links: got %q, want %q", got, want)
	}
	for _, path := range []string{
		"", ".", "..", "../x", "/etc/x", "a/../../x", "a//b", "a\x00b", strings.Repeat("n", 256),
	} {
		if err := link(one, path); err == nil {
			t.Errorf("link %q: got no error", path)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "admin.key"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{
		"../outside", "", ".", "..", "history", "postgres", "sessions", "outputs", "artifacts/ab", "outputs/x/y",
		"outputs/..", "sessions/s", "sessions/../artifacts", "/outputs/x",
	} {
		other := one
		other.Folder, other.Path = folder, "admin.key"
		if _, err := s.Link(other); err == nil {
			t.Errorf("link in the folder %q: got no error", folder)
		}
		if err := s.Unlink(other); err == nil {
			t.Errorf("unlink in the folder %q: got no error", folder)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "admin.key")); err != nil || string(text) != "secret" {
		t.Errorf("another file of the folder: got %q, %v", text, err)
	}
	for _, path := range []string{"x/y", "x/y", "a"} { // the second is gone already
		if err := s.Unlink(sandbox.Artifact{Folder: "sessions/s/artifacts", Path: path}); err != nil {
			t.Errorf("Unlink %s: %v", path, err)
		}
	}
	if got := filesBelow(t, filepath.Join(dir, "sessions")); !slices.Equal(got, []string{"s/artifacts/x/z"}) {
		t.Errorf("links after Unlink: got %q, want only s/artifacts/x/z", got)
	}
	if err := s.Unlink(sandbox.Artifact{Folder: "sessions/s/artifacts", Path: "x/z"}); err != nil {
		t.Errorf("Unlink x/z: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "sessions", "s")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty folder after Unlink: got %v, want %v", err, fs.ErrNotExist)
	}
	if _, err := os.Stat(filepath.Join(dir, "sessions")); err != nil {
		t.Errorf("the folder sessions must stay: %v", err)
	}
}

func TestSweepKeepsContentThatIsPinnedOrInUse(t *testing.T) {
	t.Parallel()
	s, _ := openStore(t)
	used, free, twice := put(t, s, "used", "used"), put(t, s, "free", "free"), put(t, s, "twice", "twice")
	put(t, s, "twice", "twice") // a second pin
	sweep(t, s, only(used.SHA256), only(), 0)
	s.Unpin([]string{used.SHA256, free.SHA256, twice.SHA256})
	putMeanwhile := func(sums []string) ([]string, error) { // after the question and before its answer
		if slices.Contains(sums, free.SHA256) {
			s.Unpin([]string{put(t, s, "free", "free").SHA256})
		}
		return only(used.SHA256)(sums)
	}
	sweep(t, s, putMeanwhile, only(), 0)
	for want, a := range map[string]sandbox.Artifact{"used": used, "free": free, "twice": twice} {
		if got := contentOf(t, s, a.SHA256); got != want {
			t.Errorf("content that is pinned or in use: got %q, want %q", got, want)
		}
	}
	sweep(t, s, only(used.SHA256), only(), 1)
	if got := contentOf(t, s, free.SHA256); got == "free" {
		t.Error("content that is not in use: got it kept, want it removed")
	}
	s.Unpin([]string{twice.SHA256})
	sweep(t, s, only(used.SHA256), only(), 1)
	errHistory := errors.New("history is unavailable")
	_, err := s.Sweep(func([]string) ([]string, error) { return nil, errHistory }, only())
	if !errors.Is(err, errHistory) || contentOf(t, s, used.SHA256) != "used" {
		t.Errorf("Sweep without an answer: got %v, want %v and no file removed", err, errHistory)
	}
}

func TestSweepRemovesFoldersThatAreNotInUse(t *testing.T) {
	t.Parallel()
	s, dir := openStore(t)
	a := put(t, s, "a", "content")
	for _, folder := range []string{
		"sessions/live/artifacts", "sessions/gone/artifacts", "outputs/live", "outputs/gone",
	} {
		a.Folder, a.Path = folder, "deep/er"
		if _, err := s.Link(a); err != nil {
			t.Fatal(err)
		}
	}
	linkMeanwhile := func(folders []string) ([]string, error) {
		if slices.Contains(folders, "outputs/gone") {
			if _, err := s.Link(sandbox.Artifact{SHA256: a.SHA256, Folder: "outputs/gone", Path: "new"}); err != nil {
				t.Error(err)
			}
		}
		return only("sessions/live/artifacts", "sessions/gone/artifacts", "outputs/live")(folders)
	}
	sweep(t, s, only(a.SHA256), linkMeanwhile, 0)
	live := only("sessions/live/artifacts", "outputs/live")
	sweep(t, s, only(a.SHA256), live, 2)
	want := []string{
		"artifacts/" + a.SHA256[:2] + "/" + a.SHA256, "outputs/live/deep/er", "sessions/live/artifacts/deep/er",
	}
	if got := filesBelow(t, dir); !slices.Equal(got, want) {
		t.Errorf("files: got %q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "sessions", "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("empty folder of a sandbox: got %v, want %v", err, fs.ErrNotExist)
	}
}

// A killed Put leaves a temporary file.
func TestSweepRemovesOldTemporaryFiles(t *testing.T) {
	t.Parallel()
	s, dir := openStore(t)
	for name, age := range map[string]time.Duration{"old": 2 * time.Hour, "new": time.Second} {
		at := time.Now().Add(-age)
		file := filepath.Join(dir, "artifacts", ".new-"+name)
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	sweep(t, s, only(), only(), 1)
	if got, want := filesBelow(t, filepath.Join(dir, "artifacts")), []string{".new-new"}; !slices.Equal(got, want) {
		t.Errorf("temporary files: got %q, want %q", got, want)
	}
}

// Goroutines store and forget the same few contents while sweeps run all the time. Each recorded content can be read.
func TestSweepWhileFilesArePut(t *testing.T) {
	t.Parallel()
	s, dir := openStore(t)
	var mu sync.Mutex
	uses := map[string]int{} // what history would have recorded
	record := func(a sandbox.Artifact, n int) {
		mu.Lock()
		defer mu.Unlock()
		if uses[a.SHA256] += n; uses[a.SHA256] == 0 {
			delete(uses, a.SHA256)
		}
	}
	inUse := func(sums []string) (used []string, err error) {
		mu.Lock()
		defer mu.Unlock()
		for _, sum := range sums {
			if uses[sum] > 0 {
				used = append(used, sum)
			}
		}
		return used, nil
	}
	stop := make(chan struct{})
	var sweeper, workers sync.WaitGroup
	removed := 0
	sweeper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			n, err := s.Sweep(inUse, only())
			if removed += n; err != nil {
				t.Error(err)
			}
		}
	})
	for worker := range 4 {
		workers.Go(func() {
			for n := range 300 {
				content := fmt.Sprint("content ", (n*7+worker)%5)
				a, err := s.Put("x", strings.NewReader(content))
				if err != nil {
					t.Error(err)
					return
				}
				record(a, 1)
				s.Unpin([]string{a.SHA256})
				if got := contentOf(t, s, a.SHA256); got != content {
					t.Errorf("recorded content: got %q, want %q", got, content)
				}
				record(a, -1)
			}
		})
	}
	workers.Wait()
	close(stop)
	sweeper.Wait()
	n, err := s.Sweep(inUse, only())
	if files := filesBelow(t, dir); err != nil || removed+n == 0 || len(files) != 0 {
		t.Errorf("last Sweep: removed %d after %d, %v; %d files stay, want 0", n, removed, err, len(files))
	}
}
