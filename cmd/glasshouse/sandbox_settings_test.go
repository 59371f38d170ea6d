package main

import (
	"fmt"
	"strings"
	"testing"
)

// Each default and each ceiling of sandboxes is the operator's, by flag and by environment.
func TestSandboxSettings(t *testing.T) {
	t.Parallel()
	values := map[string][2]int64{ // the default and the ceiling, in the unit of the flag
		"memory-mb": {300, 1500}, "execution-time": {40, 400}, "idle-timeout": {700, 800}, "lifetime": {900, 1000},
		"sandbox-uploads-mb": {6, 7}, "code-size": {2000, 3000},
	}
	arguments := []string{
		"--default-profile", "strict", "--allowed-modules", "os,secret_lab", "GLASSHOUSE_BLOCKED_MODULES=decimal",
	}
	for n, l := range sandboxLimits {
		pair, ok := values[l.name]
		if !ok {
			t.Fatalf("the test sets no %s", l.name)
		}
		defaultFlag, ceilingFlag := "default-"+l.name, "max-"+l.name
		if n%2 == 0 {
			defaultFlag, ceilingFlag = ceilingFlag, defaultFlag
			pair[0], pair[1] = pair[1], pair[0]
		}
		arguments = append(arguments, fmt.Sprintf("--%s=%d", defaultFlag, pair[0]),
			fmt.Sprintf("%s=%d", environmentName(ceilingFlag), pair[1]))
	}
	_, c := start(t, binary(t), dataDir(t), arguments...)
	made := c.must(t, "POST", "/sandbox/create", map[string]any{})
	config := made["data"].(map[string]any)["config"].(map[string]any)
	for _, l := range sandboxLimits {
		pair := values[l.name]
		if got, want := config[l.key], float64(pair[0]*l.bytes); got != want {
			t.Errorf("%s of a sandbox without a config: got %v, want %v", l.key, got, want)
		}
		c.newSandbox(t, map[string]any{l.key: pair[1] * l.bytes})
		err := c.call(t.Context(), "POST", "/sandbox/create", map[string]any{l.key: pair[1]*l.bytes + 1}, nil)
		text, ceiling := fmt.Sprint(err), fmt.Sprint(pair[1]*l.bytes)
		if !strings.Contains(text, l.key) || !strings.Contains(text, ceiling) {
			t.Errorf("%s above its ceiling: got %v, want an error that names the key and the ceiling", l.key, err)
		}
	}
	if config["profile"] != "strict" {
		t.Errorf("profile: got %v, want strict", config["profile"])
	}
	for code, want := range map[string]string{
		"import os; os.getpid() > 0": "completed",
		"import secret_lab":          "ModuleNotFoundError",
		"import decimal":             "blocked_modules",
		"import socket":              "the operator can allow it with --allowed-modules socket",
		"1 if eval('1') else 0":      "json.loads",
	} {
		path := fmt.Sprintf("/sandbox/%s/execute", made["sandbox_id"])
		if got := fmt.Sprint(c.must(t, "POST", path, map[string]any{"code": code})); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %q", code, got, want)
		}
	}
}

func TestSandboxSettingsAreChecked(t *testing.T) {
	for arguments, want := range map[string]string{
		"--max-memory-mb=1":        "--max-memory-mb (GLASSHOUSE_MAX_MEMORY_MB): it must be from 64 to",
		"--default-memory-mb=2000": "(GLASSHOUSE_DEFAULT_MEMORY_MB): it must be from 64 to 1024",
		"--default-profile=root":   "(GLASSHOUSE_DEFAULT_PROFILE): it must be one of analyst, strict",
		"--allowed-modules=a/b":    `--allowed-modules: "a/b" is not a module name`,
		"--blocked-modules=a/b":    `(GLASSHOUSE_BLOCKED_MODULES): "a/b" is not a module name`,

		"--max-sandbox-uploads-mb=999999":                 "it must be from 0 to 1073741824 bytes",
		"--max-execution-time=10 --default-lifetime=1":    "",
		"--max-memory-mb=4000 --default-memory-mb=2000":   "",
		"--allowed-modules=* --default-profile=analyst":   "",
		"--default-profile=unrestricted --max-lifetime=5": "",
	} {
		s, err := parseSettings(strings.Fields(arguments)...)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", arguments, err, want)
		}
		if strings.Contains(arguments, "max-execution-time=10") && s.defaults.MaxExecutionTime != 10 && err == nil {
			t.Errorf("%s: got the default %d s, want its ceiling", arguments, s.defaults.MaxExecutionTime)
		}
	}
}
