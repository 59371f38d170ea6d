package environment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"glasshouse/sandbox/environment/environmenttest"
)

// ownPip is one for all tests: to make it takes some seconds.
var ownPip string

func TestMain(m *testing.M) {
	var err error
	if ownPip, err = os.MkdirTemp("", "gh-pip"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(ownPip)
	os.Exit(code)
}

// bench is a shelf of the test's own, for an interpreter with no packages.
func bench(t *testing.T) Installer {
	t.Helper()
	python := os.Getenv("GLASSHOUSE_PYTHON")
	if python == "" {
		t.Fatal("GLASSHOUSE_PYTHON must name the sandboxes' Python; scripts/test sets it")
	}
	base := filepath.Join(t.TempDir(), "base")
	if out, err := exec.Command(python, "-m", "venv", "--without-pip", base).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir := filepath.Join(t.TempDir(), "environments")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Symlink(ownPip, filepath.Join(dir, ".pip"))); err != nil {
		t.Fatal(err)
	}
	return Installer{Store: Store{Dir: dir, Base: filepath.Join(base, "bin", "python")}, Environ: os.Environ(), Progress: func(string) {}}
}

func take(t *testing.T, s Store, name string) *Version {
	t.Helper()
	version, err := s.Pin(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(version.Release)
	return version
}

// pins are what an environment has, as in "a 1.0, b 2".
func pins(version *Version) string {
	var all []string
	for _, p := range version.Lock.Packages {
		all = append(all, p.Name+" "+p.Version)
	}
	return strings.Join(all, ", ")
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wheels(t *testing.T) string {
	t.Helper()
	folder := environmenttest.Pip(t)
	for _, v := range []string{"1.0", "2.0"} {
		environmenttest.Wheel(t, folder, "upper", v, map[string]string{"upper.py": "version = '" + v + "'\n"}, "lower")
		environmenttest.Wheel(t, folder, "lower", v, map[string]string{"lower/__init__.py": ""})
	}
	environmenttest.Wheel(t, folder, "other", "1.0", map[string]string{"other.py": ""}, "lower<2")
	return folder
}

func TestPackagesComeAndGo(t *testing.T) {
	wheels(t)
	installer, ctx := bench(t), t.Context()
	done := must[any](t)
	add := func(specs ...string) { t.Helper(); done(installer.Add(ctx, Default, specs)) }
	is := func(want string) {
		t.Helper()
		if got := pins(take(t, installer.Store, Default)); got != want {
			t.Errorf("there is %s, not %s", got, want)
		}
	}
	is("")
	add("upper==1.0")
	is("lower 2.0, upper 1.0")
	for _, p := range take(t, installer.Store, Default).Lock.Packages {
		if len(p.Hashes) != 1 || len(p.Hashes[0]) != len("sha256:")+64 {
			t.Errorf("%s has the hashes %q", p.Name, p.Hashes)
		}
	}
	first := take(t, installer.Store, Default)
	// What is there stays, and what does not go with it is refused with pip's reason.
	if _, err := installer.Add(ctx, Default, []string{"other"}); err == nil || !strings.Contains(err.Error(), "lower") || strings.Contains(err.Error(), "Looking in links") {
		t.Errorf("a conflict: %v", err)
	}
	is("lower 2.0, upper 1.0")
	add("other", "lower") // named: it may change
	is("lower 1.0, other 1.0, upper 1.0")
	if _, err := installer.Remove(ctx, Default, []string{"lower"}); err == nil || !strings.Contains(err.Error(), "needs lower") {
		t.Errorf("a package that is needed: %v", err)
	}
	done(installer.Remove(ctx, Default, []string{"Upper"}))
	is("lower 1.0, other 1.0")
	done(installer.Remove(ctx, Default, []string{"other"}))
	is("lower 1.0") // it was asked for
	done(installer.Remove(ctx, Default, []string{"lower"}))
	add("upper")
	is("lower 2.0, upper 2.0")
	done(installer.Remove(ctx, Default, []string{"upper"}))
	is("") // what came with it goes with it
	if body, err := os.ReadFile(filepath.Join(first.Interpreter.Packages[0], "upper.py")); err != nil || string(body) != "version = '1.0'\n" {
		t.Errorf("in a folder that is held: %q, %v", body, err)
	}
}

func TestAFailureChangesNothing(t *testing.T) {
	wheels(t)
	installer, ctx := bench(t), t.Context()
	must[any](t)(installer.Create(ctx, "lab", "", ""))
	must[any](t)(installer.Add(ctx, "lab", []string{"upper"}))
	before, _ := os.ReadFile(installer.lockPath("lab"))
	for _, specs := range [][]string{{"nothing-like-it"}, {"upper==9"}, {"lower==1.0", "nothing"}} {
		if _, err := installer.Add(ctx, "lab", specs); err == nil || !strings.Contains(err.Error(), "pip: ") || len(err.Error()) > 1000 {
			t.Errorf("%q: %v", specs, err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := installer.Add(ended, "lab", []string{"lower==1.0"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if after, _ := os.ReadFile(installer.lockPath("lab")); string(after) != string(before) {
		t.Errorf("the lock is another one:\n%s", after)
	}
	if left, _ := filepath.Glob(filepath.Join(installer.Dir, "lab", ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// What a change that was killed has left goes with the next one.
func TestLeftoversGo(t *testing.T) {
	wheels(t)
	installer, ctx := bench(t), t.Context()
	made := must[any](t)
	made(installer.Create(ctx, "lab", "", ""))
	for _, left := range []string{"lab/.new-x/lib", "lab/.gone-y", "lab/" + strings.Repeat("a", 64), "other/.new-z"} {
		if err := os.MkdirAll(filepath.Join(installer.Dir, left), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	made(installer.Add(ctx, "lab", []string{"lower"}))
	if entries := must[[]fs.DirEntry](t)(os.ReadDir(filepath.Join(installer.Dir, "lab"))); len(entries) != 2 {
		t.Errorf("there is %q", entries)
	}
	if _, err := os.Stat(filepath.Join(installer.Dir, "other")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder of no environment: %v", err)
	}
}

// A wheel's code does not run while it, or another one, is installed: not its .pth file,
// and not a module that pip would import if it could.
func TestNoCodeOfPackagesRuns(t *testing.T) {
	folder := wheels(t)
	mark := filepath.Join(t.TempDir(), "ran")
	evil := "open(" + "'" + mark + "', 'a').write(__name__ if '__name__' in globals() else 'pth')\n"
	environmenttest.Wheel(t, folder, "evil", "1.0", map[string]string{"evil.pth": "import builtins; " + evil, "keyring.py": evil, "sitecustomize.py": evil, "pip/__init__.py": evil, "socks.py": evil, "evil.py": evil})
	installer, ctx := bench(t), t.Context()
	must[any](t)(installer.Add(ctx, Default, []string{"evil"}))
	must[any](t)(installer.Add(ctx, Default, []string{"lower"}))
	must[any](t)(installer.Remove(ctx, Default, []string{"lower"}))
	if ran, err := os.ReadFile(mark); err == nil {
		t.Errorf("it ran, as %s", ran)
	}
}

// A package without a wheel is built only where the operator says so.
func TestBuildsAreAsked(t *testing.T) {
	folder := wheels(t)
	source := filepath.Join(t.TempDir(), "built-1.0")
	files := map[string]string{"PKG-INFO": "Metadata-Version: 2.1\nName: built\nVersion: 1.0\n", "setup.py": "raise SystemExit('the build ran')\n"}
	for name, body := range files {
		if err := errors.Join(os.MkdirAll(source, 0o755), os.WriteFile(filepath.Join(source, name), []byte(body), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("tar", "-czf", filepath.Join(folder, "built-1.0.tar.gz"), "-C", filepath.Dir(source), "built-1.0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	installer := bench(t)
	if _, err := installer.Add(t.Context(), Default, []string{"built"}); err == nil || strings.Contains(err.Error(), "the build ran") || !strings.Contains(err.Error(), "--source") {
		t.Errorf("without being asked: %v", err)
	}
	// With it pip gets as far as the build, which this machine may lack the tools for.
	installer.AllowBuilds = true
	if _, err := installer.Add(t.Context(), Default, []string{"built"}); err == nil || strings.Contains(err.Error(), "No matching distribution found for built") {
		t.Errorf("when asked: %v", err)
	}
}

// Changes at the same time wait for each other, and none is lost.
func TestChangesAtTheSameTime(t *testing.T) {
	wheels(t)
	installer := bench(t)
	var all sync.WaitGroup
	for _, spec := range []string{"lower==1.0", "other", "upper==1.0"} {
		all.Go(func() {
			if _, err := installer.Add(t.Context(), Default, []string{spec}); err != nil && !strings.Contains(err.Error(), "lower") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	version := take(t, installer.Store, Default)
	if len(version.Lock.Requested) < 2 || !strings.Contains(pins(version), "lower") {
		t.Errorf("%q: %s", version.Lock.Requested, pins(version))
	}
	// A wait ends with its caller.
	release := must[func()](t)(installer.acquireLock(true))
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := installer.Add(ctx, Default, []string{"lower"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wait that was given up: %v", err)
	}
}

// An environment that begins as another shares its files, and is another.
func TestFromAnother(t *testing.T) {
	wheels(t)
	installer, ctx := bench(t), t.Context()
	made := must[any](t)
	made(installer.Add(ctx, Default, []string{"upper"}))
	made(installer.Create(ctx, "lab", Default, ""))
	made(installer.Remove(ctx, "lab", []string{"upper"}))
	made(installer.Create(ctx, "based", "", take(t, installer.Store, Default).Python))
	for name, want := range map[string]string{Default: "lower 2.0, upper 2.0", "lab": "", "based": "lower 2.0, upper 2.0"} {
		if got := pins(take(t, installer.Store, name)); got != want {
			t.Errorf("%s has %s, not %s", name, got, want)
		}
	}
	if based := take(t, installer.Store, "based"); len(based.Lock.Packages[0].Hashes) > 0 || len(based.Modules) > 0 {
		t.Errorf("what came with an interpreter: %+v, %q", based.Lock.Packages, based.Modules)
	}
	if added := take(t, installer.Store, Default); !slices.Equal(added.Modules, []string{"lower", "upper"}) {
		t.Errorf("what was added: %q", added.Modules)
	}
	for _, wrong := range [][3]string{{"lab", "", ""}, {"x", "nowhere", ""}, {"x", "lab", "/usr/bin/python3"}, {"x", "", "/bin/true"}, {"../x", "", ""}} {
		if _, err := installer.Create(ctx, wrong[0], wrong[1], wrong[2]); err == nil {
			t.Errorf("%q was made", wrong)
		}
	}
	if err := installer.Delete(ctx, Default); err == nil {
		t.Error("the default environment was deleted")
	}
	if err := installer.Delete(ctx, "lab"); err != nil {
		t.Error(err)
	}
	var missing *NotFoundError
	if _, err := installer.Pin("lab"); !errors.As(err, &missing) || !slices.Equal(missing.Have, []string{Default, "based"}) {
		t.Errorf("one that was deleted: %v", err)
	}
}

// The default environment is made again from another interpreter, with what was asked for.
func TestUpdate(t *testing.T) {
	wheels(t)
	installer, ctx := bench(t), t.Context()
	must[any](t)(installer.Add(ctx, Default, []string{"upper"}))
	was := take(t, installer.Store, Default)
	installer.Base = bench(t).Base
	if installer.Outdated() != was.Lock.Python {
		t.Errorf("it is not seen that the interpreter is another: %q", installer.Outdated())
	}
	must[any](t)(installer.Update(ctx, Default))
	if now := take(t, installer.Store, Default); now.Lock.Python != installer.Base || pins(now) != "lower 2.0, upper 2.0" || installer.Outdated() != "" {
		t.Errorf("%+v", now.Lock)
	}
	now := take(t, installer.Store, Default)
	path := filepath.Dir(filepath.Dir(now.Python))
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if _, err := installer.Pin(Default); err == nil || !strings.Contains(err.Error(), "glasshouse env update") {
		t.Errorf("a folder that is gone: %v", err)
	}
	must[any](t)(installer.Update(ctx, Default))
	take(t, installer.Store, Default)
}

// A folder goes with the last that has it, in whichever process that is.
func TestAHeldFolderStays(t *testing.T) {
	wheels(t)
	installer, ctx := bench(t), t.Context()
	must[any](t)(installer.Create(ctx, "lab", "", ""))
	version, other := take(t, installer.Store, "lab"), take(t, installer.Store, "lab")
	path := filepath.Dir(filepath.Dir(version.Python))
	must[any](t)(installer.Add(ctx, "lab", []string{"lower"}))
	if version.Current() {
		t.Error("it is not seen that it has changed")
	}
	version.Release()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("another has it: %v", err)
	}
	other.Release()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nobody has it: %v", err)
	}
}

// Sandboxes have uids of their own, and read it all.
func TestEverybodyReadsIt(t *testing.T) {
	wheels(t)
	defer syscall.Umask(syscall.Umask(0o022))
	installer := bench(t)
	must[any](t)(installer.Add(t.Context(), Default, []string{"upper"}))
	err := filepath.WalkDir(take(t, installer.Store, Default).Interpreter.Packages[0], func(path string, d fs.DirEntry, err error) error {
		if info, e := d.Info(); err == nil && e == nil && info.Mode().Perm()&0o044 != 0o044 {
			t.Errorf("%s is %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
