package environment

import (
	"context"
	"errors"
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

// newInstaller returns an installer for a store of the test's own, with an interpreter that has no packages,
// and the folder that uv takes wheels from: lower and upper (which needs lower) 1.0 and 2.0, and other
// (which needs lower<2).
func newInstaller(t *testing.T) (installer Installer, folder string) {
	t.Helper()
	python := os.Getenv("GLASSHOUSE_PYTHON")
	if python == "" {
		t.Fatal("GLASSHOUSE_PYTHON must name the sandboxes' Python; scripts/test sets it")
	}
	folder, environ := environmenttest.Environ(t)
	for _, v := range []string{"1.0", "2.0"} {
		files := map[string]string{"upper.py": "version = '" + v + "'\n"}
		environmenttest.Wheel(t, folder, "upper", v, files, "lower")
		environmenttest.Wheel(t, folder, "lower", v, map[string]string{"lower/__init__.py": ""})
	}
	environmenttest.Wheel(t, folder, "other", "1.0", map[string]string{"other.py": ""}, "lower<2")
	store := Store{Dir: filepath.Join(t.TempDir(), "environments"), Base: emptyInterpreter(t, python)}
	return Installer{Store: store, Environ: environ, Progress: func(string) {}}, folder
}

func emptyInterpreter(t *testing.T, python string) string {
	t.Helper()
	base := filepath.Join(t.TempDir(), "base")
	if out, err := exec.Command(python, "-m", "venv", "--without-pip", base).CombinedOutput(); err != nil {
		t.Fatalf("make a virtual environment: %v: %s", err, out)
	}
	return filepath.Join(base, "bin", "python")
}

func pin(t *testing.T, s Store, name string) *Version {
	t.Helper()
	v, err := s.Pin(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Release)
	return v
}

// packagesOf returns an environment's packages as in "a 1.0, b 2".
func packagesOf(v *Version) string {
	var all []string
	for _, p := range v.Lock.Packages {
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

func TestAddAndRemovePackages(t *testing.T) {
	t.Parallel()
	in, _ := newInstaller(t)
	ctx, done := t.Context(), must[any](t)
	add := func(specs ...string) { t.Helper(); done(in.Add(ctx, Default, specs)) }
	expect := func(want string) {
		t.Helper()
		if got := packagesOf(pin(t, in.Store, Default)); got != want {
			t.Errorf("packages: got %q, want %q", got, want)
		}
	}
	expect("")
	add("upper==1.0")
	expect("lower 2.0, upper 1.0")
	for _, p := range pin(t, in.Store, Default).Lock.Packages {
		if len(p.Hashes) != 1 || len(p.Hashes[0]) != len("sha256:")+64 {
			t.Errorf("%s: got hashes %q, want one SHA-256", p.Name, p.Hashes)
		}
	}
	first := pin(t, in.Store, Default)
	// other needs lower<2, and lower is not named, so it stays.
	_, err := in.Add(ctx, Default, []string{"other"})
	if err == nil || !strings.Contains(err.Error(), "lower") || strings.Contains(err.Error(), "Using") {
		t.Errorf("conflict: got error %v, want uv's reason alone", err)
	}
	expect("lower 2.0, upper 1.0")
	add("other", "lower") // named, so it may change
	expect("lower 1.0, other 1.0, upper 1.0")
	if _, err := in.Remove(ctx, Default, []string{"lower"}); err == nil ||
		!strings.Contains(err.Error(), "needs lower") {
		t.Errorf("remove a package that others need: got error %v, want one that names a dependent package", err)
	}
	done(in.Remove(ctx, Default, []string{"Upper"}))
	expect("lower 1.0, other 1.0")
	done(in.Remove(ctx, Default, []string{"other"}))
	expect("lower 1.0") // it was requested
	done(in.Remove(ctx, Default, []string{"lower"}))
	add("upper")
	expect("lower 2.0, upper 2.0")
	done(in.Remove(ctx, Default, []string{"upper"}))
	expect("") // lower came as a dependency
	body, err := os.ReadFile(filepath.Join(first.Interpreter.Packages[0], "upper.py"))
	if err != nil || string(body) != "version = '1.0'\n" {
		t.Errorf("a file of a pinned version: got %q, %v, want it unchanged", body, err)
	}
}

func TestFailedChangeKeepsTheEnvironment(t *testing.T) {
	t.Parallel()
	in, _ := newInstaller(t)
	ctx := t.Context()
	must[any](t)(in.Create(ctx, "lab", "", ""))
	must[any](t)(in.Add(ctx, "lab", []string{"upper"}))
	before, _ := os.ReadFile(in.lockPath("lab"))
	for _, specs := range [][]string{{"nothing-like-it"}, {"upper==9"}, {"lower==1.0", "nothing"}} {
		if _, err := in.Add(ctx, "lab", specs); err == nil || !strings.Contains(err.Error(), "uv: ") ||
			len(err.Error()) > 1000 {
			t.Errorf("Add(%q): got error %v, want uv's reason in at most 1000 bytes", specs, err)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := in.Add(cancelled, "lab", []string{"lower==1.0"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled Add: got error %v, want %v", err, context.Canceled)
	}
	if after, _ := os.ReadFile(in.lockPath("lab")); string(after) != string(before) {
		t.Errorf("lock: got\n%s\nwant it unchanged:\n%s", after, before)
	}
	if left, _ := filepath.Glob(filepath.Join(in.Dir, "lab", ".*")); len(left) > 0 {
		t.Errorf("files of the failed change: got %q, want none", left)
	}
}

func TestNextChangeRemovesFilesOfKilledChange(t *testing.T) {
	t.Parallel()
	in, _ := newInstaller(t)
	ctx, made := t.Context(), must[any](t)
	made(in.Create(ctx, "lab", "", ""))
	for _, left := range []string{"lab/.new-x/lib", "lab/.gone-y", "lab/" + strings.Repeat("a", 64), "other/.new-z"} {
		if err := os.MkdirAll(filepath.Join(in.Dir, left), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	made(in.Add(ctx, "lab", []string{"lower"}))
	if entries := must[[]fs.DirEntry](t)(os.ReadDir(filepath.Join(in.Dir, "lab"))); len(entries) != 2 {
		t.Errorf("got %q, want the lock and one folder", entries)
	}
	if _, err := os.Stat(filepath.Join(in.Dir, "other")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without an environment: got %v, want it removed", err)
	}
}

// TestInstallingRunsNoCodeOfPackages installs a wheel whose .pth file, sitecustomize and modules with the names
// of libraries would write a file if they ran.
func TestInstallingRunsNoCodeOfPackages(t *testing.T) {
	t.Parallel()
	in, folder := newInstaller(t)
	mark := filepath.Join(t.TempDir(), "ran")
	evil := "open('" + mark + "', 'a').write(__name__ if '__name__' in globals() else 'pth')\n"
	environmenttest.Wheel(t, folder, "evil", "1.0",
		map[string]string{"evil.pth": "import builtins; " + evil, "keyring.py": evil,
			"sitecustomize.py": evil, "usercustomize.py": evil, "packaging/__init__.py": evil, "compileall.py": evil,
			"evil.py": evil})
	for _, change := range []func(context.Context, string, []string) (any, error){
		func(ctx context.Context, name string, _ []string) (any, error) {
			return in.Add(ctx, name, []string{"evil"})
		},
		func(ctx context.Context, name string, _ []string) (any, error) {
			return in.Add(ctx, name, []string{"lower"})
		},
		func(ctx context.Context, name string, _ []string) (any, error) {
			return in.Remove(ctx, name, []string{"lower"})
		},
		func(ctx context.Context, name string, _ []string) (any, error) { return in.Update(ctx, name) },
		func(ctx context.Context, name string, _ []string) (any, error) {
			return in.Create(ctx, "based", "", pin(t, in.Store, name).Python)
		},
	} {
		must[any](t)(change(t.Context(), Default, nil))
	}
	if ran, err := os.ReadFile(mark); err == nil {
		t.Errorf("code of the package ran, as %s", ran)
	}
}

func TestBuildsNeedPermission(t *testing.T) {
	t.Parallel()
	in, folder := newInstaller(t)
	source := filepath.Join(t.TempDir(), "built-1.0")
	files := map[string]string{"PKG-INFO": "Metadata-Version: 2.1\nName: built\nVersion: 1.0\n",
		"setup.py": "raise SystemExit('the build ran')\n"}
	for name, body := range files {
		if err := errors.Join(os.MkdirAll(source, 0o755),
			os.WriteFile(filepath.Join(source, name), []byte(body), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	tar := exec.Command("tar", "-czf", filepath.Join(folder, "built-1.0.tar.gz"), "-C", filepath.Dir(source),
		"built-1.0")
	if out, err := tar.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	_, err := in.Add(t.Context(), Default, []string{"built"})
	if err == nil || strings.Contains(err.Error(), "the build ran") || !strings.Contains(err.Error(), "--source") {
		t.Errorf("without permission: got error %v, want one that names --source", err)
	}
	// With permission uv gets as far as the build, for which this machine may lack the tools.
	in.AllowBuilds = true
	_, err = in.Add(t.Context(), Default, []string{"built"})
	if err == nil || strings.Contains(err.Error(), "no usable wheels") {
		t.Errorf("with permission: got error %v, want an error of the build", err)
	}
}

func TestConcurrentChangesWaitForEachOther(t *testing.T) {
	t.Parallel()
	in, _ := newInstaller(t)
	var changes sync.WaitGroup
	for _, spec := range []string{"lower==1.0", "other", "upper==1.0"} {
		changes.Go(func() {
			if _, err := in.Add(t.Context(), Default, []string{spec}); err != nil &&
				!strings.Contains(err.Error(), "lower") {
				t.Error(err)
			}
		})
	}
	changes.Wait()
	v := pin(t, in.Store, Default)
	if len(v.Lock.Requested) < 2 || !strings.Contains(packagesOf(v), "lower") {
		t.Errorf("requested %q, packages %q: want at least two changes with lower", v.Lock.Requested, packagesOf(v))
	}
	release := must[func()](t)(in.acquireLock(true))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := in.Add(ctx, Default, []string{"lower"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait of a cancelled caller: got error %v, want %v", err, context.DeadlineExceeded)
	}
	release()
	must[any](t)(in.Add(t.Context(), Default, []string{"lower"})) // the cancelled caller has released the lock
}

func TestCreateFromAnotherEnvironment(t *testing.T) {
	t.Parallel()
	in, _ := newInstaller(t)
	ctx, made := t.Context(), must[any](t)
	made(in.Add(ctx, Default, []string{"upper"}))
	made(in.Create(ctx, "lab", Default, ""))
	made(in.Remove(ctx, "lab", []string{"upper"}))
	made(in.Create(ctx, "based", "", pin(t, in.Store, Default).Python))
	for name, want := range map[string]string{Default: "lower 2.0, upper 2.0", "lab": "",
		"based": "lower 2.0, upper 2.0"} {
		if got := packagesOf(pin(t, in.Store, name)); got != want {
			t.Errorf("%s: got packages %q, want %q", name, got, want)
		}
	}
	if based := pin(t, in.Store, "based"); len(based.Lock.Packages[0].Hashes) > 0 || len(based.Modules) > 0 {
		t.Errorf("packages of an interpreter: got %+v with modules %q, want no hashes and no modules",
			based.Lock.Packages, based.Modules)
	}
	if added := pin(t, in.Store, Default); !slices.Equal(added.Modules, []string{"lower", "upper"}) {
		t.Errorf("modules of added packages: got %q, want lower and upper", added.Modules)
	}
	made(in.Add(ctx, "based", []string{"upper"})) // which is there already, without a hash
	if named := pin(t, in.Store, "based"); !slices.Equal(named.Modules, []string{"upper"}) {
		t.Errorf("modules of a package of the interpreter that was added too: got %q, want upper", named.Modules)
	}
	for _, wrong := range [][3]string{{"lab", "", ""}, {"x", "nowhere", ""}, {"x", "lab", "/usr/bin/python3"},
		{"x", "", "/bin/true"}, {"../x", "", ""}} {
		if _, err := in.Create(ctx, wrong[0], wrong[1], wrong[2]); err == nil {
			t.Errorf("Create(%q): got no error", wrong)
		}
	}
	if err := in.Delete(ctx, Default); err == nil {
		t.Error("Delete(default): got no error")
	}
	if err := in.Delete(ctx, "lab"); err != nil {
		t.Error(err)
	}
	var missing *NotFoundError
	if _, err := in.Pin("lab"); !errors.As(err, &missing) || !slices.Equal(missing.Have, []string{Default, "based"}) {
		t.Errorf("Pin of a deleted environment: got error %v, want one that names default and based", err)
	}
}

func TestUpdateFollowsTheInterpreter(t *testing.T) {
	t.Parallel()
	in, _ := newInstaller(t)
	ctx := t.Context()
	must[any](t)(in.Add(ctx, Default, []string{"upper"}))
	before := pin(t, in.Store, Default)
	in.Base = emptyInterpreter(t, before.Python)
	if got := in.Outdated(); got != before.Lock.Python {
		t.Errorf("Outdated: got %q, want %q", got, before.Lock.Python)
	}
	must[any](t)(in.Update(ctx, Default))
	after := pin(t, in.Store, Default)
	if after.Lock.Python != in.Base || packagesOf(after) != "lower 2.0, upper 2.0" || in.Outdated() != "" {
		t.Errorf("after Update: got %+v, outdated %q; want the packages for %s", after.Lock, in.Outdated(), in.Base)
	}
	if err := os.RemoveAll(filepath.Dir(filepath.Dir(after.Python))); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Pin(Default); err == nil || !strings.Contains(err.Error(), "glasshouse env update") {
		t.Errorf("Pin with a deleted folder: got error %v, want one that names `glasshouse env update`", err)
	}
	must[any](t)(in.Update(ctx, Default))
	pin(t, in.Store, Default)
}

func TestFolderStaysUntilItsLastRelease(t *testing.T) {
	t.Parallel()
	in, _ := newInstaller(t)
	ctx := t.Context()
	must[any](t)(in.Create(ctx, "lab", "", ""))
	first, second := pin(t, in.Store, "lab"), pin(t, in.Store, "lab")
	path := filepath.Dir(filepath.Dir(first.Python))
	must[any](t)(in.Add(ctx, "lab", []string{"lower"}))
	if first.Current() {
		t.Error("Current after a change: got true, want false")
	}
	first.Release()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("a folder that is in use: got %v, want it to exist", err)
	}
	second.Release()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that nobody uses: got %v, want it removed", err)
	}
}

// A process that is being started has copies of the locks' descriptors until it executes its program. They do not keep
// a folder that nobody uses.
func TestCopiesOfDescriptorsKeepNoFolder(t *testing.T) {
	t.Parallel()
	in, _ := newInstaller(t)
	ctx := t.Context()
	must[any](t)(in.Create(ctx, "lab", "", ""))
	used := pin(t, in.Store, "lab")
	path := filepath.Dir(filepath.Dir(used.Python))
	must[any](t)(in.Add(ctx, "lab", []string{"lower"}))
	copied, err := syscall.Dup(int(used.dir.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(copied)
	used.Release()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder whose descriptor has a copy: got %v, want it removed", err)
	}
}

// checkFiles fails the test if a file in folder has a second name, if others than its owner may write to a file or
// folder, or if another account owns it.
func checkFiles(t *testing.T, folder string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		if !d.IsDir() && stat.Nlink != 1 || info.Mode().Perm()&0o022 != 0 || int(stat.Uid) != os.Geteuid() {
			t.Errorf("%s: got %d names, mode %s, owner %d; want one name and no writer but the owner %d", path,
				stat.Nlink, info.Mode(), stat.Uid, os.Geteuid())
		}
		files++
		return nil
	})
	if err != nil || files < 10 {
		t.Errorf("%s: got %d files, %v, want an environment", folder, files, err)
	}
}

func TestEnvironmentsShareNoFiles(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	in, _ := newInstaller(t)
	done := must[any](t)
	done(in.Add(t.Context(), Default, []string{"upper"}))
	done(in.Create(t.Context(), "lab", Default, ""))
	before := pin(t, in.Store, "lab")
	done(in.Add(t.Context(), "lab", []string{"lower==1.0"}))
	done(in.Create(t.Context(), "based", "", before.Python))
	checkFiles(t, before.dir.Name())
	for _, name := range []string{Default, "lab", "based"} {
		checkFiles(t, pin(t, in.Store, name).dir.Name())
	}
}

// TestSharedFilesOfEarlierReleasesAreCopied opens an environment with the hard links and modes that earlier releases
// left.
func TestSharedFilesOfEarlierReleasesAreCopied(t *testing.T) {
	t.Parallel()
	in, _ := newInstaller(t)
	must[any](t)(in.Add(t.Context(), Default, []string{"upper"}))
	v := pin(t, in.Store, Default)
	folder, cached := v.dir.Name(), filepath.Join(t.TempDir(), "upper.py")
	module := filepath.Join(v.Interpreter.Packages[0], "upper.py")
	about := metadata{Interpreter: v.Interpreter, Packages: v.Packages}
	about.Interpreter.Packages = []string{sitePackages(v.Interpreter)}
	if err := errors.Join(os.Link(module, cached), os.Chmod(filepath.Join(folder, ".lock"), 0o666),
		os.Chmod(filepath.Dir(module), 0o777), about.write(folder)); err != nil {
		t.Fatal(err)
	}
	pin(t, in.Store, Default)
	checkFiles(t, folder)
	if err := os.WriteFile(cached, []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if body, err := os.ReadFile(module); err != nil || string(body) != "version = '2.0'\n" {
		t.Errorf("after a write to the file's other name: got %q, %v, want the module as it was", body, err)
	}
	if body, err := os.ReadFile(filepath.Join(folder, metadataName)); err != nil ||
		!strings.Contains(string(body), `"separate":true`) {
		t.Errorf("%s: got %s, %v, want that the next opening has nothing to do", metadataName, body, err)
	}
}

// Other users must be able to read an environment, because each sandbox has its own user ID.
func TestOtherUsersReadEnvironments(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	in, _ := newInstaller(t)
	must[any](t)(in.Add(t.Context(), Default, []string{"upper"}))
	err := filepath.WalkDir(pin(t, in.Store, Default).Interpreter.Packages[0],
		func(path string, d fs.DirEntry, err error) error {
			if info, e := d.Info(); err == nil && e == nil && info.Mode().Perm()&0o044 != 0o044 {
				t.Errorf("%s: got mode %s, want it readable for everybody", path, info.Mode())
			}
			return err
		})
	if err != nil {
		t.Error(err)
	}
}
