package archtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var gateList = regexp.MustCompile(`(?ms)^(alone|shared)=\(([^)]*)\)`)

// TestGateListsExistingPackages checks that scripts/test names packages that exist. A renamed package would run
// without the race detector, or at the same time as tests that measure time.
func TestGateListsExistingPackages(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "scripts", "test"))
	if err != nil {
		t.Fatal(err)
	}
	lists := gateList.FindAllStringSubmatch(string(text), -1)
	if len(lists) != 2 {
		t.Fatalf("scripts/test: got %d lists of packages, want alone and shared", len(lists))
	}
	for _, list := range lists {
		for name := range strings.FieldsSeq(list[2]) {
			if found, _ := filepath.Glob(filepath.Join(root(t), name, "*_test.go")); len(found) == 0 {
				t.Errorf("scripts/test lists %s in %s, a package without tests: write its new name", name, list[1])
			}
		}
	}
}

// TestGateRunsFewFailedTestsAgain checks what the gate runs again of a Go group, and that the report fails unless all
// of it passes then.
func TestGateRunsFewFailedTestsAgain(t *testing.T) {
	event := func(action, test string) string {
		return fmt.Sprintf(`{"Action":%q,"Package":"glasshouse/p","Test":%q}`, action, test) + "\n"
	}
	outcome := func(how string, tests ...string) (text string) {
		for _, test := range tests {
			text += event("run", test) + event(how, test)
		}
		return text
	}
	ends, passes := event("fail", ""), outcome("pass", "TestGood")
	report := func(arguments ...string) (string, error) {
		program := filepath.Join(root(t), "scripts/archtest/report.py")
		out, err := exec.Command("python3", append([]string{program}, arguments...)...).Output()
		return string(out), err
	}
	for _, c := range []struct{ name, log, want string }{
		{"one test", passes + outcome("fail", "TestA") + ends, "^(TestA)$\nglasshouse/p\n"},
		{"subtests", outcome("fail", "TestA/x", "TestA/y", "TestA") + ends, "^(TestA)$\nglasshouse/p\n"},
		{"too many", outcome("fail", "TestA", "TestB", "TestC", "TestD") + ends, "\n"},
		{"a package that broke off", passes + ends, "\n"},
		{"a test that did not end", outcome("fail", "TestA") + event("run", "TestB") + ends, "\n"},
		{"the compiler's message", "undefined: x\n" + outcome("fail", "TestA") + ends, "\n"},
		{"no failure", passes + event("pass", ""), "\n"},
	} {
		log := filepath.Join(t.TempDir(), "log")
		write := func(name, text string) string {
			name = filepath.Join(filepath.Dir(log), name)
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return name
		}
		write("log", c.log)
		if got, err := report("--again", log); got != c.want || err != nil {
			t.Errorf("%s: got %q to run again, error %v; want %q", c.name, got, err, c.want)
		}
		if c.want == "\n" {
			continue
		}
		for _, again := range []struct {
			log  string
			exit string
			good bool
		}{
			{outcome("pass", "TestA") + event("pass", ""), "0", true},
			{outcome("fail", "TestA") + ends, "1", false},
			{event("pass", ""), "0", false}, // it ran nothing
		} {
			groups := write("groups", "go\tgo\t1\t9\t"+log+"\n"+
				"go, again\tgo\t"+again.exit+"\t1\t"+write("again", again.log)+"\n")
			got, err := report(groups)
			if (err == nil) != again.good || !strings.Contains(got, "--- FAIL glasshouse/p TestA") ||
				strings.Contains(got, "passed when run again") != again.good {
				t.Errorf("%s: got error %v and\n%s\nwant that it passes: %v", c.name, err, got, again.good)
			}
		}
	}
}

// TestReportCountsWhatWasNotTested checks that the report lists and counts what a machine lacks for a test, which then
// passes.
func TestReportCountsWhatWasNotTested(t *testing.T) {
	const reason = "not tested, because the kernel is old: x"
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	event := `{"Action":%q,"Package":"glasshouse/p","Test":"TestA","Output":%q}` + "\n"
	log := fmt.Sprintf(event+event, "output", "report: "+reason, "pass", "")
	groups := "go\tgo\t0\t1\t" + write("go", log) + "\n" +
		"python\tpytest\t0\t1\t" + write("python", "report: "+reason+"\nreport: 5 ms\n2 passed in 1 s\n") + "\n"
	program := filepath.Join(root(t), "scripts/archtest/report.py")
	out, err := exec.Command("python3", program, write("groups", groups)).Output()
	for _, want := range []string{
		"Not run\n  glasshouse/p TestA: " + reason + "\n  python: " + reason + "\n",
		"Measured by tests\n  python: 5 ms\n", "total: 3 passed, 0 failed, 2 skipped",
	} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("got error %v and\n%s\nwant %q", err, out, want)
		}
	}
}

// TestReportShowsFailedPythonTests checks that the report shows pytest's failures, and not what Python prints while it
// ends.
func TestReportShowsFailedPythonTests(t *testing.T) {
	dir := t.TempDir()
	log, groups := filepath.Join(dir, "log"), filepath.Join(dir, "groups")
	text := "E   assert 1 == 2\nFAILED test_a.py::test_b - assert 1 == 2\n1 failed, 2 passed in 1.2s\n" +
		strings.Repeat("<sys>:0: ResourceWarning: unclosed <socket>\n", 500)
	for name, text := range map[string]string{log: text, groups: "python\tpytest\t1\t1\t" + log + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("python3", filepath.Join(root(t), "scripts/archtest/report.py"), groups).Output()
	if err == nil || !strings.Contains(string(out), "FAILED test_a.py::test_b - assert 1 == 2\n") ||
		strings.Contains(string(out), "ResourceWarning") {
		t.Errorf("got error %v and\n%.2000s\nwant the failed test without what follows pytest's last line", err, out)
	}
}

// A script that redefines a function of setup, which it sources, changes what setup itself calls. A name that two files
// had made the installation of clients wait for its own lock.
func TestScriptsRedefineNoFunctionOfSetup(t *testing.T) {
	t.Parallel()
	functions := func(path string) (names []string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^([a-z_]+)\(\)`).FindAllSubmatch(text, -1) {
			names = append(names, string(found[1]))
		}
		return names
	}
	setup := functions("../setup")
	scripts, err := filepath.Glob("../*")
	if err != nil || len(setup) < 20 {
		t.Fatalf("got %d functions of setup, %v, want 20 at least", len(setup), err)
	}
	for _, path := range scripts {
		if info, err := os.Stat(path); err != nil || info.IsDir() || filepath.Base(path) == "setup" {
			continue
		}
		for _, name := range functions(path) {
			if slices.Contains(setup, name) {
				t.Errorf("%s redefines %s, a function of scripts/setup: choose another name", path, name)
			}
		}
	}
}
