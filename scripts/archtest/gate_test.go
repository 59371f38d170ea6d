package archtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
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

// event and outcome return lines of `go test -json` for tests of the package glasshouse/p.
func event(action, test string) string {
	return fmt.Sprintf(`{"Action":%q,"Package":"glasshouse/p","Test":%q}`, action, test) + "\n"
}

func outcome(how string, tests ...string) (text string) {
	for _, test := range tests {
		text += event("run", test) + event(how, test)
	}
	return text
}

func printed(test, text string) string {
	return fmt.Sprintf(`{"Action":"output","Package":"glasshouse/p","Test":%q,"Output":%q}`, test, text+"\n") + "\n"
}

// writeFile writes a file in a folder, which may be missing, and returns its path.
func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o700) // scripts among them
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// output returns what a command prints, and its exit status.
func output(t *testing.T, cmd *exec.Cmd) (string, int) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// runReport returns what report.py prints, and its exit status.
func runReport(t *testing.T, arguments ...string) (string, int) {
	t.Helper()
	program := filepath.Join(root(t), "scripts/archtest/report.py")
	return output(t, exec.Command("python3", append([]string{program}, arguments...)...))
}

// TestGateRunsFewFailedTestsAgain checks what the gate runs again of a Go group, and that the report fails unless all
// of it passes then.
func TestGateRunsFewFailedTestsAgain(t *testing.T) {
	ends, passes := event("fail", ""), outcome("pass", "TestGood")
	list := writeFile(t, t.TempDir(), "unsteady.txt", "p.TestA "+day(0)+" it is a test\np.TestB "+day(0)+" x\n")
	for _, c := range []struct{ name, log, want string }{
		{"one test", passes + outcome("fail", "TestA") + ends, "^(TestA)$\nglasshouse/p\n"},
		{"two tests", passes + outcome("fail", "TestA", "TestB") + ends, "^(TestA|TestB)$\nglasshouse/p\n"},
		{"subtests", outcome("fail", "TestA/x", "TestA/y", "TestA") + ends, "^(TestA)$\nglasshouse/p\n"},
		{"too many", outcome("fail", "TestA", "TestB", "TestC", "TestD") + ends, "\n"},
		{"a package that broke off", passes + ends, "\n"},
		{"a test that did not end", outcome("fail", "TestA") + event("run", "TestB") + ends, "\n"},
		{"the compiler's message", "undefined: x\n" + outcome("fail", "TestA") + ends, "\n"},
		{"no failure", passes + event("pass", ""), "\n"},
	} {
		dir := t.TempDir()
		log := writeFile(t, dir, "log", c.log)
		if got, status := runReport(t, "--again", log); got != c.want || status != 0 {
			t.Errorf("%s: got %q to run again, status %d; want %q", c.name, got, status, c.want)
		}
		if c.want == "\n" {
			continue
		}
		for _, again := range []struct {
			log  string
			exit string
			good bool
		}{
			{outcome("pass", "TestA", "TestB") + event("pass", ""), "0", true},
			{outcome("fail", "TestA") + ends, "1", false},
			{event("pass", ""), "0", false}, // it ran nothing
			{outcome("pass", "TestB") + outcome("skip", "TestA") + event("pass", ""), "0", false},
		} {
			groups := writeFile(t, dir, "groups", "go\tgo\t1\t9\t"+log+"\n"+
				"go, again\tgo\t"+again.exit+"\t1\t"+writeFile(t, dir, "again", again.log)+"\n")
			want := 1
			if again.good {
				want = 3
			}
			got, status := runReport(t, groups, list)
			if status != want || !strings.Contains(got, "--- FAIL glasshouse/p TestA") ||
				strings.Contains(got, "\nUNSTEADY\n  p.TestA ") != again.good {
				t.Errorf("%s: got status %d and\n%s\nwant that it passes: %v", c.name, status, got, again.good)
			}
		}
	}
}

