package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"glasshouse/sandbox/isolate"
)

// doctor says what there is, and by its exit code whether the service would start.
func TestDoctor(t *testing.T) {
	path, dir := binary(t), dataDir(t)
	out, err := exec.Command(path, "doctor", "--json", "--data-dir", dir).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var report isolate.Report
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Probes) < 10 || len(report.Levels) != 4 || report.Isolation.Level == "" || report.MinLevel != isolate.LevelLandlock {
		t.Errorf("%+v", report)
	}
	for _, p := range append(report.Probes, report.Levels...) {
		if p.Found == "" || p.OK != (p.Remedy == "") {
			t.Errorf("%+v", p)
		}
	}
	for _, level := range report.Levels { // the strongest that holds is the one taken
		if level.OK && level.Name != isolate.LevelRLimits {
			if level.Name != report.Isolation.Level {
				t.Errorf("%s holds, and %s is taken", level.Name, report.Isolation.Level)
			}
			break
		}
	}
	text, err := exec.Command(path, "doctor", "--data-dir", dir).Output()
	if err != nil || !strings.Contains(string(text), "Level in use: "+report.Isolation.Level) {
		t.Errorf("%v: %s", err, text)
	}
	var exit *exec.ExitError
	out, err = exec.Command(path, "doctor", "--isolation", "strongest", "--data-dir", dir).CombinedOutput()
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "unknown isolation level") {
		t.Errorf("doctor of an unknown level: got %v: %s", err, out)
	}
}

// The service runs on a lower level when it is told to, and refuses one that is too low.
func TestALevelIsForced(t *testing.T) {
	path, dir := binary(t), dataDir(t)
	t.Setenv("GLASSHOUSE_ISOLATION", isolate.LevelLandlock)
	cmd, r := start(t, path, dir)
	var e struct {
		Result    json.RawMessage
		Isolation struct {
			Level      string
			EnforcedBy map[string]string `json:"enforced_by"`
		}
	}
	if err := r.call(t.Context(), "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "import pandas as pd\nlen(pd.DataFrame({'a': [1, 2]}))"}, &e); err != nil {
		t.Fatal(err)
	}
	if string(e.Result) != "2" || e.Isolation.Level != isolate.LevelLandlock || e.Isolation.EnforcedBy["enable_file_access"] != "Landlock" {
		t.Errorf("%+v", e)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "homes")); len(left) == 0 {
		t.Error("a service on this level has no folder of sessions")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "homes")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	out, err := exec.Command(path, "serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--min-level", "full").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "weaker than the minimum") {
		t.Errorf("%v: %s", err, out)
	}
}
