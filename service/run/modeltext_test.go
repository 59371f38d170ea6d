package run

import (
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// A model finds every artifact, also one whose name looks like that of a large output.
func TestModelTextListsEveryArtifact(t *testing.T) {
	t.Parallel()
	e := &sandbox.Execution{ID: "e1", Status: sandbox.StatusCompleted, Artifacts: []sandbox.Artifact{
		{ID: "a1", Path: "output-2026.csv", Size: 7, MIME: "text/csv"}, {ID: "a2", Path: "b.csv", MIME: "text/csv"},
	}}
	text := ModelText(e, DefaultModelTextChars)
	for _, want := range []string{"artifact: output-2026.csv (7 bytes, text/csv, artifact_id=a1)", "artifact: b.csv"} {
		if !strings.Contains(text, want) {
			t.Errorf("got %q, want %q in it", text, want)
		}
	}
}
