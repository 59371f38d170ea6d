package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile(`\bTest[A-Z]\w+`)
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	mdLink   = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
)

// tracked returns the files that git tracks or would add, with one of the endings.
func tracked(t *testing.T, endings ...string) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var list []string
	for _, name := range strings.Fields(string(out)) {
		for _, ending := range endings {
			if strings.HasSuffix(name, ending) {
				list = append(list, filepath.Join(root(t), name))
			}
		}
	}
	return list
}

// TestDocumentationNamesExistingTestsAndFiles fails if a Markdown file names a test or links to a file
// that does not exist.
func TestDocumentationNamesExistingTestsAndFiles(t *testing.T) {
	tests := map[string]bool{}
	for _, name := range tracked(t, "_test.go") {
		text, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // deleted, not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range testFunc.FindAllSubmatch(text, -1) {
			tests[string(match[1])] = true
		}
	}
	for _, name := range tracked(t, ".md") {
		text, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range testName.FindAllString(string(text), -1) {
			if !tests[test] && test != "TestX" { // TestX is the placeholder of CONTRIBUTING
				t.Errorf("%s names %s, which is not a test", filepath.Base(name), test)
			}
		}
		for _, link := range mdLink.FindAllSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), string(link[1]))); err != nil {
				t.Errorf("%s links to %s, which does not exist", filepath.Base(name), link[1])
			}
		}
	}
}
