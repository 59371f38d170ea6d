package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
)

// TestDoctorReportsTheLevelThatTheServiceUses covers both forms of the report, and the exit code, which says
// whether the service would start.
func TestDoctorReportsTheLevelThatTheServiceUses(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	path, dir := binary(t), emptyDataDir(t)
	out, err := exec.Command(path, "doctor", "--json", "--data-dir", dir).Output()
	if err != nil {
		t.Fatalf("doctor --json: %v: %s", err, out)
	}
	var report isolate.Report
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Probes) < 10 || len(report.Levels) != 4 || report.MinLevel != isolate.LevelLandlock {
		t.Errorf("got %+v, want at least 10 probes, 4 levels and the minimum %s", report, isolate.LevelLandlock)
	}
	for _, p := range append(report.Probes, report.Levels...) {
		if p.Found == "" || p.OK != (p.Remedy == "") {
			t.Errorf("got probe %+v, want a finding, and a remedy if the probe failed", p)
		}
	}
	strongest := slices.IndexFunc(
		report.Levels,
		func(p isolate.Probe) bool { return p.OK && p.Name != isolate.LevelRLimits },
	)
	if strongest >= 0 && report.Levels[strongest].Name != report.Isolation.Level {
		t.Errorf(
			"got level %s in use, want the strongest that works, %s",
			report.Isolation.Level,
			report.Levels[strongest].Name,
		)
	}
	const refused = "postgres://127.0.0.1:1/x"
	for args, want := range map[string]string{
		"":                           "queries analysed by PostgreSQL first: on for knowledge\n",
		"--knowledge-url " + refused: "on for none; off for knowledge: --server-check NAME turns it on\n",
		"--server-check hr --database hr=" + refused: "on for knowledge, hr\n      remedy: hr: the database",
	} {
		out, _ := exec.Command(path, append([]string{"doctor", "--data-dir", dir}, strings.Fields(args)...)...).Output()
		if !strings.Contains(string(out), want) {
			t.Errorf("doctor %s: got %s, want %q", args, out, want)
		}
	}
	out, err = exec.Command(path, "doctor", "--data-dir", dir).Output()
	if want := "Level in use: " + report.Isolation.Level; err != nil || !strings.Contains(string(out), want) {
		t.Errorf("doctor: got %v and %s, want %q", err, out, want)
	}
	cmd := exec.Command(path, "doctor", "--isolation", "strongest", "--data-dir", dir)
	out, _ = cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != exitFailed ||
		!strings.Contains(string(out), "unknown isolation level") {
		t.Errorf(
			"doctor of an unknown level: got exit code %d and %s, want %d and an error that says so",
			code,
			out,
			exitFailed,
		)
	}
}

// TestIsolationLevelCanBeForced starts the service on a weaker level, and not on one below the minimum.
func TestIsolationLevelCanBeForced(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	path, dir := binary(t), dataDir(t)
	const variable = "GLASSHOUSE_ISOLATION=" + isolate.LevelLandlock
	cmd, c := start(t, path, dir, withPackages(), variable)
	var e struct {
		Result json.RawMessage
		sandbox.Isolation
	}
	body := map[string]any{"code": "import pandas as pd\nlen(pd.DataFrame({'a': [1, 2]}))"}
	if err := c.call(t.Context(), "POST", "/sandbox/agent/quick-execute?include=enforced_by", body, &e); err != nil {
		t.Fatal(err)
	}
	if string(e.Result) != "2" || e.Isolation.Level != isolate.LevelLandlock ||
		e.Isolation.EnforcedBy["enable_file_access"] != "Landlock" {
		t.Errorf("got %+v, want result 2 on the level %s", e, isolate.LevelLandlock)
	}
	homes := filepath.Join(dir, "homes")
	if folders, _ := os.ReadDir(homes); len(folders) == 0 {
		t.Errorf("got no session directory in %s, want those of the waiting sandboxes", homes)
	}
	stop(t, cmd)
	if folders, _ := os.ReadDir(homes); len(folders) > 0 {
		t.Errorf("after the end: got session directories %v, want none", folders)
	}
	refused := exec.Command(path, "serve", "--listen", "127.0.0.1:0", "--data-dir", dir, "--min-level", "full")
	refused.Env = append(os.Environ(), variable)
	out, err := refused.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "weaker than the minimum") {
		t.Errorf("with --min-level full: got %v and %s, want an error that says so", err, out)
	}
}
