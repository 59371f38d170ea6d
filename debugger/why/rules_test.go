package why

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The document of the answer lists the kinds of all rules, and no others.
func TestDocumentListsTheRules(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/debugging.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "| kind | about |\n|---|---|\n"
	for _, r := range rules {
		want += fmt.Sprintf("| `%s` | %s |\n", r.name, r.examines)
	}
	if !strings.Contains(string(document), want+"\n") {
		t.Errorf("want this table in docs/debugging.md:\n%s", want)
	}
}