// TestGateRunsNoCrashAgain checks that a data race, a panic, a fatal error or a timeout stays a failure: a second run
// that happens to pass says nothing about its cause.
func TestGateRunsNoCrashAgain(t *testing.T) {
	const race = "WARNING: DATA RACE"
	failed := func(test, text string) string {
		return event("run", test) + printed(test, text) + event("fail", test)
	}
	list := writeFile(t, t.TempDir(), "unsteady.txt", "p.TestA "+day(0)+" it is a test\n")
	good := outcome("pass", "TestGood")
	for name, log := range map[string]string{
		"a data race": failed("TestA", race),
		"a data race of a subtest": failed("TestA/x", "    testing.go:1: race detected during execution of test") +
			outcome("fail", "TestA"),
		"a data race of the service": failed("TestA", "    main_test.go:7: the service printed: "+race),
		"a data race next to it":     printed("TestGood", race) + good + outcome("fail", "TestA"),
		"a data race of the package": printed("", race) + outcome("fail", "TestA"),
		"a panic":                    failed("TestA", "panic: runtime error: index out of range [recovered]"),
		"a panic next to it":         printed("TestGood", "panic: x") + good + outcome("fail", "TestA"),
		"a panic of the service":     failed("TestA", "    main_test.go:7: the service printed: panic: x"),
		"a fatal error":              failed("TestA", "fatal error: concurrent map writes"),
		"a timeout":                  failed("TestA", "panic: test timed out after 20m0s"),
	} {
		dir := t.TempDir()
		log = writeFile(t, dir, "log", log+event("fail", ""))
		if got, status := runReport(t, "--again", log); got != "\n" || status != 0 {
			t.Errorf("%s: got %q to run again, status %d; want nothing", name, got, status)
		}
		again := writeFile(t, dir, "again", outcome("pass", "TestA")+event("pass", ""))
		groups := writeFile(t, dir, "groups", "go\tgo\t1\t9\t"+log+"\ngo, again\tgo\t0\t1\t"+again+"\n")
		if got, status := runReport(t, groups, list); status != 1 || strings.Contains(got, "UNSTEADY") {
			t.Errorf("%s: got status %d and\n%s\nwant a failure, whatever a second run says", name, status, got)
		}
	}
	log := writeFile(t, t.TempDir(), "log", printed("TestGood", "    recovered: a panic: x")+good+
		outcome("fail", "TestA")+event("fail", ""))
	if got, _ := runReport(t, "--again", log); got != "^(TestA)$\nglasshouse/p\n" {
		t.Errorf("got %q to run again next to a test of panics that passes, want TestA", got)
	}
}

// day returns a date some days before today, as in scripts/unsteady.txt.
func day(ago int) string { return time.Now().UTC().AddDate(0, 0, -ago).Format(time.DateOnly) }

