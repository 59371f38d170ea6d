package environment

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox/environment/environmenttest"
)

// TestHostileFilesOfPackagesAreRefused installs wheels next to upper, which warm interpreters import, and lower, which
// upper needs.
func TestHostileFilesOfPackagesAreRefused(t *testing.T) {
	t.Parallel()
	in, folder := newInstaller(t)
	in.WarmModules = []string{"upper", "numpy"}
	must[any](t)(in.Add(t.Context(), Default, []string{"upper"}))
	before := pin(t, in.Store, Default)
	site := sitePackages(before.Interpreter)
	for name, test := range map[string]struct{ file, reason string }{
		"pyvenv":     {"pyvenv-1.0.data/data/pyvenv.cfg", `files of the environment itself: "pyvenv.cfg"`},
		"activate":   {"activate-1.0.data/data/bin/activate", `files of the environment itself: "bin/activate"`},
		"about":      {"about-1.0.data/data/environment.json", "replaces files of the environment itself"},
		"named":      {"numpy/__init__.py", "has the module numpy"},
		"throughlib": {"throughlib-1.0.data/data/lib64" + site[3:] + "/numpy/__init__.py", "has the module numpy"},
		"compiled":   {"__pycache__/numpy.cpython-311.pyc", "has the module numpy"},
		"native":     {"numpy.abi3.so", "has the module numpy"},
		"module":     {"lower.py", "has a module of lower"},
		"submodule":  {"lower/other.py", "has a module of lower"},
		"bytecode":   {"__pycache__/lower.cpython-311.pyc", "has a module of lower"},
		"metadata":   {"metadata-1.0.data/purelib/numpy-9.0.dist-info/METADATA", "has metadata of another package"},
		"extension":  {"recorder_fast.abi3.so", "has extensions of Glasshouse"},
		"nameless":   {"nameless-1.0.dist-info/METADATA", "its METADATA has no name"},
	} {
		body := fmt.Sprintf("Metadata-Version: 2.1\nSummary: %s\nName: %s\nVersion: 1.0\n",
			strings.Repeat("x", maxMetadata), name)
		environmenttest.Wheel(t, folder, name, "1.0", map[string]string{test.file: body, name + ".py": ""})
		_, err := in.Add(t.Context(), Default, []string{name})
		if err == nil || !strings.Contains(err.Error(), "refused the package "+name) ||
			!strings.Contains(err.Error(), test.reason) {
			t.Errorf("%s with %s: got error %v, want %q", name, test.file, err, test.reason)
		}
	}
	if after := pin(t, in.Store, Default); after.Digest != before.Digest {
		t.Errorf("after the refusals: got %s, want the environment unchanged", packagesOf(after))
	}
	// A package that is there before the warm package is refused with it.
	must[any](t)(in.Create(t.Context(), "lab", "", ""))
	must[any](t)(in.Add(t.Context(), "lab", []string{"module"}))
	if _, err := in.Add(t.Context(), "lab", []string{"upper"}); err == nil ||
		!strings.Contains(err.Error(), "refused the package lower 2.0, because it has a module of module") {
		t.Errorf("a warm package next to one with its module: got error %v, want it refused", err)
	}
}

// Warm packages and others may share a folder that is not a package of Python.
func TestNamespacesAreShared(t *testing.T) {
	t.Parallel()
	in, folder := newInstaller(t)
	in.WarmModules = []string{"warm"}
	files := map[string]string{"warm.py": "", "tools/plot/__init__.py": ""}
	environmenttest.Wheel(t, folder, "warm", "1.0", files)
	environmenttest.Wheel(t, folder, "maps", "1.0", map[string]string{"tools/maps/__init__.py": "", "LICENSE": ""})
	environmenttest.Wheel(t, folder, "plots", "1.0", map[string]string{"tools/plot/more.py": ""})
	must[any](t)(in.Add(t.Context(), Default, []string{"warm", "maps"}))
	if _, err := in.Add(t.Context(), Default, []string{"plots"}); err == nil ||
		!strings.Contains(err.Error(), `has a module of warm, and warm interpreters import one of them: "tools.plot"`) {
		t.Errorf("a file in a package of a namespace: got error %v, want it refused", err)
	}
}

// TestFilesOutsideOfTheEnvironmentAreRefused has a package that uv would not install: uv leaves such files out.
func TestFilesOutsideOfTheEnvironmentAreRefused(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	site := filepath.Join(folder, "lib")
	if err := os.MkdirAll(site, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(site, "link")); err != nil {
		t.Fatal(err)
	}
	p := installedPackage{files: []string{"../../outside", "/etc/passwd", "link", "missing/file", "fine.py"}}
	p.Name, p.Version = "evil", "1.0"
	c := fileCheck{folder: folder, site: site, added: map[string][]string{"evil": {}}, packages: []installedPackage{p},
		resolved: map[string]string{}, namespaces: map[string]bool{}}
	_, err := c.check()
	want := "refused the package evil 1.0, because it has files outside of the environment: \"../outside\", " +
		"\"" + strings.Repeat("../", strings.Count(folder, "/")) + "etc/passwd\"; the environment is unchanged\n" +
		"refused the package evil 1.0, because it has files that are not regular files: \"lib/link\"; " +
		"the environment is unchanged"
	wantSorted := strings.Split(want, "\n")
	slices.Sort(wantSorted)
	if err == nil || err.Error() != strings.Join(wantSorted, "\n") {
		t.Errorf("got error\n%v\nwant\n%s", err, strings.Join(wantSorted, "\n"))
	}
}

func TestFilesThatSurpriseAreReported(t *testing.T) {
	t.Parallel()
	in, folder := newInstaller(t)
	in.GuestModules = []string{"values"}
	var steps []string
	in.Progress = func(step string) { steps = append(steps, step) }
	environmenttest.Wheel(t, folder, "odd", "1.0", map[string]string{"odd.pth": "# path\nimport odd\n",
		"path.pth": "../elsewhere\n", "usercustomize.py": "", "json/__init__.py": "", "values.py": "", "odd.py": ""})
	must[any](t)(in.Add(t.Context(), Default, []string{"odd"}))
	for _, want := range []string{
		`odd has code that runs when bin/python of the environment starts: "odd.pth", "usercustomize.py"; sandboxes`,
		`odd has modules with names of Python or Glasshouse, whose modules are imported instead: "json", "values"`,
	} {
		if !slices.ContainsFunc(steps, func(step string) bool { return strings.HasPrefix(step, want) }) {
			t.Errorf("got %q, want %q", steps, want)
		}
	}
	steps = nil
	must[any](t)(in.Add(t.Context(), Default, []string{"lower"}))
	if slices.ContainsFunc(steps, func(step string) bool { return strings.HasPrefix(step, "odd ") }) {
		t.Errorf("the next change: got %q, want no report about an installed package", steps)
	}
}

func TestPackagesOfWarmInterpreters(t *testing.T) {
	t.Parallel()
	in, folder := newInstaller(t)
	for name, requires := range map[string][]string{"warm": {"base; python_version > '3'", "fast>=1; extra == 'all'"},
		"base": {"deep"}, "deep": nil, "fast": nil} {
		environmenttest.Wheel(t, folder, name, "1.0", map[string]string{name + ".py": ""}, requires...)
	}
	must[any](t)(in.Add(t.Context(), Default, []string{"warm", "fast"}))
	names, err := pin(t, in.Store, Default).WarmPackages([]string{"absent", "warm"})
	if got, want := fmt.Sprint(names, err), "[base deep warm] <nil>"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
