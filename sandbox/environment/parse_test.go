package environment

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestPackageSpecs(t *testing.T) {
	for spec, ok := range map[string]bool{
		"pandas": true, "pandas==2.2.3": true, "pandas >= 2, <3": true, "scikit-learn": true,
		"zope.interface~=5.0": true, "uvicorn[standard, x]==0.30": true,
		"torch==2.4.0+cpu": true, "a": true, "x===weird": true, "django!=4.0.*": true,
		"": false, " ": false, "-r": false, "-rfile": false, "--index-url=http://x": false, "-e": false, "--": false,
		"http://x/y.whl": false, "git+https://x/y": false,
		"x @ file:///y": false, "./x": false, "../x": false, "/x": false, ".": false, `a\b`: false, "x.whl": false,
		"x.tar.gz": false, "reqs.txt": false, "a b": false,
		"a;python_version<'3'": false, "a\n--index-url=x": false, "a==1 --hash=sha256:ab": false, "ä": false,
		"a[": false, "a==": false, "==1": false, "a==1 # x": false,
		strings.Repeat("a", 300): false,
	} {
		if err := checkSpec(spec); (err == nil) != ok {
			t.Errorf("checkSpec(%q): got error %v, want accepted %v", spec, err, ok)
		}
	}
}

func TestEnvironmentNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"default": true, "lab-2": true, "py3.12": true, "a_b": true, strings.Repeat("a", 63): true,
		"": false, "..": false, ".": false, ".pip": false, "../x": false, "a/b": false, "A": false, "ä": false,
		"a b": false, "-x": false, "a\n": false, strings.Repeat("a", 64): false} {
		if err := checkName(name); (err == nil) != ok {
			t.Errorf("checkName(%q): got error %v, want accepted %v", name, err, ok)
		}
	}
}

func FuzzLock(f *testing.F) {
	f.Add("# python 3.11.2 /usr/bin/python3\n# asked a>=1\n# removed b\na==1 --hash=sha256:" +
		strings.Repeat("0a", 32) + "\nb==2  # came with the interpreter\n")
	f.Add("a==1 \\\n --hash=x")
	f.Fuzz(func(t *testing.T, text string) {
		lock, err := parseLock([]byte(text))
		if err != nil {
			return
		}
		again, err := parseLock([]byte(lock.String()))
		if err != nil || !reflect.DeepEqual(lock, again) {
			t.Errorf("%q: %+v is written as %q, which is %+v, %v", text, lock, lock.String(), again, err)
		}
	})
}

func FuzzMetadata(f *testing.F) {
	f.Add("Name: a\nVersion: 1\nSummary: x\nRequires-Dist: b (>=1) ; extra == 'c'\n\nbody",
		"a/__init__.py,sha256=x,1\n../../../bin/x,,\na.so,,\n")
	f.Fuzz(func(t *testing.T, metadata, record string) {
		p := parseMetadata([]byte(metadata))
		for _, text := range []string{p.Name, p.Version, p.Summary} {
			if strings.ContainsAny(text, "\n\r\x00") {
				t.Errorf("%q gives %q", metadata, text)
			}
		}
		// A package's metadata cannot mean anything else in a lock.
		if p.Name != "" {
			lock := Lock{Python: "/p", Packages: []PinnedPackage{{Name: p.Name, Version: p.Version}}}
			if again, err := parseLock([]byte(lock.String())); err != nil ||
				!reflect.DeepEqual(lock.Packages, again.Packages) {
				t.Errorf("%q makes the lock %q: %v", metadata, lock, err)
			}
		}
		for _, module := range modulesOf(recordedFiles([]byte(record))) {
			if !moduleName.MatchString(module) {
				t.Errorf("%q gives the module %q", record, module)
			}
		}
	})
}

func TestModulesOfRecord(t *testing.T) {
	record := "pkg/__init__.py,,\npkg/sub/x.py,,\nsingle.py,,\n_fast.cpython-311-x86_64-linux-gnu.so,,\n" +
		"pkg-1.0.dist-info/METADATA,,\n../../../bin/tool,,\n__pycache__/single.cpython-311.pyc,,\ndata/x.txt,,\n"
	got, want := modulesOf(recordedFiles([]byte(record))), []string{"_fast", "pkg", "single"}
	if !slices.Equal(got, want) {
		t.Errorf("modulesOf: got %q, want %q", got, want)
	}
}

func TestSummaryOfUVsMessagesHasTheReasonOnly(t *testing.T) {
	got := summarize("Using CPython 3.11.2 interpreter at: /usr/bin/python3.11\nwarning: the cache is slow\n" +
		"error: No solution found when resolving dependencies\n" +
		"  cause: Because there is no version of a==9 and you require a==9, your requirements are unsatisfiable.\n\n" +
		"  hint: see https://user:secret@index/simple\n")
	want := "Because there is no version of a==9 and you require a==9, your requirements are unsatisfiable.\n" +
		"  hint: see https://***@index/simple"
	if got != want {
		t.Errorf("summarize: got %q, want %q", got, want)
	}
}

func TestHashesOfUVsLock(t *testing.T) {
	a, b := strings.Repeat("0a", 32), strings.Repeat("0b", 32)
	lock := "lock-version = \"1.0\"\n\n[[packages]]\nname = \"Up.per\"\nversion = \"1.0\"\n" +
		"sdist = { url = \"x\", hashes = { sha256 = \"" + b +
		"\" } }\nwheels = [{ url = \"y\", hashes = { sha256 = \"" + a + "\" } }]\n"
	got, err := lockedHashes(lock)
	if want := map[string][]string{"up-per": {"sha256:" + a, "sha256:" + b}}; err != nil ||
		!reflect.DeepEqual(got, want) {
		t.Errorf("lockedHashes: got %v, %v, want %v", got, err, want)
	}
	if _, err := lockedHashes("[[packages]]\nname = \"x\"\nversion = \"1\"\n"); err == nil {
		t.Error("lockedHashes of a package without a hash: got no error")
	}
}
