//go:build nightly

package httpapi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// minIdentical is the part of the programs whose replays must be identical.
const minIdentical = 0.95

// TestReplaysOfPrograms replays programs that people who did not know the code have written, after public examples:
// analyses of the database, dates, randomness, sets, files, errors, asyncio, figures, threads and objects. Each replay
// that is not identical must name a source of the difference.
func TestReplaysOfPrograms(t *testing.T) {
	files, err := filepath.Glob("testdata/replays/*.py")
	if err != nil || len(files) < 100 {
		t.Fatalf("got %d programs, %v, want at least 100", len(files), err)
	}
	c := newUser(t, sandbox.RoleAgent)
	identical := 0
	var others []string
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": string(code)})
		again := c.replay(t, first, nil)
		if again.get("replay.grade") == "identical" {
			identical++
			continue
		}
		sources, _ := again.get("replay.sources").([]any)
		others = append(others, fmt.Sprintf("%s: %v %v", filepath.Base(file), again.get("replay.grade"), sources))
		if len(sources) == 0 {
			t.Errorf("%s: got no source of the difference: %s", file, mustJSON(t, again.get("replay")))
		}
	}
	t.Logf("report: %d of %d replays are identical; the others: %s", identical, len(files), strings.Join(others, "; "))
	if part := float64(identical) / float64(len(files)); part < minIdentical {
		t.Errorf("got %.3f of the replays identical, want at least %.2f", part, minIdentical)
	}
}