// TestReportReadsTheListOfUnsteadyTests checks for which lists the gate fails, whether a test was unsteady or not.
func TestReportReadsTheListOfUnsteadyTests(t *testing.T) {
	const (
		format  = `want PACKAGE.TEST YYYY-MM-DD SUSPICION: write it like 'service/httpapi.TestSignIn 2026-03-14 `
		why     = " an order of events\n"
		missing = "p.TestA is not in scripts/unsteady.txt: "
	)
	for _, c := range []struct {
		name, list       string
		unsteady, steady int // exit statuses with the unsteady test p.TestA and without it
		want             string
	}{
		{"empty", "# a comment\n\n", 1, 0, missing},
		{"listed", "p.TestA " + day(0) + why, 3, 0, "UNSTEADY\n  p.TestA " + day(0) + why},
		{"seven days", "p.TestA " + day(7) + why, 3, 0, ""},
		{"eight days", "p.TestA " + day(8) + why, 1, 1, "line 1: p.TestA has stood there for 8 days, and 7 are"},
		{"another is too old", "\np.TestB " + day(30) + " x\np.TestA " + day(0) + " x\n", 1, 1, "line 2: p.TestB"},
		{"another test", "p.TestAB " + day(0) + why, 1, 0, missing},
		{"of another package", "q.TestA " + day(0) + why, 1, 0, missing},
		{"the future", "p.TestA " + day(-3) + why, 1, 1, day(-3) + " is in the future"},
		{"no suspicion", "p.TestA " + day(0) + "\n", 1, 1, format},
		{"no date", "p.TestA an order of events\n", 1, 1, format},
		{"no such date", "p.TestA 2026-02-31 an order of events\n", 1, 1, format},
		{"no package", "TestA " + day(0) + why, 1, 1, format},
	} {
		dir := t.TempDir()
		list := writeFile(t, dir, "unsteady.txt", c.list)
		log := writeFile(t, dir, "log", outcome("fail", "TestA")+event("fail", ""))
		good := writeFile(t, dir, "good", outcome("pass", "TestA")+event("pass", ""))
		groups := writeFile(t, dir, "groups", "go\tgo\t1\t9\t"+log+"\ngo, again\tgo\t0\t1\t"+good+"\n")
		if got, status := runReport(t, groups, list); status != c.unsteady || !strings.Contains(got, c.want) {
			t.Errorf("%s: got status %d and\n%s\nwant status %d and %q", c.name, status, got, c.unsteady, c.want)
		}
		groups = writeFile(t, dir, "groups", "go\tgo\t0\t9\t"+good+"\n")
		if got, status := runReport(t, groups, list); status != c.steady {
			t.Errorf("%s, no unsteady test: got status %d and\n%s\nwant status %d", c.name, status, got, c.steady)
		}
		check := exec.Command("python3", filepath.Join(root(t), "scripts/archtest/unsteady.py"), list)
		if got, status := output(t, check); status != c.steady {
			t.Errorf("%s: scripts/check: got status %d and\n%s\nwant status %d", c.name, status, got, c.steady)
		}
	}
}

// copyScripts returns a repository with some of our scripts and with a scripts/setup that prepares nothing.
func copyScripts(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, dir, name, string(text))
	}
	writeFile(t, dir, "scripts/setup", `set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
data_dir=$root/data dev_python=$root/dev_python go_tags=none
setup() { :; }
setup_dev() { :; }
say() { echo "$*" >&2; }
fail() { printf 'stopped: %s\n' "$@" >&2; exit 1; }
patiently() { shift; "$@"; }
`)
	return dir
}

// TestGateExitsWithUnsteadyTests runs scripts/test with a go command of its own, whose TestA fails on its first run.
func TestGateExitsWithUnsteadyTests(t *testing.T) {
	const fakeGo = `#!/bin/sh
[ "$1" != list ] || { echo glasshouse/p; exit; }
case " $* " in *" -p 1 "*) exit ;; esac
if [ "$MODE" = good ] || [ -e again ]; then
  printf '%s' "$PASSED"
  exit
fi
[ "$MODE" = bad ] || touch again
printf '%s' "$FAILED"
exit 1
`
	for _, c := range []struct {
		mode, tier, list string
		want             int
		unsteady         bool
	}{
		{"good", "whole", "", 0, false},
		{"unsteady", "whole", "p.TestA " + day(0) + " an order of events\n", 3, true},
		{"unsteady", "whole", "# nothing\n", 1, true},
		{"unsteady", "quick", "p.TestA " + day(0) + " an order of events\n", 1, false},
		{"bad", "whole", "p.TestA " + day(0) + " an order of events\n", 1, false},
		{"good", "whole", "p.TestA\n", 1, true},
	} {
		dir := copyScripts(t, "scripts/test", "scripts/archtest/report.py", "scripts/archtest/unsteady.py")
		writeFile(t, dir, "scripts/unsteady.txt", c.list)
		writeFile(t, dir, "scripts/check", "#!/bin/sh\n")
		writeFile(t, dir, "bin/go", fakeGo)
		writeFile(t, dir, "dev_python", "#!/bin/sh\n"+
			`case "$*" in *pytest*) echo "1 passed in 1 s" ;; *) exec python3 "$@" ;; esac`+"\n")
		cmd := exec.Command(filepath.Join(dir, "scripts/test"), c.tier)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "MODE="+c.mode,
			"PASSED="+outcome("pass", "TestA")+event("pass", ""),
			"FAILED="+outcome("fail", "TestA")+event("fail", ""))
		got, status := output(t, cmd)
		if status != c.want || strings.Contains(got, "UNSTEADY\n") != c.unsteady {
			t.Errorf("%+v: got status %d and\n%s", c, status, got)
		}
	}
}

