package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// Each variable of other servers sets a limit of a service that runs. The service's own variable and its flag override
// it.
func TestVariablesOfOtherServers(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	_, admin := start(t, withLog(t, log), dataDir(t), "SANDBOX_TIMEOUT_S=17.5", "SESSION_TTL_S=321",
		"SESSION_MAX_BYTES=3000000", "MAX_INPUT_CHARS=2345", "RATE_LIMIT_MAX=2", "RATE_LIMIT_WINDOW_MS=20000")
	data := admin.must(t, "POST", "/sandbox/create", map[string]any{})["data"].(map[string]any)
	config := data["config"].(map[string]any)
	for key, want := range map[string]float64{"max_execution_time": 18, "idle_timeout": 321,
		"upload_max_bytes": 3 << 20, "max_code_size": 2345, "lifetime": 3600} {
		if config[key] != want {
			t.Errorf("%s: got %v, want %v", key, config[key], want)
		}
	}
	made := admin.must(t, "POST", "/keys", map[string]any{"name": "n", "user_id": "anna"})
	for n := range 8 {
		status, text := me(t, admin.address, fmt.Sprint(made["key"]))
		if want := http.StatusOK; n < 6 && status != want {
			t.Errorf("request %d: got HTTP %d %s, want %d", n, status, text, want)
		}
		if n == 7 && (status != http.StatusTooManyRequests || !strings.Contains(text, "6 requests per minute")) {
			t.Errorf("request %d: got HTTP %d %s, want the limit of 6 per minute", n, status, text)
		}
	}
	for _, line := range []string{"SANDBOX_TIMEOUT_S set --default-execution-time to 18",
		"SESSION_TTL_S set --default-idle-timeout to 321", "SESSION_MAX_BYTES set --default-sandbox-uploads-mb to 3",
		"MAX_INPUT_CHARS set --default-code-size to 2345",
		"RATE_LIMIT_MAX and RATE_LIMIT_WINDOW_MS set --key-requests to 6",
	} {
		if text := read(t, log); !strings.Contains(text, line) {
			t.Errorf("got the log %s, want %q", text, line)
		}
	}
}

func TestOwnSettingsOverrideThoseOfOtherServers(t *testing.T) {
	t.Setenv("SANDBOX_TIMEOUT_S", "17")
	t.Setenv("SESSION_TTL_S", "321")
	t.Setenv("GLASSHOUSE_DEFAULT_IDLE_TIMEOUT", "44")
	t.Setenv("RATE_LIMIT_MAX", "7")
	s, err := parseSettings("--default-execution-time=12")
	if err != nil {
		t.Fatal(err)
	}
	if s.defaults.MaxExecutionTime != 12 || s.defaults.IdleTimeout != 44 || s.limits.keys.Requests != 7 {
		t.Errorf("got %v s, %v s and %d requests, want 12, 44 and 7", s.defaults.MaxExecutionTime,
			s.defaults.IdleTimeout, s.limits.keys.Requests)
	}
	if len(s.notes) != 1 || !strings.HasPrefix(s.notes[0], "RATE_LIMIT_MAX set --key-requests to 7") {
		t.Errorf("got the notes %q, want one about RATE_LIMIT_MAX", s.notes)
	}
	for _, wrong := range []string{"x", "-1", "0", "NaN", "1e99", "Inf"} {
		t.Setenv("SANDBOX_TIMEOUT_S", wrong)
		if _, err := parseSettings(); err == nil || !strings.Contains(err.Error(), "SANDBOX_TIMEOUT_S") {
			t.Errorf("SANDBOX_TIMEOUT_S=%s: got %v, want an error that names it", wrong, err)
		}
	}
	t.Setenv("SANDBOX_TIMEOUT_S", "100000") // above the ceiling
	if _, err := parseSettings(); err == nil || !strings.Contains(err.Error(), "SANDBOX_TIMEOUT_S set") {
		t.Errorf("got %v, want an error that names the variable and the ceiling", err)
	}
}
