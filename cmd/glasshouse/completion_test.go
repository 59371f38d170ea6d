package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"testing"

	"glasshouse/sandbox/isolate"
)

// TestCompletionWorksOnEveryLevel asks for names that only jedi finds. By default jedi starts a process, which a guest
// can't do.
func TestCompletionWorksOnEveryLevel(t *testing.T) {
	t.Parallel()
	path := binary(t)
	out, err := exec.Command(path, "doctor", "--json", "--data-dir", emptyDataDir(t)).Output()
	var report isolate.Report
	if err != nil || json.Unmarshal(out, &report) != nil {
		t.Fatalf("doctor --json: %v: %s", err, out)
	}
	for _, level := range report.Levels {
		if !level.OK || level.Name == isolate.LevelRLimits {
			continue
		}
		t.Run(level.Name, func(t *testing.T) {
			cmd, c := start(t, path, dataDir(t), withPackages(), "--isolation", level.Name)
			id := c.newSandbox(t, nil)
			for code, want := range map[string]string{
				"for value in ['a']:\n    value.capit":                  "capitalize",
				"import json\ndef f(): return json.dumps({})\nf().isal": "isalnum",
			} {
				type match struct{ Text string }
				var got struct{ Matches []match }
				eventually(t, func() error { // on a busy machine jedi may take too long
					err := c.call(t.Context(), "POST", "/sandbox/"+id+"/complete", map[string]any{"code": code}, &got)
					if err != nil || !slices.Contains(got.Matches, match{want}) {
						return fmt.Errorf("%q: got %v, error %v; want %s", code, got.Matches, err, want)
					}
					return nil
				})
			}
			stop(t, cmd)
		})
		if testing.Short() {
			break // the strongest level is the first
		}
	}
}
