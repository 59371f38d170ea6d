package archtest

import (
	"os"
	"path/filepath"
	"regexp"
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