// TestCIAcceptsUnsteadyTests checks that CI runs both tiers whatever they return, and fails unless each returns 0 or 3.
func TestCIAcceptsUnsteadyTests(t *testing.T) {
	for _, c := range []struct{ whole, clients, want int }{
		{0, 0, 0}, {3, 0, 0}, {0, 3, 0}, {3, 3, 0}, {1, 0, 1}, {0, 1, 1}, {1, 3, 1}, {3, 1, 1}, {2, 0, 2}, {9, 3, 9},
	} {
		dir := copyScripts(t, ".ci/run")
		writeFile(t, dir, "scripts/test", fmt.Sprintf("#!/bin/sh\necho tier $1\n"+
			"case $1 in whole) exit %d ;; clients) exit %d ;; *) exit 9 ;; esac\n", c.whole, c.clients))
		got, status := output(t, exec.Command(filepath.Join(dir, ".ci/run")))
		if status != c.want || got != "tier whole\ntier clients\n" {
			t.Errorf("%+v: got status %d and %q, want both tiers", c, status, got)
		}
	}
}

// TestPackageRefusesUnsteadyTests checks that no package is built while a test is listed, except for a trial.
func TestPackageRefusesUnsteadyTests(t *testing.T) {
	for _, c := range []struct {
		list, option string
		refused      bool
	}{
		{"# PACKAGE.TEST\n\n  # x\n", "", false},
		{"# x\np.TestA 2026-03-14 an order of events\n", "", true},
		{"p.TestA", "", true},
		{"p.TestA 2026-03-14 an order of events\n", "--trial", false},
	} {
		dir := copyScripts(t, "scripts/package")
		writeFile(t, dir, "scripts/unsteady.txt", c.list)
		writeFile(t, dir, "bin/dpkg", "#!/bin/sh\nexit 1\n") // the next step ends the script
		cmd := exec.Command(filepath.Join(dir, "scripts/package"), strings.Fields(c.option+" "+dir+"/dist")...)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
		got, status := output(t, cmd)
		_, err := os.Stat(filepath.Join(dir, "dist"))
		if status != 1 || strings.Contains(got, "unsteady.txt lists tests") != c.refused ||
			strings.Contains(got, "p.TestA") != c.refused || (err != nil) != c.refused {
			t.Errorf("%+v: got status %d, %q and dist: %v", c, status, got, err)
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

// TestReportReadsTAP checks that the report counts the lines of the Test Anything Protocol, shows failed tests with
// their output, and fails if a program that printed no failure does.
func TestReportReadsTAP(t *testing.T) {
	for _, c := range []struct {
		log    string
		status int
		want   []string
	}{
		{"ok 1 - a\nok 2 - b\n1..2\n", 0, []string{"2 passed, 0 failed"}},
		{"ok 1 - a\nnot ok 2 - b\n# got 1, want 2\nok 3 - c\n# fine\n1..3\n", 1,
			[]string{"--- FAIL vm: 2 - b\n# got 1, want 2\n\n", "2 passed, 1 failed"}},
		{"ok 1 - a\nit hangs\n", 1, []string{"--- FAIL vm\nok 1 - a\nit hangs\n", "1 passed, 1 failed"}},
		{"not run: no emulator\n", 3, []string{"Not run\n  vm: no emulator\n"}},
	} {
		dir := t.TempDir()
		log := writeFile(t, dir, "log", c.log)
		got, status := runReport(t, writeFile(t, dir, "groups", fmt.Sprintf("vm\ttap\t%d\t1\t%s\n", c.status, log)))
		if (status == 0) != (c.status == 0) { // a report without a passed test fails as well
			t.Errorf("%q: got status %d", c.log, status)
		}
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%q: got\n%s\nwant %q", c.log, got, want)
			}
		}
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
